"""Write the estimates of the command as CSV, JSON, a plot, a page or tables on the terminal, and read CSV files."""

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from csv import Error as CsvError
from csv import reader as csv_reader
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console
from rich.table import Table

from shape_of_learning.errors import InputError
from shape_of_learning.files import (
    atomic_write,
    find_descriptor,
    format_row,
    is_stream,
    write_table,
)
from shape_of_learning.findings import NamedCheckpoint, find_all_sentences
from shape_of_learning.metrics.registry import find_measure, list_measure_names
from shape_of_learning.metrics.suspects import REASONS, Reason, read_reasons
from shape_of_learning.metrics.tidy import ESTIMATE_COLUMNS, RECORD_COLUMN, TEXT_COLUMNS

if TYPE_CHECKING:
    from shape_of_learning.one_model.measurement_record import RecordedEstimates

Row = Mapping[str, Any]
# Format -> the metadata key of the caption, and the keys to remove so that equal results give equal bytes.
PICTURES: dict[str, tuple[str, dict[str, None]]] = {
    "png": ("Description", {"Software": None}),
    "pdf": ("Subject", {"CreationDate": None}),
    "svg": ("Description", {"Date": None}),
}
INTEGER_COLUMNS = ("step", "tokens", "layer")
VALUE_COLUMNS = ("value", "standard_error", "low", "high", "batch_sd")
WIDTH = 80  # characters of a line
MOST_DECIMALS = 2  # decimals of estimates; differences have a further decimal
# Labels that are short enough for a column.
SHORT_LABELS = {
    "anisotropy": "anisotropy",
    "anisotropy_without_massive_tokens": "w/o massive",
    "mada_median": "MADA med.",
}
LEGEND = {
    "anisotropy_without_massive_tokens": "anisotropy without the tokens that are massive in any layer",
    "mada_median": "the median of its local dimensions; `--measures mada` for their mean",
    "mle": "near-copies make it low; where TwoNN has a *, do not quote it",
}
# The heading and the last row of the column of layers; the heading is empty to keep the column narrow.
LAYERS = ""
AVERAGE = "mean"
EXCLUDES_0 = Reason("excludes 0", "!", "the interval excludes 0")


