"""Estimate the intrinsic dimension of one layer from its neighbour search."""

import argparse
from pathlib import Path

from shape_of_learning.errors import InputError
from shape_of_learning.metrics.dimension import dimension_values
from shape_of_learning.metrics.measurements import write_batch_values
from shape_of_learning.metrics.neighbour_files import read_neighbours
from shape_of_learning.metrics.registry import ESTIMATORS
from shape_of_learning.script_arguments.running import run


def main(neighbours: Path, estimator: str, output: Path) -> None:
    """Write one value per batch."""
    searched = read_neighbours(neighbours)
    try:
        values = dimension_values(searched, ESTIMATORS[estimator])
    except ValueError as error:
        raise InputError(f"{neighbours}: {error}; delete it and run again") from error
    write_batch_values(output, values)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--neighbours", type=Path, required=True)
    parser.add_argument("--estimator", required=True)
    parser.add_argument("--output", type=Path, required=True)
    run(main, parser)
