"""The figures of "Anisotropy is Not Inherent to Transformers"; paper.yaml says what each of them shows."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from shape_of_learning.errors import InputError
from shape_of_learning.figures import captions, marks, scales
from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.figures.output import Drawing
from shape_of_learning.figures.style import (
    COLOURS,
    INK,
    LOW_PANEL_HEIGHT,
    TEXT_WIDTH,
    line_styles,
)
from shape_of_learning.figures.tables import (
    CHECKPOINT,
    by_layer,
    shown_checkpoints,
    with_labels,
    with_verdicts,
)

# Ends of a model -> the names that its matrix can have in tables: one that is tied is at both.
ENDS = {"input": ("input", "tied"), "output": ("output", "tied")}
END_TITLES = {"input": "Input embeddings", "output": "Output embeddings"}
MATRIX_LABELS = {"input": "input", "output": "output", "tied": "input and output (tied)"}
MATRIX_STYLES = dict(zip(MATRIX_LABELS, zip(COLOURS, "osD", strict=False), strict=False))
FRAME = 0.5  # inches above and below a panel, for its title and the x axis
ROW = 0.17  # inches between two models of a list
MARKER = 4.5  # points
DOT, DOT_OPACITY = 1.2, 0.25  # of a token: points squared
CLOUD = TEXT_WIDTH / 4  # inches, the width of a panel
CENTERED = {"no": "as they are", "yes": "less their mean"}
DASHED = (0, (2, 1.2))
LEAST_FOR_A_CORRELATION = 3  # checkpoints
COLUMNS = ["model", "label", "revision", "step", "tokens", "verdict"]
VALUE_COLUMNS = ["matrix", "estimator", "n", "d", "value"]


def isotropy_by_model(inputs: FigureInputs) -> Drawing:
    """Figure 1: a measure of both embedding matrices per panel, one row of points for each model."""
    table = _of_figure(inputs, "last_weights")
    present = [matrix for matrix in MATRIX_LABELS if matrix in set(table["matrix"])]
    drawn = [model for model in inputs.models if model.name in set(table["model"])]
    rows = {model.name: place for place, model in enumerate(drawn)}
    figure = Figure(figsize=(TEXT_WIDTH, len(rows) * ROW + FRAME + 0.35))
    marks.add_footnote(figure, _without_values(table))
    panels = figure.subplots(1, len(inputs.measures), sharey=True, squeeze=False)[0]
    for axes, measure in zip(panels, inputs.measures, strict=True):
        for matrix in present:
            own = table[(table["estimator"] == measure.name) & (table["matrix"] == matrix)]
            colour, marker = MATRIX_STYLES[matrix]
            style = {"color": colour, "marker": marker, "markersize": MARKER, "linestyle": "none"}
            axes.plot(own["value"], own["model"].map(rows), label=MATRIX_LABELS[matrix], **style)
        axes.set(title=measure.label, xlabel=measure.axis, ylim=(len(rows) - 0.5, -0.5))
        axes.set_xlim(right=max(0, axes.get_xlim()[1]))
        axes.locator_params(axis="x", nbins=5)
        axes.grid(axis="x")
        scales.open_frame(axes)
    marks.make_room_for(figure, [model.label for model in drawn])
    panels[0].set_yticks(list(rows.values()), [model.label for model in drawn])
    handles = panels[0].get_legend_handles_labels()
    # The frame parts its markers from the points.
    figure.legend(*handles, loc="outside upper right", ncols=len(present), frameon=True)
    return _drawing(figure, table, inputs)


def isotropy_by_step(inputs: FigureInputs, progress: str = "auto") -> Drawing:
    """Figure 2: a measure by row, an end of the model by column, one line for each model."""
    height = marks.height_for_labels(len(inputs.models), LOW_PANEL_HEIGHT) + 0.7 * FRAME
    figure, table = _training(inputs, len(inputs.measures) * height)
    counted = scales.progress_column(table, progress)
    shared = {"sharex": True, "sharey": "row", "squeeze": False}
    grid = figure.subplots(len(inputs.measures), len(ENDS), **shared)
    for measure, row in zip(inputs.measures, grid, strict=True):
        for (end, names), axes in zip(ENDS.items(), row, strict=True):
            own = table[(table["estimator"] == measure.name) & table["matrix"].isin(names)]
            lines = _draw_models(axes, own, inputs, counted, "not known")
            centered = CENTERED["yes" if measure.parameters.get("center") else "no"]
            axes.set_title(f"{END_TITLES[end]}, {centered}")
            if axes is grid[0, -1]:
                labelled = lines
        row[0].set_ylabel(measure.axis)
    for axes in grid[-1]:
        axes.set_xlabel(scales.PROGRESS[counted])
    for axes in grid.flat:
        scales.set_progress_axis(axes, table[counted])
        axes.set_ylim(top=max(0, axes.get_ylim()[1]))
    marks.label_line_ends(grid[0, -1], labelled)
    return _drawing(figure, table, inputs, scales.on_progress(table, counted))


def final_norm_by_step(inputs: FigureInputs, progress: str = "auto") -> Drawing:
    """Figure 4: a measure of the final norm per panel, one line for each model."""
    figure, table = _training(inputs, marks.height_for_labels(len(inputs.models)) + FRAME)
    counted = scales.progress_column(table, progress)
    panels = figure.subplots(1, len(inputs.measures), squeeze=False)[0]
    for axes, measure in zip(panels, inputs.measures, strict=True):
        own = table[table["estimator"] == measure.name]
        lines = _draw_models(axes, own, inputs, counted, "no bias")
        scales.set_progress_axis(axes, table[counted])
        axes.set(title=measure.label, xlabel=scales.PROGRESS[counted], ylabel=measure.axis)
        axes.set_ylim(bottom=0)
    marks.label_line_ends(panels[-1], lines)
    return _drawing(figure, table, inputs, scales.on_progress(table, counted))


def isotropy_and_loss(inputs: FigureInputs) -> Drawing:
    """Figure 6: a measure against the cross-entropy of the same checkpoints, a panel for each end."""
    figure, table = _training(inputs, marks.height_for_labels(len(inputs.models)) + FRAME)
    losses = inputs.tables["verdicts"].set_index(CHECKPOINT)["loss"]
    loss = table.join(losses, on=CHECKPOINT)["loss"]
    table = table.assign(loss=loss.where(np.isfinite(loss)), correlation=np.nan)
    for _, own in table.groupby(["model", "matrix", "estimator"]):
        table.loc[own.index, "correlation"] = _correlation(own)
    panels = figure.subplots(1, len(ENDS), sharey=True, squeeze=False)[0]
    labelled = []
    for (end, names), axes in zip(ENDS.items(), panels, strict=True):
        own = table[table["matrix"].isin(names)]
        lines = _draw_models(axes, own, inputs, "loss", "not known")
        axes.set(title=END_TITLES[end], xlabel="Cross-entropy (nats per token)")
        axes.invert_xaxis()
        known = own.groupby("label")["correlation"].first().dropna()
        words = {label: f"{label} (r = {r:.2f})" for label, r in known.items()}
        labelled.append([replace(each, label=words.get(each.label, each.label)) for each in lines])
    for axes, lines in zip(panels, labelled, strict=True):
        marks.label_line_ends(axes, lines)
    panels[0].set_ylabel(inputs.measures[0].axis)
    words = (
        "r: Pearson's correlation over the checkpoints. Both quantities drift as training goes on, so it is "
        "large even where neither depends on the other."
    )
    return _drawing(figure, table, inputs, words)


def final_norm_by_depth(inputs: FigureInputs, before: Mapping[str, str]) -> Drawing:
    """Figure 3: a measure of hidden states per panel by relative depth, before and after the final norm.

    Parameters
    ----------
    inputs : FigureInputs
    before : mapping of str to str
        Names of the measures that are drawn -> those of the same with the last layer before the final norm.
    """
    table = by_layer(inputs)
    shown = [measure for measure in inputs.measures if measure.name in before]
    styles = line_styles(inputs.models)
    height = marks.height_for_labels(len(inputs.models)) + FRAME
    figure = Figure(figsize=(TEXT_WIDTH, height))
    panels = figure.subplots(1, len(shown), squeeze=False)[0]
    for axes, measure in zip(panels, shown, strict=True):
        lines = []
        for name, own in table.groupby("model", sort=False):
            after = own[own["estimator"] == measure.name].sort_values("layer")
            line = marks.draw_line(axes, after, "depth", styles[name], name=name)
            lines.append(marks.LabelledLine(line, own["label"].iloc[0]))
            other = own[own["estimator"] == before[measure.name]].sort_values("layer").tail(2)
            axes.plot(
                other["depth"],
                other["value"],
                color=styles[name].colour,
                linestyle=DASHED,
                marker=styles[name].marker,
                markevery=[-1],
                markerfacecolor="white",
                markeredgewidth=0.7,
                label="_before",
            )
        axes.set(title=measure.label, xlabel="Relative depth", ylabel=measure.axis)
        scales.open_frame(axes)
    marks.label_line_ends(panels[-1], lines)
    drawn = table[table["estimator"].isin([measure.name for measure in shown])]
    words = captions.caption(inputs.caption, captions.lines_and_bands(drawn, shown))
    return Drawing(figure, table.drop(columns="suspect"), words)


def planes(inputs: FigureInputs) -> Drawing:
    """Figure 5: embeddings in a plane, a checkpoint by row, a matrix as it is or centred by column.

    Raises
    ------
    InputError
        If there are no points.
    """
    table = _of_figure(inputs, "weight_points", values=False)
    if table.empty:
        raise InputError(
            f"no matrix of {inputs.models[0].label} has numbers to draw; leave it out of key "
            "`figures.inherent_figure_5`"
        )
    steps = list(dict.fromkeys(table["step"]))
    present = [matrix for matrix in MATRIX_LABELS if matrix in set(table["matrix"])]
    columns = [(matrix, centered) for matrix in present for centered in CENTERED]
    figure = Figure(figsize=(CLOUD * len(columns), (CLOUD + 0.15) * len(steps)))
    grid = figure.subplots(len(steps), len(columns), squeeze=False)
    for step, row in zip(steps, grid, strict=True):
        for (matrix, centered), axes in zip(columns, row, strict=True):
            chosen = (table["matrix"] == matrix) & (table["centered"] == centered)
            _draw_points(axes, table[chosen & (table["step"] == step)])
        row[0].set_ylabel(f"Step {step:,}")
    for (matrix, centered), axes in zip(columns, grid[0], strict=True):
        axes.set_title(f"{MATRIX_LABELS[matrix].capitalize()},\n{CENTERED[centered]}")
    most = table.groupby(["revision", "matrix", "centered"])["entry"].size().max()
    words = captions.caption(
        inputs.caption,
        f"Dots: {most:,} entries of the vocabulary; cross: the origin; ring: the mean of dots. Each panel "
        "has axes of its own, with one scale for both.",
        *captions.omissions(inputs),
    )
    names = ["model", "label", "revision", "step", "matrix", "centered", "entry", "x", "y"]
    return Drawing(figure, table[names], words)


def _of_figure(inputs: FigureInputs, kind: str, *, values: bool = True) -> pd.DataFrame:
    """The rows of a table that a figure draws, with labels and the columns ``verdict`` and ``hollow``.

    Raises
    ------
    InputError
        If there is none, or the verdicts show none.
    """
    rows = inputs.tables[kind]
    if values:
        rows = rows[rows["estimator"].isin([measure.name for measure in inputs.measures])]
        if rows.empty:
            names = ", ".join(model.label for model in inputs.models)
            raise InputError(f"nothing was measured of the matrices of {names}; leave them out")
    if inputs.verdicts is None:
        return with_labels(rows.assign(verdict="", hollow=False), inputs)
    rows = rows.merge(shown_checkpoints(inputs), on=CHECKPOINT)
    return with_labels(with_verdicts(rows, inputs), inputs)


def _training(inputs: FigureInputs, height: float) -> tuple[Figure, pd.DataFrame]:
    """A figure with its footnote, and the table of a training that it draws."""
    figure = Figure(figsize=(TEXT_WIDTH, height))
    marks.add_footnote(figure, *captions.omissions(inputs, sources=False))
    return figure, _of_figure(inputs, "weights")


def _drawing(figure: Figure, table: pd.DataFrame, inputs: FigureInputs, words: str = "") -> Drawing:
    without = _without_values(table)
    words = captions.caption(inputs.caption, *captions.omissions(inputs), without, words)
    others = [name for name in ("loss", "correlation") if name in table]
    return Drawing(figure, table[[*COLUMNS, *VALUE_COLUMNS, *others]], words)


def _draw_models(
    axes: Axes, table: pd.DataFrame, inputs: FigureInputs, x: str, without: str
) -> list[marks.LabelledLine]:
    """A line for each model, with a marker at each checkpoint; a model without a point has its label."""
    styles = line_styles(inputs.models)
    lines = []
    for model in inputs.models:
        own, style = table[table["model"] == model.name].sort_values("step"), styles[model.name]
        line = marks.draw_curve(axes, own, x, "value", style, name=model.name, markers=True)
        lines.append(marks.LabelledLine(line, model.label, without))
    scales.open_frame(axes)
    return lines


def _draw_points(axes: Axes, own: pd.DataFrame) -> None:
    dots = {"s": DOT, "color": COLOURS[0], "alpha": DOT_OPACITY, "linewidths": 0}
    axes.scatter(own["x"], own["y"], rasterized=True, **dots)
    ring = {"markerfacecolor": "none", "markersize": MARKER + 1, "markeredgewidth": 1}
    for x, y, marker, colour in (
        (0, 0, "+", INK),
        (own["x"].mean(), own["y"].mean(), "o", COLOURS[1]),
    ):
        look = {"marker": marker, "color": colour, "markeredgecolor": colour, **ring}
        axes.add_line(Line2D([x], [y], linestyle="none", label="_middle", **look))
    axes.set_aspect("equal", adjustable="datalim")
    axes.grid(visible=False)
    axes.locator_params(nbins=4)
    scales.open_frame(axes)


def _without_values(table: pd.DataFrame) -> str:
    """One sentence on the models that have no value where others do."""
    lacking = table.loc[table["value"].isna(), "label"].drop_duplicates()
    return f"Undefined: {', '.join(lacking)}." if len(lacking) else ""


def _correlation(rows: pd.DataFrame) -> float:
    """Pearson's correlation over checkpoints; NaN for fewer than three, or if one quantity is constant."""
    both = rows[["loss", "value"]].dropna()
    if len(both) < LEAST_FOR_A_CORRELATION or (both.nunique() < 2).any():
        return float("nan")
    return float(np.corrcoef(both["loss"], both["value"])[0, 1])
