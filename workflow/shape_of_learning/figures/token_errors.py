"""Errors of single tokens under the affine maps of blocks: quantiles, and what the worst tokens weigh."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shape_of_learning.figures.captions import caption, number_range
from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.figures.line_labels import panel_title
from shape_of_learning.figures.output import Drawing
from shape_of_learning.figures.scales import open_frame, set_log_axis, set_whole_ticks
from shape_of_learning.figures.style import COLOURS, COLUMN_WIDTH, TEXT_WIDTH

# Of the errors: from one quantile to another, with the opacity of the band between them.
BANDS = {
    ("quantile_0.01", "quantile_0.99"): 0.15,
    ("quantile_0.1", "quantile_0.9"): 0.25,
    ("quantile_0.25", "quantile_0.75"): 0.45,
}
MEDIAN = "quantile_0.5"
WIDE = 100  # times the smallest error, from which on powers of ten are labels enough
HEIGHTS = (1.6, 0.9)  # inches of the panels above each other
FRAME = 0.7  # inches above and below


def draw_token_errors(inputs: FigureInputs) -> Drawing:
    """Draw the tables ``fit_errors``: a column per model, quantiles above, the worst tokens' share below."""
    labels = {model.name: model.label for model in inputs.models}
    table = inputs.tables["fit_errors"].copy()
    table.insert(1, "label", table["model"].map(labels))
    width = COLUMN_WIDTH if len(labels) == 1 else TEXT_WIDTH
    figure = Figure(figsize=(width, sum(HEIGHTS) + FRAME))
    grid = figure.subplots(
        2, len(labels), sharex="col", sharey="row", squeeze=False, height_ratios=HEIGHTS
    )
    for (above, below), (name, label) in zip(grid.T, labels.items(), strict=True):
        rows = table[table["model"] == name]
        _draw_quantiles(above, rows)
        below.plot(rows["layer"], rows["share_of_worst_tokens"], color=COLOURS[1], marker="o")
        below.axhline(0.01, color="0.5", linewidth=0.6, linestyle=(0, (1, 1)))
        below.set(ylim=(0, None), xlabel="Block")
        set_whole_ticks(below)
        above.set_title(panel_title(label, figure, len(labels)))
        open_frame(above)
        open_frame(below)
    grid[0, 0].set_ylabel("Error of a token")
    grid[1, 0].set_ylabel("Share of\nworst 1 %")
    words = (
        "Line: median; bands: from the first to the third quartile, from 10 to 90 and from 1 to 99 % of the "
        "tokens. Below: what the 1 % of tokens with the largest errors have of the sum of squares (dotted: "
        f"if all had the same error); {number_range(table['tokens'].min(), table['tokens'].max())} tokens."
    )
    return Drawing(figure, table, caption(inputs.caption, words))


def _draw_quantiles(axes: Axes, rows: pd.DataFrame) -> None:
    drawn = rows[[quantile for band in BANDS for quantile in band]].stack()
    set_log_axis(axes, (1, 2, 5) if drawn.max() < WIDE * drawn.min() else (1,))
    for (low, high), opacity in BANDS.items():
        axes.fill_between(
            rows["layer"], rows[low], rows[high], color=COLOURS[0], alpha=opacity, linewidth=0
        )
    axes.plot(rows["layer"], rows[MEDIAN], color=COLOURS[0], marker="o")
