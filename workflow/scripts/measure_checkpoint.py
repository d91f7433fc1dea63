"""Measure all layers of one checkpoint on sampled windows; no hidden states are written.

Where there is a GPU, it measures, too.
"""

import argparse
import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shape_of_learning.checkpoints.losses import write_loss
from shape_of_learning.checkpoints.tensors import checked_tensors, write_tensor_digests
from shape_of_learning.embeddings.in_memory import HiddenStatesInMemory
from shape_of_learning.embeddings.model_weights import model_matrices
from shape_of_learning.embeddings.sample_run import SampleRun, draw_windows
from shape_of_learning.metrics.batches import require_one_batch, shuffle_of
from shape_of_learning.metrics.measure_entry import ChosenMeasure, by_rows
from shape_of_learning.metrics.measurements import Measured, write_left_out, write_measurements
from shape_of_learning.metrics.resampling import window_groups
from shape_of_learning.metrics.selected_measures import SelectedMeasures
from shape_of_learning.metrics.selections import Selection
from shape_of_learning.metrics.weights_table import WeightMeasurement, write_weight_tables
from shape_of_learning.script_arguments.protocol import SamplingProtocol
from shape_of_learning.script_arguments.running import run
from shape_of_learning.script_arguments.sample import add_sample_arguments

if TYPE_CHECKING:
    import numpy as np
    import torch

logger = logging.getLogger("shape_of_learning")


@dataclass(frozen=True)
class Measurement:
    """What is measured, and of which rows; keys of the configuration."""

    measures: list[ChosenMeasure]
    selection: Selection
    batch_vectors: int
    neighbours: int

    @classmethod
    def from_json(cls, text: str) -> "Measurement":
        """Read the argument of this script."""
        fields = json.loads(text)
        measures = [ChosenMeasure.from_json(entry) for entry in fields.pop("measures")]
        selection = Selection.from_json(fields.pop("selection"))
        return cls(measures, selection, **fields)


def main(
    model: str,
    revision: str,
    text: Path,
    protocol: SamplingProtocol,
    measurement: Measurement,
    output: list[Path],
    left_out: list[Path],
    loss: Path,
    **loaded: Any,
) -> None:
    """Write two tables per measure, into the files of its name, the loss and the tensors' digests."""
    windows = draw_windows(text, protocol)
    tensors, receipt = loaded.pop("tensors"), loaded.pop("receipt", None)
    of_weights = loaded.pop("weights", [])
    digests = checked_tensors(loaded["checkpoint"], receipt, loaded.get("threads", 1))
    sample = SampleRun.load(windows=windows, protocol=protocol, in_memory=True, **loaded)
    parts = [
        SelectedMeasures(
            chosen,
            measurement.selection.with_rows(rows),
            sample.rows,
            measurement.batch_vectors,
        )
        for rows, chosen in by_rows(measurement.measures)
    ]
    for part in parts:
        if part.is_in_batches:
            require_one_batch(len(part.kept), part.batch_vectors)
    groups = window_groups(protocol.windows, protocol.seed)
    last = len(sample.widths) - 1 - sample.before_final_norm
    needed = [
        sorted({state for part in parts for state in part.states(layer, last)})
        for layer in range(last + 1)
    ]
    states = HiddenStatesInMemory(sample)
    cross_entropy = sample.into(states)
    if of_weights:
        measure_weights(sample, *of_weights)
    del sample  # which leaves the memory of its weights to the measuring

    def measure(layer: int, *rows: "np.ndarray | torch.Tensor") -> dict[str, Measured]:
        state = dict(zip(needed[layer], rows, strict=True))
        values: dict[str, Measured] = {}
        for part in parts:
            values |= part.measured(
                state,
                part.states(layer, last),
                measurement.neighbours,
                shuffle_of(protocol.seed, model),
                groups,
            )
        return values

    layers = []
    for values in states.measured(measure, loaded["threads"], needed):
        layers.append(values)
        logger.info("%s at %s: layer %d is measured", model, revision, len(layers) - 1)
    for write, paths in ((write_measurements, output), (write_left_out, left_out)):
        for path in paths:
            name = path.stem  # of a pair, there is none at the embedding output
            write(path, {n: values[name] for n, values in enumerate(layers) if name in values})
    write_tensor_digests(tensors, digests)
    write_loss(loss, cross_entropy)


def measure_weights(sample: SampleRun, asked: str, values: str, points: str) -> None:
    """Write what is asked of the matrices of the model, into two tables."""
    matrices = [(each.name, each.read()) for each in model_matrices(sample.forward)]
    measurement = WeightMeasurement.from_json(asked)
    write_weight_tables(matrices, measurement, Path(values), Path(points))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_sample_arguments(parser)
    parser.add_argument("--measurement", type=Measurement.from_json, required=True)
    parser.add_argument("--output", type=Path, nargs="+", required=True)
    parser.add_argument("--left-out", type=Path, nargs="+", required=True)
    parser.add_argument("--loss", type=Path, required=True)
    parser.add_argument("--weights", nargs=3, default=[], metavar=("JSON", "VALUES", "POINTS"))
    run(main, parser)
