"""Measure all layers of one checkpoint: its hidden states, its nearest distances or its spectra."""

import argparse
from pathlib import Path

from shape_of_learning.embeddings.selected_rows import read_selected
from shape_of_learning.errors import InputError
from shape_of_learning.metrics.batch_files import read_batches
from shape_of_learning.metrics.batches import Batch, vector_batches
from shape_of_learning.metrics.measurements import batch_values, write_measurements
from shape_of_learning.metrics.registry import ChosenMeasure
from shape_of_learning.metrics.selections import Selection
from shape_of_learning.script_arguments.running import run


def main(
    folder: Path,
    layers: int,
    measure: ChosenMeasure,
    selection: Selection,
    batch_vectors: int,
    output: Path,
) -> None:
    """Read ``{folder}/layer_0.h5`` to ``layer_{layers}.h5`` and write one value per layer and batch."""

    def batches(file: Path) -> list[Batch]:
        if measure.of == "vectors":
            return vector_batches(read_selected(file, selection), batch_vectors)
        return read_batches(file)

    values = {}
    for layer in range(layers + 1):
        file = folder / f"layer_{layer}.h5"
        try:
            values[layer] = batch_values(batches(file), measure)
        except InputError:
            raise
        except ValueError as error:
            raise InputError(f"{file}: {error}; delete it and run again") from error
    write_measurements(output, values)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--layers", type=int, required=True)
    parser.add_argument("--measure", type=ChosenMeasure.from_json, required=True)
    parser.add_argument("--selection", type=Selection.from_json, required=True)
    parser.add_argument("--batch-vectors", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    run(main, parser)
