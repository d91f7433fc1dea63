"""One line per training step, coloured by the step."""

from dataclasses import replace

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, to_hex

from shape_of_learning.figures.lines import draw_line
from shape_of_learning.figures.scales import set_step_ticks
from shape_of_learning.figures.style import LineStyle, step_colours

UNTRAINED = LineStyle("0.35", (0, (2, 2)), "o")  # grey and dashed: step 0 has no logarithm
DOTTED = (0, (1, 1.2))  # the line of a hollow checkpoint


def draw_steps(axes: Axes, table: pd.DataFrame, start: str = "untrained") -> None:
    """Draw a line by layer for each step and the bar of their colours; step 0, the start, is grey, on top.

    A single trained step has no bar but a name.
    """
    colours = step_colours()
    steps = sorted({int(step) for step in table["step"] if step > 0})
    norm = LogNorm(steps[0], max(steps[-1], 2 * steps[0])) if steps else None
    named = {}
    for step, rows in table.groupby("step"):
        style = LineStyle(to_hex(colours(norm(step))), "-", "o") if norm and step else UNTRAINED
        if rows["hollow"].all():
            style = replace(style, dashes=DOTTED)
        line = draw_line(axes, rows, "layer", style, name=str(step))
        if not step:
            line.set_zorder(2.5)  # the first trained steps hardly differ and would hide it
            named[f"step 0, {start}"] = line
        elif len(steps) == 1:
            named[f"step {step:,.0f}"] = line
    if named:
        place = {"loc": "lower right", "bbox_to_anchor": (1, 1), "borderaxespad": 0.2}
        axes.legend(named.values(), named.keys(), ncols=len(named), **place)
    if len(steps) > 1:
        mapped = ScalarMappable(norm, colours)
        words = {"label": "Training step (log scale)", "pad": 0.02, "aspect": 25}
        bar = axes.figure.colorbar(mapped, ax=axes, **words)
        bar.outline.set_visible(False)
        set_step_ticks(bar, steps)
