"""The figure of the perplexity of decoders with changed blocks: two rows per model, a panel per order."""

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
# Dropped blocks cost so much that other changes would be invisible beside them, so these have a row below.
UPPER_KINDS = ("dropped", "replaced")
LOWER_KINDS = ("replaced", "maps_distilled", "all_distilled")
PANEL = 1.25  # inches, the height of a panel
NAME = 1.05  # inches, the room for the name of a model beside a panel
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
    """Draw the perplexities in the tables ``edits``; the note counts the tokens in the tables ``fit_errors``.

    The row above has dropped and replaced blocks, on a logarithmic axis; the row below has replaced and distilled
    blocks, in percent of the unchanged model's perplexity. A line has a gap where a perplexity is infinite or unknown.
    """
    labels = {model.name: model.label for model in inputs.models}
    edits = inputs.tables["edits"]
    errors = inputs.tables["fit_errors"]
    unchanged_perplexity = edits[edits["k"] == 0].groupby("model")["perplexity"].first()
    percent = 100 * edits["perplexity"] / edits["model"].map(unchanged_perplexity)
    table = edits.assign(label=edits["model"].map(labels), percent_of_unchanged=percent)[COLUMNS]
    orders = [order for order in ORDERS if order in set(table["order"])]
    other_kinds = set(table["kind"]) - {"replaced"}  # `replaced` is in both rows
    drawn_kinds = [
        kinds for kinds in (UPPER_KINDS, LOWER_KINDS) if other_kinds.intersection(kinds)
    ] or [LOWER_KINDS]
    rows = list(product(labels.items(), drawn_kinds))
    token_counts = captions.format_counts(
        edits.loc[edits["predicted_tokens"] > 0, "predicted_tokens"]
    )
    notes = (
        "Dotted: the unchanged model. Without intervals, differences of less than 1 % are not resolved.",
        captions.describe_sample(inputs, f"{token_counts} tokens are predicted"),
        f"Maps are fitted on {captions.format_counts(errors['tokens'])} tokens of other windows.",
        DISTILLED if any(kind.endswith("distilled") for kind in other_kinds) else "",
    )
    height = PANEL * len(rows) + FRAME
    figure, grid = marks.make_panels(
        len(rows), len(orders), height, *notes, sharex="col", sharey="row"
    )
    lines = []
    for panels, ((name, label), kinds) in zip(grid, rows, strict=True):
        model_rows = table[(table["model"] == name) & table["kind"].isin(kinds)]
        y = "perplexity" if kinds is UPPER_KINDS else PERCENT
        unchanged_levels = model_rows.loc[model_rows["k"] == 0, y]
        for axes, order in zip(panels, orders, strict=True):
            order_lines = _draw_order(axes, model_rows[model_rows["order"] == order], order, y)
            for level in unchanged_levels[:1]:
                axes.axhline(level, color="0.5", linewidth=0.6, linestyle=(0, (1, 1)))
        lines.append(order_lines)
        if kinds is UPPER_KINDS:
            scales.set_log_axis(panels[0])
        else:
            low, high = panels[0].get_ylim()
            panels[0].set_ylim(min(low, LEAST_SPAN[0]), max(high, LEAST_SPAN[1]))
        quantity = "perplexity" if kinds is UPPER_KINDS else "% of unchanged"
        wrapped_label = marks.wrap_sentences([label], NAME, style.SIZE_OF_TYPE)
        panels[0].set_ylabel(f"{wrapped_label}\n{quantity}")
    for upper, lower, order in zip(grid[0], grid[-1], orders, strict=True):
        upper.set_title(ORDERS[order])
        lower.set_xlabel("Changed block" if order == "alone" else "Changed blocks")
    for axes, last_lines in zip(grid[:, -1], lines, strict=True):
        marks.label_line_ends(axes, last_lines)
    return make_drawing(inputs, figure, table)


def _draw_order(axes: Axes, table: pd.DataFrame, order: str, y: str) -> list[Line2D]:
    """Draw a line per kind of change against the number of changed blocks, or against the block for order "alone"."""
    scales.set_whole_ticks(axes.xaxis)
    x = table["blocks"].astype("int64") if order == "alone" else table["k"]
    table = table.assign(x=x).sort_values("x", kind="stable")
    return [
        marks.draw_line(axes, rows, "x", STYLES[kind], label=label, y=y, markers=True)
        for kind, label in KINDS.items()
        if not (rows := table[table["kind"] == kind]).empty
    ]
