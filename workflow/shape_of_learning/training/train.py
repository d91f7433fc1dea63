"""Run the loop of all trainings, reproducible byte by byte, and save steps that serve like revisions."""

import logging
import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import tokenizers
import torch
import transformers

from shape_of_learning.checkpoints.record import read_record, write_record
from shape_of_learning.files import write_table
from shape_of_learning.training.recipe import GRADIENT_NORM, WEIGHT_DECAY, name_step

SECONDS_BETWEEN_LINES = 30  # between two lines of progress in the log
logger = logging.getLogger(__name__)

TRAINING_COLUMNS = (
    "model",
    "revision",
    "step",
    "twin_of",
    "regulariser",
    "strength",
    "origin",
    "origin_revision",
    "task",
    "seed",
    "held_out_loss",
    "regularisation",
    "metric",
    "score",
)


def train(
    parameters: Sequence[torch.nn.Parameter],
    batches: Iterable[Any],
    losses: Callable[[Any], dict[str, torch.Tensor]],
    rates: Sequence[float],
    *,
    betas: tuple[float, float],
    name: str,
) -> Iterator[int]:
    """Train by AdamW, and yield the number of updates so far: 0 before the first update, then 1, 2, ...

    Parameters
    ----------
    parameters : sequence of Parameter
        The parameters to train; only matrices decay.
    batches : iterable
        One batch for each update.
    losses : callable
        Returns the terms of the loss of a batch by name; training minimises their sum.
    rates : sequence of float
        Learning rate of each update.
    betas : tuple of float
        Betas of AdamW.
    name : str
        Name of the model in the log.
    """
    optimiser = torch.optim.AdamW(
        [
            {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": WEIGHT_DECAY},
            {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
        ],
        betas=betas,
    )
    last_line = monotonic()
    for count, (rate, batch) in enumerate(zip(rates, batches, strict=True)):
        yield count
        for group in optimiser.param_groups:
            group["lr"] = rate
        terms = losses(batch)
        optimiser.zero_grad()
        torch.stack(list(terms.values())).sum().backward()
        torch.nn.utils.clip_grad_norm_(parameters, GRADIENT_NORM)
        optimiser.step()
        if monotonic() - last_line > SECONDS_BETWEEN_LINES:
            last_line = monotonic()
            logger.info("%s: update %d of %d, %s", name, count + 1, len(rates), format_terms(terms))
    yield len(rates)


def format_terms(terms: dict[str, torch.Tensor]) -> str:
    """Format the terms of a loss for a message."""
    return ", ".join(f"{name} {value.item():.3f}" for name, value in terms.items())


@contextmanager
def make_deterministic(threads: int) -> Iterator[None]:
    """Make torch reproducible inside the block, and restore its settings and random state afterwards."""
    threads_before = torch.get_num_threads()
    deterministic_before = torch.are_deterministic_algorithms_enabled()
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        torch.set_num_threads(threads_before)
        torch.use_deterministic_algorithms(deterministic_before)


def list_versions() -> dict[str, str]:
    """Return the versions of software, and the vector instructions, on which the bytes of weights depend."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "tokenizers": tokenizers.__version__,
        "vector_instructions": torch.backends.cpu.get_cpu_capability(),
    }


def save_step(
    network: Any,
    write_tokenizer: Callable[[Path], object],
    steps: Path,
    *,
    step: int,
    **provenance: Any,
) -> None:
    """Save a model with its tokenizer and the record of :func:`.write_record` in the folder of a step."""
    folder = steps / name_step(step)
    network.save_pretrained(folder)
    write_tokenizer(folder)
    # safetensors lets only the owner read its files, but on a cluster the group needs to read them, too.
    for weights in folder.glob("*.safetensors"):
        weights.chmod((folder / "config.json").stat().st_mode)
    write_record(folder, revision=folder.name, step=step, **provenance)


def write_training_table(steps: Path, table: Path) -> None:
    """Write the recipes, held-out losses and scores of all steps in a folder."""
    rows: list[list[Any]] = []
    for folder in steps.iterdir():
        record = read_record(folder) or {}
        recipe, task, origin = (record.get(key, {}) for key in ("recipe", "task", "origin"))
        cells = {
            **record,
            "twin_of": recipe.get("twin_of"),
            "regulariser": recipe.get("regulariser"),
            "strength": recipe.get("strength"),
            "seed": recipe.get("seed"),
            "origin": origin.get("model"),
            "origin_revision": origin.get("revision"),
            "task": task.get("name"),
            "metric": task.get("metric"),
            "held_out_loss": record.get("loss"),
        }
        rows.append([cells.get(column) for column in TRAINING_COLUMNS])
    rows.sort(key=lambda row: row[TRAINING_COLUMNS.index("step")])
    write_table(table, TRAINING_COLUMNS, rows)
