"""Measure all layers of one checkpoint: its hidden states, its nearest distances or its spectra."""

import argparse
from pathlib import Path

from shape_of_learning.embeddings.hidden_state_files import layer_file
from shape_of_learning.embeddings.selected_rows import read_labelled, read_selected
from shape_of_learning.errors import InputError
from shape_of_learning.metrics.batch_files import read_batches
from shape_of_learning.metrics.batches import Batch, labelled_batch, vector_batches
from shape_of_learning.metrics.measure_entry import ChosenMeasure
from shape_of_learning.metrics.measurements import (
    measure_batches,
    write_left_out,
    write_measurements,
)
from shape_of_learning.metrics.resampling import window_groups
from shape_of_learning.metrics.selections import Selection
from shape_of_learning.script_arguments.protocol import SamplingProtocol
from shape_of_learning.script_arguments.running import run


def main(
    folder: Path,
    layers: int,
    measure: ChosenMeasure,
    selection: Selection,
    batch_vectors: int,
    protocol: SamplingProtocol,
    output: Path,
    left_out: Path,
) -> None:
    """Read ``{folder}/layer_0.h5`` to ``layer_{layers}.h5``, or ``layer_{layers}_before_final_norm.h5``.

    Write one value per layer and batch, and per layer those without each group of windows.
    """
    groups = window_groups(protocol.windows, protocol.seed)
    selection = selection.with_rows(measure.rows)

    def batches(file: Path) -> list[Batch]:
        if measure.of == "vectors":
            return vector_batches(*read_selected(file, selection), batch_vectors)
        if measure.of == "labelled":
            (vectors, windows), labels = read_labelled(file, selection, measure.groups)
            return [labelled_batch(vectors, windows, labels)]
        return read_batches(file)

    measured = {}
    for layer in range(layers + 1):
        before = selection.before_final_norm and layer == layers
        file = layer_file(folder, layer, before_final_norm=before)
        try:
            measured[layer] = measure_batches(batches(file), measure, groups)
        except InputError:
            raise
        except ValueError as error:
            raise InputError(f"{file}: {error}; delete it and run again") from error
    write_measurements(output, measured)
    write_left_out(left_out, measured)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--layers", type=int, required=True)
    parser.add_argument("--measure", type=ChosenMeasure.from_json, required=True)
    parser.add_argument("--selection", type=Selection.from_json, required=True)
    parser.add_argument("--batch-vectors", type=int, required=True)
    parser.add_argument("--protocol", type=SamplingProtocol.from_json, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--left-out", type=Path, required=True)
    run(main, parser)
