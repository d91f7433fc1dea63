"""Panels of a figure and their marks: lines with bands, points, crosses, and words that cover nothing."""

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
from shape_of_learning.figures.inputs import DrawnModel, FigureInputs
from shape_of_learning.figures.style import (
    MARKS,
    NO_INTERVAL,
    NOT_OK,
    SUSPECT,
    UNDEFINED,
    LineStyle,
    measure_width,
)

# What columns of tables are called along an x axis.
ALONG = {
    "layer": "Layer\n(0: embeddings, n: block n)",
    "depth": "Relative depth\n(0: embeddings, 1: last block)",
    "step": "Training step",
    "tokens": "Training tokens",
    "loss": "Cross-entropy (nats per token)",
}
FRAME = 0.5  # inches above and below a panel, for its title and the x axis
BAND_OPACITY = 0.2
KEY_HEIGHT, KEY_ROOM = (
    0.15,
    0.3,
)  # inches, of a line that explains marks, and of a mark and the gaps beside it
BAR, BAR_OPACITY = 2.5, 0.4  # points; of an interval that has no neighbours to make a band with
ABOVE_LINES = 2.6  # matplotlib draws lines at 2
MOST_MARKERS = 40  # points of a line; markers of more would cover each other
LOWER_EDGE = 0.02  # of a panel's height
LABEL_PITCH = 0.125  # inches from one label to the next: 7 pt type with leading
SAMPLE_ROOM = 0.5  # inches, of a line in a legend and the gaps beside it
LABEL_ROOM = 1.3  # inches of its width that any figure has for words beside a panel
TITLE_ROOM = 0.6  # inches of a column's width that are no room for its title
MOST_JOINED = 3  # lines whose labels stand at their ends; more are listed
# Of a footnote; its grey level is 7 to 1 against white.
NOTE: dict[str, Any] = {"fontsize": 6, "color": "0.35", "va": "bottom", "linespacing": 1.25}
SIDE = 0.04  # inches at both sides and below
ABOVE = 0.07  # inches between the panels and the note
HELD_TOGETHER = re.compile(
    r"(?<=step) (?=\d)|(?<=steps) (?=\d)|(?<=\d) (?=checkpoints)|(?<=\bn) (?=\d)|(?<=\d) (?=%)"
)
BOUND = "\N{NO-BREAK SPACE}"
PIXEL_SHARE = 0.036  # a PNG sets letters on whole pixels: half of one to a letter of 14 at 300 dpi
NARROWEST = 8  # characters; less than any figure's or panel's width holds
NARROW_LETTER = 0.3  # of the type size: text of nothing but "il.," is about that wide


def make_model_panels(
    inputs: FigureInputs,
    x: str,
    panels_by_row: Sequence[Sequence[tuple[str, pd.DataFrame]]],
    *notes: str,
    frame: float = FRAME,
    labels: int | None = None,
    every: bool = False,
    **shared: Any,
) -> tuple[Figure, np.ndarray, dict[Axes, list[Line2D]]]:
    """Make a figure of panels with a line for each model, as high as the labels of the lines need.

    Parameters
    ----------
    inputs : FigureInputs
    x : str
        The column along the x axis; the lowest panels say what it is. Steps and tokens are on the axis of
        :func:`.set_progress_axis`.
    panels_by_row : sequence of sequence of (str, pandas.DataFrame)
        The title of each panel, and what :func:`draw_models` draws there.
    notes : str
        Sentences of the footnote.
    frame : float
        Inches above and below a single row.
    labels : int, optional
        How many lines are labelled beside one panel, if not all.
    every : bool
        Whether models that a panel has no rows of have a line there, too.
    shared
        Further arguments of :func:`make_panels`.

    Returns
    -------
    Figure, numpy.ndarray of Axes, dict
        The last has the lines of each panel, for :func:`label_line_ends`.
    """
    rows, columns = len(panels_by_row), len(panels_by_row[0])
    least = style.PANEL_HEIGHT if rows == 1 else style.LOW_PANEL_HEIGHT
    height = choose_height(labels or len(inputs.models), least)
    height += frame if rows == 1 else 0.7 * frame
    figure, grid = make_panels(rows, columns, rows * height, *notes, **shared)
    lines, named = {}, [model.name for model in inputs.models] if every else None
    shown = [table for row in panels_by_row for _, table in row]
    for axes, (title, table) in zip(grid.flat, chain(*panels_by_row), strict=True):
        lines[axes] = draw_models(axes, table, x, inputs.models, named=named)
        axes.set_title(title)
        if x in ("step", "tokens"):
            on_axis = shown if "sharex" in shared or table.empty else [table]
            scales.set_progress_axis(axes, chain.from_iterable(rows[x] for rows in on_axis))
    for axes in grid[-1]:
        axes.set_xlabel(ALONG.get(x, x))
    return figure, grid, lines


