"""Measure all blocks of one checkpoint with all measures of pairs, which share what they compute."""

import argparse
import json
import logging
from pathlib import Path

from shape_of_learning.embeddings.hidden_state_files import layer_file
from shape_of_learning.embeddings.selected_rows import read_selected
from shape_of_learning.errors import InputError
from shape_of_learning.metrics.measure_entry import ChosenMeasure, by_rows
from shape_of_learning.metrics.measurements import Measured, write_left_out, write_measurements
from shape_of_learning.metrics.pairs import measure_pair
from shape_of_learning.metrics.resampling import window_groups
from shape_of_learning.metrics.selections import Selection
from shape_of_learning.script_arguments.protocol import SamplingProtocol
from shape_of_learning.script_arguments.running import run

logger = logging.getLogger("shape_of_learning")


def main(
    folder: Path,
    layers: int,
    measures: list[ChosenMeasure],
    selection: Selection,
    protocol: SamplingProtocol,
    output: list[Path],
    left_out: list[Path],
) -> None:
    """Read ``{folder}/layer_0.h5`` to ``layer_{layers}.h5``, two at a time, and write the tables."""
    groups = window_groups(protocol.windows, protocol.seed)
    measured: dict[str, dict[int, Measured]] = {measure.name: {} for measure in measures}
    for rows, chosen in by_rows(measures):
        own = selection.with_rows(rows)
        before, windows = read_selected(layer_file(folder, 0), own)
        for block in range(1, layers + 1):
            last = own.before_final_norm and block == layers
            file = layer_file(folder, block, before_final_norm=last)
            after, _ = read_selected(file, own)
            try:
                values = measure_pair(before, after, windows, chosen, groups)
            except ValueError as error:
                raise InputError(f"{file}: {error}; delete it and run again") from error
            for name, value in values.items():
                measured[name][block] = value
            logger.info("block %d of %d is measured: %s", block, layers, ", ".join(chosen))
            before = after
    for path in output:
        write_measurements(path, measured[path.stem])
    for path in left_out:
        write_left_out(path, measured[path.stem])


def _measures(text: str) -> list[ChosenMeasure]:
    return [ChosenMeasure.from_json(entry) for entry in json.loads(text)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--layers", type=int, required=True)
    parser.add_argument("--measures", type=_measures, required=True, metavar="JSON")
    parser.add_argument("--selection", type=Selection.from_json, required=True)
    parser.add_argument("--protocol", type=SamplingProtocol.from_json, required=True)
    parser.add_argument("--output", type=Path, nargs="+", required=True)
    parser.add_argument("--left-out", type=Path, nargs="+", required=True)
    run(main, parser)
