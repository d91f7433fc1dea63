"""CSV files that figures read, checked at the door."""

from collections.abc import Container, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from shape_of_learning.errors import InputError

FILES_NAMED = 3


def named(paths: Sequence[Path]) -> str:
    """The files as messages name them: the first three, and how many more there are."""
    text = ", ".join(str(path) for path in paths[:FILES_NAMED])
    more = len(paths) - FILES_NAMED
    return f"{text} and {more} more" if more > 0 else text


def read_text(path: Path, columns: Sequence[str], *, of: str, remedy: str) -> pd.DataFrame:
    """Read a CSV file as text, empty cells as empty strings.

    Parameters
    ----------
    path : Path
    columns : sequence of str
        Those that must be there; others are kept too.
    of : str
        What the table is of, for messages.
    remedy : str
        What to do about a missing file.

    Raises
    ------
    InputError
        If the file is missing, is no table, or lacks a column.
    """
    try:
        text = pd.read_csv(path, dtype=str, keep_default_na=False)
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist: {remedy} first") from error
    except (ValueError, UnicodeDecodeError) as error:  # pandas' parser errors are ValueErrors
        raise InputError(f"{path} is no table of {of}: {str(error).strip()}") from error
    if missing := [name for name in columns if name not in text.columns]:
        raise InputError(f"{path} lacks the columns {', '.join(missing)}: {remedy} again")
    return text


def numbers(
    text: pd.Series,
    path: Path,
    *,
    whole: bool,
    may_be_empty: bool,
    infinite: bool = False,
    least: float = -np.inf,
    remedy: str,
) -> pd.Series:
    """Numbers of one column.

    Parameters
    ----------
    text : pandas.Series of str
        Its name and the file's are named in messages.
    path : Path
    whole, may_be_empty, infinite : bool
        What is allowed: integers only, empty cells, positive infinity.
    least : float
        The smallest number allowed.
    remedy : str

    Returns
    -------
    pandas.Series
        Int64 if `whole`, else float64; missing where the text is empty.

    Raises
    ------
    InputError
        If a cell holds anything else; the message names its line.
    """
    parsed = pd.to_numeric(text, errors="coerce").astype("float64")
    bad = ~(np.isfinite(parsed) | (infinite & np.isposinf(parsed))) | (parsed < least)
    if whole:
        bad |= parsed != np.floor(parsed)
    if may_be_empty:
        bad &= text != ""
    _refuse(text, bad, path, remedy)
    return parsed.astype("Int64") if whole else parsed


def words(
    text: pd.Series, path: Path, *, among: Container[str] | None = None, remedy: str
) -> pd.Series:
    """Text of one column, without blanks around it; no cell is empty.

    Raises
    ------
    InputError
        If a cell is empty or not `among` those allowed.
    """
    stripped = text.str.split().str.join(" ")
    bad = stripped.eq("") if among is None else ~stripped.map(lambda cell: cell in among)
    _refuse(text, bad.astype(bool), path, remedy)
    return stripped


def _refuse(text: pd.Series, bad: pd.Series, path: Path, remedy: str) -> None:
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"{path}, line {row + 2}: {text.iloc[row]!r} is no valid {text.name}; {remedy}"
        )