def draw_models(
    axes: Axes,
    table: pd.DataFrame,
    x: str,
    models: Sequence[DrawnModel],
    *,
    named: Iterable[str] | None = None,
) -> list[Line2D]:
    """Draw the line and band of each model, in the styles that they have among all `models`.

    Models are those of the table, or those that are `named`, whose lines may have no points. During a
    training each checkpoint has a marker.
    """
    styles, names = (
        style.choose_line_styles(models),
        set(table["model"] if named is None else named),
    )
    lines = []
    for model in models:
        rows, look = table[table["model"] == model.name], styles[model.name]
        if model.name in names:
            lines += [draw_line(axes, rows, x, look, label=model.label, markers=x != "depth")]
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
    """Draw a line through points, the band of their intervals, and :data:`MARKS`.

    Parameters
    ----------
    rows : pandas.DataFrame
        Points in order, columns `x` and `y`, and ``hollow``, ``marked`` and ``bare`` where some points are: hollow
        ones have an open diamond, marked ones an open ring, bare ones a cross. The line has a gap where `y` is NaN.
        With the columns ``low`` and ``high`` there is a band, with a gap where they are NaN, a bar for a point
        between two gaps of it, and a stroke at the lower edge for an undefined or infinite value.
    label : str
        Kept on the line; :func:`label_line_ends` writes it.
    markers : bool
        Mark every point, of a line that has no more than :data:`MOST_MARKERS`, instead of only the hollow
        ones and those that a gap on both sides would hide.

    Returns
    -------
    Line2D
        Without the marks, which are lines of their own, labelled as :data:`MARKS` are.
    """
    places, values = rows[[x, y]].to_numpy("float64").T
    present, colour = np.isfinite(values), look.colour
    hollow, marked, bare = (
        present & rows[mark].to_numpy(bool) if mark in rows else np.zeros_like(present)
        for mark in ("hollow", "marked", "bare")
    )
    markers = markers and len(rows) <= MOST_MARKERS
    filled = (present if markers else _find_isolated_points(present)) & ~hollow & ~marked
    of_line = {"color": colour, "linestyle": look.dashes, "markevery": filled, "label": label}
    marker = look.marker if markers or filled.any() else ""
    (line,) = axes.plot(places, values, marker=marker, **of_line)
    for kind, points in ((NOT_OK, hollow), (SUSPECT, marked), (NO_INTERVAL, bare)):
        if points.any():
            above = {"color": colour, "zorder": ABOVE_LINES, "label": kind}
            axes.plot(places[points], values[points], **MARKS[kind].look, **above)
    # an undefined value at either end keeps its place on the axis
    axes.update_datalim(np.column_stack([places, places]), updatey=False)
    if "low" in rows:
        low, high = rows[["low", "high"]].to_numpy("float64").T
        if not present.all():
            edge = {"transform": axes.get_xaxis_transform(), "label": UNDEFINED, "color": colour}
            lowest = np.full(np.count_nonzero(~present), LOWER_EDGE)
            axes.plot(places[~present], lowest, **MARKS[UNDEFINED].look, **edge)
        axes.fill_between(places, low, high, color=colour, alpha=BAND_OPACITY, linewidth=0)
        if (alone := _find_isolated_points(np.isfinite(low))).any():
            bar = {"linewidth": BAR, "alpha": BAR_OPACITY}
            axes.vlines(places[alone], low[alone], high[alone], colour, **bar)
    return line


def _find_isolated_points(present: np.ndarray) -> np.ndarray:
    """Which points have no present neighbour."""
    return present & ~np.append(False, present[:-1]) & ~np.append(present[1:], False)


