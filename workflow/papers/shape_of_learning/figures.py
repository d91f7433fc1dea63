"""The figures of "The Shape of Learning" and its Table 1; paper.yaml says what each of them shows."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shape_of_learning.errors import InputError
from shape_of_learning.figures.averages import AVERAGED_LAYERS_IN_WORDS, with_labels
from shape_of_learning.figures.by_scale import draw_by_scale
from shape_of_learning.figures.by_step import draw_by_step
from shape_of_learning.figures.captions import (
    as_markup,
    caption,
    enumerated,
    number_range,
    short_number,
    undefined,
)
from shape_of_learning.figures.footnotes import add_footnote
from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.figures.layer_by_step import (
    draw_heat_maps,
    draw_layer_by_step,
    draw_overview,
)
from shape_of_learning.figures.line_labels import LabelledLine, height_for_labels, label_line_ends
from shape_of_learning.figures.lines import UPPER_EDGE, draw_crosses, draw_curve
from shape_of_learning.figures.omissions import omissions
from shape_of_learning.figures.output import Drawing
from shape_of_learning.figures.profiles import draw_profiles, profiles, profiles_drawing
from shape_of_learning.figures.progress import LABELS, on_progress, progress_column
from shape_of_learning.figures.published_values import draw_published
from shape_of_learning.figures.scales import open_frame, set_measure_axes, set_progress_axis
from shape_of_learning.figures.style import (
    COLUMN_WIDTH,
    INK,
    LOW_PANEL_HEIGHT,
    TEXT_WIDTH,
    LineStyle,
    line_styles,
)
from shape_of_learning.figures.suspects import suspects

ROLES = {"decoder": "Decoders", "encoder": "Encoders"}
FRAME = 0.5  # inches above and below a panel, for its title and the x axis
# Section 2.3 of the paper: spectrum beside cosine, not centred above centred.
PANELS = {
    "anisotropy_uncentered": "Not centred",
    "average_cosine": "Not centred",
    "anisotropy": "Centred",
    "average_cosine_centered": "Centred",
}
PREDICTED = {"decoder": "next token", "encoder": "masked tokens"}
LOSS_COLUMNS = [
    *("model", "label", "revision", "step", "tokens", "verdict"),
    *("loss", "perplexity", "predicted_tokens", "vocabulary"),
]
SMALL = 0.02  # of the largest value in any panel
REACH = 0.5  # of the lines' range: as far above them the axis grows for a cross, and no farther


def profiles_by_role(inputs: FigureInputs) -> Drawing:
    """Figure 1: a measure over relative depth, decoders beside encoders, one checkpoint of each model."""
    table = profiles(inputs)
    by_role = {role: table[table["role"] == role] for role in ROLES if role in set(table["role"])}
    most = max(rows["model"].nunique() for rows in by_role.values())
    height = height_for_labels(most) + FRAME
    figure = Figure(figsize=(TEXT_WIDTH, height))
    add_footnote(figure, [*suspects(table, inputs.measures), *undefined(table)])
    panels = figure.subplots(1, len(by_role), sharey=True, squeeze=False)[0]
    drawn = [
        draw_profiles(axes, rows, inputs.models)
        for axes, rows in zip(panels, by_role.values(), strict=True)
    ]
    for axes, role in zip(panels, by_role, strict=True):
        axes.set(title=ROLES[role], xlabel="Relative depth")
    panels[0].set_ylabel(inputs.measures[0].label)
    set_measure_axes(panels, inputs.measures)
    for axes, lines in zip(panels, drawn, strict=True):
        label_line_ends(axes, lines)
    return profiles_drawing(figure, table, inputs)


def anisotropy_measures(inputs: FigureInputs) -> Drawing:
    """Section 2.3: anisotropy beside average cosine, centred and not, one checkpoint of each model."""
    table = profiles(inputs)
    height = height_for_labels(len(inputs.models), LOW_PANEL_HEIGHT) + 0.7 * FRAME
    figure = Figure(figsize=(TEXT_WIDTH, 2 * height))
    add_footnote(figure, [*suspects(table, inputs.measures), *undefined(table)])
    grid = figure.subplots(2, 2, sharex=True, sharey=True)
    quantities = {measure.name: measure.axis for measure in inputs.measures}
    for axes, (estimator, title) in zip(grid.flat, PANELS.items(), strict=True):
        rows = table[table["estimator"] == estimator]
        lines = draw_profiles(axes, rows, inputs.models)
        axes.set(title=title, ylabel=quantities[estimator])
        _name_small_values(axes, rows, table)
        if axes is grid[0, 1]:
            labelled = lines
    for axes in grid[-1]:
        axes.set_xlabel("Relative depth")
    set_measure_axes(grid.flat, inputs.measures)
    label_line_ends(grid[0, 1], labelled)
    return profiles_drawing(figure, table, inputs)


def _name_small_values(axes: Axes, rows: pd.DataFrame, table: pd.DataFrame) -> None:
    """Write into a panel that shares its y axis how large its values are, where they look like zero."""
    largest = rows["value"].abs().max()
    if largest < SMALL * table["value"].abs().max():
        words = f"all between -{largest:.2g} and {largest:.2g}"
        axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", color=INK)


def training_profile(inputs: FigureInputs) -> Drawing:
    """Figures 2 and 3: measures by layer, a panel per model, one line per training step, coloured by step."""
    return draw_layer_by_step(inputs)


def heat_map(inputs: FigureInputs) -> Drawing:
    """Measures by layer and training step as colours, a panel per measure and model."""
    return draw_heat_maps(inputs)


def overview(inputs: FigureInputs) -> Drawing:
    """All measures of one model by layer and training step."""
    return draw_overview(inputs)


def dimension_by_step(
    inputs: FigureInputs, average_over: str = "block_outputs", progress: str = "auto"
) -> Drawing:
    """Figures 4 and 5: measures averaged over layers against the training step, one panel each.

    Parameters
    ----------
    inputs : FigureInputs
    average_over : {"block_outputs", "all_layers"}
        See :func:`~shape_of_learning.figures.averages.over_layers`.
    progress : {"auto", "step", "tokens"}
        What the x axis counts, see :func:`.progress_column`.

    Raises
    ------
    InputError
        If a checkpoint does not say its step or its tokens.
    """
    return draw_by_step(
        inputs,
        f"{inputs.measures[0].axis},\nmean over layers",
        AVERAGED_LAYERS_IN_WORDS[average_over],
        average_over,
        progress,
    )


def dimension_by_scale(inputs: FigureInputs) -> Drawing:
    """Intrinsic dimension by Gride against n1, the number of neighbours that sets the scale."""
    return draw_by_scale(inputs, "n1")


def loss_by_step(inputs: FigureInputs, progress: str = "auto") -> Drawing:
    """Cross-entropy against the training step, decoders beside encoders.

    Of the checkpoints that the verdicts do not show, those with a verdict that begins with "broken" are drawn
    as crosses where their loss is known, at the upper edge if it is far above the lines; so is an infinite
    loss of a checkpoint that is shown. The table also has ``perplexity``, the exponential of the loss.

    Parameters
    ----------
    inputs : FigureInputs
    progress : {"auto", "step", "tokens"}
        What the x axis counts, see :func:`.progress_column`.

    Raises
    ------
    InputError
        If all is left out, or a checkpoint does not state its progress.
    """
    points = _losses(inputs)
    counted = progress_column(points, progress)
    styles = line_styles(inputs.models)
    by_role = {role: points[points["role"] == role] for role in PREDICTED}
    by_role = {role: rows for role, rows in by_role.items() if not rows.empty}
    most = max(rows["model"].nunique() for rows in by_role.values())
    height = height_for_labels(most) + 0.4
    figure = Figure(figsize=(COLUMN_WIDTH if len(by_role) == 1 else TEXT_WIDTH, height))
    panels = figure.subplots(1, len(by_role), squeeze=False)[0]
    drawn, on_edge = [], False
    for axes, (role, rows) in zip(panels, by_role.items(), strict=True):
        of_models = rows.groupby("model", sort=False)
        drawn.append([_draw_losses(axes, own, counted, styles) for _, own in of_models])
        on_edge |= _draw_broken(axes, rows, counted, styles)
        set_progress_axis(axes, [int(value) for value in rows[counted]])
        axes.set(title=f"{ROLES[role]}: {PREDICTED[role]}", xlabel=LABELS[counted])
        axes.set_ylabel("Cross-entropy (nats per token)")
        open_frame(axes)
    on_crosses = _on_crosses(points, on_edge)
    add_footnote(figure, [*omissions(inputs.verdicts, inputs.models, sources=False), *on_crosses])
    for axes, lines in zip(panels, drawn, strict=True):
        label_line_ends(axes, lines)
    words = caption(
        inputs.caption,
        _on_counts(points),
        on_progress(points, counted),
        "Gaps: not measured." if points.loc[~points["cross"], "loss"].isna().any() else "",
        *omissions(inputs.verdicts, inputs.models),
        *on_crosses,
    )
    return Drawing(figure, points[LOSS_COLUMNS], words)


def _losses(inputs: FigureInputs) -> pd.DataFrame:
    """What is drawn, with the columns ``role``, ``hollow``, and ``cross`` where there is one."""
    roles = {model.name: model.role for model in inputs.models}
    rows = inputs.verdicts.rows
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
    if rows.empty:
        raise InputError(
            f"{inputs.verdicts.source} leaves out every checkpoint of {', '.join(roles)}: "
            "there is nothing to draw"
        )
    return with_labels(rows, inputs.models)


def _draw_losses(
    axes: Axes, rows: pd.DataFrame, x: str, styles: Mapping[str, LineStyle]
) -> LabelledLine:
    """One model's line, without what is left out and with a gap where the loss is infinite."""
    name, label = rows["model"].iloc[0], rows["label"].iloc[0]
    rows = rows[~rows["broken"]]
    finite = rows.assign(loss=rows["loss"].where(np.isfinite(rows["loss"])))
    line = draw_curve(axes, finite, x, "loss", styles[name], name=name, markers=True)
    return LabelledLine(line, label, "all left out" if rows.empty else "undefined")


