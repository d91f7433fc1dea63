"""Measure the checkpoints of a fine-tuning on the texts of its task, without files of hidden states."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from papers.finetuning.columns import TASK_COLUMNS
from papers.finetuning.job import TaskJob
from papers.finetuning.measure import Row, SplitVectors, make_task_rows
from shape_of_learning.embeddings.model import require_memory
from shape_of_learning.embeddings.protocol import SamplingProtocol
from shape_of_learning.embeddings.run import SampleRun, StatesInMemory
from shape_of_learning.errors import InputError
from shape_of_learning.files import write_table
from shape_of_learning.job import run_job
from shape_of_learning.tasks.examples import SPLITS, Task, read_task

logger = logging.getLogger("shape_of_learning")


def main(job: TaskJob, folder: Path, task: Path, output: Sequence[Path], threads: int) -> None:
    """Write the tables of :data:`.TASK_COLUMNS` on the checkpoints in `folder`.

    A path of `output` has the name of its table as the name of its folder.
    """
    examples = read_task(task)
    sample = f"{task.stem}/held_out"
    tables: dict[str, list[Row]] = {name: [] for name in TASK_COLUMNS}
    for revision, step in job.checkpoints:
        train, held_out = compute_vectors(
            examples, folder / revision, job.sampling, shape=job.shape, threads=threads
        )
        rows_by_table = make_task_rows(train, held_out, examples, job.sampling.seed)
        for name, rows in rows_by_table.items():
            tables[name] += [(job.model, revision, step, sample, *row) for row in rows]
        logger.info("%s at %s is measured on %s", job.model, revision, sample)
    for path in output:
        write_table(path, TASK_COLUMNS[path.parent.name], tables[path.parent.name])


def compute_vectors(
    task: Task, checkpoint: Path, protocol: SamplingProtocol, **options: Any
) -> list[SplitVectors]:
    """Run the texts of both splits through a checkpoint, and return the hidden states of their tokens.

    Special tokens are left out. The training split has the last layer alone, the held-out split has all layers.
    Further options are those of :meth:`.SampleRun.load`.

    Raises
    ------
    InputError
        As :meth:`.SampleRun.load`; and if a text has no token, or if memory is too small.
    """
    splits = [task.split(name) for name in SPLITS]
    examples = [example for split in splits for example in split]
    texts = [
        (example.text, example.text_2) if task.has_pairs else example.text for example in examples
    ]
    sample = SampleRun.load(checkpoint, texts, protocol, **options)
    text_of_row = _number_texts(sample, texts)
    is_plain = ~sample.rows["special"]
    is_held_out = sample.rows["windows"] >= len(splits[0])
    kept_rows = dict.fromkeys(range(sample.layers), is_plain & is_held_out) | {
        sample.layers: is_plain
    }
    states = StatesInMemory(sample, kept_rows=kept_rows, measuring_device=torch.device("cpu"))
    require_memory(
        states.bytes,
        "the hidden states of a task",
        "lower `most` in its entry of `tasks`, or set it",
    )
    # Predictions are not needed, since no table has a loss.
    replace(sample, predicted_tokens=None).store_states(states)
    is_train = is_plain & ~is_held_out
    last = states[sample.layers]
    train = {sample.layers: last[: is_train.sum()]}
    held_out = {layer: states[layer] for layer in range(sample.layers)}
    held_out[sample.layers] = last[is_train.sum() :]
    return [
        SplitVectors(
            layers,
            sample.rows["token_ids"][is_in_split],
            text_of_row[is_in_split] - text_of_row[is_in_split][0],
            np.array([example.label for example in split]),
        )
        for split, is_in_split, layers in zip(
            splits, (is_train, is_plain & is_held_out), (train, held_out), strict=True
        )
    ]


def _number_texts(sample: SampleRun, texts: Sequence[Any]) -> np.ndarray:
    """Return the number of the text of each token, (tokens,); special tokens belong to the first text of a pair."""
    numbers = sample.rows["windows"]
    texts_per_window = 1
    if sample.windows[0].second is not None:
        texts_per_window = 2
        numbers = 2 * numbers + np.concatenate([window.second for window in sample.windows])
    texts_with_tokens = numbers[~sample.rows["special"]]
    empty = np.setdiff1d(np.arange(texts_per_window * len(texts)), texts_with_tokens)
    if len(empty):
        raise InputError(
            f"a text of the task has no token for the tokenizer in {sample.name}: "
            f"{str(texts[empty[0] // texts_per_window])[:80]!r}; leave it out"
        )
    return numbers


if __name__ == "__main__":
    with run_job(snakemake.log[0]), threadpool_limits(1):
        main(
            snakemake.params.job,
            folder=Path(snakemake.input.checkpoints),
            task=Path(snakemake.input.task[0]),
            output=[Path(path) for path in snakemake.output],
            threads=snakemake.threads,
        )
