"""Verdicts on checkpoints: which are shown, which are not, and why; with their loss."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from shape_of_learning.checkpoints.verdict_table import COLUMNS, SHOWN
from shape_of_learning.errors import InputError
from shape_of_learning.figures.table_files import named, numbers, read_text, words

REMEDY = "write the verdicts"


@dataclass(frozen=True)
class Verdicts:
    """One row per listed checkpoint, and the files that they came from.

    Parameters
    ----------
    rows : pandas.DataFrame
        Columns :data:`COLUMNS`, each model's by ascending step. ``step``, ``tokens``,
        ``predicted_tokens`` and ``vocabulary`` are Int64; ``loss`` is float64, in nats per predicted
        token, NaN where it was not measured, possibly infinite; ``verdict`` says in words what the
        checkpoint is, ``shown`` is one of :data:`SHOWN`.
    source : str
        The files, as messages name them.
    """

    rows: pd.DataFrame
    source: str


def read_verdicts(paths: Sequence[Path]) -> Verdicts:
    """Read and concatenate tables of verdicts.

    Parameters
    ----------
    paths : sequence of Path
        CSV files with the columns :data:`COLUMNS`; others are ignored. ``tokens``, ``loss``,
        ``predicted_tokens`` and ``vocabulary`` may be empty.

    Returns
    -------
    Verdicts

    Raises
    ------
    InputError
        If a file is missing, lacks a column or has a cell that does not belong there, if a
        checkpoint is there twice, or if there is no row at all.
    """
    rows = pd.concat([_read_one(Path(path)) for path in paths], ignore_index=True)
    source = named(paths)
    if rows.empty:
        raise InputError(f"{source} holds no verdict: {REMEDY} again")
    for which in ("revision", "step"):
        repeated = rows.duplicated(["model", which])
        if repeated.any():
            first = rows[repeated].iloc[0]
            raise InputError(
                f"{source} has {first['model']}, {which} {first[which]} twice: "
                "pass every file once and list every checkpoint once"
            )
    return Verdicts(rows.sort_values("step", kind="stable").reset_index(drop=True), source)


def _read_one(path: Path) -> pd.DataFrame:
    text = read_text(path, COLUMNS, of="verdicts", remedy=REMEDY)
    again = f"{REMEDY} again"
    counted = {"whole": True, "least": 0, "remedy": again}
    return pd.DataFrame(
        {
            "model": words(text["model"], path, remedy=again),
            "revision": words(text["revision"], path, remedy=again),
            "step": numbers(text["step"], path, may_be_empty=False, **counted),
            "tokens": numbers(text["tokens"], path, may_be_empty=True, **counted),
            "loss": numbers(
                text["loss"],
                path,
                whole=False,
                may_be_empty=True,
                infinite=True,
                least=0,
                remedy=again,
            ),
            "predicted_tokens": numbers(
                text["predicted_tokens"], path, may_be_empty=True, **counted
            ),
            "vocabulary": numbers(text["vocabulary"], path, may_be_empty=True, **counted),
            "verdict": words(text["verdict"], path, remedy=again),
            "shown": words(text["shown"], path, among=SHOWN, remedy=again),
        }
    )
