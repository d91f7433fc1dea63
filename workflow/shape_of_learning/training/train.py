"""What all trainings share: one loop, the same bytes each time, and steps that serve as revisions."""

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

SECONDS_BETWEEN_LINES = 30  # of progress
logger = logging.getLogger(__name__)

TRAINING_COLUMNS = (
    *("model", "revision", "step", "twin_of", "regulariser", "strength", "origin"),
    *("origin_revision", "task", "seed", "held_out_loss", "regularisation", "metric", "score"),
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
    """Train by AdamW; yields the number of updates made so far: 0 before the first one, then 1, 2, ...

    Parameters
    ----------
    parameters : sequence of Parameter
        What is trained; just matrices decay.
    batches : iterable
        One for each update.
    losses : callable
        Gives the terms of the loss of a batch, by their names. Their sum is minimised.
    rates : sequence of float
        Learning rate of each update.
    betas : tuple of float
        Of AdamW.
    name : str
        Of the model, for progress.
    """
    optimiser = torch.optim.AdamW(
        [
            {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": WEIGHT_DECAY},
            {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
        ],
        betas=betas,
    )
    said = monotonic()
    for done, (rate, batch) in enumerate(zip(rates, batches, strict=True)):
        yield done
        for group in optimiser.param_groups:
            group["lr"] = rate
        terms = losses(batch)
        optimiser.zero_grad()
        torch.stack(list(terms.values())).sum().backward()
        torch.nn.utils.clip_grad_norm_(parameters, GRADIENT_NORM)
        optimiser.step()
        if monotonic() - said > SECONDS_BETWEEN_LINES:
            said = monotonic()
            logger.info("%s: update %d of %d, %s", name, done + 1, len(rates), format_terms(terms))
    yield len(rates)


def format_terms(terms: dict[str, torch.Tensor]) -> str:
    """Terms of a loss as a message has them."""
    return ", ".join(f"{name} {value.item():.3f}" for name, value in terms.items())


@contextmanager
def make_deterministic(threads: int) -> Iterator[None]:
    """Make torch reproducible inside and leave its settings and random state as they were."""
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
    """Return the versions that bytes depend on."""
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
    """Save a model with its tokenizer and its record, as :func:`.write_record` has it, among other steps."""
    folder = steps / name_step(step)
    network.save_pretrained(folder)
    write_tokenizer(folder)
    # safetensors writes for the owner alone; a shared cluster reads with the group.
    for weights in folder.glob("*.safetensors"):
        weights.chmod((folder / "config.json").stat().st_mode)
    write_record(folder, revision=folder.name, step=step, **provenance)


def write_training_table(steps: Path, table: Path) -> None:
    """Write held-out losses and scores of all steps in a folder, and what was trained how."""
    rows: list[list[Any]] = []
    for folder in steps.iterdir():
        record = read_record(folder) or {}
        recipe, task, origin = (record.get(key, {}) for key in ("recipe", "task", "origin"))
        known = {
            **record,
            **{key: recipe.get(key) for key in ("twin_of", "regulariser", "strength", "seed")},
            "origin": origin.get("model"),
            "origin_revision": origin.get("revision"),
            "task": task.get("name"),
            "metric": task.get("metric"),
            "held_out_loss": record.get("loss"),
        }
        rows.append([known.get(column) for column in TRAINING_COLUMNS])
    rows.sort(key=lambda row: row[TRAINING_COLUMNS.index("step")])
    write_table(table, TRAINING_COLUMNS, rows)
