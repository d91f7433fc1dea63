"""Cross-entropy during training, by which a broken checkpoint gives itself away."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import seaborn
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shape_of_learning.errors import InputError
from shape_of_learning.figures.averages import with_labels
from shape_of_learning.figures.captions import caption, enumerated, number_range
from shape_of_learning.figures.footnotes import add_footnote
from shape_of_learning.figures.line_labels import (
    LabelledLine,
    height_for_labels,
    label_line_ends,
)
from shape_of_learning.figures.lines import draw_crosses, draw_curve
from shape_of_learning.figures.omissions import omissions
from shape_of_learning.figures.output import Drawing
from shape_of_learning.figures.scales import set_progress_axis
from shape_of_learning.figures.style import (
    COLUMN_WIDTH,
    PANEL_HEIGHT,
    TEXT_WIDTH,
    DrawnModel,
    LineStyle,
    line_styles,
)
from shape_of_learning.figures.verdicts import Verdicts

COLUMNS = [
    *("model", "label", "revision", "step", "tokens", "verdict"),
    *("loss", "perplexity", "predicted_tokens", "vocabulary"),
]
PREDICTED = {"decoder": "next token", "encoder": "masked tokens"}
REACH = 0.5  # of the lines' range: as far above them the axis grows for a cross, and no farther


def draw_loss_by_step(
    verdicts: Verdicts,
    models: Sequence[DrawnModel],
    protocol: str = "",
    roles: Sequence[str] = (),
) -> Drawing:
    """Cross-entropy against the training step, decoders beside encoders.

    Parameters
    ----------
    verdicts : Verdicts
        Of the checkpoints that they do not show, those with a verdict that begins with "broken" are
        drawn as crosses where their loss is known, at the upper edge if it is far above the lines;
        so is an infinite loss of a checkpoint that is shown.
    models : sequence of DrawnModel
    protocol : str
        Closing sentences of the caption.
    roles : sequence of {"decoder", "encoder"}
        One per model: the loss of decoders is of the next token, that of encoders of masked tokens.
        Without them all models share a panel.

    Returns
    -------
    Drawing
        Its table also has ``perplexity``, the exponential of the loss.

    Raises
    ------
    InputError
        If a model has no verdicts, if there is not one role per model, or if all is left out.
    """
    points = _points(verdicts, models, roles)
    styles = line_styles(models)
    by_role = {role: points[points["role"] == role] for role in ("", *PREDICTED)}
    by_role = {role: rows for role, rows in by_role.items() if not rows.empty}
    most = max(rows["model"].nunique() for rows in by_role.values())
    height = max(PANEL_HEIGHT, height_for_labels(most)) + 0.4
    figure = Figure(figsize=(COLUMN_WIDTH if len(by_role) == 1 else TEXT_WIDTH, height))
    panels = figure.subplots(1, len(by_role), squeeze=False)[0]
    drawn, on_edge = [], False
    for axes, (role, rows) in zip(panels, by_role.items(), strict=True):
        of_models = rows.groupby("model", sort=False)
        drawn.append([_draw_model(axes, own, styles) for _, own in of_models])
        on_edge |= _draw_crosses(axes, rows, styles)
        set_progress_axis(axes, [int(step) for step in rows["step"]])
        title = f"{role.capitalize()}s: {PREDICTED[role]}" if role else ""
        axes.set(title=title, xlabel="Training step")
        seaborn.despine(ax=axes)
    panels[0].set_ylabel("Cross-entropy (nats per token)")
    on_crosses = _on_crosses(points, on_edge)
    add_footnote(figure, [*omissions(verdicts, models, sources=False), *on_crosses])
    for axes, lines in zip(panels, drawn, strict=True):
        label_line_ends(axes, lines)
    on_lines = points[~points["cross"]]
    words = caption(
        f"Cross-entropy during training{_of_what(by_role)}.",
        _on_counts(points),
        "Left of the axis break: before training." if 0 in set(points["step"]) else "",
        "Gaps: not measured." if on_lines["loss"].isna().any() else "",
        *omissions(verdicts, models),
        *on_crosses,
        protocol,
    )
    return Drawing(figure, points[COLUMNS], words)


def _points(verdicts: Verdicts, models: Sequence[DrawnModel], roles: Sequence[str]) -> pd.DataFrame:
    """What is drawn, with the columns ``role``, ``hollow``, and ``cross`` where there is one."""
    names = [model.name for model in models]
    if roles and len(roles) != len(names):
        raise InputError(f"{len(roles)} roles for {len(names)} models: give one per model")
    rows = verdicts.rows
    known = set(rows["model"])
    if unknown := [name for name in names if name not in known]:
        raise InputError(
            f"{verdicts.source} has no model {unknown[0]!r}, only {', '.join(sorted(known))}: "
            "correct the figure's models"
        )
    hidden = rows["shown"] == "no"
    broken = hidden & rows["verdict"].str.startswith("broken") & rows["loss"].notna()
    with np.errstate(over="ignore"):  # a perplexity beyond 1e308 is infinite
        perplexity = np.exp(rows["loss"])
    rows = rows.assign(
        perplexity=perplexity,
        role=rows["model"].map(dict(zip(names, roles or [""] * len(names), strict=True))),
        hollow=rows["shown"] == "hollow",
        broken=broken,
        cross=broken | np.isinf(rows["loss"]),
    )
    rows = rows[rows["model"].isin(names) & (~hidden | broken)]
    if rows.empty:
        raise InputError(
            f"{verdicts.source} leaves out every checkpoint of {', '.join(names)}: "
            "there is nothing to draw"
        )
    return with_labels(rows, models)


def _draw_model(axes: Axes, rows: pd.DataFrame, styles: Mapping[str, LineStyle]) -> LabelledLine:
    """One model's line, without what is left out and with a gap where the loss is infinite."""
    name, label = rows["model"].iloc[0], rows["label"].iloc[0]
    rows = rows[~rows["broken"]]
    finite = rows.assign(loss=rows["loss"].where(np.isfinite(rows["loss"])))
    line = draw_curve(axes, finite, "step", "loss", styles[name], name=name, markers=True)
    return LabelledLine(line, label, "all left out" if rows.empty else "undefined")


