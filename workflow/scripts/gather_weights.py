"""Gather what was measured of the matrices of a model over its checkpoints."""

import argparse
import json
from itertools import chain
from pathlib import Path

from shape_of_learning.metrics.weights_table import CHECKPOINT_COLUMNS, TABLES, checkpoint_rows
from shape_of_learning.script_arguments.running import run
from shape_of_learning.storage.csv_table import write_table


def main(kind: str, checkpoints: list[list[str]], tables: list[Path], output: Path) -> None:
    """Put before each row which checkpoint it is of."""
    read = (
        checkpoint_rows(table, TABLES[kind], checkpoint)
        for table, checkpoint in zip(tables, checkpoints, strict=True)
    )
    write_table(output, (*CHECKPOINT_COLUMNS, *TABLES[kind]), chain.from_iterable(read))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=TABLES, required=True)
    parser.add_argument("--checkpoints", type=json.loads, required=True, metavar="JSON")
    parser.add_argument("--tables", type=Path, nargs="+", required=True)
    parser.add_argument("--output", type=Path, required=True)
    run(main, parser)