def make_panels(
    rows: int, columns: int, height: float, *notes: str, width: float | None = None, **shared: Any
) -> tuple[Figure, np.ndarray]:
    """Make a figure with a footnote and an array of panels; one alone is as wide as a column of text.

    The figure grows taller by what the note takes, so that panels keep their size.
    """
    if width is None:
        width = style.COLUMN_WIDTH if columns == 1 else style.TEXT_WIDTH
    figure = Figure(figsize=(width, height))
    add_footnote(figure, *notes)
    return figure, figure.subplots(rows, columns, squeeze=False, **shared)


def choose_height(labels: int, least: float = style.PANEL_HEIGHT) -> float:
    """Inches of panel height: at least so many, and what so many labels need."""
    return max(least, labels * LABEL_PITCH)


def make_room_for(figure: Figure, labels: Sequence[str]) -> None:
    """Make a figure wider by what labels beside a panel need beyond the room that there is."""
    longest = max(measure_width(label, style.SIZE_OF_TYPE) for label in labels)
    width, height = figure.get_size_inches()
    figure.set_size_inches(width + max(0, longest - LABEL_ROOM), height)


def wrap_panel_title(label: str, figure: Figure, columns: int) -> str:
    """Break a label into lines that do not reach into the next of so many columns."""
    room = figure.get_size_inches()[0] / columns - TITLE_ROOM
    return wrap_sentences([label], room, style.SIZE_OF_TITLES)


def name_lines(
    panels: Iterable[Axes], lines: Mapping[Axes, Sequence[Line2D]], without_points: str = ""
) -> None:
    """Write labels at the ends of the lines of some panels, or above all where no panel has two lines.

    Parameters as of :func:`label_line_ends`.
    """
    of_panels = {axes: lines[axes] for axes in panels}
    if max(map(len, of_panels.values())) > 1:
        for axes, own in of_panels.items():
            label_line_ends(axes, own, without_points)
        return
    named = {
        _format_line_name(line, without_points): line for own in of_panels.values() for line in own
    }
    add_legend(next(iter(of_panels)).figure, named, "left")


def add_legend(figure: Figure, named: Mapping[str, Line2D], side: str) -> None:
    """Put a legend above the panels, in as many columns as there is room for."""
    place = {"loc": f"outside upper {side}", "ncols": _columns(figure, [*named])}
    figure.legend(named.values(), named.keys(), **place)


def _columns(figure: Figure, names: Sequence[str], sample_room: float = SAMPLE_ROOM) -> int:
    """Return in how many columns a legend fits into a figure."""
    widest = max(measure_width(name, style.SIZE_OF_TYPE) for name in names) + sample_room
    return max(1, min(len(names), int(figure.get_size_inches()[0] / widest)))


def label_line_ends(axes: Axes, lines: Sequence[Line2D], without_points: str = "") -> None:
    """Write each line's label to the right of the panel, beside a sample of the line without its markers.

    Labels of few lines stand as near to their ends as they can without covering each other, and a thin rule
    joins each to its end. Those of many are a list from the top in the order of `lines`, by family and size.
    Call it when all else is drawn.

    Parameters
    ----------
    axes : Axes
        At least :func:`choose_height` tall.
    lines : sequence of Line2D
    without_points : str
        Said of a line without a single defined point, if not that all are undefined or left out.
    """
    ends = [_find_last_point(line) for line in lines]
    axes.set(xlim=axes.get_xlim(), ylim=axes.get_ylim())  # connectors must not move the limits
    words = [_format_line_name(line, without_points) for line in lines]
    make_room_for(axes.figure, words)
    axes.figure.draw_without_rendering()  # fixes the panel's height
    pitch = LABEL_PITCH * axes.figure.dpi / axes.get_window_extent().height
    inches_right = axes.figure.dpi_scale_trans + ScaledTranslation(1, 0, axes.transAxes)
    margin = blended_transform_factory(inches_right, axes.transAxes)
    are_joined = len(lines) <= MOST_JOINED
    places = 1 - pitch * (np.arange(len(lines)) + 0.5)
    if are_joined:
        heights = (axes.transData + axes.transAxes.inverted()).transform(ends)[:, 1]
        places = spread_places(np.nan_to_num(heights), pitch)
    for line, end, place, said in zip(lines, ends, places, words, strict=True):
        if are_joined and np.isfinite(end[1]):
            rule = {"arrowstyle": "-", "linewidth": 0.4, "shrinkA": 0, "shrinkB": 0}
            joint = {"arrowprops": {**rule, "color": line.get_color()}, "annotation_clip": False}
            axes.annotate("", end, (0.13, place), textcoords=margin, **joint)
        sample = Line2D([0.14, 0.39], [place] * 2)
        sample.update_from(line)
        sample.set(transform=margin, clip_on=False, label="_sample", marker="")
        axes.add_artist(sample)
        axes.text(0.43, place, said, transform=margin, va="center_baseline", color=style.INK)


