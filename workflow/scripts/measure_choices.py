"""Measure all layers of one checkpoint in memory, on every text and in every sample variant."""

import logging
from collections.abc import Sequence
from dataclasses import astuple, replace
from pathlib import Path

from shape_of_learning.checkpoints.tensors import check_tensors
from shape_of_learning.embeddings.layers import measure_layers
from shape_of_learning.embeddings.protocol import ChoicesJob
from shape_of_learning.embeddings.run import SampleRun, StatesInMemory
from shape_of_learning.embeddings.tokenised_windows import draw_windows
from shape_of_learning.files import write_table
from shape_of_learning.job import run_job
from shape_of_learning.metrics.measure import choose_windows, divide_sample
from shape_of_learning.metrics.measure_entry import AFTER, BEFORE, ROW_CHOICES
from shape_of_learning.metrics.tidy import TIDY_COLUMNS

logger = logging.getLogger("shape_of_learning")
# A text -> the number that is added to the seed; other windows of the same text are drawn with the next seed.
SEEDS = {"resampled": 1}
CHOICE_COLUMNS = ("model", "revision", "step", *ROW_CHOICES, "last_layer", *TIDY_COLUMNS)


def main(
    job: ChoicesJob,
    checkpoint: Path,
    tokenizer: Path,
    texts: Sequence[Path],
    output: Path,
    threads: int,
) -> None:
    """Run the windows of each text through a checkpoint, and write one table of all sample variants."""
    check_tensors(checkpoint, job.weights.is_download, threads)
    names = (job.weights.model, job.weights.revision, job.step)
    table: list[tuple[object, ...]] = []
    for text, file in zip(job.texts, texts, strict=True):
        seed = job.sampling.seed + SEEDS.get(text, 0)
        sampling = replace(job.sampling, seed=seed)
        protocol = replace(job.protocol, seed=seed)
        variants = [variant for variant in job.variants if variant.text == text]
        numbers = choose_windows(variants, protocol)
        windows = draw_windows(file, sampling)
        sample = SampleRun.load(
            checkpoint,
            [windows[number] for number in numbers],
            sampling,
            job.weights.shape,
            threads=threads,
            needs_memory=True,
            tokenizer=tokenizer,
        )
        states = StatesInMemory(sample, numbers)
        parts = divide_sample(states.rows, variants, job.measures, protocol)
        sample.store_states(states)
        del sample  # measuring needs the memory of its weights
        # The last layer is also measured before the final norm.
        places = [(layer, AFTER) for layer in range(states.layers + 1)]
        places.append((states.layers, BEFORE))
        # A GPU has one queue, so several threads would wait for each other.
        workers = threads if states.measuring_device.type == "cpu" else 1
        for _, last_layer, part, _, rows in measure_layers(states, parts, workers, places):
            table += [
                (*names, *astuple(variant), last_layer, *row.cells)
                for row in rows
                if row.batch is None
                for variant in part.variants
            ]
        logger.info("%s at %s: text %s is measured", *names[:2], text)
    write_table(output, CHOICE_COLUMNS, table)


if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        main(
            snakemake.params.job,
            checkpoint=Path(snakemake.resources.checkpoint),
            tokenizer=Path(snakemake.resources.tokenizer),
            texts=[Path(path) for path in snakemake.input.texts],
            output=Path(snakemake.output[0]),
            threads=snakemake.threads,
        )
