"""Measure all layers of one checkpoint on sampled windows, in memory: as the run has them, or under all choices.

No hidden states are written. Where there is a GPU, it measures, too.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from shape_of_learning.checkpoints.tensors import checked_tensors
from shape_of_learning.embeddings.matrices import write_checkpoint_tables
from shape_of_learning.embeddings.run import SampleRun, StatesInMemory
from shape_of_learning.embeddings.tokenised_windows import SamplingProtocol, draw_windows
from shape_of_learning.files import atomic_write, write_table
from shape_of_learning.job import job
from shape_of_learning.metrics.measure import (
    Part,
    measure_parts,
    parts_of_choices,
    windows_of_choices,
)
from shape_of_learning.metrics.measure_entry import AFTER, BEFORE, ROW_CHOICES, Measure, Rows
from shape_of_learning.metrics.selections import MeasuringProtocol
from shape_of_learning.metrics.tidy import TIDY_COLUMNS, TidyRow, layer_table, write_tidy

logger = logging.getLogger("shape_of_learning")
# The other windows of the same text are drawn with the next seed.
SEEDS = {"resampled": 1}
CHOICE_COLUMNS = ("model", "revision", "step", *ROW_CHOICES, "last_layer", *TIDY_COLUMNS)
Place = tuple[int, str]  # a layer, and what the last one is


def main(
    names: Mapping[str, str],
    text: Path,
    protocol: Mapping[str, Any],
    measuring: Mapping[str, Any],
    matrices: Mapping[str, Any],
    output: Mapping[str, str],
    is_download: bool,
    **loaded: Any,
) -> None:
    """Run the windows through a checkpoint and measure every layer as the run has it.

    Parameters
    ----------
    names, text, protocol, matrices, is_download, **loaded
        As dump_embeddings.py takes them.
    measuring : mapping
        ``measures``, fields of :class:`.Measure` of each, and ``protocol``, those of
        :class:`.MeasuringProtocol`.
    output : mapping of str to str
        Paths: ``measurements``, a folder of tables as measure.py writes them; others as dump_embeddings.py.
    """
    sampling = SamplingProtocol(**protocol)
    part = Part(
        MeasuringProtocol.of(names["model"], measuring["protocol"]),
        [Measure(**each) for each in measuring["measures"]],
    )
    digests = checked_tensors(loaded["checkpoint"], is_download, loaded["threads"])
    windows = draw_windows(text, sampling)
    sample = SampleRun.load(windows=windows, protocol=sampling, in_memory=True, **loaded)
    part.how.require_batches(sample.rows, part.measures)
    states = StatesInMemory(sample)
    cross_entropy = sample.into(states)
    with threadpool_limits(1):
        write_checkpoint_tables(sample.forward, digests, cross_entropy, output, **matrices)
    del sample  # which leaves the memory of its weights to the measuring
    with atomic_write(Path(output["measurements"])) as folder:
        folder.mkdir()
        for (layer, _), of_layer in _measured(states, [part], loaded["threads"]):
            for _, family, rows in of_layer:
                if rows:
                    write_tidy(layer_table(folder, family, layer), rows)


def measure_choices(
    names: tuple[str, str, int | None],
    texts: Mapping[str, Path],
    protocol: Mapping[str, Any],
    measuring: Mapping[str, Any],
    choices: Sequence[Mapping[str, str]],
    output: Path,
    is_download: bool,
    **loaded: Any,
) -> None:
    """Write one tidy table whose rows say besides which choices they are of.

    Parameters
    ----------
    names : (str, str, int or None)
        The model, the revision and its step.
    texts : mapping of str to Path
        By the names that the choice of text has.
    protocol, measuring, is_download, **loaded
        As above; the selection of `measuring` does not count.
    choices : sequence of mapping
        Fields of :class:`.Rows`.
    output : Path
    """
    checked_tensors(loaded["checkpoint"], is_download, loaded["threads"])
    every = [Rows(**each) for each in choices]
    measures = [Measure(**each) for each in measuring["measures"]]
    table: list[tuple[object, ...]] = []
    for text, file in texts.items():
        sampling = SamplingProtocol(**{**protocol, "last_layer": "both"})
        sampling = replace(sampling, seed=sampling.seed + SEEDS.get(text, 0))
        how = MeasuringProtocol.of(names[0], {**measuring["protocol"], "seed": sampling.seed})
        of_text = [each for each in every if each.text == text]
        numbers, drawn = windows_of_choices(of_text, how), draw_windows(file, sampling)
        windows = [drawn[number] for number in numbers]
        sample = SampleRun.load(windows=windows, protocol=sampling, in_memory=True, **loaded)
        states = StatesInMemory(sample, numbers)
        parts = parts_of_choices(states.rows, of_text, measures, how)
        sample.into(states)
        del sample  # which leaves the memory of its weights to the measuring
        for (_, last_layer), of_layer in _measured(states, parts, loaded["threads"], both=True):
            table += [
                (*names, *astuple(choice), last_layer, *row.cells)
                for part, _, rows in of_layer
                for row in rows
                if row.batch is None
                for choice in part.choices
            ]
        logger.info("%s at %s: text %s is measured", *names[:2], text)
    write_table(output, CHOICE_COLUMNS, table)


def _measured(
    states: StatesInMemory, parts: Sequence[Part], threads: int, *, both: bool = False
) -> Iterator[tuple[Place, list[tuple[Part, str, list[TidyRow]]]]]:
    """Measure all layers; if `both`, the last one also as it is before the final norm."""
    places = [(layer, AFTER) for layer in range(states.layers + 1)]
    if both:
        places.append((states.layers, BEFORE))
    # Each layer is measured by one thread, which must not start others; a GPU has one queue.
    workers = threads if states.measured_on.type == "cpu" else 1
    with threadpool_limits(1), ThreadPoolExecutor(workers) as pool:
        found = pool.map(lambda place: list(measure_parts(states, parts, *place)), places)
        for place, rows in zip(places, found, strict=True):
            logger.info("layer %d is measured %s", *place)
            yield place, rows


if __name__ == "__main__":
    with job(snakemake.log[0]):
        loaded = {
            "checkpoint": Path(snakemake.resources.checkpoint),
            "threads": snakemake.threads,
            "window_batch_size": snakemake.resources.windows_at_once or None,
            "measuring": snakemake.params.measuring,
            **snakemake.params.sample,
        }
        if snakemake.params.get("choices") is None:
            main(
                dict(snakemake.wildcards.items()),
                text=Path(snakemake.input.text),
                output=dict(snakemake.output.items()),
                matrices=snakemake.params.matrices,
                **loaded,
            )
        else:
            measure_choices(
                (
                    *(snakemake.wildcards[key] for key in ("model", "revision")),
                    snakemake.params.step,
                ),
                dict(zip(snakemake.params.texts, map(Path, snakemake.input.texts), strict=True)),
                choices=snakemake.params.choices,
                output=Path(snakemake.output[0]),
                **loaded,
            )
