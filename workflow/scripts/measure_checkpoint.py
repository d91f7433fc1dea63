"""Measure all layers of one checkpoint in memory, on a GPU if there is one, without a file of hidden states."""

import logging
from collections.abc import Mapping
from pathlib import Path

from threadpoolctl import threadpool_limits

from shape_of_learning.checkpoints.tensors import check_tensors
from shape_of_learning.embeddings.layers import measure_layers
from shape_of_learning.embeddings.massive_tokens import describe_massive_tokens
from shape_of_learning.embeddings.matrices import write_checkpoint_tables
from shape_of_learning.embeddings.protocol import CheckpointJob, ForwardFiles, find_forward_files
from shape_of_learning.embeddings.run import SampleRun, StatesInMemory
from shape_of_learning.embeddings.tokenised_windows import draw_windows
from shape_of_learning.files import atomic_write
from shape_of_learning.job import run_job
from shape_of_learning.metrics.measure import Part
from shape_of_learning.metrics.selections import require_batches
from shape_of_learning.metrics.tidy import name_layer_table, write_tidy

logger = logging.getLogger("shape_of_learning")


def main(job: CheckpointJob, files: ForwardFiles, output: Mapping[str, str], threads: int) -> None:
    """Run the windows of a text through a checkpoint, and measure every layer.

    The paths of `output` are ``measurements``, a folder of the tables that measure.py writes, and those of
    :func:`.write_checkpoint_tables`.
    """
    digests = check_tensors(files.checkpoint, job.weights.is_download, threads)
    sample = SampleRun.load(
        files.checkpoint,
        draw_windows(files.text, job.sampling),
        job.sampling,
        job.weights.shape,
        threads=threads,
        needs_memory=True,
        tokenizer=files.tokenizer,
    )
    states = StatesInMemory(sample)
    require_batches(job.protocol, states.rows, job.measures)
    cross_entropy = sample.store_states(states)
    massive = describe_massive_tokens(states, files.tokenizer) if job.matrices.massive else ()
    with threadpool_limits(1):
        write_checkpoint_tables(
            sample.forward, digests, cross_entropy, output, job.matrices, massive
        )
    del sample  # measuring needs the memory of its weights
    # A GPU has one queue, so several threads would wait for each other.
    workers = threads if states.measuring_device.type == "cpu" else 1
    part = Part(job.protocol, job.measures)
    tables = {}
    for layer, _, _, family, rows in measure_layers(states, [part], workers):
        tables[family, layer] = rows
    with atomic_write(Path(output["measurements"])) as folder:
        folder.mkdir()
        for (family, layer), rows in tables.items():
            if rows:
                write_tidy(name_layer_table(folder, family, layer), rows)
    logger.info("%s at %s is measured", job.weights.model, job.weights.revision)


if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        main(
            snakemake.params.job,
            find_forward_files(snakemake),
            output=dict(snakemake.output.items()),
            threads=snakemake.threads,
        )
