"""Estimate the memory and the time of the job that measures a fine-tuning on its task."""

from shape_of_learning.plan.entries import Entry
from shape_of_learning.plan.resources import (
    EXAMPLE_TOKENS,
    Needs,
    count_examples,
    estimate_checkpoint,
)
from shape_of_learning.plan.settings import Settings


def estimate_task(model: Entry, settings: Settings, threads: int) -> Needs:
    """Estimate the needs of a job that measures the checkpoints of a fine-tuning one after the other."""
    tokens = sum(count_examples(model, settings).values()) * EXAMPLE_TOKENS
    memory, minutes = estimate_checkpoint(model, settings, threads, tokens)
    return Needs(memory, minutes * len(model.checkpoints))
