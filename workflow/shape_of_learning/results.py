"""What the command prints and writes of a measured model: a table, JSON, a plot, a page; and tables it reads."""

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from csv import Error as CsvError
from csv import reader as csv_reader
from json import dumps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from shape_of_learning.errors import InputError, escape_controls
from shape_of_learning.files import atomic_write, file_descriptor, is_stream, write_table
from shape_of_learning.metrics.measure_entry import Measure
from shape_of_learning.metrics.registry import find_measure, measure_names
from shape_of_learning.metrics.tidy import ESTIMATE_COLUMNS

if TYPE_CHECKING:
    import pandas as pd

    from shape_of_learning.one_model.measured import Measured

MARKS = {
    "*": "most nearest neighbours are copies or the same token: the value says more about the text "
    "than about the model",
    "^": "the dimension is near the number of coordinates, or above it: nearly equal vectors, or too few, decide it",
    "<": "the interval reaches below 0, where the value cannot be: it is too wide to say much",
    "~": "no interval: none is known to hold, or few windows decide the value",
}
NEAR_WIDTH = 0.8  # share of the coordinates from which on a dimension is marked
NEVER_NEGATIVE = ("dimension", "spectrum")  # families
# Of pictures that equal results give equal bytes of; the caption is put to it.
PICTURES: dict[str, tuple[str, dict[str, None]]] = {
    "png": ("Description", {"Software": None}),
    "pdf": ("Subject", {"CreationDate": None}),
    "svg": ("Description", {"Date": None}),
}
# Columns of estimates that are no numbers, and those of whole ones.
TEXTS = ("model", "role", "revision", "estimator", "selection")
WHOLE = ("step", "tokens", "layer")


@contextmanager
def printed_at_last(
    table: Any, value: str, console: Console, width: float = math.inf
) -> Iterator[None]:
    """Print a table when its files are written, or could not be written."""
    try:
        yield
    finally:
        print_table(table, value, console, width)


def print_table(table: Any, value: str, console: Console, width: float) -> None:
    """Print for each family a row per layer and a column per measure: the value and half of its interval."""
    named = {name: find_measure(name).chosen(name, {}) for name in table["estimator"].unique()}
    table = table.assign(place=table["layer"].astype("string").fillna("mean"))
    seen: set[str] = set()

    def cell(row: Any) -> str:
        half, family = (row["high"] - row["low"]) / 2, named[row["estimator"]].family
        is_value = value == "value"  # and not a difference, which may be anything
        holds = {
            "*": bool(row["suspect"]),
            "^": is_value and family == "dimension" and row[value] >= NEAR_WIDTH * width,
            "<": is_value and family in NEVER_NEGATIVE and row["low"] < 0,
        }
        marks = "".join(mark for mark, is_so in holds.items() if is_so)
        has_none = math.isnan(half)
        seen.update(marks, "~" if has_none and not math.isnan(row[value]) else "")
        return f"{_digits(row[value], 3)}{marks} {'~' if has_none else f'±{_digits(half, 1)}'}"

    for family in dict.fromkeys(each.family for each in named.values()):
        own = [name for name, each in named.items() if each.family == family]
        printed = Table(box=None, pad_edge=False)
        for label in ("layer", *(named[name].label for name in own)):
            printed.add_column(label, justify="right", max_width=16)
        for place, rows in table[table["estimator"].isin(own)].groupby("place", sort=False):
            by_name = {row["estimator"]: row for _, row in rows.iterrows()}
            printed.add_row(place, *(cell(by_name[n]) if n in by_name else "" for n in own))
        console.print(printed)
    for mark, said in MARKS.items():
        if mark in seen:
            console.print(f"{mark} {said}", soft_wrap=True, highlight=False)


def _digits(number: float, digits: int) -> str:
    """Write a number of so many digits, without an exponent where nobody writes one."""
    return f"{float(f'{number:.{digits}g}'):.{max(digits, 6)}g}"


def _measures(found: "Measured") -> list[Measure]:
    names = [curve.estimator for curve, _ in found.curves]
    return [find_measure(name).chosen(name, {}) for name in names]


def write_text(path: Path, content: str) -> None:
    """Write a text file."""
    with atomic_write(path) as partial:
        partial.write_text(content, encoding="utf-8", newline="\n")


def write_objects(path: Path, table: "pd.DataFrame") -> None:
    """Write a table as a JSON list of objects, in which nothing is a number that JSON has not."""
    cells = table.astype(object).where(table.notna(), None)
    objects = cells.replace({math.inf: "Infinity", -math.inf: "-Infinity"}).to_dict("records")
    write_text(path, f"{dumps(objects, indent=1)}\n")


