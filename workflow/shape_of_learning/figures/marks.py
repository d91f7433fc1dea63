"""Panels of a figure, their lines with bands and marks, and labels that cover nothing."""

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import ScaledTranslation, blended_transform_factory

from shape_of_learning.figures import scales, style
from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.figures.job import DrawnModel
from shape_of_learning.figures.style import (
    MARKS,
    NO_INTERVAL,
    NOT_OK,
    SUSPECT,
    UNDEFINED,
    LineStyle,
    measure_width,
)

# Labels of x axes by the columns of tables.
X_LABELS = {
    "layer": "Layer\n(0: embeddings, n: block n)",
    "depth": "Relative depth\n(0: embeddings, 1: last block)",
    "step": "Training step",
    "tokens": "Training tokens",
    "loss": "Cross-entropy (nats per token)",
}
FRAME = 0.5  # inches above and below a panel, for its title and the x axis
BAND_OPACITY = 0.2
KEY_HEIGHT = 0.15  # inches, of a line in the key of marks
KEY_ROOM = 0.3  # inches, of a mark in the key and the gaps beside it
BAR_WIDTH = 2.5  # points, of an interval without neighbours to make a band with
BAR_OPACITY = 0.4
ABOVE_LINES = 2.6  # matplotlib draws lines at 2
MOST_MARKERS = 40  # points of a line; more markers would cover each other
LOWER_EDGE = 0.02  # of a panel's height
LABEL_PITCH = 0.125  # inches from one label to the next: 7 pt type with leading
SAMPLE_ROOM = 0.5  # inches of a legend for the sample of a line and the gaps beside it
LABEL_ROOM = 1.3  # inches that a figure always has for labels beside a panel
TITLE_ROOM = 0.6  # inches of a column's width that a title cannot take
# Labels of at most so many lines stand at the ends; the labels of more lines are a list.
MOST_JOINED = 3
# The style of footnotes; the contrast of the grey with white is 7 to 1.
NOTE: dict[str, Any] = {"fontsize": 6, "color": "0.35", "va": "bottom", "linespacing": 1.25}
SIDE = 0.04  # inches around the note, at both sides and below
NOTE_GAP = 0.07  # inches between the panels and the note
NON_BREAKING = re.compile(
    r"(?<=step) (?=\d)|(?<=steps) (?=\d)|(?<=\d) (?=checkpoints)|(?<=\bn) (?=\d)|(?<=\d) (?=%)"
)
NO_BREAK = "\N{NO-BREAK SPACE}"
# A PNG puts letters on whole pixels, which can widen a letter of 14 pixels (at 300 dpi) by half a pixel.
PIXEL_SHARE = 0.036
NARROWEST = 8  # characters; every panel has room for them
NARROW_LETTER = 0.3  # of the type size, about the width of "i"


def make_model_panels(
    inputs: FigureInputs,
    x: str,
    panels_by_row: Sequence[Sequence[tuple[str, pd.DataFrame]]],
    *notes: str,
    frame: float = FRAME,
    labels: int | None = None,
    draws_all: bool = False,
    **panel_options: Any,
) -> tuple[Figure, np.ndarray, dict[Axes, list[Line2D]]]:
    """Make a figure of panels with a line for each model, high enough for the labels of the lines.

    Parameters
    ----------
    inputs : FigureInputs
    x : str
        The column along the x axis. Steps and tokens have the axis of :func:`.set_progress_axis`.
    panels_by_row : sequence of sequence of (str, pandas.DataFrame)
        The title of each panel, and the table that :func:`draw_models` draws in it.
    notes : str
        Sentences of the footnote.
    frame : float
        Inches above and below a single row.
    labels : int, optional
        The number of labels beside a panel; by default one per model.
    draws_all : bool
        Whether a panel also has lines, without points, for models that its table lacks.
    panel_options
        Further arguments of :func:`make_panels`.

    Returns
    -------
    figure : Figure
    panels : numpy.ndarray of Axes
    lines : dict of Axes to list of Line2D
        For :func:`label_line_ends`.
    """
    rows, columns = len(panels_by_row), len(panels_by_row[0])
    minimum = style.PANEL_HEIGHT if rows == 1 else style.LOW_PANEL_HEIGHT
    height = choose_height(labels or len(inputs.models), minimum)
    height += frame if rows == 1 else 0.7 * frame
    figure, grid = make_panels(rows, columns, rows * height, *notes, **panel_options)
    names = [model.name for model in inputs.models] if draws_all else None
    panels = [panel for row in panels_by_row for panel in row]
    lines = {}
    for axes, (title, table) in zip(grid.flat, panels, strict=True):
        lines[axes] = draw_models(axes, table, x, inputs.models, names=names)
        axes.set_title(title)
        if x in ("step", "tokens"):
            shares_axis = "sharex" in panel_options or table.empty
            tables = [table for _, table in panels] if shares_axis else [table]
            scales.set_progress_axis(axes, chain.from_iterable(table[x] for table in tables))
    for axes in grid[-1]:
        axes.set_xlabel(X_LABELS.get(x, x))
    return figure, grid, lines