def _draw_broken(axes: Axes, rows: pd.DataFrame, x: str, styles: Mapping[str, LineStyle]) -> bool:
    """Draw the crosses of one panel; whether some stand at the upper edge instead of their place."""
    crosses = rows[rows["cross"]]
    on_lines = rows.loc[~rows["cross"] & np.isfinite(rows["loss"]), "loss"]
    reach = on_lines.max() + REACH * np.ptp(on_lines) if len(on_lines) else np.inf
    within = np.isfinite(crosses["loss"]) & (crosses["loss"] <= reach)
    for name, own in crosses[within].groupby("model"):
        draw_crosses(axes, own[x], own["loss"], styles[name].colour)
    for name, own in crosses[~within].groupby("model"):
        draw_crosses(axes, own[x], UPPER_EDGE, styles[name].colour)
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


def _on_counts(points: pd.DataFrame) -> str:
    """Over how many tokens the loss is a mean, and whether vocabularies differ."""
    measured = points[points["loss"].notna()]
    tokens = measured["predicted_tokens"].dropna()
    sizes = sorted(measured["vocabulary"].dropna().unique())
    mean = f"Mean over {number_range(tokens.min(), tokens.max())} tokens." if len(tokens) else ""
    if len(sizes) < 2:
        return mean
    entries = enumerated([f"{size:,}" for size in sizes])
    return caption(
        mean, f"Losses of models with different vocabularies do not compare ({entries} entries)."
    )


