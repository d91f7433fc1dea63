"""Estimate the memory and the time of the job that measures a fine-tuning on its task."""

from shape_of_learning.plan.entries import Entry
from shape_of_learning.plan.resources import (
    EXAMPLE_TOKENS,
    MB,
    Needs,
    count_examples,
    estimate_forward,
    estimate_layer,
)
from shape_of_learning.plan.settings import Settings


def estimate_task(model: Entry, settings: Settings, threads: int) -> Needs:
    """Estimate the needs of a job that measures the checkpoints of a fine-tuning one after the other.

    In memory: the hidden states of the held-out examples at all layers, and of all examples at the last one. Layers are
    measured one at a time.
    """
    examples = count_examples(model, settings)
    tokens = {split: EXAMPLE_TOKENS * number for split, number in examples.items()}
    layers, width = model.shape.layers, model.shape.hidden_size
    states_mb = 4 * width * (tokens["train"] + (layers + 1) * tokens["held_out"]) / MB
    forward = estimate_forward(model, settings, threads, sum(tokens.values()))
    layer = estimate_layer(model, settings, 1, tokens["held_out"])
    memory = states_mb + max(forward.memory, layer.memory)
    minutes = forward.minutes + (layers + 1) * layer.minutes
    return Needs(memory, minutes * len(model.checkpoints))
