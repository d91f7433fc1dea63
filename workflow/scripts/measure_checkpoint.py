"""Measure all layers of one checkpoint in memory: as the run has them, or under all choices on every text.

No hidden states are written. Where there is a GPU, it measures, too.
"""

import logging
from collections.abc import Mapping
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from shape_of_learning.checkpoints.tensors import check_tensors
from shape_of_learning.embeddings.layers import measure_layers
from shape_of_learning.embeddings.massive_tokens import describe_rows
from shape_of_learning.embeddings.matrices import write_checkpoint_tables
from shape_of_learning.embeddings.run import SampleRun, StatesInMemory
from shape_of_learning.embeddings.tokenised_windows import SamplingProtocol, draw_windows
from shape_of_learning.files import atomic_write, write_table
from shape_of_learning.job import run_job
from shape_of_learning.metrics.measure import choose_windows, divide_sample
from shape_of_learning.metrics.measure_entry import (
    AFTER,
    BEFORE,
    ROW_CHOICES,
    Measure,
    SampleVariant,
)
from shape_of_learning.metrics.protocol import MeasuringProtocol
from shape_of_learning.metrics.tidy import TIDY_COLUMNS, TidyRow, layer_table, write_tidy

logger = logging.getLogger("shape_of_learning")
# The other windows of the same text are drawn with the next seed.
SEEDS = {"resampled": 1}
CHOICE_COLUMNS = ("model", "revision", "step", *ROW_CHOICES, "last_layer", *TIDY_COLUMNS)


def main(
    names: Mapping[str, object],
    texts: Mapping[str, Path],
    protocol: Mapping[str, Any],
    measuring: Mapping[str, Any],
    output: Mapping[str, str],
    is_download: bool,
    matrices: Mapping[str, Any] | None = None,
    **loaded: Any,
) -> None:
    """Run the windows of each text through a checkpoint and measure every layer.

    Parameters
    ----------
    names : mapping
        Its ``model`` and ``revision``, and the ``step`` of that under choices.
    texts : mapping of str to Path
        One, whatever its name; or, by the names that the choice of text has, those of choices.
    protocol, is_download, matrices, **loaded
        As dump_embeddings.py takes them.
    measuring : mapping
        ``measures``, fields of :class:`.Measure` of each, and ``protocol``, those of
        :class:`.MeasuringProtocol` but the windows. Under choices also ``choices``, fields of :class:`.SampleVariant`
        of each; then the selection of the protocol does not count.
    output : mapping of str to str
        Paths: ``choices``, one tidy table whose rows say besides which choices they are of; or
        ``measurements``, a folder of tables as measure.py writes them, and others as dump_embeddings.py.
    """
    digests = check_tensors(loaded["checkpoint"], is_download, loaded["threads"])
    measures = [Measure(**measure) for measure in measuring["measures"]]
    choices = [SampleVariant(**each) for each in measuring.get("choices", ())]
    last_layer = "both" if choices else protocol["last_layer"]
    tables: dict[tuple[str, int], list[TidyRow]] = {}
    chosen: list[tuple[object, ...]] = []
    for text, file in texts.items():
        sampling = SamplingProtocol(**{**protocol, "last_layer": last_layer})
        sampling = replace(sampling, seed=sampling.seed + SEEDS.get(text, 0))
        drawn_by = {"windows": sampling.windows, "seed": sampling.seed}
        how = MeasuringProtocol.read_fields(names["model"], {**measuring["protocol"], **drawn_by})
        of_text = [choice for choice in choices if choice.text == text]
        numbers, drawn = choose_windows(of_text, how), draw_windows(file, sampling)
        windows = [drawn[number] for number in numbers]
        sample = SampleRun.load(windows=windows, protocol=sampling, in_memory=True, **loaded)
        states = StatesInMemory(sample, numbers)
        parts = divide_sample(states.rows, of_text, measures, how)
        cross_entropy = sample.store_states(states)
        if matrices is not None:
            wanted = range(states.layers + 1) if matrices["massive"] else ()
            own = {key: of for key, of in matrices.items() if key != "massive"}
            words = loaded.get("tokenizer") or loaded["checkpoint"]
            massive = (row for layer in wanted for row in describe_rows(states, layer, words))
            with threadpool_limits(1):
                known = (sample.forward, digests, cross_entropy, output)
                write_checkpoint_tables(*known, massive=massive, **own)
        del sample  # which leaves the memory of its weights to the measuring
        places = [(layer, AFTER) for layer in range(states.layers + 1)]
        if choices:  # the last one also as it is before the final norm
            places.append((states.layers, BEFORE))
        # A GPU has one queue.
        workers = loaded["threads"] if states.measured_on.type == "cpu" else 1
        for layer, last, part, family, rows in measure_layers(states, parts, workers, places):
            tables[family, layer] = rows
            chosen += [
                (*names.values(), *astuple(choice), last, *row.cells)
                for row in rows
                if row.batch is None
                for choice in part.variants
            ]
        logger.info("%s at %s: text %s is measured", names["model"], names["revision"], text)
    if choices:
        write_table(Path(output["choices"]), CHOICE_COLUMNS, chosen)
    else:
        with atomic_write(Path(output["measurements"])) as folder:
            folder.mkdir()
            for (family, layer), rows in tables.items():
                if rows:
                    write_tidy(layer_table(folder, family, layer), rows)


if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        params, files = snakemake.params, snakemake.input
        names = {key: snakemake.wildcards[key] for key in ("model", "revision")}
        texts, output = {"own": Path(files.get("text", ""))}, dict(snakemake.output.items())
        if "choices" in params.measuring:
            names["step"], output = params.step, {"choices": snakemake.output[0]}
            texts = dict(zip(params.texts, map(Path, files.texts), strict=True))
        main(
            names,
            texts,
            measuring=params.measuring,
            output=output,
            matrices=params.get("matrices"),
            checkpoint=Path(snakemake.resources.checkpoint),
            threads=snakemake.threads,
            **params.sample,
        )
