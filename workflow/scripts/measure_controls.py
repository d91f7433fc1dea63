"""Measure null models beside one checkpoint: shuffled tokens, untrained weights, a Gaussian cloud."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from shape_of_learning.checkpoints.tensors import check_tensors
from shape_of_learning.embeddings.controls import GaussianStates, initialise_weights, shuffle_tokens
from shape_of_learning.embeddings.forward_pass import ForwardPass
from shape_of_learning.embeddings.layers import measure_layers
from shape_of_learning.embeddings.run import SampleRun, StatesInMemory
from shape_of_learning.embeddings.tokenised_windows import SamplingProtocol, draw_windows
from shape_of_learning.files import write_table
from shape_of_learning.job import run_job
from shape_of_learning.metrics.measure import Part
from shape_of_learning.metrics.measure_entry import Measure
from shape_of_learning.metrics.protocol import MeasuringProtocol
from shape_of_learning.metrics.selections import HiddenStates
from shape_of_learning.metrics.tidy import CONTROL_COLUMNS

logger = logging.getLogger("shape_of_learning")


def main(
    checkpoint_named: Sequence[object],
    text: Path,
    protocol: Mapping[str, Any],
    measuring: Mapping[str, Any],
    kinds: Sequence[str],
    output: Path,
    is_download: bool,
    **loaded: Any,
) -> None:
    """Run the windows of the run through a checkpoint as each control has them, and measure every layer.

    Parameters
    ----------
    checkpoint_named : sequence
        Its model, role, revision, step and tokens.
    kinds : sequence of str
        As in `controls.kinds` of the configuration.
    text, protocol, measuring, is_download, **loaded
        As measure_checkpoint.py takes them.
    """
    check_tensors(loaded["checkpoint"], is_download, loaded["threads"])
    measures = [Measure(**measure) for measure in measuring["measures"]]
    model = str(checkpoint_named[0])
    sampling = SamplingProtocol(**protocol)
    fields = {**measuring["protocol"], "windows": sampling.windows}
    how, windows = MeasuringProtocol.read_fields(model, fields), draw_windows(text, sampling)
    sample = SampleRun.load(windows=windows, protocol=sampling, in_memory=True, **loaded)
    # A GPU has one queue.
    workers = loaded["threads"] if sample.forward.device.type == "cpu" else 1
    rows: list[Sequence[object]] = []
    for kind in kinds:
        wanted = [m for m in measures if kind != "gaussian" or m.family == "dimension"]
        states = _compute_states(sample, kind, sampling, how)
        for *_, of_family in measure_layers(states, [Part(how, wanted)], workers):
            rows += [
                (*checkpoint_named, kind, *row.cells) for row in of_family if row.batch is None
            ]
        logger.info("%s is measured", kind)
    write_table(output, CONTROL_COLUMNS, rows)


def _compute_states(
    sample: SampleRun, kind: str, sampling: SamplingProtocol, how: MeasuringProtocol
) -> HiddenStates:
    """Hidden states of a control; no loss is taken of them."""
    if kind.startswith("shuffled"):
        within = kind == "shuffled_within_windows"
        windows = shuffle_tokens(sample.windows, sampling.seed, within=within)
        sample = replace(sample, windows=windows)
    if kind == "untrained":
        fresh = initialise_weights(sample.forward.model, sampling.seed, how.model)
        sample = replace(sample, forward=ForwardPass(fresh, None, last_layer=sampling.last_layer))
    sample = replace(sample, predicted=None)
    states = StatesInMemory(sample)
    sample.store_states(states)
    return GaussianStates(states, how) if kind == "gaussian" else states


if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        params = snakemake.params
        main(
            params.checkpoint_named,
            Path(snakemake.input.text),
            measuring=params.measuring,
            kinds=params.kinds,
            output=Path(snakemake.output[0]),
            checkpoint=Path(snakemake.resources.checkpoint),
            threads=snakemake.threads,
            **params.sample,
        )
