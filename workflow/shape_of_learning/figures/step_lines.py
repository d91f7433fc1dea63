"""One line per training step, coloured by the step."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.lines import Line2D

from shape_of_learning.figures.lines import draw_line
from shape_of_learning.figures.scales import MOST_RANKS, add_bar, set_rank_ticks
from shape_of_learning.figures.style import LineStyle, step_colours

UNTRAINED = LineStyle("0.35", (0, (2, 2)), "o")  # grey and dashed: training has not begun
DOTTED = (0, (1, 1.2))  # the line of a hollow checkpoint
MOST_BANDS = 20  # steps; the bands of more would cover the lines


def trained_steps(table: pd.DataFrame) -> list[int]:
    """List the steps of a table but 0, ascending."""
    return sorted({int(step) for step in table["step"] if step > 0})


def draw_steps(axes: Axes, table: pd.DataFrame, start: str = "untrained") -> dict[str, Line2D]:
    """Draw a line by layer for each step; step 0, the start, is grey, on top.

    Of more than :data:`MOST_BANDS` steps there are no bands.

    Returns
    -------
    dict of str to Line2D
        What a bar of colours does not name, for :func:`name_steps`: step 0, and a single trained one.
    """
    steps = trained_steps(table)
    colours = step_colours(steps)
    if table["step"].nunique() > MOST_BANDS:
        table = table.assign(low=np.nan, high=np.nan)
    named = {}
    for step, rows in table.groupby("step"):
        style = LineStyle(colours[int(step)], "-", "o") if step else UNTRAINED
        if rows["hollow"].all():
            style = replace(style, dashes=DOTTED)
        line = draw_line(axes, rows, "layer", style, name=str(step))
        if not step:
            line.set_zorder(2.5)  # the first trained steps hardly differ and would hide it
            named[f"step 0, {start}"] = line
        elif len(steps) == 1:
            named[f"step {step:,.0f}"] = line
    return named


def name_steps(
    panels: np.ndarray, tables: Sequence[pd.DataFrame], named: dict[str, Line2D]
) -> None:
    """Say which line is of which step: bars of colours at the right, and above what these do not name.

    Parameters
    ----------
    panels : numpy.ndarray of Axes, shape (rows, columns)
    tables : sequence of pandas.DataFrame
        What each column shows. Columns of the same steps share a bar; a single step has none.
    named : dict of str to Line2D
        What :func:`draw_steps` returned, of all panels.
    """
    if named:
        panels[0, 0].figure.legend(
            named.values(), named.keys(), loc="outside upper right", ncols=len(named)
        )
    steps = [trained_steps(table) for table in tables]
    if all(each == steps[0] for each in steps):
        _add_bar(panels, steps[0])
        return
    for column, own in enumerate(steps):
        _add_bar(panels[:, column : column + 1], own)


def _add_bar(panels: np.ndarray, steps: list[int]) -> None:
    if len(steps) < 2:
        return
    edges = np.arange(len(steps) + 1) - 0.5
    colours = ListedColormap([*step_colours(steps).values()])
    mapped = ScalarMappable(BoundaryNorm(edges, len(steps)), colours)
    bar = add_bar(mapped, panels, "Training step")
    set_rank_ticks(bar.ax.yaxis, steps, MOST_RANKS * len(panels))


def on_bands(table: pd.DataFrame) -> str:
    """Say which models have too many steps for bands, if some have."""
    steps = table.groupby("label", sort=False)["step"].nunique()
    many = [*steps[steps > MOST_BANDS].index]
    if not many:
        return ""
    return f"Too many steps for bands: {', '.join(many)}; the numbers have the intervals."
