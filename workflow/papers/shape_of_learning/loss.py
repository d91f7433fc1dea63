"""The loss by training step, beside which the paper's figures by step are read."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from shape_of_learning.figures import captions, marks, scales
from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.figures.output import Drawing, drawing
from shape_of_learning.figures.style import LineStyle, line_styles
from shape_of_learning.figures.tables import require, with_labels

PREDICTED = {"decoder": "Decoders: next token", "encoder": "Encoders: masked tokens"}
LOSS_COLUMNS = [
    *("model", "label", "revision", "step", "tokens", "verdict"),
    *("loss", "perplexity", "predicted_tokens", "vocabulary"),
]
REACH = 0.5  # of the lines' range: as far above them the axis grows for a cross, and no farther


def loss_by_step(inputs: FigureInputs, progress: str = "auto") -> Drawing:
    """Cross-entropy against the training step, decoders beside encoders.

    Of the checkpoints that the verdicts do not show, those with a verdict that begins with "broken" are drawn
    as crosses where their loss is known, at the upper edge if it is far above the lines; so is an infinite
    loss of a checkpoint that is shown. The table also has ``perplexity``, the exponential of the loss.
    `progress` is what the x axis counts, see :func:`.progress_column`.
    """
    points = _losses(inputs)
    counted = scales.progress_column(points, progress)
    styles = line_styles(inputs.models)
    by_role = {role: points[points["role"] == role] for role in PREDICTED}
    by_role = {role: rows for role, rows in by_role.items() if not rows.empty}
    most = max(rows["model"].nunique() for rows in by_role.values())
    height = marks.height_for_labels(most) + 0.4
    figure, (panels,) = marks.panels(1, len(by_role), height)
    drawn, on_edge = [], False
    for axes, (role, rows) in zip(panels, by_role.items(), strict=True):
        drawn.append(_draw_losses(axes, rows, counted, styles))
        on_edge |= _draw_broken(axes, rows, counted, styles)
        scales.set_progress_axis(axes, rows[counted])
        axes.set(title=PREDICTED[role], xlabel=scales.PROGRESS[counted])
        axes.set_ylabel("Cross-entropy (nats per token)")
    on_crosses = _on_crosses(points, on_edge)
    marks.add_footnote(figure, *captions.omissions(inputs, sources=False), on_crosses)
    for axes, lines in zip(panels, drawn, strict=True):
        marks.label_line_ends(axes, lines)
    sentences = [
        *_on_counts(points),
        scales.on_progress(points, counted),
        "Gaps: not measured." if points.loc[~points["cross"], "loss"].isna().any() else "",
        *captions.omissions(inputs),
        on_crosses,
    ]
    return drawing(inputs, figure, points[LOSS_COLUMNS], *sentences)


def _losses(inputs: FigureInputs) -> pd.DataFrame:
    """What is drawn, with the columns ``role``, ``hollow``, and ``cross`` where there is one."""
    roles = {model.name: model.role for model in inputs.models}
    rows = inputs.tables["verdicts"]
    hidden = rows["shown"] == "no"
    broken = hidden & rows["verdict"].str.startswith("broken") & rows["loss"].notna()
    with np.errstate(over="ignore"):  # a perplexity beyond 1e308 is infinite
        perplexity = np.exp(rows["loss"])
    rows = rows.assign(
        perplexity=perplexity,
        role=rows["model"].map(roles),
        hollow=rows["shown"] == "hollow",
        broken=broken,
        cross=broken | np.isinf(rows["loss"]),
    )
    rows = rows[rows["model"].isin(roles) & (~hidden | broken)]
    return with_labels(require(rows, inputs, "the verdicts leave out every checkpoint"), inputs)


def _draw_losses(
    axes: Axes, table: pd.DataFrame, x: str, styles: Mapping[str, LineStyle]
) -> list[Line2D]:
    """Draw each model's line, without what is left out and with a gap where the loss is infinite."""
    lines = []
    for (name, label), rows in table.groupby(["model", "label"], sort=False):
        own = rows[~rows["broken"]]
        own = own.assign(loss=own["loss"].where(np.isfinite(own["loss"])))
        lines.append(
            marks.draw_curve(axes, own, x, "loss", styles[name], label=label, markers=True)
        )
    return lines


def _draw_broken(axes: Axes, rows: pd.DataFrame, x: str, styles: Mapping[str, LineStyle]) -> bool:
    """Draw the crosses of one panel; whether some stand at the upper edge instead of their place."""
    crosses = rows[rows["cross"]]
    on_lines = rows.loc[~rows["cross"] & np.isfinite(rows["loss"]), "loss"]
    reach = on_lines.max() + REACH * np.ptp(on_lines) if len(on_lines) else np.inf
    within = np.isfinite(crosses["loss"]) & (crosses["loss"] <= reach)
    for name, own in crosses[within].groupby("model"):
        marks.draw_crosses(axes, own[x], own["loss"], styles[name].colour)
    for name, own in crosses[~within].groupby("model"):
        marks.draw_crosses(axes, own[x], marks.UPPER_EDGE, styles[name].colour)
    return not within.all()


def _on_crosses(points: pd.DataFrame, on_edge: bool) -> str:
    """One sentence on the crosses, if there are any."""
    broken, infinite = points["broken"].sum(), (points["cross"] & ~points["broken"]).sum()
    kinds = {"left out as broken": broken, "of an infinite loss": infinite}
    parts = [f"{number} {kind}" for kind, number in kinds.items() if number]
    edge = "; at the upper edge: beyond the axis" if on_edge else ""
    return f"Crosses: {captions.enumerated(parts)}{edge}." if parts else ""


def _on_counts(points: pd.DataFrame) -> list[str]:
    """Over how many tokens the loss is a mean, and whether vocabularies differ."""
    measured = points[points["loss"].notna()]
    said = [f"Mean over {captions.range_of(measured['predicted_tokens'])} tokens."]
    sizes = sorted(measured["vocabulary"].dropna().unique())
    if len(sizes) > 1:
        entries = captions.enumerated([f"{size:,}" for size in sizes])
        different = "Losses of models with different vocabularies do not compare"
        said.append(f"{different} ({entries} entries).")
    return said
