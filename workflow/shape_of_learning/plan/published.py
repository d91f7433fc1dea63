"""Values that authors have published, ``published.csv`` of a paper's folder."""

import csv
from pathlib import Path
from typing import Any

from shape_of_learning.errors import InputError

COLUMNS = ["model", "estimator", "layer", "value", "reading_error", "source", "protocol"]
NUMBERS = {"layer": int, "value": float, "reading_error": float}


def read_published(file: Path) -> list[dict[str, Any]]:
    """Read the published values of a paper.

    Returns
    -------
    list of dict
        With the keys `COLUMNS`: names of a model entry and of an estimator; the number of the hidden state,
        or of the block; the value and how far the reading of a printed figure may be off, in its own units;
        where it was published, and of what sample.

    Raises
    ------
    InputError
        One sentence that names the file and the line.
    """
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            reader = csv.DictReader(lines)
            rows: list[dict[str, Any]] = list(reader)
    except (OSError, ValueError) as error:
        raise InputError(
            f"{file} cannot be read ({error}); published values belong there"
        ) from error
    if reader.fieldnames != COLUMNS:
        raise InputError(
            f"{file} must have the columns {', '.join(COLUMNS)}; correct its first line"
        )
    for line, row in enumerate(rows, 2):
        for name, kind in NUMBERS.items():
            try:
                row[name] = kind(row[name])
            except (TypeError, ValueError):
                raise InputError(
                    f"{file}, line {line}: `{name}` is {row[name]!r}, which is no number; correct it"
                ) from None
    return rows
