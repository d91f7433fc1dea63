"""The tables that figures read, as rules of this workflow wrote them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd

from shape_of_learning.checkpoints.verdict_table import COLUMNS as VERDICT_COLUMNS
from shape_of_learning.errors import InputError
from shape_of_learning.metrics.table_columns import CHANGE_COLUMNS, ESTIMATE_COLUMNS
from shape_of_learning.storage.digests import read_unchanged

TEXT = ("model", "role", "revision", "estimator", "selection", "verdict", "shown")
TEXT += ("from_revision", "to_revision")
WHOLE = ("step", "tokens", "layer", "windows", "predicted_tokens", "vocabulary")
FILES_NAMED = 3


def _kinds(columns: Sequence[str]) -> dict[str, str]:
    return {
        name: "str" if name in TEXT else "Int64" if name in WHOLE else "float64" for name in columns
    }


# What pandas makes of each column; an empty cell of a number is a missing one.
ESTIMATES = _kinds(ESTIMATE_COLUMNS)
CHANGES = _kinds(CHANGE_COLUMNS)
VERDICTS = _kinds(VERDICT_COLUMNS)


@dataclass(frozen=True)
class Table:
    """Rows of one or more files, and these files as messages name them."""

    rows: pd.DataFrame
    source: str


def read_table(paths: Sequence[Path], columns: Mapping[str, str]) -> Table:
    """Read and concatenate tables.

    Parameters
    ----------
    paths : sequence of Path
        CSV files with these columns, in this order.
    columns : mapping of str to str
        :data:`ESTIMATES`, where an empty ``value`` is an undefined one, :data:`VERDICTS`, or :data:`CHANGES`,
        of which alone there may be none: one checkpoint has no changes.

    Raises
    ------
    InputError
        If a file is missing, is not what was written, holds no row, or has other columns or cells.
    """
    rows = pd.concat([_read_one(path, columns) for path in paths], ignore_index=True)
    named = ", ".join(str(path) for path in paths[:FILES_NAMED])
    more = len(paths) - FILES_NAMED
    return Table(rows, f"{named} and {more} more" if more > 0 else named)


def read_further_tables(paths: Sequence[tuple[str, Path]]) -> dict[str, pd.DataFrame]:
    """Read what a figure `reads` besides estimates: tables of a paper's own, each of one model.

    Parameters
    ----------
    paths : sequence of (str, Path)
        The name of a kind of table, and a CSV file.

    Returns
    -------
    dict of str to pandas.DataFrame
        The rows of each kind. Columns whose names are in `TEXT` are text, others what pandas makes of them;
        an empty cell is a missing value.

    Raises
    ------
    InputError
        If a file is missing, is not what was written, has no column ``model``, or other columns than those of
        its kind.
    """
    kinds: dict[str, list[pd.DataFrame]] = {}
    for kind, path in paths:
        rows = _parsed(path, dict.fromkeys(TEXT, "str"), [""])
        columns = list(kinds[kind][0]) if kind in kinds else list(rows)
        if "model" not in rows or list(rows) != columns:
            raise InputError(
                f"{path} has the columns {', '.join(rows)}, but `model` and those of the other tables of "
                f"`{kind}` are needed; delete it and run again"
            )
        kinds.setdefault(kind, []).append(rows)
    return {kind: pd.concat(rows, ignore_index=True) for kind, rows in kinds.items()}


def _read_one(path: Path, columns: Mapping[str, str]) -> pd.DataFrame:
    rows = _parsed(path, columns, {name: [""] for name, kind in columns.items() if kind != "str"})
    if list(rows) != list(columns) or (rows.empty and columns is not CHANGES):
        raise InputError(
            f"{path} has {len(rows)} rows of the columns {', '.join(rows)}, but some of "
            f"{', '.join(columns)} are needed; delete it and run again"
        )
    return rows


def _parsed(path: Path, columns: Mapping[str, str], missing: Any) -> pd.DataFrame:
    content = read_unchanged(path)
    try:
        return pd.read_csv(
            BytesIO(content), dtype=dict(columns), keep_default_na=False, na_values=missing
        )
    except ValueError as error:  # pandas' parser errors are ValueErrors
        reason = " ".join(str(error).split())
        raise InputError(f"{path} cannot be read ({reason}); delete it and run again") from error