def draw_models(
    axes: Axes,
    table: pd.DataFrame,
    x: str,
    models: Sequence[DrawnModel],
    *,
    names: Iterable[str] | None = None,
) -> list[Line2D]:
    """Draw the line and band of each model of a table; `models` decide the styles.

    With `names`, draw the lines of these models, also without points. Points have markers unless `x` is the depth.
    """
    styles = style.choose_line_styles(models)
    drawn_names = set(table["model"] if names is None else names)
    lines = []
    for model in models:
        if model.name in drawn_names:
            rows, look = table[table["model"] == model.name], styles[model.name]
            lines.append(draw_line(axes, rows, x, look, label=model.label, markers=x != "depth"))
    return lines


def draw_line(
    axes: Axes,
    rows: pd.DataFrame,
    x: str,
    look: LineStyle,
    *,
    label: str,
    y: str = "value",
    markers: bool = False,
) -> Line2D:
    """Draw a line through points with the band of their intervals and their :data:`.MARKS`.

    Parameters
    ----------
    rows : pandas.DataFrame
        Points in order, with the columns `x` and `y`. A point with true ``hollow``, ``marked`` or ``bare`` has an open
        diamond, an open ring or a cross. The line has a gap where `y` is NaN. The columns ``low`` and ``high`` make a
        band, with a gap where they are NaN and a bar for a point between two gaps. An undefined or infinite value has
        a stroke at the lower edge.
    label : str
        The label of the line, which :func:`label_line_ends` writes.
    markers : bool
        Whether all points have markers, if the line has at most :data:`MOST_MARKERS` points. Otherwise only points
        between two gaps have markers.

    Returns
    -------
    Line2D
        The line. Marks are separate lines, with the labels of :data:`.MARKS`.
    """
    places, values = rows[[x, y]].to_numpy("float64").T
    is_present, colour = np.isfinite(values), look.colour
    is_hollow, is_marked, is_bare = (
        is_present & rows[mark].to_numpy(bool) if mark in rows else np.zeros_like(is_present)
        for mark in ("hollow", "marked", "bare")
    )
    markers = markers and len(rows) <= MOST_MARKERS
    has_marker = (
        (is_present if markers else _find_isolated_points(is_present)) & ~is_hollow & ~is_marked
    )
    (line,) = axes.plot(
        places,
        values,
        marker=look.marker if markers or has_marker.any() else "",
        color=colour,
        linestyle=look.dashes,
        markevery=has_marker,
        label=label,
    )
    for kind, points in ((NOT_OK, is_hollow), (SUSPECT, is_marked), (NO_INTERVAL, is_bare)):
        if points.any():
            look_of_mark = {"color": colour, "zorder": ABOVE_LINES, **MARKS[kind].look}
            axes.plot(places[points], values[points], label=kind, **look_of_mark)
    # Undefined values at the ends of a line also widen the axis.
    axes.update_datalim(np.column_stack([places, places]), updatey=False)
    if "low" in rows:
        low, high = rows[["low", "high"]].to_numpy("float64").T
        if not is_present.all():
            edge = {"transform": axes.get_xaxis_transform(), "label": UNDEFINED, "color": colour}
            lowest = np.full(np.count_nonzero(~is_present), LOWER_EDGE)
            axes.plot(places[~is_present], lowest, **MARKS[UNDEFINED].look, **edge)
        axes.fill_between(places, low, high, color=colour, alpha=BAND_OPACITY, linewidth=0)
        is_isolated = _find_isolated_points(np.isfinite(low))
        if is_isolated.any():
            bar = {"linewidth": BAR_WIDTH, "alpha": BAR_OPACITY}
            axes.vlines(places[is_isolated], low[is_isolated], high[is_isolated], colour, **bar)
    return line


def _find_isolated_points(present: np.ndarray) -> np.ndarray:
    """Find the present points without a present neighbour."""
    return present & ~np.append(False, present[:-1]) & ~np.append(present[1:], False)


