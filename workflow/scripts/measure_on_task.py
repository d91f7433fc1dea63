"""Measure checkpoints of one model on the texts of a task, each loaded once; no hidden states are written."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from shape_of_learning.embeddings.run import SamplingProtocol
from shape_of_learning.embeddings.task_texts import text_vectors
from shape_of_learning.files import write_table
from shape_of_learning.job import job
from shape_of_learning.tasks.examples import SPLITS, Example, Task, read_task
from shape_of_learning.tasks.measure import (
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


def main(
    model: str,
    checkpoints: Sequence[tuple[str, int | None]],
    folder: Path,
    task: Path,
    protocol: Mapping[str, Any],
    shape: Mapping[str, Any],
    output: Sequence[Path],
    **loaded: Any,
) -> None:
    """Write the tables of :data:`~shape_of_learning.tasks.task_tables.TABLES`, by their folders' names.

    Of each checkpoint its revision, which names its folder in `folder`, and its step are given. `loaded` are
    ``threads`` and ``window_batch_size`` of :func:`.text_vectors`.
    """
    examples, sample = read_task(task), f"{task.stem}/held_out"
    found: dict[str, list[Row]] = {name: [] for name in TABLES}
    for revision, step in checkpoints:
        named = (model, revision, step, sample)
        measured = _measured(
            folder / revision, examples, SamplingProtocol(**protocol), shape, **loaded
        )
        for name, rows in measured.items():
            found[name] += [(*named, *row) for row in rows]
        logger.info("%s at %s is measured on %s", model, revision, sample)
    for path in output:
        name = path.parent.name
        write_table(path, (*CHECKPOINT, *TABLES[name]), found[name])


def _measured(
    folder: Path,
    task: Task,
    protocol: SamplingProtocol,
    shape: Mapping[str, Any],
    threads: int,
    window_batch_size: int | None,
) -> dict[str, list[Row]]:
    layers = range(shape["layers"] + 1)
    wanted = {"train": layers[-1:], "held_out": layers}
    train, held_out = text_vectors(
        folder,
        [([_text(e, task) for e in task.split(name)], wanted[name]) for name in SPLITS],
        protocol,
        shape,
        threads=threads,
        window_batch_size=window_batch_size,
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
    spectra = spectra_of(held_out.layers)
    structure = structure_rows(held_out.layers, held_out.token_ids, protocol.seed)
    return {
        "finetuning_layers": list(layer_rows(held_out.layers, spectra)),
        "finetuning_spectra": list(spectrum_rows(held_out.layers, spectra)),
        "finetuning_structure": list(structure),
        "finetuning_probes": list(probes),
    }


def _text(example: Example, task: Task) -> Any:
    return (example.text, example.text_2) if task.has_pairs else example.text


if __name__ == "__main__":
    with job(snakemake.log[0]), threadpool_limits(1):
        main(
            snakemake.wildcards.model,
            folder=Path(snakemake.input.checkpoints),
            task=Path(snakemake.input.task[0]),
            output=[Path(path) for path in snakemake.output],
            threads=snakemake.threads,
            window_batch_size=snakemake.resources.windows_at_once or None,
            **{key: snakemake.params[key] for key in ("checkpoints", "protocol", "shape")},
        )