def _whole(number: float) -> str:
    return f"{number:,}"


def _scientific(number: float) -> str:
    mantissa, exponent = f"{number:.3e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"


# Of Table 1: the heading of each column for people, and how a value is printed there.
RECIPE: dict[str, tuple[str, Callable]] = {
    "model": ("Model", as_markup),
    "layers": ("Layers", _whole),
    "hidden_size": ("Hidden size", _whole),
    "attention_heads": ("Attention heads", _whole),
    "vocabulary": ("Vocabulary", _whole),
    "batch_size": ("Global batch size (sequences)", _whole),
    "learning_rate": ("Learning rate", _scientific),
    "training_tokens": ("Training tokens", short_number),
}


def training_recipes(entries: Sequence[Mapping[str, str | float]]) -> tuple[pd.DataFrame, str]:
    """Table 1: how each model was trained, numbers as they are, and as Markdown for people."""
    table = pd.DataFrame(entries, columns=list(RECIPE))
    lines = [
        [heading for heading, _ in RECIPE.values()],
        [":--"] + ["--:"] * (len(RECIPE) - 1),
        *([printed(entry[key]) for key, (_, printed) in RECIPE.items()] for entry in entries),
    ]
    return table, "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def published_values(inputs: FigureInputs, published: Sequence[Mapping[str, Any]]) -> Drawing:
    """Measures of models by layer, beside what the authors have published of them."""
    return draw_published(inputs, published)
