"""A dimension against the scale at which it is measured: the same estimator with more and more neighbours."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

from shape_of_learning.figures.averages import by_layer, with_labels
from shape_of_learning.figures.captions import caption, lines_and_bands
from shape_of_learning.figures.drawn_rows import drawn_estimates, require_one_checkpoint
from shape_of_learning.figures.footnotes import add_footnote
from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.figures.line_labels import LabelledLine, height_for_labels, label_line_ends
from shape_of_learning.figures.lines import draw_line
from shape_of_learning.figures.output import Drawing
from shape_of_learning.figures.scales import set_measure_axes
from shape_of_learning.figures.style import TEXT_WIDTH, line_styles
from shape_of_learning.figures.suspects import suspects

# Which of L blocks a panel shows: one panel each.
PLACES = {
    "First block": lambda L: 1,
    "Middle block": lambda L: (L + 1) // 2,
    "Last block": lambda L: L,
}
# What counts as a plateau: so many successive scales, and the largest value this much above the smallest.
PLATEAU_SCALES, PLATEAU_RISE = 4, 0.10


def draw_by_scale(inputs: FigureInputs, parameter: str) -> Drawing:
    """Draw measures that differ in one number against it: first, middle and last block, a line per model.

    Parameters
    ----------
    inputs : FigureInputs
        Its measures ascend in `parameter`.
    parameter : str
        An argument of their function; it doubles from each to the next.

    Returns
    -------
    Drawing
        The table has this column, and ``block``, the title of the panel. The caption says how many lines have
        a plateau.
    """
    estimates = drawn_estimates(inputs)
    require_one_checkpoint(estimates)
    table = _of_blocks(with_labels(by_layer(estimates, inputs.measures), inputs.models))
    scales = {measure.name: int(measure.parameters[parameter]) for measure in inputs.measures}
    place = int(table.columns.get_loc("layer"))
    table.insert(place, parameter, table["estimator"].map(scales))
    table = table.sort_values(["block", "model", parameter], key=_in_order, kind="stable")
    table = table.reset_index(drop=True)

    height = height_for_labels(len(inputs.models))
    figure = Figure(figsize=(TEXT_WIDTH, height + 0.4))
    marked = suspects(table, inputs.measures)
    add_footnote(figure, marked)
    panels = figure.subplots(1, len(PLACES), sharey=True)
    styles = line_styles(inputs.models)
    for axes, block in zip(panels, PLACES, strict=True):
        lines = []
        for name, rows in table[table["block"] == block].groupby("model", sort=False):
            line = draw_line(axes, rows, parameter, styles[name], name=name, markers=True)
            lines.append(LabelledLine(line, rows["label"].iloc[0]))
        _set_scale_axis(axes, sorted(scales.values()))
        axes.set(title=block, xlabel=parameter)
    panels[0].set_ylabel(inputs.measures[0].axis)
    set_measure_axes(panels, inputs.measures)
    label_line_ends(panels[-1], lines)
    words = caption(
        inputs.caption,
        _on_plateaus(table, parameter),
        lines_and_bands(table, inputs.measures),
        *marked,
    )
    return Drawing(figure, table.drop(columns="suspect"), words)


def has_plateau(values: np.ndarray) -> bool:
    """Whether a dimension, shape (scales,), is about the same at four successive scales; NaN is none."""
    windows = np.lib.stride_tricks.sliding_window_view(values, min(PLATEAU_SCALES, len(values)))
    rises = windows.max(axis=1) / windows.min(axis=1)
    return len(values) >= PLATEAU_SCALES and bool((rises <= 1 + PLATEAU_RISE).any())


def _of_blocks(table: pd.DataFrame) -> pd.DataFrame:
    """Keep the layers that are drawn; in a model of one block that is drawn in every panel."""
    last = table.groupby("model")["layer"].transform("max")
    parts = [
        table[table["layer"] == last.map(choose)].assign(block=block)
        for block, choose in PLACES.items()
    ]
    return pd.concat(parts)


def _in_order(column: pd.Series) -> pd.Series:
    """Keep blocks and models in the order in which they come; numbers ascend."""
    return column if pd.api.types.is_numeric_dtype(column) else pd.Series(pd.factorize(column)[0])


def _set_scale_axis(axes: Axes, scales: list[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(scales))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(ScalarFormatter())


def _on_plateaus(table: pd.DataFrame, parameter: str) -> str:
    lines = table.groupby(["block", "model"])["value"]
    count = sum(has_plateau(values.to_numpy()) for _, values in lines)
    return (
        f"A plateau, {PLATEAU_SCALES} successive {parameter} whose dimensions differ by at most "
        f"{PLATEAU_RISE:.0%}, is on {count or 'none'} of {lines.ngroups} lines."
    ).replace("%", " %", 1)
