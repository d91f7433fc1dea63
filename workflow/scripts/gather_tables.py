"""Gather tables of one kind, of all models and estimators, into one."""

import argparse
from itertools import chain
from pathlib import Path

from shape_of_learning.metrics.measurements import COLUMNS
from shape_of_learning.metrics.table_columns import CHANGE_COLUMNS, ESTIMATE_COLUMNS
from shape_of_learning.metrics.weights_table import CHECKPOINT_COLUMNS, VALUE_COLUMNS
from shape_of_learning.script_arguments.running import run
from shape_of_learning.storage.csv_table import read_rows, write_table

KINDS = {
    "measurements": COLUMNS,
    "estimates": ESTIMATE_COLUMNS,
    "changes": CHANGE_COLUMNS,
    "weights": (*CHECKPOINT_COLUMNS, *VALUE_COLUMNS),
}


def main(kind: str, tables: list[Path], output: Path) -> None:
    """Concatenate tables that have the same columns; of none just the header is left."""
    columns = KINDS[kind]
    write_table(output, columns, chain.from_iterable(read_rows(path, columns) for path in tables))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=KINDS, required=True)
    parser.add_argument("--tables", type=Path, nargs="*", required=True)
    parser.add_argument("--output", type=Path, required=True)
    run(main, parser)
