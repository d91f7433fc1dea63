"""The figures of "Anisotropy is Not Inherent to Transformers"; paper.yaml says what each of them shows."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from shape_of_learning.figures import captions, marks, scales, style, tables
from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.figures.output import Drawing, make_drawing

# Ends of a model -> the names of its matrix in tables; a tied matrix stands at both ends.
ENDS = {"Input embeddings": ("input", "tied"), "Output embeddings": ("output", "tied")}
MATRIX_LABELS = {"input": "input", "output": "output", "tied": "input and output (tied)"}
MATRIX_STYLES = dict(zip(MATRIX_LABELS, zip(style.COLOURS, "osD", strict=False), strict=False))
ROW = 0.17  # inches between two models of a list
MARKER = 4.5  # points
EDGE = 0.03  # share of an axis, below 0
DOT, DOT_OPACITY = 1.2, 0.25  # of a token: points squared
RING = {"markerfacecolor": "none", "markersize": MARKER + 1, "markeredgewidth": 1}
ORIGIN = {"marker": "+", "color": style.INK, "markeredgecolor": style.INK}
MEAN = {"marker": "o", "color": style.COLOURS[1], "markeredgecolor": style.COLOURS[1]}
SINGULAR = "{} singular direction"
CLOUD = style.TEXT_WIDTH / 4  # inches, the width of a panel
CENTERED = {"no": "as they are", "yes": "less their mean"}
DASHED = (0, (2, 1.2))
OF_WEIGHTS = "Of weights alone: no text is read."
COLUMNS = [
    *("model", "label", "revision", "step", "tokens", "verdict"),
    *("matrix", "estimator", "n", "d", "value", "loss"),
]


def isotropy_by_model(inputs: FigureInputs) -> Drawing:
    """Figure 1: a measure of both embedding matrices per panel, one row of points for each model."""
    table = _select_measurements(inputs, "last_weights")
    present = [matrix for matrix in MATRIX_LABELS if matrix in set(table["matrix"])]
    drawn = [model for model in inputs.models if model.name in set(table["model"])]
    rows = {model.name: place for place, model in enumerate(drawn)}
    height, number = len(rows) * ROW + marks.FRAME + 0.35, len(inputs.measures)
    notes = _write_notes(inputs, table, captions.SCALES_DIFFER if number > 1 else "")
    figure, (panels,) = marks.make_panels(1, number, height, *notes, sharey=True)
    for axes, measure in zip(panels, inputs.measures, strict=True):
        for matrix in present:
            own = table[(table["estimator"] == measure.name) & (table["matrix"] == matrix)]
            colour, marker = MATRIX_STYLES[matrix]
            look = {"color": colour, "marker": marker, "markersize": MARKER, "linestyle": "none"}
            axes.plot(own["value"], own["model"].map(rows), label=MATRIX_LABELS[matrix], **look)
        axes.set(title=measure.label, xlabel=measure.axis, ylim=(len(rows) - 0.5, -0.5))
        axes.set_xlim(right=max(0, axes.get_xlim()[1]))
        axes.locator_params(axis="x", nbins=5)
        axes.grid(axis="x")
    marks.make_room(figure, [model.label for model in drawn])
    panels[0].set_yticks(list(rows.values()), [model.label for model in drawn])
    handles = panels[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper right", ncols=len(present))
    return _make_drawing(inputs, figure, table)


def isotropy_by_step(inputs: FigureInputs) -> Drawing:
    """Figure 2: a measure by row, an end of the model by column, one line for each model."""
    table = _select_measurements(inputs, "weights")
    counted = scales.choose_progress_column(table)
    shown = []
    for measure in inputs.measures:
        centered = CENTERED["yes" if measure.parameters.get("center") else "no"]
        own = table[table["estimator"] == measure.name]
        shown.append([(f"{title}, {centered}", rows) for title, rows in _split_by_end(own)])
    notes = _write_notes(
        inputs, table, scales.describe_progress(table, counted), "Rows differ in scale."
    )
    figure, grid, lines = marks.make_model_panels(
        inputs, counted, shown, *notes, draws_all=True, sharex=True, sharey="row"
    )
    for axes, measure in zip(grid[:, 0], inputs.measures, strict=True):
        axes.set_ylabel(measure.axis)
    for axes in grid.flat:
        axes.set_ylim(top=max(0, axes.get_ylim()[1]))
    marks.name_lines(grid[0, -1:], lines, "not known")
    return _make_drawing(inputs, figure, table)


def final_norm_by_step(inputs: FigureInputs) -> Drawing:
    """Figure 4: a measure of the final norm per panel, one line for each model."""
    table = _select_measurements(inputs, "weights")
    counted = scales.choose_progress_column(table)
    shown = [
        (measure.label, table[table["estimator"] == measure.name]) for measure in inputs.measures
    ]
    notes = _write_notes(inputs, table, scales.describe_progress(table, counted))
    figure, (panels,), lines = marks.make_model_panels(
        inputs, counted, [shown], *notes, draws_all=True
    )
    for axes, measure in zip(panels, inputs.measures, strict=True):
        margin = EDGE * axes.get_ylim()[1]  # else half of a line at 0 would be hidden
        axes.set(ylabel=measure.axis, ylim=(-margin, None))
    marks.name_lines(panels[-1:], lines, "no bias")
    return _make_drawing(inputs, figure, table)


def isotropy_and_loss(inputs: FigureInputs) -> Drawing:
    """Figure 6: a measure against the cross-entropy of the same checkpoints, a panel for each end."""
    table = _select_measurements(inputs, "weights")
    losses = inputs.tables["verdicts"].set_index(tables.CHECKPOINT)["loss"]
    loss = table.join(losses, on=tables.CHECKPOINT)["loss"]
    table = table.assign(loss=loss.where(np.isfinite(loss)))
    shown, notes, shared = (
        _split_by_end(table),
        _write_notes(inputs, table),
        {"draws_all": True, "sharey": True},
    )
    figure, (panels,), lines = marks.make_model_panels(inputs, "loss", [shown], *notes, **shared)
    for axes in panels:
        axes.invert_xaxis()
    marks.name_lines(panels, lines, "not known")
    panels[0].set_ylabel(inputs.measures[0].axis)
    return _make_drawing(inputs, figure, table)


def final_norm_by_depth(inputs: FigureInputs, before: Mapping[str, str]) -> Drawing:
    """Figure 3: a measure of hidden states per panel by relative depth, before and after the final norm.

    Parameters
    ----------
    inputs : FigureInputs
    before : mapping of str to str
        For each drawn measure, the name of the same measure with the last layer before the final norm.
    """
    table = tables.select_layers(inputs)
    shown = [measure for measure in inputs.measures if measure.name in before]
    styles = style.choose_line_styles(inputs.models)
    after = [(measure.label, table[table["estimator"] == measure.name]) for measure in shown]
    of_drawn = table[table["estimator"].isin(before)]
    notes = captions.write_footnote(replace(inputs, measures=shown), of_drawn)
    notes.append(captions.SCALES_DIFFER if len(shown) > 1 else "")
    figure, (panels,), lines = marks.make_model_panels(
        inputs, "depth", [after], *notes, draws_all=True
    )
    for axes, measure in zip(panels, shown, strict=True):
        others = table[table["estimator"] == before[measure.name]]
        for name, own in others.groupby("model", sort=False):
            end, look = own.tail(2), styles[name]
            dashed = {"linestyle": DASHED, "color": look.colour, "label": "_before"}
            axes.plot(end["depth"], end["value"], marker=look.marker, markevery=[-1], **dashed)
        axes.set_ylabel(measure.axis)
    after = marks.make_legend_handle("ends after the final norm", color=style.INK)
    before_norm = marks.make_legend_handle(
        "last block before it", color=style.INK, linestyle=DASHED, marker="o"
    )
    figure.legend(handles=[after, before_norm], loc="outside upper right", ncols=2)
    marks.name_lines(panels[-1:], lines)
    return make_drawing(inputs, figure, table, captions.describe_estimates(of_drawn))


def planes(inputs: FigureInputs) -> Drawing:
    """Figure 5: embeddings in a plane, a checkpoint by row, a matrix as it is or centred by column."""
    table = _label_rows(inputs, inputs.tables["weight_points"])
    steps = list(dict.fromkeys(table["step"]))
    present = [matrix for matrix in MATRIX_LABELS if matrix in set(table["matrix"])]
    columns = [(matrix, centered) for matrix in present for centered in CENTERED]
    width, height = CLOUD * len(columns), (CLOUD + 0.15) * len(steps)
    most = table.groupby(["revision", "matrix", "centered"])["entry"].size().max()
    of_weights = f"{OF_WEIGHTS} {most:,} entries of the vocabulary are drawn."
    notes = [*captions.describe_omissions(inputs), captions.SCALES_DIFFER, of_weights]
    figure, grid = marks.make_panels(len(steps), len(columns), height, *notes, width=width)
    for step, row in zip(steps, grid, strict=True):
        for (matrix, centered), axes in zip(columns, row, strict=True):
            chosen = (table["matrix"] == matrix) & (table["centered"] == centered)
            _draw_points(axes, table[chosen & (table["step"] == step)])
        row[0].set_ylabel(f"Step {step:,}\n{SINGULAR.format('Second')}")
    for axes in grid[-1]:
        axes.set_xlabel(SINGULAR.format("First"))
    _name_points(figure)
    for (matrix, centered), axes in zip(columns, grid[0], strict=True):
        axes.set_title(f"{MATRIX_LABELS[matrix].capitalize()},\n{CENTERED[centered]}")
    names = ["model", "label", "revision", "step", "matrix", "centered", "entry", "x", "y"]
    return make_drawing(inputs, figure, table[names], "A panel has one scale for both of its axes.")


def _name_points(figure: Figure) -> None:
    """Put a legend of dots, cross and ring above the panels."""
    blank = {"linestyle": "none", "markersize": MARKER}
    dot = marks.make_legend_handle(
        "embedding of a token", marker="o", color=style.COLOURS[0], **blank
    )
    cross = marks.make_legend_handle("origin", **blank | ORIGIN | RING)
    mean = marks.make_legend_handle("mean of the embeddings", **blank | MEAN | RING)
    figure.legend(handles=[dot, cross, mean], loc="outside upper left", ncols=3)


def _label_rows(inputs: FigureInputs, rows: pd.DataFrame) -> pd.DataFrame:
    """Select the rows that a figure draws, and add labels and the columns ``verdict`` and ``hollow``.

    Raises
    ------
    InputError
        If there are no rows, or the verdicts show no checkpoint.
    """
    tables.require(rows, inputs, "no matrix has numbers")
    if inputs.verdicts is None:
        return tables.add_labels(rows.assign(verdict="", hollow=False), inputs)
    rows = rows.merge(tables.list_shown_checkpoints(inputs), on=tables.CHECKPOINT)
    return tables.add_labels_and_verdicts(rows, inputs)


def _select_measurements(inputs: FigureInputs, kind: str) -> pd.DataFrame:
    rows = inputs.tables[kind]
    return _label_rows(inputs, rows[rows["estimator"].isin([m.name for m in inputs.measures])])


def _make_drawing(inputs: FigureInputs, figure: Figure, table: pd.DataFrame) -> Drawing:
    return make_drawing(inputs, figure, table[[name for name in COLUMNS if name in table]])


def _write_notes(inputs: FigureInputs, table: pd.DataFrame, *sentences: str) -> list[str]:
    """Write the sentences below the panels: omissions, missing values, definitions and the sample."""
    sample = OF_WEIGHTS
    if "loss" in table:
        predicted = captions.format_counts(inputs.tables["verdicts"]["predicted_tokens"])
        sample = captions.describe_sample(inputs, f"{predicted} tokens are predicted")
    definitions = captions.define_quantities(inputs)
    lacking = table.loc[table["value"].isna(), "label"].drop_duplicates()
    undefined = f"Undefined: {', '.join(lacking)}." if len(lacking) else ""
    said = [*captions.describe_omissions(inputs), undefined, *sentences]
    return [*said, *definitions, sample]


def _split_by_end(table: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Return the title and the rows of the matrix at each end of the models."""
    return [(end, table[table["matrix"].isin(names)]) for end, names in ENDS.items()]


def _draw_points(axes: Axes, own: pd.DataFrame) -> None:
    dots = {"s": DOT, "color": style.COLOURS[0], "alpha": DOT_OPACITY, "linewidths": 0}
    axes.scatter(own["x"], own["y"], rasterized=True, **dots)
    middle = own["x"].mean(), own["y"].mean()
    for (x, y), look in (((0, 0), ORIGIN), (middle, MEAN)):
        axes.add_line(Line2D([x], [y], linestyle="none", label="_middle", **look, **RING))
    axes.set_aspect("equal", adjustable="datalim")
    axes.grid(visible=False)
    axes.locator_params(nbins=4)