def make_panels(
    rows: int,
    columns: int,
    height: float,
    *notes: str,
    width: float | None = None,
    **subplot_options: Any,
) -> tuple[Figure, np.ndarray]:
    """Make a figure with a footnote and an array of panels; a single column of panels is as wide as a column of text.

    The footnote adds to the height, so that panels keep their size.
    """
    if width is None:
        width = style.COLUMN_WIDTH if columns == 1 else style.TEXT_WIDTH
    figure = Figure(figsize=(width, height))
    add_footnote(figure, *notes)
    return figure, figure.subplots(rows, columns, squeeze=False, **subplot_options)


def choose_height(labels: int, minimum: float = style.PANEL_HEIGHT) -> float:
    """Return the height of a panel in inches: the height of its labels, or `minimum` if that is larger."""
    return max(minimum, labels * LABEL_PITCH)


def make_room(figure: Figure, labels: Sequence[str]) -> None:
    """Widen a figure by as much as labels beside a panel are longer than :data:`LABEL_ROOM`."""
    longest = max(measure_width(label, style.SIZE_OF_TYPE) for label in labels)
    width, height = figure.get_size_inches()
    figure.set_size_inches(width + max(0, longest - LABEL_ROOM), height)


def wrap_panel_title(label: str, figure: Figure, columns: int) -> str:
    """Break a title into lines that fit into one of `columns` columns."""
    room = figure.get_size_inches()[0] / columns - TITLE_ROOM
    return wrap_sentences([label], room, style.SIZE_OF_TITLES)


def make_legend_handle(label: str, **look: Any) -> Line2D:
    """Return a line without points that has `look` in a legend; `look` are properties of Line2D."""
    return Line2D([], [], label=label, **look)


def name_lines(
    panels: Iterable[Axes], lines: Mapping[Axes, Sequence[Line2D]], reason: str = ""
) -> None:
    """Write labels at the ends of the lines of `panels`, or a legend above them if no panel has two lines.

    The parameters are those of :func:`label_line_ends`.
    """
    lines = {axes: lines[axes] for axes in panels}
    if max(len(panel_lines) for panel_lines in lines.values()) > 1:
        for axes, panel_lines in lines.items():
            label_line_ends(axes, panel_lines, reason)
        return
    legend = {
        _format_line_name(line, reason): line
        for panel_lines in lines.values()
        for line in panel_lines
    }
    add_legend(next(iter(lines)).figure, legend, "left")


def add_legend(figure: Figure, lines: Mapping[str, Line2D], side: str) -> None:
    """Put a legend above the panels, in as many columns as fit."""
    place = {"loc": f"outside upper {side}", "ncols": _count_columns(figure, [*lines])}
    figure.legend(lines.values(), lines.keys(), **place)


def _count_columns(figure: Figure, names: Sequence[str], sample_room: float = SAMPLE_ROOM) -> int:
    """Return the number of columns in which a legend fits into a figure."""
    widest = max(measure_width(name, style.SIZE_OF_TYPE) for name in names) + sample_room
    return max(1, min(len(names), int(figure.get_size_inches()[0] / widest)))


def label_line_ends(axes: Axes, lines: Sequence[Line2D], reason: str = "") -> None:
    """Write each line's label to the right of the panel, beside a sample of the line without its markers.

    Labels of few lines stand as near to the ends of the lines as they can without overlap, and a thin rule joins each
    label to its line. Labels of many lines are a list from the top, in the order of `lines`. Call this after
    everything else is drawn.

    Parameters
    ----------
    axes : Axes
        A panel of at least :func:`choose_height`.
    lines : sequence of Line2D
    reason : str
        The reason why a line has no defined point; by default ``undefined`` or ``all left out``.
    """
    ends = [_find_last_point(line) for line in lines]
    axes.set(xlim=axes.get_xlim(), ylim=axes.get_ylim())  # rules must not move the limits
    labels = [_format_line_name(line, reason) for line in lines]
    make_room(axes.figure, labels)
    axes.figure.draw_without_rendering()  # fixes the panel's height
    pitch = LABEL_PITCH * axes.figure.dpi / axes.get_window_extent().height
    inches_right = axes.figure.dpi_scale_trans + ScaledTranslation(1, 0, axes.transAxes)
    margin = blended_transform_factory(inches_right, axes.transAxes)
    are_joined = len(lines) <= MOST_JOINED
    places = 1 - pitch * (np.arange(len(lines)) + 0.5)
    if are_joined:
        heights = (axes.transData + axes.transAxes.inverted()).transform(ends)[:, 1]
        places = spread_places(np.nan_to_num(heights), pitch)
    for line, end, place, label in zip(lines, ends, places, labels, strict=True):
        if are_joined and np.isfinite(end[1]):
            rule = {"arrowstyle": "-", "linewidth": 0.4, "shrinkA": 0, "shrinkB": 0}
            joint = {"arrowprops": {**rule, "color": line.get_color()}, "annotation_clip": False}
            axes.annotate("", end, (0.13, place), textcoords=margin, **joint)
        sample = Line2D([0.14, 0.39], [place] * 2)
        sample.update_from(line)
        sample.set(transform=margin, clip_on=False, label="_sample", marker="")
        axes.add_artist(sample)
        axes.text(0.43, place, label, transform=margin, va="center_baseline", color=style.INK)


