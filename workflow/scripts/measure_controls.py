"""Measure the null models of one checkpoint: shuffled tokens, untrained weights, a Gaussian cloud."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from shape_of_learning.checkpoints.tensors import check_tensors
from shape_of_learning.embeddings.controls import GaussianStates, initialise_weights, shuffle_tokens
from shape_of_learning.embeddings.forward_pass import ForwardPass
from shape_of_learning.embeddings.layers import measure_layers
from shape_of_learning.embeddings.protocol import (
    ControlsJob,
    ForwardFiles,
    SamplingProtocol,
    find_forward_files,
)
from shape_of_learning.embeddings.run import SampleRun, StatesInMemory
from shape_of_learning.embeddings.tokenised_windows import draw_windows
from shape_of_learning.files import write_table
from shape_of_learning.job import run_job
from shape_of_learning.metrics.measure import Part
from shape_of_learning.metrics.protocol import MeasuringProtocol
from shape_of_learning.metrics.selections import HiddenStates
from shape_of_learning.metrics.tidy import CONTROL_COLUMNS

logger = logging.getLogger("shape_of_learning")


def main(job: ControlsJob, files: ForwardFiles, output: Path, threads: int) -> None:
    """Compute the hidden states of all null models of a checkpoint, and measure their layers."""
    weights = job.weights
    check_tensors(files.checkpoint, weights.is_download, threads)
    sample = SampleRun.load(
        files.checkpoint,
        draw_windows(files.text, job.sampling),
        job.sampling,
        weights.shape,
        threads=threads,
        needs_memory=True,
        tokenizer=files.tokenizer,
    )
    # A GPU has one queue, so several threads would wait for each other.
    workers = threads if sample.forward.device.type == "cpu" else 1
    names = (weights.model, weights.shape.role, weights.revision, job.step, job.tokens)
    table: list[Sequence[object]] = []
    for kind in job.kinds:
        is_gaussian = kind.startswith("gaussian")
        measures = [
            measure for measure in job.measures if measure.family == "dimension" or not is_gaussian
        ]
        states = _compute_states(sample, kind, job.sampling, job.protocol)
        for *_, rows in measure_layers(states, [Part(job.protocol, measures)], workers):
            table += [(*names, kind, *row.cells) for row in rows if row.batch is None]
        logger.info("%s is measured", kind)
    write_table(output, CONTROL_COLUMNS, table)


def _compute_states(
    sample: SampleRun, kind: str, sampling: SamplingProtocol, protocol: MeasuringProtocol
) -> HiddenStates:
    """Compute the hidden states of a null model, without a loss."""
    if kind.startswith("shuffled"):
        within_windows = kind == "shuffled_within_windows"
        windows = shuffle_tokens(sample.windows, sampling.seed, within_windows=within_windows)
        sample = replace(sample, windows=windows)
    if kind == "untrained":
        untrained_model = initialise_weights(sample.forward.model, sampling.seed, protocol.model)
        forward = ForwardPass(untrained_model, None, last_layer=sampling.last_layer)
        sample = replace(sample, forward=forward)
    sample = replace(sample, predicted_tokens=None)
    states = StatesInMemory(sample)
    sample.store_states(states)
    if kind == "gaussian":
        return GaussianStates(states, protocol)
    if kind == "gaussian_without_massive_tokens":
        selection = replace(protocol.selection, massive_tokens="drop")
        return GaussianStates(states, replace(protocol, selection=selection))
    return states


if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        main(
            snakemake.params.job,
            find_forward_files(snakemake),
            output=Path(snakemake.output[0]),
            threads=snakemake.threads,
        )
