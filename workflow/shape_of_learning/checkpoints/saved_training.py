"""What trainings of models of our own share: the same bytes each time, and steps that serve as revisions."""

import os
import platform
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import safetensors
import tokenizers
import torch
import transformers

from shape_of_learning.checkpoints.checkpoint_record import file_entry, write_record

WEIGHTS = "model.safetensors"


def save_step(
    network: Any, write_tokenizer: Callable[[Path], object], folder: Path, **provenance: Any
) -> None:
    """Save a model with its tokenizer and its record, as :func:`.write_record` has it.

    Raises
    ------
    OSError
        If a file cannot be written.
    """
    _save(network, folder)
    write_tokenizer(folder)
    # safetensors writes for the owner alone; a shared cluster reads with the group.
    for weights in folder.glob("*.safetensors"):
        weights.chmod((folder / "config.json").stat().st_mode)
    files = {path.name: file_entry(path) for path in folder.iterdir()}
    write_record(folder, files, revision=folder.name, **provenance)


def software() -> dict[str, str]:
    """Return the versions that bytes depend on."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "tokenizers": tokenizers.__version__,
        "vector_instructions": torch.backends.cpu.get_cpu_capability(),
    }


@contextmanager
def deterministic(threads: int) -> Iterator[None]:
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


def _save(network: Any, folder: Path) -> None:
    """Save a model; OSError where its file cannot be written, as for any other file."""
    try:
        network.save_pretrained(folder)
    except safetensors.SafetensorError as error:
        found = re.search(r"os error (\d+)", str(error))
        if found is None:
            raise
        raise OSError(int(found[1]), os.strerror(int(found[1])), str(folder / WEIGHTS)) from error
