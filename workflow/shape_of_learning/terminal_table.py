"""Estimates and differences as tables of 80 columns, with intervals, marks and their legend."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from shape_of_learning.metrics.registry import find_measure
from shape_of_learning.metrics.suspects import REASONS, Reason, read_reasons

Row = Mapping[str, Any]
WIDTH = 80  # characters
MOST_DECIMALS = 2  # of estimates; of differences one more
# Names that a narrow column has room for.
SHORT_LABELS = {"anisotropy": "anisotropy", "anisotropy_without_massive_tokens": "w/o massive"}
EXCLUDES_0 = Reason("excludes 0", "!", "the interval excludes 0")


class Cell(NamedTuple):
    """A number of a table, its interval, and what is to be said of it."""

    value: float
    low: float
    high: float
    reasons: Sequence[Reason] = ()


def print_estimates(rows: Iterable[Row], console: Console) -> None:
    """Print a row for each layer and a column for each measure, and explain the marks.

    Parameters
    ----------
    rows : iterable of mapping
        Of ``tables/estimates.csv``, with numbers; of one checkpoint.
    console : rich.console.Console
    """
    cells = {
        (_place(row), row["estimator"]): Cell(
            row["value"], row["low"], row["high"], read_reasons(row["reason"])
        )
        for row in rows
    }
    _print(cells, console)


def print_changes(rows: Iterable[Row], console: Console) -> None:
    """Print differences likewise; `!` marks those whose interval excludes 0."""

    def cell(row: Row) -> Cell:
        differs = row["low"] > 0 or row["high"] < 0
        marks = [EXCLUDES_0] if differs else []
        return Cell(
            row["difference"], row["low"], row["high"], [*marks, *read_reasons(row["reason"])]
        )

    cells = {(_place(row), row["estimator"]): cell(row) for row in rows}
    _print(cells, console, MOST_DECIMALS + 1)


def _print(
    cells: Mapping[tuple[str, str], Cell], console: Console, decimals: int = MOST_DECIMALS
) -> None:
    places = list(dict.fromkeys(place for place, _ in cells))
    columns = {
        measure: [
            format_cell(cells[place, measure], decimals) if (place, measure) in cells else ""
            for place in places
        ]
        for measure in dict.fromkeys(measure for _, measure in cells)
    }
    widths = {name: max(map(len, [_label(name), *texts])) for name, texts in columns.items()}
    for names in _pack(widths):
        table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
        for label in ("layer", *map(_label, names)):
            table.add_column(label, justify="right", no_wrap=True)
        for number, place in enumerate(places):
            table.add_row(place, *(columns[name][number] for name in names))
        console.print(table)
    marks = {reason.mark for cell in cells.values() for reason in cell.reasons}
    for reason in (*REASONS.values(), EXCLUDES_0):
        if reason.mark in marks:
            console.print(f"{reason.mark} {reason.sentence}", soft_wrap=True, highlight=False)
    if "anisotropy_without_massive_tokens" in columns:
        console.print("w/o massive: anisotropy without massive tokens", highlight=False)


def _pack(widths: Mapping[str, int]) -> list[list[str]]:
    """Put as many columns beside each other as a line has room for."""
    packed: list[list[str]] = []
    room = 0
    for name, width in widths.items():
        if not packed or width + 1 > room:
            packed.append([])
            room = WIDTH - len("layer")
        packed[-1].append(name)
        room -= width + 1
    return packed


def _place(row: Row) -> str:
    return "mean" if row["layer"] is None else str(int(row["layer"]))


def _label(name: str) -> str:
    return SHORT_LABELS.get(name) or find_measure(name).configure(name, {}).label


def format_cell(cell: Cell, most_decimals: int = MOST_DECIMALS) -> str:
    """Write a value with as many decimals as its interval allows, the interval, and marks.

    Examples
    --------
    >>> format_cell(Cell(34.12, 23.7, 44.4))
    '34 [24, 44]'
    >>> format_cell(Cell(0.0912, 0.0871, 0.0953))
    '.09 [.09, .10]'
    """
    if math.isnan(cell.value):
        return "undefined"
    marks = "".join(reason.mark for reason in cell.reasons)
    half = (cell.high - cell.low) / 2
    if not math.isfinite(half):
        return f"{_write(cell.value, most_decimals)}{marks}"
    # One digit of what an interval leaves open is told.
    known = -math.floor(math.log10(half)) if half > 0 else most_decimals
    decimals = min(most_decimals, max(0, known))
    value, low, high = (_write(number, decimals) for number in (cell.value, cell.low, cell.high))
    return f"{value} [{low}, {high}]{marks}"


def _write(number: float, decimals: int) -> str:
    """Write a number without the zero before its point, with one decimal from 1 on and none from 10 on."""
    most = 0 if abs(number) >= 9.95 else 1 if abs(number) >= 0.995 else decimals
    text = f"{number:.{min(most, decimals)}f}"
    if float(text) == 0:
        return "0"
    return text.replace("0.", ".", 1) if abs(float(text)) < 1 else text
