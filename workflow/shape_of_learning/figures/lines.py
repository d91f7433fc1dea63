"""Lines with bands, hollow points, crosses."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from shape_of_learning.figures.style import LineStyle

BAND_OPACITY = 0.2
HOLLOW, HOLLOW_EDGE = 4.5, 0.7  # points; larger than filled ones, else a hollow plus shows no white
ABOVE_LINES = 2.6  # matplotlib draws lines at 2
CROSS, CROSS_STROKE = 3.5, 0.9  # points


def draw_line(
    axes: Axes,
    rows: pd.DataFrame,
    x: str,
    style: LineStyle,
    *,
    name: str,
    markers: bool = False,
) -> Line2D:
    """Draw a mean and its band of one standard deviation to either side.

    As :func:`draw_curve` of the column ``mean``; the band also has a gap where ``sd`` is NaN.
    """
    line = draw_curve(axes, rows, x, "mean", style, name=name, markers=markers)
    places, mean, sd = (rows[name].to_numpy("float64") for name in (x, "mean", "sd"))
    axes.fill_between(
        places, mean - sd, mean + sd, color=style.colour, alpha=BAND_OPACITY, linewidth=0
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
        Points in order, columns `x` and `y`, and ``hollow`` where some points are. The line has a
        gap where `y` is NaN.
    name : str
        Kept on the line as its label.
    markers : bool
        Mark every point instead of only the hollow ones and those that a gap on both sides would
        hide.

    Returns
    -------
    Line2D
        Without the hollow markers, which are a line of their own, labelled ``_hollow``.

    Notes
    -----
    Not seaborn's lineplot: it drops undefined values and joins their neighbours.
    """
    places, values = (rows[name].to_numpy("float64") for name in (x, y))
    present = np.isfinite(values)
    alone = present & ~np.append(False, present[:-1]) & ~np.append(present[1:], False)
    hollow = present & rows["hollow"].to_numpy(bool) if "hollow" in rows else np.zeros_like(present)
    filled = (present if markers else alone) & ~hollow
    (line,) = axes.plot(
        places,
        values,
        color=style.colour,
        linestyle=style.dashes,
        marker=style.marker if markers or filled.any() else "",
        markevery=filled,
        label=name,
    )
    if hollow.any():
        axes.plot(
            places[hollow],
            values[hollow],
            color=style.colour,
            linestyle="none",
            marker=style.marker,
            markersize=HOLLOW,
            markerfacecolor="white",
            markeredgewidth=HOLLOW_EDGE,
            zorder=ABOVE_LINES,
            label="_hollow",
        )
    # an undefined value at either end keeps its place on the axis
    axes.update_datalim(np.column_stack([places, places]), updatey=False)
    return line


def draw_crosses(axes: Axes, x: np.ndarray, y: np.ndarray, colour: str) -> None:
    """Mark points that belong to no line, also on the very edge of the panel."""
    axes.plot(
        x,
        y,
        color=colour,
        linestyle="none",
        marker="x",
        markersize=CROSS,
        markeredgewidth=CROSS_STROKE,
        clip_on=False,
        label="_crosses",
    )