def _draw_crosses(axes: Axes, rows: pd.DataFrame, styles: Mapping[str, LineStyle]) -> bool:
    """Draw the crosses of one panel; whether some stand at the upper edge instead of their place."""
    crosses = rows[rows["cross"]]
    on_lines = rows.loc[~rows["cross"] & np.isfinite(rows["loss"]), "loss"]
    reach = on_lines.max() + REACH * np.ptp(on_lines) if len(on_lines) else np.inf
    within = np.isfinite(crosses["loss"]) & (crosses["loss"] <= reach)
    for name, own in crosses[within].groupby("model"):
        draw_crosses(axes, own["step"], own["loss"], styles[name].colour)
    top = axes.get_ylim()[1]
    axes.set_ylim(top=top)
    for name, own in crosses[~within].groupby("model"):
        draw_crosses(axes, own["step"], np.full(len(own), top), styles[name].colour)
    return not within.all()


def _on_crosses(points: pd.DataFrame, on_edge: bool) -> list[str]:
    """One sentence on the crosses, if there are any."""
    broken = int(points["broken"].sum())
    infinite = int((points["cross"] & ~points["broken"]).sum())
    if not broken + infinite:
        return []
    meanings = []
    if broken:
        noun = "a checkpoint" if broken == 1 else "checkpoints"
        meanings.append(f"{noun} left out as broken")
    if infinite:
        meanings.append("an infinite loss" if infinite == 1 else "infinite losses")
    heading = "Cross" if broken + infinite == 1 else "Crosses"
    edge = "; at the upper edge: beyond the axis" if on_edge else ""
    return [f"{heading}: {enumerated(meanings)}{edge}."]


def _of_what(roles: Sequence[str]) -> str:
    """What the predicted tokens are: ', of the next token (decoders)'."""
    named = [f"of the {PREDICTED[role]} ({role}s)" for role in roles if role]
    return f", {enumerated(named)}" if named else ""


def _on_counts(points: pd.DataFrame) -> str:
    """Over how many tokens the loss is a mean, and whether vocabularies differ."""
    measured = points[points["loss"].notna()]
    tokens = measured["predicted_tokens"].dropna()
    sizes = sorted(measured["vocabulary"].dropna().unique())
    mean = f"Mean over {number_range(tokens.min(), tokens.max())} tokens." if len(tokens) else ""
    if len(sizes) < 2:
        return mean
    return caption(
        mean,
        "Losses of models with different vocabularies do not compare "
        f"({enumerated([f'{size:,}' for size in sizes])} entries).",
    )
