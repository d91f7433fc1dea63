"""The tables of a run as a page holds them: columns of numbers, and what their numbers mean."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from shape_of_learning.checkpoints.verdict_table import COLUMNS as VERDICT_COLUMNS
from shape_of_learning.errors import InputError
from shape_of_learning.explorer.packed_columns import rounded
from shape_of_learning.metrics.table_columns import ESTIMATE_COLUMNS
from shape_of_learning.storage.csv_table import read_rows

AVERAGE = 2**16 - 1  # the layer of an average over layers
NOT_JUDGED = ("", "yes")
_COLUMN = {name: place for place, name in enumerate(ESTIMATE_COLUMNS)}
_SERIES = itemgetter(*(_COLUMN[name] for name in ("model", "estimator", "selection")))
_CHECKPOINT = itemgetter(_COLUMN["model"], _COLUMN["revision"])


@dataclass(frozen=True)
class Curves:
    """All values of a run.

    Attributes
    ----------
    checkpoints : list of [model, revision, step, tokens, verdict, shown]
        Numbers or None; `verdict` is empty where nobody judged, `shown` is that of the verdict table.
    series : list of [model, estimator, selection, rows]
        Which rows belong together, one series after another; within one, rows are sorted by step, then layer,
        the average over layers last.
    columns : dict of str to ndarray, shape (n,)
        ``checkpoint`` (number of a checkpoint), ``layer`` (:data:`AVERAGE` for averages), ``depth``,
        ``value``, ``below`` and ``more_above`` (how far the interval reaches below the value, and how much
        farther above), ``n``, ``near_duplicates``; NaN where a cell is empty.
    """

    checkpoints: list[list[Any]]
    series: list[list[Any]]
    columns: dict[str, np.ndarray]


def read_curves(
    estimates: Path,
    verdicts: Sequence[Path],
    models: Sequence[str],
    measures: Sequence[str],
    further: Sequence[list[str]] = (),
) -> Curves:
    """Read estimates and verdicts.

    Parameters
    ----------
    estimates : Path
        ``tables/estimates.csv``.
    verdicts : sequence of Path
        ``tables/verdicts/{model}.csv`` of some models.
    models, measures : sequence of str
        All that the rows may hold, in the order of the page.
    further : sequence of list of str
        Rows of other tables, as those of estimates.

    Raises
    ------
    InputError
        If a table is missing or is not what was written, or the estimates hold another model or measure.
    """
    rows = read_rows(estimates, ESTIMATE_COLUMNS)
    orders = {"model": _order(models), "estimator": _order(measures)}
    for name, order in orders.items():
        if unknown := {row[_COLUMN[name]] for row in rows} - set(order):
            raise InputError(
                f"{estimates} has the {name} `{min(unknown)}`, which this run has not; delete it and "
                "run again"
            )

    def place(row: list[str]) -> tuple[Any, ...]:
        model, estimator, selection = _SERIES(row)
        step, layer = row[_COLUMN["step"]], row[_COLUMN["layer"]]
        return (
            *(orders["model"][model], orders["estimator"][estimator], selection),
            *(float(step or "inf"), row[_COLUMN["revision"]], float(layer or "inf")),
        )

    rows += further
    rows.sort(key=place)
    judged = _judged(verdicts)
    numbers: dict[tuple[str, str], int] = {}
    progress: dict[tuple[str, str], tuple[str, str]] = {}
    series: list[list[Any]] = []
    for row in rows:
        checkpoint, step, tokens = _CHECKPOINT(row), row[_COLUMN["step"]], row[_COLUMN["tokens"]]
        numbers.setdefault(checkpoint, len(numbers))
        if tokens or checkpoint not in progress:  # not every table counts tokens
            progress[checkpoint] = step, tokens
        if not series or tuple(series[-1][:3]) != _SERIES(row):
            series.append([*_SERIES(row), 0])
        series[-1][3] += 1
    checkpoints = [
        [*each, *map(_whole, progress[each]), *judged.get(each, NOT_JUDGED)] for each in numbers
    ]
    return Curves(checkpoints, series, _columns(rows, numbers))


def _columns(
    rows: Sequence[Sequence[str]], numbers: Mapping[tuple[str, str], int]
) -> dict[str, np.ndarray]:
    def read(name: str, empty: str = "nan") -> np.ndarray:
        return np.array([float(row[_COLUMN[name]] or empty) for row in rows], dtype=np.float64)

    value = read("value")
    with np.errstate(invalid="ignore"):  # an infinite value has no interval
        below, above = rounded(value - read("low")), rounded(read("high") - value)
    # Rounding errors of the ends are no difference.
    more_above = np.where(np.isclose(below, above, rtol=1e-3, atol=0), 0, above - below)
    return {
        "checkpoint": np.array([numbers[_CHECKPOINT(row)] for row in rows], dtype=np.uint16),
        "layer": read("layer", str(AVERAGE)).astype(np.uint16),
        "depth": read("depth").astype(np.float32),
        "value": value.astype(np.float32),
        "below": below,
        "more_above": rounded(more_above),
        "n": read("n").astype(np.float32),
        "near_duplicates": rounded(read("near_duplicates")),
    }


def _judged(tables: Sequence[Path]) -> dict[tuple[str, str], tuple[str, str]]:
    place = {name: number for number, name in enumerate(VERDICT_COLUMNS)}
    cells = itemgetter(*(place[name] for name in ("model", "revision", "verdict", "shown")))
    found = (cells(row) for table in tables for row in read_rows(table, VERDICT_COLUMNS))
    return {(model, revision): (verdict, shown) for model, revision, verdict, shown in found}


def _order(names: Sequence[str]) -> dict[str, int]:
    return {name: place for place, name in enumerate(names)}


def _whole(cell: str) -> int | None:
    return int(cell) if cell else None
