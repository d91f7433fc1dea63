"""Tables as CSV files: floats keep all their digits, what is undefined is an empty cell."""

import csv
import io
import math
from collections.abc import Iterable
from pathlib import Path

from shape_of_learning.errors import InputError
from shape_of_learning.storage.digests import read_unchanged, write_with_digest
from shape_of_learning.storage.files import atomic_write


def write_table(
    path: Path, columns: Iterable[str], rows: Iterable[Iterable[object]], *, digest: bool = True
) -> None:
    """Write a CSV file; floats keep all their digits, None and NaN become empty cells.

    With a `digest`, one lies beside it, which :func:`read_rows` compares it with.
    """
    write = write_with_digest if digest else atomic_write
    with write(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_cell(value) for value in row] for row in rows)


def read_rows(path: Path, columns: tuple[str, ...], *, digest: bool = True) -> list[list[str]]:
    """Read a table that :func:`write_table` wrote, whose header must be `columns`, as text.

    Without a `digest` it may have been edited since.

    Raises
    ------
    InputError
        If the file is missing, is not what was written, or has other columns.
    """
    content = read_unchanged(path) if digest else path.read_bytes()
    header, *rows = csv.reader(io.StringIO(content.decode("utf-8"), newline=""))
    if tuple(header) != columns:
        raise InputError(f"{path} has the columns {header}, not {list(columns)}; delete it")
    return rows


def _cell(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(float(value))
    return value