def _format_line_name(line: Line2D, without_points: str) -> str:
    """Its label, and why there is no point."""
    if np.isfinite(_find_last_point(line)[1]):
        return str(line.get_label())
    reason = "undefined" if len(line.get_xdata()) else "all left out"
    return f"{line.get_label()}: {without_points or reason}"


def spread_places(wanted: np.ndarray, pitch: float) -> np.ndarray:
    """Places in [0, 1] that are nearest to the `wanted` ones, in their order, and at least `pitch` apart.

    Least squares under the constraint: isotonic regression of the sorted places less ``i * pitch``, by
    pooling neighbours that are out of order.
    """
    order = np.argsort(wanted, kind="stable")
    pools: list[tuple[float, int]] = []
    for i, value in enumerate(wanted[order]):
        mean, size = value - i * pitch, 1
        while pools and pools[-1][0] > mean:
            earlier, count = pools.pop()
            mean = (mean * size + earlier * count) / (size + count)
            size += count
        pools.append((mean, size))
    slack = 1 - (len(wanted) - 1) * pitch  # what the labels' stack leaves of the height
    settled = np.concatenate([np.full(size, mean) for mean, size in pools])
    settled = np.clip(settled, min(pitch / 2, slack / 2), max(slack - pitch / 2, slack / 2))
    places = np.empty(len(wanted))
    places[order] = settled + np.arange(len(wanted)) * pitch
    return places


def _find_last_point(line: Line2D) -> tuple[float, float]:
    x, y = line.get_data()
    present = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    return (x[present[-1]], y[present[-1]]) if present.size else (np.nan, np.nan)


def add_footnote(figure: Figure, *sentences: str) -> None:
    """Write each sentence on a line of its own under the panels, wrapped to the figure's width.

    The figure grows taller by what the note takes, so that the panels keep their size. Nothing
    happens without a sentence. Call it before labels are placed at the lines' ends.
    """
    said = [sentence for sentence in sentences if sentence]
    if not said:
        return
    width = figure.get_size_inches()[0]
    words = wrap_sentences(said, width - 2 * SIDE, NOTE["fontsize"])
    note = figure.text(SIDE, SIDE, words, transform=figure.dpi_scale_trans, gid="footnote", **NOTE)
    _add_height(figure, note.get_window_extent().height / figure.dpi + SIDE + ABOVE)


def _add_height(figure: Figure, added: float) -> float:
    """Make a figure taller by inches below its panels, and return at which share of its height these begin."""
    width, height = figure.get_size_inches()
    below = height * (figure.get_layout_engine().get()["rect"] or (0, 0))[1] + added
    figure.set_size_inches(width, height + added)
    share = below / (height + added)
    figure.get_layout_engine().set(rect=(0, share, 1, 1 - share))
    return share


def add_key(figure: Figure) -> None:
    """Explain between panels and footnote the :data:`MARKS` that are drawn; call it when all is."""
    drawn = {str(line.get_label()) for axes in figure.axes for line in axes.get_lines()}
    handles = [
        Line2D([], [], color=style.INK, label=mark.words, **mark.look)
        for label, mark in MARKS.items()
        if label in drawn
    ]
    if handles:
        columns = _columns(figure, [str(handle.get_label()) for handle in handles], KEY_ROOM)
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
    """The longest lines, of a type size in points, that fit into `width` inches."""
    most = int(width * 72 / (size * NARROW_LETTER))
    sentences = [HELD_TOGETHER.sub(BOUND, sentence) for sentence in sentences]
    lines: list[str] = []
    for characters in range(most, NARROWEST, -1):
        lines = [
            line.replace(BOUND, " ")
            for sentence in sentences
            for line in textwrap.wrap(sentence, characters, break_on_hyphens=False)
        ]
        if all(measure_width(line, size) <= width * (1 - PIXEL_SHARE) for line in lines):
            break
    return "\n".join(lines)
