"""Perplexity of decoders some of whose blocks are changed: two rows per model, a panel per order."""

from itertools import product

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shape_of_learning.figures import captions, marks, scales
from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.figures.output import Drawing
from shape_of_learning.figures.style import (
    COLOURS,
    DASHES,
    MARKERS,
    SIZE_OF_TYPE,
    TEXT_WIDTH,
    LineStyle,
)

ORDERS = {
    "most_linear_first": "Most linear first",
    "least_linear_first": "Least linear first",
    "smallest_contribution_first": "Least added first",
    "alone": "Each alone",
}
KINDS = {
    "dropped": "dropped",
    "replaced": "affine map",
    "maps_distilled": "distilled: maps",
    "all_distilled": "distilled: all",
}
STYLES = {
    kind: LineStyle(COLOURS[place], DASHES[place], MARKERS[place])
    for place, kind in enumerate(KINDS)
}
# What dropped blocks cost would hide what the others do: those are above, these below.
ABOVE, BELOW = ("dropped", "replaced"), ("replaced", "maps_distilled", "all_distilled")
PANEL = 1.25  # inches, height
NAME = 1.05  # inches, of a model's name beside a panel
FRAME = 0.6  # inches above and below all panels
COLUMNS = [
    *("model", "label", "revision", "order", "blocks", "kind", "k"),
    *("predicted_tokens", "loss", "perplexity", "parameters"),
]


def perplexity_of_changed_blocks(inputs: FigureInputs) -> Drawing:
    """Draw the tables ``edits``, and say of ``fit_errors`` on how many tokens maps were fitted.

    Dropped and replaced blocks are above, on a logarithmic axis, replaced and distilled ones below. A line
    has a gap where a perplexity is infinite or not known.
    """
    labels = {model.name: model.label for model in inputs.models}
    table = inputs.tables["edits"]
    table = table.assign(label=table["model"].map(labels))[COLUMNS]
    orders = [order for order in ORDERS if order in set(table["order"])]
    drawn_kinds = [
        kinds for kinds in (ABOVE, BELOW) if set(kinds) & set(table["kind"]) - {"replaced"}
    ] or [BELOW]
    figure = Figure(figsize=(TEXT_WIDTH, PANEL * len(labels) * len(drawn_kinds) + FRAME))
    grid = figure.subplots(
        len(labels) * len(drawn_kinds), len(orders), sharex="col", sharey="row", squeeze=False
    )
    drawn, places = [], product(labels.items(), drawn_kinds)
    for panels, ((name, label), kinds) in zip(grid, places, strict=True):
        rows = table[(table["model"] == name) & table["kind"].isin(kinds)]
        unchanged = rows.loc[rows["k"] == 0, "perplexity"]
        for axes, order in zip(panels, orders, strict=True):
            lines = _draw_order(axes, rows[rows["order"] == order], order)
            for level in unchanged[:1]:
                axes.axhline(level, color="0.5", linewidth=0.6, linestyle=(0, (1, 1)))
        if kinds is ABOVE:
            scales.set_log_axis(panels[0])
        panels[0].set_ylabel(f"{marks.wrapped([label], NAME, SIZE_OF_TYPE)}\nperplexity")
        drawn.append(lines)
    for upper, lower, order in zip(grid[0], grid[-1], orders, strict=True):
        upper.set_title(ORDERS[order])
        lower.set_xlabel("Changed block" if order == "alone" else "Changed blocks")
    for panels, lines in zip(grid, drawn, strict=True):
        marks.label_line_ends(panels[-1], lines)
    return Drawing(figure, table, captions.caption(inputs.caption, _on_tokens(inputs)))


def _draw_order(axes: Axes, rows: pd.DataFrame, order: str) -> list[marks.LabelledLine]:
    """Draw a line per kind; of blocks changed alone, against their numbers."""
    scales.set_whole_ticks(axes.xaxis)
    scales.open_frame(axes)
    lines = []
    for kind, label in KINDS.items():
        own = rows[rows["kind"] == kind]
        if own.empty:
            continue
        x = own["blocks"].astype("int64") if order == "alone" else own["k"]
        own = own.assign(x=x).sort_values("x")
        line = marks.draw_curve(axes, own, "x", "perplexity", STYLES[kind], name=kind, markers=True)
        lines.append(marks.LabelledLine(line, label))
    return lines


def _on_tokens(inputs: FigureInputs) -> str:
    predicted = inputs.tables["edits"]["predicted_tokens"]
    fitted = captions.range_of(inputs.tables["fit_errors"]["tokens"])
    return (
        f"Tokens that are predicted: {captions.range_of(predicted[predicted > 0])}; that maps are fitted on: "
        f"{fitted}."
    )
