"""Perplexity of decoders some of whose blocks are changed: two rows per model, a panel per order."""

from itertools import product

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from shape_of_learning.figures import captions, marks, scales, style
from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.figures.output import Drawing, make_drawing

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
    kind: style.LineStyle(style.COLOURS[place], style.DASHES[place], style.MARKERS[place])
    for place, kind in enumerate(KINDS)
}
DISTILLED = "Distilled: these maps, or all parameters, are trained to give the unchanged model's hidden states."
# The cost of dropped blocks would hide that of other changes: dropped blocks are above, other changes below.
ABOVE, BELOW = ("dropped", "replaced"), ("replaced", "maps_distilled", "all_distilled")
PANEL = 1.25  # inches, height
NAME = 1.05  # inches, of a model's name beside a panel
FRAME = 0.6  # inches above and below all panels
PERCENT = "percent_of_unchanged"
LEAST_SPAN = (99.0, 101.0)  # percent; differences far below 1 % stay small
COLUMNS = [
    "model",
    "label",
    "revision",
    "order",
    "blocks",
    "kind",
    "k",
    "predicted_tokens",
    "loss",
    "perplexity",
    PERCENT,
    "parameters",
]


def perplexity_of_changed_blocks(inputs: FigureInputs) -> Drawing:
    """Draw the tables ``edits``, and say of ``fit_errors`` on how many tokens maps were fitted.

    Dropped and replaced blocks are above, on a logarithmic axis; replaced and distilled ones below, in percent of the
    unchanged model's perplexity. A line has a gap where a perplexity is infinite or not known.
    """
    labels = {model.name: model.label for model in inputs.models}
    edits, errors = inputs.tables["edits"], inputs.tables["fit_errors"]
    unchanged = edits[edits["k"] == 0].groupby("model")["perplexity"].first()
    percent = 100 * edits["perplexity"] / edits["model"].map(unchanged)
    table = edits.assign(label=edits["model"].map(labels), percent_of_unchanged=percent)[COLUMNS]
    orders = [order for order in ORDERS if order in set(table["order"])]
    drawn = set(table["kind"]) - {"replaced"}
    drawn_kinds = [kinds for kinds in (ABOVE, BELOW) if drawn.intersection(kinds)] or [BELOW]
    rows = list(product(labels.items(), drawn_kinds))
    predicted = captions.format_counts(edits.loc[edits["predicted_tokens"] > 0, "predicted_tokens"])
    notes = (
        "Dotted: the unchanged model. Without intervals, differences of less than 1 % are not resolved.",
        captions.describe_sample(inputs, f"{predicted} tokens are predicted"),
        f"Maps are fitted on {captions.format_counts(errors['tokens'])} tokens of other windows.",
        DISTILLED if any(kind.endswith("distilled") for kind in drawn) else "",
    )
    height = PANEL * len(rows) + FRAME
    figure, grid = marks.make_panels(
        len(rows), len(orders), height, *notes, sharex="col", sharey="row"
    )
    lines = []
    for panels, ((name, label), kinds) in zip(grid, rows, strict=True):
        own = table[(table["model"] == name) & table["kind"].isin(kinds)]
        y = "perplexity" if kinds is ABOVE else PERCENT
        unchanged = own.loc[own["k"] == 0, y]
        for axes, order in zip(panels, orders, strict=True):
            of_order = _draw_order(axes, own[own["order"] == order], order, y)
            for level in unchanged[:1]:
                axes.axhline(level, color="0.5", linewidth=0.6, linestyle=(0, (1, 1)))
        lines.append(of_order)
        if kinds is ABOVE:
            scales.set_log_axis(panels[0])
        else:
            low, high = panels[0].get_ylim()
            panels[0].set_ylim(min(low, LEAST_SPAN[0]), max(high, LEAST_SPAN[1]))
        quantity = "perplexity" if kinds is ABOVE else "% of unchanged"
        wrapped = marks.wrap_sentences([label], NAME, style.SIZE_OF_TYPE)
        panels[0].set_ylabel(f"{wrapped}\n{quantity}")
    for upper, lower, order in zip(grid[0], grid[-1], orders, strict=True):
        upper.set_title(ORDERS[order])
        lower.set_xlabel("Changed block" if order == "alone" else "Changed blocks")
    for axes, of_last in zip(grid[:, -1], lines, strict=True):
        marks.label_line_ends(axes, of_last)
    return make_drawing(inputs, figure, table)


def _draw_order(axes: Axes, table: pd.DataFrame, order: str, y: str) -> list[Line2D]:
    """Draw a line per kind; of blocks changed alone, against their numbers."""
    scales.set_whole_ticks(axes.xaxis)
    x = table["blocks"].astype("int64") if order == "alone" else table["k"]
    table = table.assign(x=x).sort_values("x", kind="stable")
    return [
        marks.draw_line(axes, rows, "x", STYLES[kind], label=label, y=y, markers=True)
        for kind, label in KINDS.items()
        if not (rows := table[table["kind"] == kind]).empty
    ]