def picture_format(path: Path) -> str:
    """Return what a picture is written as: what its name ends in, or PNG into a pipe."""
    kind = path.suffix[1:].lower()
    if kind in PICTURES:
        return kind
    if is_stream(path):
        if file_descriptor(path) == 1 and sys.stdout.isatty():
            raise InputError(
                f"a picture is nothing for a terminal; name a file in the place of {path}"
            )
        return "png"
    raise InputError(f"{path} must end in .png, .pdf or .svg; correct --plot")


def draw_plot(found: "Measured", table: "pd.DataFrame", path: Path, kind: str) -> None:
    """Draw a panel per measure."""
    from matplotlib import rc_context

    from shape_of_learning.figures.by_layer import overview
    from shape_of_learning.figures.inputs import (
        KINDS,
        MEANS,
        DrawnMeasure,
        DrawnModel,
        FigureInputs,
    )
    from shape_of_learning.figures.output import fix_layout
    from shape_of_learning.figures.style import theme
    from shape_of_learning.plan.figures import drawn_measures

    name, revision = found.model.name, found.model.checkpoints[0][0]
    label = escape_controls(name if revision == "main" else f"{name} at {revision}")
    model = DrawnModel(name, label, name, found.model.role, revision)
    kinds = {column: of for column, of in (KINDS | MEANS).items() if column in table}
    with theme(), rc_context({"svg.hashsalt": "shape-of-learning"}):
        inputs = FigureInputs(
            models=[model],
            measures=[DrawnMeasure(**each) for each in drawn_measures(_measures(found))],
            caption=f"Measures of {label} by layer.",
            tables={"estimates": table.astype(kinds)},
        )
        drawing = overview(inputs)
        fix_layout(drawing.figure)
        key, metadata = PICTURES[kind]
        with atomic_write(path) as partial:
            drawing.figure.savefig(
                partial, format=kind, metadata={key: drawing.caption, **metadata}
            )


def make_explorer(rows: Sequence[Sequence[object]]) -> str:
    """Return the page of the explorer of rows of estimates."""
    from shape_of_learning.explorer.explorer_page import content_of, explorer_page

    keys = ("name", "label", "axis", "description", "suspect_above")
    models, estimators = (
        list(dict.fromkeys(str(row[ESTIMATE_COLUMNS.index(key)]) for row in rows))
        for key in ("model", "estimator")
    )
    measures = [find_measure(n).chosen(n, {}) for n in estimators]
    description = {
        "models": [{"name": name, "label": name} for name in models],
        "measures": [{key: getattr(each, key) for key in keys} for each in measures],
        **{"papers": [], "claims": [], "claimed": {}, "notes": []},
    }
    with TemporaryDirectory() as temporary:
        file = Path(temporary, "estimates.csv")
        write_table(file, ESTIMATE_COLUMNS, rows)
        return explorer_page(content_of(description, file, [], [], []))


def read_estimates(file: Path, name: str) -> list[list[str]]:
    """Read a table of estimates, as a spreadsheet may have saved it again."""
    try:
        with file.open(newline="", encoding="utf-8-sig") as opened:
            header, *cells = [*csv_reader(opened, strict=True)] or [[]]
        if lacking := [column for column in ESTIMATE_COLUMNS if column not in header]:
            raise ValueError(f"it lacks the columns {', '.join(lacking)}")
        if len(header) > len({*header}):
            raise ValueError("a column occurs twice")
        places = [header.index(column) for column in ESTIMATE_COLUMNS]
        rows = []
        for number, row in enumerate(filter(None, cells), 2):
            if len(row) != len(header):
                raise ValueError(f"line {number} has {len(row)} cells, and not {len(header)}")
            rows.append(
                [
                    row[place] if column in TEXTS else _number(row[place], column, number)
                    for column, place in zip(ESTIMATE_COLUMNS, places, strict=True)
                ]
            )
        known = measure_names()
        estimators = {row[ESTIMATE_COLUMNS.index("estimator")] for row in rows}
        if not rows or not estimators <= {*known}:
            unknown = ", ".join(sorted(estimators - {*known}))
            raise ValueError(
                f"it has measures of no such name: {unknown:.100}" if rows else "it has no row"
            )
    except (ValueError, CsvError) as error:
        raise InputError(
            f"{name} is no table of estimates ({error}); give one that `measure --csv` or a ShapeCallback wrote"
        ) from error
    return rows


def _number(cell: str, column: str, line: int) -> str:
    """Return a cell as tables have it: whole numbers without a point, empty where nothing is defined."""
    if not cell.strip():
        return ""
    try:
        value = float(cell)
    except ValueError:
        raise ValueError(f"line {line} has {cell!r:.50} for a number in `{column}`") from None
    if math.isnan(value):
        return ""
    if column in WHOLE and not value.is_integer():
        raise ValueError(f"line {line} has {cell!r:.50} for a whole number in `{column}`")
    return f"{int(value)}" if column in WHOLE else repr(value)
