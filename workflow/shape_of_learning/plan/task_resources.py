"""How much memory and time a task takes; units are those of plan/resources.py."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from shape_of_learning.plan.resources import (
    CHARACTERS_PER_TOKEN,
    CORE_FLOPS,
    MB,
    Work,
    forward_memory_mb,
    forward_minutes,
    isotropy_minutes,
    pretraining_minutes,
    spectra_minutes,
)

# Where neither the task nor its entry says how many examples there are.
EXAMPLES = {"train": 10_000, "held_out": 2_000}
# Of an example, with those that fill up its batch.
TOKENS = 128
# Multiplications per number of the last layer: by 81 centres of clusters in a few tens of rounds, and by 32
# directions for each of some thirty adjustments. Besides, each vector takes as long as so many numbers.
PRODUCTS, BESIDES = 4_000, 1_000


def examples_of(description: Path, entry: Mapping[str, Any]) -> dict[str, int]:
    """Count the examples of each split: of a task that is made, or as many as its entry allows.

    Parameters
    ----------
    description : Path
        What is written of the task, if it is there.
    entry : mapping
        Of section ``tasks``.
    """
    made = json.loads(description.read_text()) if description.exists() else entry.get("most", {})
    return {split: made.get(split, number) for split, number in EXAMPLES.items()}


def task_memory_mb(work: Work, examples: Mapping[str, int], threads: int) -> float:
    """Memory of measuring a checkpoint on a task.

    All layers of the held-out tokens are kept and the last one of those in training, of which there are a few
    copies as float64 when the model is gone.
    """
    last = sum(examples.values())
    kept = _states_mb(work, last + work.layers * examples["held_out"])
    return kept + max(forward_memory_mb(_of_texts(work, last), threads), 6 * _states_mb(work, last))


def task_minutes(work: Work, examples: Mapping[str, int], *, threads: int, on_gpu: bool) -> float:
    """Time of measuring a checkpoint on a task: the texts of both splits, each layer, and the probes."""
    texts, held_out = (_of_texts(work, n) for n in (sum(examples.values()), examples["held_out"]))
    layers = (work.layers + 1) * (isotropy_minutes(held_out) + spectra_minutes(held_out))
    last = 2 * PRODUCTS * texts.tokens * (work.hidden_size + BESIDES) / CORE_FLOPS / 60
    return forward_minutes(texts, threads=threads, on_gpu=on_gpu) + layers + last


def finetuning_minutes(
    work: Work, examples: Mapping[str, int], recipe: Mapping[str, Any], saved: int
) -> float:
    """Time of a fine-tuning: its epochs, and the held-out split at each of so many saved steps."""
    shown = recipe["epochs"] * examples["train"] + saved * examples["held_out"]
    return pretraining_minutes(work, shown * TOKENS, recipe["threads"])


def _of_texts(work: Work, texts: int) -> Work:
    return replace(work, windows=texts, window_characters=TOKENS * CHARACTERS_PER_TOKEN)


def _states_mb(work: Work, examples: int) -> float:
    return examples * TOKENS * work.hidden_size * 4 / MB
