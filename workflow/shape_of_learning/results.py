"""What the command writes of measured models: JSON, a plot, a page; and tables that it reads."""

import math
import sys
from collections.abc import Iterable, Sequence
from csv import Error as CsvError
from csv import reader as csv_reader
from json import dumps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from shape_of_learning.errors import InputError
from shape_of_learning.files import atomic_write, find_descriptor, is_stream, write_table
from shape_of_learning.findings import find_all_sentences
from shape_of_learning.metrics.registry import find_measure, list_measure_names
from shape_of_learning.metrics.tidy import ESTIMATE_COLUMNS

# Of pictures that equal results give equal bytes of; the caption is put to it.
PICTURES: dict[str, tuple[str, dict[str, None]]] = {
    "png": ("Description", {"Software": None}),
    "pdf": ("Subject", {"CreationDate": None}),
    "svg": ("Description", {"Date": None}),
}
# Columns of estimates that are no numbers, and those of whole ones.
TEXTS = ("model", "role", "revision", "estimator", "selection", "suspect", "reason")
WHOLE = ("step", "tokens", "layer")


def estimate_rows(rows: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    """Name the cells of rows of estimates."""
    return [dict(zip(ESTIMATE_COLUMNS, row, strict=True)) for row in rows]


def write_text(path: Path, content: str) -> None:
    """Write a text file."""
    with atomic_write(path) as partial:
        partial.write_text(content, encoding="utf-8", newline="\n")


def write_objects(path: Path, rows: Iterable[Sequence[Any]]) -> None:
    """Write rows of estimates as a JSON list of objects, in which nothing is a number that JSON has not."""
    objects = [
        {key: _convert_cell(key, cell) for key, cell in row.items()} for row in estimate_rows(rows)
    ]
    write_text(path, f"{dumps(objects, indent=1, allow_nan=False)}\n")


def _convert_cell(key: str, cell: Any) -> Any:
    if key == "suspect":
        return cell == "yes"
    if isinstance(cell, float) and not math.isfinite(cell):
        return None if math.isnan(cell) else "Infinity" if cell > 0 else "-Infinity"
    return cell


def choose_picture_format(path: Path) -> str:
    """Return what a picture is written as: what its name ends in, or PNG into a pipe."""
    kind = path.suffix[1:].lower()
    if kind in PICTURES:
        return kind
    if is_stream(path):
        if find_descriptor(path) == 1 and sys.stdout.isatty():
            raise InputError(
                f"a picture is nothing for a terminal; name a file in the place of {path}"
            )
        return "png"
    raise InputError(f"{path} must end in .png, .pdf or .svg; correct --plot")


def draw_plot(rows: Sequence[Sequence[Any]], path: Path, kind: str, text: str) -> None:
    """Draw a panel per measure, with a line for each model, and name the text."""
    from shape_of_learning.figures.output import fix_layout
    from shape_of_learning.one_model.measured import estimate_table
    from shape_of_learning.one_model.plot import draw_estimates, plot_theme

    with plot_theme():
        table = estimate_table(rows)
        table.attrs["text"] = text
        drawing = draw_estimates(table)
        fix_layout(drawing.figure)
        key, metadata = PICTURES[kind]
        with atomic_write(path) as partial:
            drawing.figure.savefig(
                partial, format=kind, metadata={key: drawing.caption, **metadata}
            )


def make_explorer(rows: Sequence[Sequence[object]], text: str = "") -> str:
    """Return the page of the explorer of rows of estimates, of a text that no table names."""
    from shape_of_learning.explorer.explorer_page import read_content, write_page

    keys = ("name", "label", "axis", "description")
    models, estimators = (
        list(dict.fromkeys(str(row[ESTIMATE_COLUMNS.index(key)]) for row in rows))
        for key in ("model", "estimator")
    )
    measures = [find_measure(n).configure(n, {}) for n in estimators]
    description = {
        "models": [{"name": name, "label": name} for name in models],
        "measures": [{key: getattr(measure, key) for key in keys} for measure in measures],
        **{"papers": [], "claims": [], "claimed": {}, "curves": {}, "notes": []},
        "sample": _sample(rows, text),
        "findings": find_all_sentences(estimate_rows(rows), _list_last_checkpoints(rows)),
    }
    with TemporaryDirectory() as temporary:
        file = Path(temporary, "estimates.csv")
        write_table(file, ESTIMATE_COLUMNS, rows)
        return write_page(read_content(description, file, [], [], []))


def _sample(rows: Sequence[Sequence[object]], text: str) -> str:
    """Say how many windows were measured, and of which text where that is known."""
    place = ESTIMATE_COLUMNS.index("windows")
    numbers = sorted({int(float(str(row[place]))) for row in rows if row[place] not in ("", None)})
    return f"{_format_range(numbers)} windows" + (f" of {text}" if text else "") if numbers else ""


def _format_range(numbers: Sequence[int]) -> str:
    return " to ".join(f"{number:,}" for number in dict.fromkeys((numbers[0], numbers[-1])))


def _list_last_checkpoints(rows: Sequence[Sequence[object]]) -> list[tuple[str, str, str]]:
    """List name, label and last revision of each model."""
    last = {row["model"]: row["revision"] for row in estimate_rows(rows)}
    return [(name, name, revision) for name, revision in last.items()]


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
                    row[place] if column in TEXTS else _read_cell(row[place], column, number)
                    for column, place in zip(ESTIMATE_COLUMNS, places, strict=True)
                ]
            )
        known = list_measure_names()
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


def _read_cell(cell: str, column: str, line: int) -> str:
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
