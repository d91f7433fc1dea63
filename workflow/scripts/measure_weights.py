"""Measure the matrices of one checkpoint: its embeddings and its final norm, from the file beside a dump."""

import argparse
from pathlib import Path

from shape_of_learning.embeddings.weight_files import opened_weights
from shape_of_learning.metrics.weights_table import WeightMeasurement, write_weight_tables
from shape_of_learning.script_arguments.running import run


def main(weights: Path, measurement: WeightMeasurement, values: Path, points: Path) -> None:
    """Write a value for each matrix and measure, and the points of the pictures that show this checkpoint."""
    with opened_weights(weights) as matrices:
        write_weight_tables(list(matrices.items()), measurement, values, points)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, required=True, metavar="H5")
    parser.add_argument("--measurement", type=WeightMeasurement.from_json, required=True)
    parser.add_argument("--values", type=Path, required=True, metavar="CSV")
    parser.add_argument("--points", type=Path, required=True, metavar="CSV")
    run(main, parser)
