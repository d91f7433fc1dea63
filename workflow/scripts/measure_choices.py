"""Measure a checkpoint as all specifications of an analysis have it, on every text.

Where there is a GPU, it measures, too.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from shape_of_learning.checkpoints.tensors import checked_tensors
from shape_of_learning.claims.choices import AFTER, BEFORE, ROW_CHOICES, Rows
from shape_of_learning.claims.measured_choices import (
    measure_choices,
    parts_of_choices,
    windows_of_choices,
)
from shape_of_learning.embeddings.run import SampleRun, SamplingProtocol, draw_windows
from shape_of_learning.embeddings.states import StatesInMemory
from shape_of_learning.files import write_table
from shape_of_learning.job import job
from shape_of_learning.metrics.measure import MeasuringProtocol
from shape_of_learning.metrics.measure_entry import Measure
from shape_of_learning.metrics.table_columns import TIDY_COLUMNS
from shape_of_learning.metrics.tidy import TidyRow

logger = logging.getLogger("shape_of_learning")
# The other windows of the same text are drawn with the next seed.
SEEDS = {"resampled": 1}
COLUMNS = ("model", "revision", "step", *ROW_CHOICES, "last_layer", *TIDY_COLUMNS)


def main(
    names: tuple[str, str, int | None],
    texts: Mapping[str, Path],
    protocol: Mapping[str, Any],
    measuring: Mapping[str, Any],
    measures: Sequence[Mapping[str, Any]],
    choices: Sequence[Mapping[str, str]],
    output: Path,
    **loaded: Any,
) -> None:
    """Write one tidy table whose rows say besides which choices they are of.

    Parameters
    ----------
    names : (str, str, int or None)
        The model, the revision and its step.
    texts : mapping of str to Path
        By the names that the choice of text has.
    protocol, measuring, measures
        As measure_checkpoint.py takes them; the selection of `measuring` does not count.
    choices : sequence of mapping
        Fields of :class:`.Rows`.
    output : Path
    **loaded
        Also as measure_checkpoint.py takes it.
    """
    is_download = loaded.pop("is_download")
    checked_tensors(loaded["checkpoint"], is_download, loaded["threads"])
    every, wanted = [Rows(**each) for each in choices], [Measure(**each) for each in measures]
    rows: list[tuple[object, ...]] = []
    for text, file in texts.items():
        sampling = SamplingProtocol(**{**protocol, "last_layer": "both"})
        sampling = replace(sampling, seed=sampling.seed + SEEDS.get(text, 0))
        how = MeasuringProtocol.of(names[0], {**measuring, "seed": sampling.seed})
        of_text = [each for each in every if each.text == text]
        for choice, last_layer, row in _measured(file, sampling, of_text, wanted, how, **loaded):
            rows.append((*names, *astuple(choice), last_layer, *row[:-1], *row.without))
        logger.info("%s at %s: text %s is measured", *names[:2], text)
    write_table(output, COLUMNS, rows)


def _measured(
    text: Path,
    sampling: SamplingProtocol,
    choices: Sequence[Rows],
    measures: Sequence[Measure],
    how: MeasuringProtocol,
    **loaded: Any,
) -> Iterator[tuple[Rows, str, TidyRow]]:
    """Run a sample and measure each layer, the last one also as it is before the final norm."""
    windows, drawn = windows_of_choices(choices, how), draw_windows(text, sampling)
    sample = SampleRun.load(
        windows=[drawn[number] for number in windows], protocol=sampling, in_memory=True, **loaded
    )
    rows = {**sample.rows, "windows": windows[sample.rows["windows"]]}
    states = StatesInMemory(rows, sample.widths, sample.layers, sample.forward.device)
    parts = parts_of_choices(rows, choices, measures, how)
    sample.into(states)
    workers = 1 if sample.forward.device.type != "cpu" else loaded["threads"]
    del sample  # which leaves the memory of its weights to the measuring
    places = [*((layer, AFTER) for layer in range(states.layers + 1)), (states.layers, BEFORE)]
    # Each layer is measured by one thread, which must not start others.
    with threadpool_limits(1), ThreadPoolExecutor(workers) as pool:
        found = pool.map(lambda place: list(measure_choices(states, parts, *place)), places)
        for (_, last_layer), rows in zip(places, found, strict=True):
            for choice, row in rows:
                yield choice, last_layer, row


if __name__ == "__main__":
    with job(snakemake.log[0]):
        main(
            (snakemake.wildcards.model, snakemake.wildcards.revision, snakemake.params.step),
            texts=dict(zip(snakemake.params.texts, map(Path, snakemake.input.texts), strict=True)),
            measuring=snakemake.params.measuring,
            measures=snakemake.params.measures,
            choices=snakemake.params.choices,
            output=Path(snakemake.output[0]),
            checkpoint=Path(snakemake.resources.checkpoint),
            threads=snakemake.threads,
            window_batch_size=snakemake.resources.windows_at_once or None,
            **snakemake.params.sample,
        )