def _format_line_name(line: Line2D, reason: str) -> str:
    """Return the label of a line, with the reason if it has no point."""
    if np.isfinite(_find_last_point(line)[1]):
        return str(line.get_label())
    default_reason = "undefined" if len(line.get_xdata()) else "all left out"
    return f"{line.get_label()}: {reason or default_reason}"


def spread_places(heights: np.ndarray, pitch: float) -> np.ndarray:
    """Find the places in [0, 1] nearest to `heights` by least squares, in their order and at least `pitch` apart."""
    from scipy.optimize import isotonic_regression

    order = np.argsort(heights, kind="stable")
    steps = np.arange(len(heights)) * pitch
    slack = 1 - (len(heights) - 1) * pitch  # the height that the labels leave free
    places = np.empty(len(heights))
    places[order] = isotonic_regression(heights[order] - steps).x
    places = np.clip(places, min(pitch / 2, slack / 2), max(slack - pitch / 2, slack / 2))
    places[order] += steps
    return places


def _find_last_point(line: Line2D) -> tuple[float, float]:
    x, y = line.get_data()
    present = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    return (x[present[-1]], y[present[-1]]) if present.size else (np.nan, np.nan)


def add_footnote(figure: Figure, *sentences: str) -> None:
    """Write sentences below the panels, wrapped to the figure's width, each on a new line.

    The note adds to the figure's height, so that panels keep their size. Call this before :func:`label_line_ends`.
    """
    note_sentences = [sentence for sentence in sentences if sentence]
    if not note_sentences:
        return
    width = figure.get_size_inches()[0]
    words = wrap_sentences(note_sentences, width - 2 * SIDE, NOTE["fontsize"])
    note = figure.text(SIDE, SIDE, words, transform=figure.dpi_scale_trans, gid="footnote", **NOTE)
    _add_height(figure, note.get_window_extent().height / figure.dpi + SIDE + NOTE_GAP)


def _add_height(figure: Figure, inches: float) -> float:
    """Add height below the panels of a figure, and return the share of the new height that is below the panels."""
    width, height = figure.get_size_inches()
    below = height * (figure.get_layout_engine().get()["rect"] or (0, 0))[1] + inches
    figure.set_size_inches(width, height + inches)
    share = below / (height + inches)
    figure.get_layout_engine().set(rect=(0, share, 1, 1 - share))
    return share


def add_key(figure: Figure) -> None:
    """Add a key of the drawn :data:`.MARKS` between panels and footnote; call this after everything is drawn."""
    labels = {str(line.get_label()) for axes in figure.axes for line in axes.get_lines()}
    handles = [
        make_legend_handle(mark.words, color=style.INK, **mark.look)
        for label, mark in MARKS.items()
        if label in labels
    ]
    if handles:
        columns = _count_columns(figure, [str(handle.get_label()) for handle in handles], KEY_ROOM)
        share = _add_height(figure, KEY_HEIGHT * -(-len(handles) // columns))
        place = {"loc": "upper left", "bbox_to_anchor": (0, share), "ncols": columns}
        spaces = {
            "borderaxespad": 0.1,
            "borderpad": 0.2,
            "handletextpad": 0.1,
            "columnspacing": 1.2,
        }
        figure.legend(handles=handles, **place, **spaces)


def wrap_sentences(sentences: Sequence[str], width: float, size: float) -> str:
    """Wrap sentences into the longest lines that fit into `width` inches; `size` is the type size in points."""
    limit = int(width * 72 / (size * NARROW_LETTER))
    sentences = [NON_BREAKING.sub(NO_BREAK, sentence) for sentence in sentences]
    lines: list[str] = []
    for characters in range(limit, NARROWEST, -1):
        lines = [
            line.replace(NO_BREAK, " ")
            for sentence in sentences
            for line in textwrap.wrap(sentence, characters, break_on_hyphens=False)
        ]
        if all(measure_width(line, size) <= width * (1 - PIXEL_SHARE) for line in lines):
            break
    return "\n".join(lines)