def name_cells(rows: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    """Name the cells of rows of estimates by their columns."""
    return [dict(zip(ESTIMATE_COLUMNS, row, strict=True)) for row in rows]


def write_text(path: Path, content: str) -> None:
    """Write a text file."""
    with atomic_write(path) as partial:
        partial.write_text(content, encoding="utf-8", newline="\n")


def write_estimates(path: Path, estimates: "Iterable[RecordedEstimates]") -> None:
    """Write a CSV file of the estimates of models, with the record of each model in its first row."""
    rows = []
    for model in estimates:
        records = [dumps(model.make_cell()), *[""] * (len(model.rows) - 1)]
        rows += [[*row, record] for row, record in zip(model.rows, records, strict=True)]
    write_table(path, (*ESTIMATE_COLUMNS, RECORD_COLUMN), rows)


def write_objects(path: Path, estimates: "Iterable[RecordedEstimates]") -> None:
    """Write the estimates of models as a list of JSON objects, with strings for infinities and null for NaN."""
    objects = []
    for model in estimates:
        for number, cells in enumerate(name_cells(model.rows)):
            for key, cell in cells.items():
                if key == "suspect":
                    cells[key] = cell == "yes"
                elif isinstance(cell, float) and math.isnan(cell):
                    cells[key] = None
                elif isinstance(cell, float) and math.isinf(cell):
                    cells[key] = "Infinity" if cell > 0 else "-Infinity"
            objects.append({**cells, RECORD_COLUMN: None if number else model.make_cell()})
    write_text(path, f"{dumps(objects, indent=1, allow_nan=False)}\n")


def choose_picture_format(path: Path) -> str:
    """Return the format of a picture by the suffix of its file name; PNG for a pipe."""
    kind = path.suffix[1:].lower()
    if kind in PICTURES:
        return kind
    if is_stream(path):
        if find_descriptor(path) == 1 and sys.stdout.isatty():
            raise InputError(f"a terminal cannot show a picture; name a file instead of {path}")
        return "png"
    raise InputError(f"{path} must end in .png, .pdf or .svg; correct --plot")


def draw_plot(rows: Sequence[Sequence[Any]], path: Path, kind: str, text: str) -> None:
    """Draw a panel per measure with a line for each model, and name the text in the caption."""
    from shape_of_learning.figures.output import fix_layout
    from shape_of_learning.one_model.measurement import make_estimate_table
    from shape_of_learning.one_model.plot import draw_estimates, plot_theme

    with plot_theme():
        table = make_estimate_table(rows)
        table.attrs["text"] = text
        drawing = draw_estimates(table)
        fix_layout(drawing.figure)
        key, metadata = PICTURES[kind]
        with atomic_write(path) as partial:
            drawing.figure.savefig(
                partial, format=kind, metadata={key: drawing.caption, **metadata}
            )


def make_explorer(rows: Sequence[Sequence[object]], text: str = "") -> str:
    """Return the explorer's page for rows of estimates that were measured on `text`."""
    from shape_of_learning.explorer.explorer_page import format_page, read_content
    from shape_of_learning.explorer.job import ExplorerJob, ShownModel, make_shown_measures

    objects = name_cells(rows)
    names = dict.fromkeys(str(row["estimator"]) for row in objects)
    last_revisions = {str(row["model"]): str(row["revision"]) for row in objects}
    checkpoints = [
        NamedCheckpoint(name, name, revision) for name, revision in last_revisions.items()
    ]
    job = ExplorerJob(
        models=tuple(ShownModel(name, name) for name in last_revisions),
        measures=make_shown_measures(find_measure(name).configure(name, {}) for name in names),
        sample=_describe_windows(objects, text),
    )
    table = [dict(zip(ESTIMATE_COLUMNS, format_row(row), strict=True)) for row in rows]
    return format_page(read_content(job, table, find_all_sentences(objects, checkpoints)))


def _describe_windows(rows: Sequence[Row], text: str) -> str:
    """Describe the sample by its number of windows and, if known, its text."""
    numbers = [int(float(row["windows"])) for row in rows if row["windows"] not in ("", None)]
    if not numbers:
        return ""
    ends = dict.fromkeys((min(numbers), max(numbers)))
    windows = " to ".join(f"{number:,}" for number in ends)
    return f"{windows} windows of {text}" if text else f"{windows} windows"


def read_table(file: Path) -> list[dict[str, str]]:
    """Read the cells of a CSV file by column, also if a spreadsheet has saved it; ValueError if it is damaged."""
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            header, *lines = [*csv_reader(stream, strict=True)] or [[]]
    except CsvError as error:
        raise ValueError(str(error)) from error
    if lacking := [column for column in ESTIMATE_COLUMNS if column not in header]:
        raise ValueError(f"it lacks the columns {', '.join(lacking)}")
    if len(header) > len({*header}):
        raise ValueError("a column occurs twice")
    rows = []
    for number, cells in enumerate(filter(None, lines), 2):
        if len(cells) != len(header):
            raise ValueError(f"line {number} has {len(cells)} cells, and not {len(header)}")
        rows.append(dict(zip(header, cells, strict=True)))
    if not rows:
        raise ValueError("it has no row")
    return rows


def read_estimates(file: Path, name: str) -> list[list[str]]:
    """Read a table of estimates, also if a spreadsheet has saved it; InputError if it is no table of estimates."""
    try:
        rows = [
            [_read_cell(row[column], column, number) for column in ESTIMATE_COLUMNS]
            for number, row in enumerate(read_table(file), 2)
        ]
        estimators = {row[ESTIMATE_COLUMNS.index("estimator")] for row in rows}
        if unknown := sorted(estimators - {*list_measure_names()}):
            raise ValueError(f"it has unknown measures: {', '.join(unknown):.100}")
    except ValueError as error:
        raise InputError(
            f"{name} is no table of estimates ({error}); give one that `measure --csv` or a ShapeCallback wrote"
        ) from error
    return rows


def _read_cell(cell: str, column: str, line: int) -> str:
    """Return a cell as tables of this package write it: integers without a point, undefined values as empty cells."""
    if column == "reason":
        return _read_reasons_cell(cell, line)
    if column in TEXT_COLUMNS:
        return cell
    if not cell.strip():
        return ""
    try:
        value = float(cell)
    except ValueError:
        raise ValueError(f"line {line} has {cell!r:.50} for a number in `{column}`") from None
    if math.isnan(value):
        return ""
    if column in INTEGER_COLUMNS:
        if not value.is_integer():
            raise ValueError(f"line {line} has {cell!r:.50} for a whole number in `{column}`")
        return f"{int(value)}"
    if math.isinf(value) and column not in VALUE_COLUMNS:
        raise ValueError(f"line {line} has {cell!r:.50} for a finite number in `{column}`")
    return repr(value)


def _read_reasons_cell(cell: str, line: int) -> str:
    if cell.lower() == "nan":  # pandas may write a cell without reasons like this
        return ""
    try:
        read_reasons(cell)
    except KeyError:
        raise ValueError(
            f"line {line} has {cell!r:.50} in `reason`, which may be {', '.join(REASONS)}"
        ) from None
    return cell


class Cell(NamedTuple):
    """A value of a table with its interval, and the reasons not to trust it."""

    value: float
    low: float
    high: float
    reasons: Sequence[Reason] = ()


def print_estimates(rows: Iterable[Row], console: Console) -> None:
    """Print a row for each layer and a column for each measure, and explain the marks.

    Parameters
    ----------
    rows : iterable of mapping
        Rows of ``tables/estimates.csv`` of one checkpoint, with numbers.
    console : rich.console.Console
    """
    cells = {}
    for row in rows:
        low = row["low"]
        if low < 0 and find_measure(row["estimator"]).conditions.is_positive:
            low = 0.0  # a dimension is not negative; the tables keep the interval as it is computed
        cell = Cell(row["value"], low, row["high"], read_reasons(row["reason"]))
        cells[_label_layer(row), row["estimator"]] = cell
    _print_table(cells, console, MOST_DECIMALS)


def print_changes(rows: Iterable[Row], console: Console) -> None:
    """Print differences as :func:`print_estimates` prints estimates; `!` marks intervals that exclude 0."""
    cells = {}
    for row in rows:
        reasons = read_reasons(row["reason"])
        if row["low"] > 0 or row["high"] < 0:
            reasons = [EXCLUDES_0, *reasons]
        cell = Cell(row["difference"], row["low"], row["high"], reasons)
        cells[_label_layer(row), row["estimator"]] = cell
    _print_table(cells, console, MOST_DECIMALS + 1)


def _print_table(cells: Mapping[tuple[str, str], Cell], console: Console, decimals: int) -> None:
    """Print cells by layer and measure, divided into tables of at most :data:`WIDTH` characters."""
    layers = list(dict.fromkeys(layer for layer, _ in cells))
    measures = list(dict.fromkeys(measure for _, measure in cells))
    columns = {}
    labels = {}
    short_labels = dict(SHORT_LABELS)
    if "mada" in measures:  # beside MADA, its median has its full label
        del short_labels["mada_median"]
    for name in measures:
        labels[name] = short_labels.get(name) or find_measure(name).configure(name, {}).label
        columns[name] = [
            format_cell(cells[layer, name], decimals) if (layer, name) in cells else ""
            for layer in layers
        ]
    widths = {name: max(map(len, [labels[name], *columns[name]])) for name in columns}
    for names in _divide_columns(widths):
        table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
        for label in (LAYERS, *(labels[name] for name in names)):
            table.add_column(label, justify="right", no_wrap=True)
        for number, layer in enumerate(layers):
            table.add_row(layer, *(columns[name][number] for name in names))
        console.print(table)
    marks = {reason.mark for cell in cells.values() for reason in cell.reasons}
    for reason in (*REASONS.values(), EXCLUDES_0):
        if reason.mark in marks:
            console.print(f"{reason.mark} {reason.sentence}", soft_wrap=True, highlight=False)
    console.print(
        "Rows: layers; 0 is the embeddings, and the mean is that of blocks", highlight=False
    )
    for name, words in LEGEND.items():
        if name in columns and not (name == "mada_median" and "mada" in columns):
            console.print(f"{labels[name]}: {words}", soft_wrap=True, highlight=False)
    if any(find_measure(name).conditions.is_dimension for name in columns):
        console.print(
            "Dimensions: compare only those of the same text, windows and batches", highlight=False
        )


def _divide_columns(widths: Mapping[str, int]) -> list[list[str]]:
    """Divide columns into tables of at most :data:`WIDTH` characters."""
    tables: list[list[str]] = []
    room = 0
    for name, width in widths.items():
        if not tables or width + 1 > room:
            tables.append([])
            room = WIDTH - len(AVERAGE)
        tables[-1].append(name)
        room -= width + 1
    return tables


def _label_layer(row: Row) -> str:
    return AVERAGE if row["layer"] is None else str(int(row["layer"]))


def format_cell(cell: Cell, most_decimals: int = MOST_DECIMALS) -> str:
    """Format a value with as many decimals as its interval allows, the interval, and marks.

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
        return f"{_format_number(cell.value, most_decimals)}{marks}"
    # The last decimal is the first decimal that the interval leaves open.
    decimals = -math.floor(math.log10(half)) if half > 0 else most_decimals
    decimals = min(most_decimals, max(0, decimals))
    value, low, high = (
        _format_number(number, decimals) for number in (cell.value, cell.low, cell.high)
    )
    return f"{value} [{low}, {high}]{marks}"


def _format_number(number: float, decimals: int) -> str:
    """Format a number without the zero before its point, with one decimal from 1 on and no decimal from 10 on."""
    most_decimals = 0 if abs(number) >= 9.95 else 1 if abs(number) >= 0.995 else decimals
    text = f"{number:.{min(most_decimals, decimals)}f}"
    if float(text) == 0:
        return "0"
    return text.replace("0.", ".", 1) if abs(float(text)) < 1 else text
