"""Gather all measurements into one tidy table."""

import argparse
from itertools import chain
from pathlib import Path

from shape_of_learning.metrics.measurements import COLUMNS
from shape_of_learning.script_arguments.running import run
from shape_of_learning.storage.csv_table import read_rows, write_table


def main(measurements: list[Path], output: Path) -> None:
    """Concatenate tables that have the same columns."""
    write_table(
        output, COLUMNS, chain.from_iterable(read_rows(path, COLUMNS) for path in measurements)
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measurements", type=Path, nargs="+", required=True)
    parser.add_argument("--output", type=Path, required=True)
    run(main, parser)
