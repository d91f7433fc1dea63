"""The tidy table ``measurements.csv``, and the small files that it is gathered from."""

import csv
import math
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from shape_of_learning.errors import InputError
from shape_of_learning.files import written_beside


@dataclass(frozen=True)
class BatchValue:
    """One estimate on one batch.

    Attributes
    ----------
    batch : int
        Number of the batch within its layer.
    n, n_unique : int
        Vectors of the batch, and distinct ones among them.
    value : float
        The estimate; NaN where it is undefined, which the table shows as an empty cell.
    """

    batch: int
    n: int
    n_unique: int
    value: float


BATCH_COLUMNS = tuple(field.name for field in fields(BatchValue))
COLUMNS = (
    *("model", "role", "revision", "step", "tokens", "layer", "depth", "estimator"),
    *BATCH_COLUMNS,
)


def write_table(path: Path, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a CSV file; floats keep all their digits, None and NaN become empty cells."""
    with written_beside(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_cell(value) for value in row] for row in rows)


def write_batch_values(path: Path, values: Iterable[BatchValue]) -> None:
    """Write the estimates of one layer."""
    write_table(path, BATCH_COLUMNS, map(astuple, values))


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
