"""Marks: lines with bands, hollow points, crosses."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from shape_of_learning.figures.style import LineStyle

BAND_OPACITY = 0.2
HOLLOW, HOLLOW_EDGE = 4.5, 0.7  # points; larger than filled ones, else a hollow plus shows no white
DOT = 1.5  # points, in the middle of a hollow one
BAR, BAR_OPACITY = 2.5, 0.4  # points; of an interval that has no neighbours to make a band with
ABOVE_LINES = 2.6  # matplotlib draws lines at 2
CROSS, CROSS_STROKE = 3.5, 0.9  # points
MOST_MARKERS = 40  # points of a line; markers of more would cover each other
LOWER_EDGE, UPPER_EDGE = 0.02, 0.98  # of a panel's height: what is there lies within it


def draw_line(
    axes: Axes,
    rows: pd.DataFrame,
    x: str,
    style: LineStyle,
    *,
    name: str,
    markers: bool = False,
) -> Line2D:
    """Draw the values and the band of their intervals.

    As :func:`draw_curve` of the column ``value``; the band also has a gap where ``low`` and ``high`` are NaN.
    A point between two gaps of the band has a bar instead. An undefined or infinite value has a cross at the
    lower edge.
    """
    line = draw_curve(axes, rows, x, "value", style, name=name, markers=markers)
    undefined = rows.loc[~np.isfinite(rows["value"].to_numpy("float64")), x].to_numpy("float64")
    if undefined.size:
        draw_crosses(axes, undefined, LOWER_EDGE, style.colour, label="_undefined")
    places, low, high = (rows[name].to_numpy("float64") for name in (x, "low", "high"))
    axes.fill_between(places, low, high, color=style.colour, alpha=BAND_OPACITY, linewidth=0)
    alone = _between_gaps(np.isfinite(low))
    if alone.any():
        axes.vlines(
            places[alone], low[alone], high[alone], style.colour, linewidth=BAR, alpha=BAR_OPACITY
        )
    return line


def draw_curve(
    axes: Axes,
    rows: pd.DataFrame,
    x: str,
    y: str,
    style: LineStyle,
    *,
    name: str,
    markers: bool = False,
) -> Line2D:
    """Draw a line through points, hollow ones marked in white.

    Parameters
    ----------
    rows : pandas.DataFrame
        Points in order, columns `x` and `y`, and ``hollow`` and ``suspect`` where some points are; suspect
        ones are hollow with a dot. The line has a gap where `y` is NaN.
    name : str
        Kept on the line as its label.
    markers : bool
        Mark every point, of a line that has no more than :data:`MOST_MARKERS`, instead of only the hollow
        ones and those that a gap on both sides would hide.

    Returns
    -------
    Line2D
        Without the hollow markers, which are lines of their own, labelled ``_hollow`` and ``_suspect``.

    Notes
    -----
    Not seaborn's lineplot: it drops undefined values and joins their neighbours.
    """
    places, values = (rows[name].to_numpy("float64") for name in (x, y))
    present = np.isfinite(values)
    hollow, suspect = (
        present & rows[mark].to_numpy(bool) if mark in rows else np.zeros_like(present)
        for mark in ("hollow", "suspect")
    )
    markers = markers and len(rows) <= MOST_MARKERS
    filled = (present if markers else _between_gaps(present)) & ~hollow & ~suspect
    (line,) = axes.plot(
        places,
        values,
        color=style.colour,
        linestyle=style.dashes,
        marker=style.marker if markers or filled.any() else "",
        markevery=filled,
        label=name,
    )
    common = {"color": style.colour, "linestyle": "none", "marker": style.marker}
    for marked, label in ((hollow & ~suspect, "_hollow"), (suspect, "_suspect")):
        if marked.any():
            axes.plot(
                places[marked],
                values[marked],
                **common,
                markersize=HOLLOW,
                markerfacecolor="white",
                markeredgewidth=HOLLOW_EDGE,
                zorder=ABOVE_LINES,
                label=label,
            )
    if suspect.any():
        dots = {"marker": "o", "markersize": DOT, "zorder": ABOVE_LINES, "label": "_dots"}
        axes.plot(places[suspect], values[suspect], **common | dots)
    # an undefined value at either end keeps its place on the axis
    axes.update_datalim(np.column_stack([places, places]), updatey=False)
    return line


def draw_crosses(
    axes: Axes, x: np.ndarray, y: np.ndarray | float, colour: str, *, label: str = "_crosses"
) -> None:
    """Mark points that belong to no line; `y` is data, or for all the same share of the panel's height."""
    at_edge = isinstance(y, float)
    axes.plot(
        x,
        np.full(len(x), y) if at_edge else y,
        transform=axes.get_xaxis_transform() if at_edge else axes.transData,
        color=colour,
        linestyle="none",
        marker="x",
        markersize=CROSS,
        markeredgewidth=CROSS_STROKE,
        label=label,
    )


def _between_gaps(present: np.ndarray) -> np.ndarray:
    """Which points have no present neighbour."""
    return present & ~np.append(False, present[:-1]) & ~np.append(present[1:], False)
