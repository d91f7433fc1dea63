"""Write a table of the steps that a training saved: held-out losses and scores, and what was trained how."""

import argparse
from pathlib import Path

from shape_of_learning.checkpoints.training_table import COLUMNS, training_row
from shape_of_learning.script_arguments.running import run
from shape_of_learning.storage.csv_table import write_table


def main(checkpoints: Path, revisions: list[str], output: Path) -> None:
    """Write one row for each of `revisions`, folders in `checkpoints`."""
    write_table(output, COLUMNS, [training_row(checkpoints / name) for name in revisions])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoints", type=Path, required=True, help="folder of the steps")
    parser.add_argument("--revisions", nargs="+", required=True)
    parser.add_argument("--output", type=Path, required=True, metavar="CSV")
    run(main, parser)
