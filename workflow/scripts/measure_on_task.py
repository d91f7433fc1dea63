"""Measure checkpoints of one model on the texts of a task, each loaded once; no hidden states are written."""

import argparse
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shape_of_learning.checkpoints.tensors import checked_tensors
from shape_of_learning.embeddings.run import SamplingProtocol
from shape_of_learning.embeddings.task_texts import text_vectors
from shape_of_learning.script_arguments.running import run
from shape_of_learning.script_arguments.sample import checkpoint_folder, window_batch_size
from shape_of_learning.storage.csv_table import write_table
from shape_of_learning.tasks.examples import SPLITS, Example, Task, read_task
from shape_of_learning.tasks.measured import (
    Row,
    SplitVectors,
    layer_rows,
    probe_rows,
    spectra_of,
    spectrum_rows,
    structure_rows,
)
from shape_of_learning.tasks.task_tables import CHECKPOINT, TABLES

logger = logging.getLogger("shape_of_learning")


@dataclass(frozen=True)
class Checkpoint:
    """One of the model's checkpoints: its name and step, its folder, and the receipt of its files."""

    revision: str
    step: int | None
    folder: Path
    receipt: Path | None

    @classmethod
    def list_from_json(cls, text: str) -> "list[Checkpoint]":
        """Read the argument of this script."""
        return [
            cls(revision, step, checkpoint_folder(folder), Path(receipt) if receipt else None)
            for revision, step, folder, receipt in json.loads(text)
        ]


def main(
    model: str,
    checkpoints: list[Checkpoint],
    task: Path,
    protocol: SamplingProtocol,
    shape: dict[str, Any],
    threads: int,
    output: list[Path],
) -> None:
    """Write the tables of :data:`~shape_of_learning.tasks.task_tables.TABLES`, by their folders' names."""
    examples, sample = read_task(task), f"{task.stem}/held_out"
    found: dict[str, list[Row]] = {name: [] for name in TABLES}
    for checkpoint in checkpoints:
        checked_tensors(checkpoint.folder, checkpoint.receipt, threads)
        named = (model, checkpoint.revision, checkpoint.step, sample)
        measured = _measured(checkpoint.folder, examples, protocol, shape, threads)
        for name, rows in measured.items():
            found[name] += [(*named, *row) for row in rows]
        logger.info("%s at %s is measured on %s", model, checkpoint.revision, sample)
    for path in output:
        name = path.parent.name
        write_table(path, (*CHECKPOINT, *TABLES[name]), found[name])


def _measured(
    folder: Path,
    task: Task,
    protocol: SamplingProtocol,
    shape: Mapping[str, Any],
    threads: int,
) -> dict[str, list[Row]]:
    layers = range(shape["layers"] + 1)
    wanted = {"train": layers[-1:], "held_out": layers}
    train, held_out = text_vectors(
        folder,
        [([_text(e, task) for e in task.split(name)], wanted[name]) for name in SPLITS],
        protocol,
        shape,
        threads=threads,
        window_batch_size=window_batch_size(),
    )
    labels = [np.array([example.label for example in task.split(name)]) for name in SPLITS]
    of_splits = [
        SplitVectors(split.layers[layers[-1]], split.texts, own)
        for split, own in zip((train, held_out), labels, strict=True)
    ]
    probes = probe_rows(
        *of_splits,
        layer=layers[-1],
        metric=task.metric,
        has_pairs=task.has_pairs,
        seed=protocol.seed,
    )
    structure = structure_rows(held_out.layers, held_out.token_ids, protocol.seed)
    spectra = spectra_of(held_out.layers)
    return {
        "finetuning_layers": list(layer_rows(held_out.layers, spectra)),
        "finetuning_spectra": list(spectrum_rows(held_out.layers, spectra)),
        "finetuning_structure": list(structure),
        "finetuning_probes": list(probes),
    }


def _text(example: Example, task: Task) -> Any:
    return (example.text, example.text_2) if task.has_pairs else example.text


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument(
        "--checkpoints",
        type=Checkpoint.list_from_json,
        required=True,
        metavar="JSON",
        help="a list of revision, step, folder and receipt or null",
    )
    parser.add_argument("--task", type=Path, required=True, metavar="CSV")
    parser.add_argument("--protocol", type=lambda text: SamplingProtocol(**json.loads(text)), required=True)
    parser.add_argument("--shape", type=json.loads, required=True, metavar="JSON")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--output", type=Path, nargs="+", required=True, metavar="CSV")
    run(main, parser)
