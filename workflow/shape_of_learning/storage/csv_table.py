"""Tables as CSV files: floats keep all their digits, what is undefined is an empty cell."""

import csv
import math
from collections.abc import Iterable
from pathlib import Path

from shape_of_learning.errors import InputError
from shape_of_learning.storage.files import atomic_write


def write_table(path: Path, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a CSV file; floats keep all their digits, None and NaN become empty cells."""
    with atomic_write(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_cell(value) for value in row] for row in rows)


def read_rows(path: Path, columns: tuple[str, ...]) -> list[list[str]]:
    """Read a CSV file whose header must be `columns`, as text.

    Raises
    ------
    InputError
        If the file is missing, empty or has other columns.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is missing or empty; delete it and run again") from error
    if tuple(header) != columns:
        raise InputError(f"{path} has the columns {header}, not {list(columns)}; delete it")
    if any(len(row) != len(columns) for row in rows):
        raise InputError(f"{path} has a row that is cut short; delete it and run again")
    return rows


def _cell(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(float(value))
    return value
