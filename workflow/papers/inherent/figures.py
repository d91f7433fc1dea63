"""The figures of "Anisotropy is Not Inherent to Transformers", whose content paper.yaml describes."""

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

# The end of a model -> the names of its matrix in tables; a tied matrix is at both ends.
ENDS = {"Input embeddings": ("input", "tied"), "Output embeddings": ("output", "tied")}
MATRIX_LABELS = {"input": "input", "output": "output", "tied": "input and output (tied)"}
MATRIX_STYLES = dict(zip(MATRIX_LABELS, zip(style.COLOURS, "osD", strict=False), strict=False))
ROW = 0.17  # inches between the rows of two models
MARKER = 4.5  # points
EDGE = 0.03  # share of an axis, below 0
# The dot of a token.
DOT = 1.2  # points squared
DOT_OPACITY = 0.25
RING = {"markerfacecolor": "none", "markersize": MARKER + 1, "markeredgewidth": 1}
ORIGIN = {"marker": "+", "color": style.INK, "markeredgecolor": style.INK}
MEAN = {"marker": "o", "color": style.COLOURS[1], "markeredgecolor": style.COLOURS[1]}
SINGULAR = "{} singular direction"
CLOUD = style.TEXT_WIDTH / 4  # inches, the width of a panel
CENTERED = {"no": "as they are", "yes": "less their mean"}
DASHED = (0, (2, 1.2))
OF_WEIGHTS = "Of weights alone: no text is read."
COLUMNS = [
    "model",
    "label",
    "revision",
    "step",
    "tokens",
    "verdict",
    "matrix",
    "estimator",
    "n",
    "d",
    "value",
    "loss",
]


def isotropy_by_model(inputs: FigureInputs) -> Drawing:
    """Draw figure 1: a measure of both embedding matrices per panel, a row of points for each model."""
    table = _select_measurements(inputs, "last_weights")
    matrices = [matrix for matrix in MATRIX_LABELS if matrix in set(table["matrix"])]
    drawn_models = [model for model in inputs.models if model.name in set(table["model"])]
    places = {model.name: place for place, model in enumerate(drawn_models)}
    height = len(places) * ROW + marks.FRAME + 0.35
    number = len(inputs.measures)
    notes = _write_notes(inputs, table, captions.SCALES_DIFFER if number > 1 else "")
    figure, (panels,) = marks.make_panels(1, number, height, *notes, sharey=True)
    for axes, measure in zip(panels, inputs.measures, strict=True):
        for matrix in matrices:
            points = table[(table["estimator"] == measure.name) & (table["matrix"] == matrix)]
            colour, marker = MATRIX_STYLES[matrix]
            look = {"color": colour, "marker": marker, "markersize": MARKER, "linestyle": "none"}
            axes.plot(
                points["value"], points["model"].map(places), label=MATRIX_LABELS[matrix], **look
            )
        axes.set(title=measure.label, xlabel=measure.axis, ylim=(len(places) - 0.5, -0.5))
        axes.set_xlim(right=max(0, axes.get_xlim()[1]))
        axes.locator_params(axis="x", nbins=5)
        axes.grid(axis="x")
    marks.make_room(figure, [model.label for model in drawn_models])
    panels[0].set_yticks(list(places.values()), [model.label for model in drawn_models])
    handles = panels[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper right", ncols=len(matrices))
    return _make_drawing(inputs, figure, table)


def isotropy_by_step(inputs: FigureInputs) -> Drawing:
    """Draw figure 2: a measure per row, an end of the models per column, a line for each model."""
    table = _select_measurements(inputs, "weights")
    progress = scales.choose_progress_column(table)
    panel_rows = []
    for measure in inputs.measures:
        centering = CENTERED["yes" if measure.parameters.get("center") else "no"]
        measure_rows = table[table["estimator"] == measure.name]
        titled_tables = _split_by_end(measure_rows)
        panel_rows.append([(f"{title}, {centering}", rows) for title, rows in titled_tables])
    notes = _write_notes(
        inputs, table, scales.describe_progress(table, progress), "Rows differ in scale."
    )
    figure, grid, lines = marks.make_model_panels(
        inputs, progress, panel_rows, *notes, draws_all=True, sharex=True, sharey="row"
    )
    for axes, measure in zip(grid[:, 0], inputs.measures, strict=True):
        axes.set_ylabel(measure.axis)
    for axes in grid.flat:
        axes.set_ylim(top=max(0, axes.get_ylim()[1]))
    marks.name_lines(grid[0, -1:], lines, "not known")
    return _make_drawing(inputs, figure, table)


def final_norm_by_step(inputs: FigureInputs) -> Drawing:
    """Draw figure 4: a measure of the final norm per panel, a line for each model."""
    table = _select_measurements(inputs, "weights")
    progress = scales.choose_progress_column(table)
    titled_tables = [
        (measure.label, table[table["estimator"] == measure.name]) for measure in inputs.measures
    ]
    notes = _write_notes(inputs, table, scales.describe_progress(table, progress))
    figure, (panels,), lines = marks.make_model_panels(
        inputs, progress, [titled_tables], *notes, draws_all=True
    )
    for axes, measure in zip(panels, inputs.measures, strict=True):
        margin = EDGE * axes.get_ylim()[1]  # else half of a line at 0 would be hidden
        axes.set(ylabel=measure.axis, ylim=(-margin, None))
    marks.name_lines(panels[-1:], lines, "no bias")
    return _make_drawing(inputs, figure, table)


def isotropy_and_loss(inputs: FigureInputs) -> Drawing:
    """Draw figure 6: a measure against the cross-entropy of the same checkpoints, a panel for each end."""
    table = _select_measurements(inputs, "weights")
    losses = inputs.tables["verdicts"].set_index(tables.CHECKPOINT)["loss"]
    loss = table.join(losses, on=tables.CHECKPOINT)["loss"]
    table = table.assign(loss=loss.where(np.isfinite(loss)))
    figure, (panels,), lines = marks.make_model_panels(
        inputs,
        "loss",
        [_split_by_end(table)],
        *_write_notes(inputs, table),
        draws_all=True,
        sharey=True,
    )
    for axes in panels:
        axes.invert_xaxis()
    marks.name_lines(panels, lines, "not known")
    panels[0].set_ylabel(inputs.measures[0].axis)
    return _make_drawing(inputs, figure, table)


def final_norm_by_depth(inputs: FigureInputs, names_before_norm: Mapping[str, str]) -> Drawing:
    """Draw figure 3: a measure of hidden states per panel by relative depth, before and after the final norm.

    Parameters
    ----------
    inputs : FigureInputs
    names_before_norm : mapping of str to str
        The name of each drawn measure -> the name of the same measure whose last layer is before the final norm.
    """
    table = tables.select_layers(inputs)
    measures = [measure for measure in inputs.measures if measure.name in names_before_norm]
    styles = style.choose_line_styles(inputs.models)
    titled_tables = [
        (measure.label, table[table["estimator"] == measure.name]) for measure in measures
    ]
    drawn_rows = table[table["estimator"].isin(names_before_norm)]
    notes = captions.format_footnote(replace(inputs, measures=measures), drawn_rows)
    notes.append(captions.SCALES_DIFFER if len(measures) > 1 else "")
    figure, (panels,), lines = marks.make_model_panels(
        inputs, "depth", [titled_tables], *notes, draws_all=True
    )
    for axes, measure in zip(panels, measures, strict=True):
        rows_before_norm = table[table["estimator"] == names_before_norm[measure.name]]
        for name, model_rows in rows_before_norm.groupby("model", sort=False):
            end = model_rows.tail(2)
            look = styles[name]
            axes.plot(
                end["depth"],
                end["value"],
                marker=look.marker,
                markevery=[-1],
                linestyle=DASHED,
                color=look.colour,
                label="_before",
            )
        axes.set_ylabel(measure.axis)
    handles = [
        marks.make_legend_handle("ends after the final norm", color=style.INK),
        marks.make_legend_handle(
            "last block before it", color=style.INK, linestyle=DASHED, marker="o"
        ),
    ]
    figure.legend(handles=handles, loc="outside upper right", ncols=2)
    marks.name_lines(panels[-1:], lines)
    return make_drawing(inputs, figure, table, captions.describe_estimates(drawn_rows))


def planes(inputs: FigureInputs) -> Drawing:
    """Draw figure 5: embeddings in a plane, a checkpoint per row, a matrix as it is or centred per column."""
    table = _label_rows(inputs, inputs.tables["weight_points"])
    steps = list(dict.fromkeys(table["step"]))
    matrices = [matrix for matrix in MATRIX_LABELS if matrix in set(table["matrix"])]
    columns = [(matrix, centering) for matrix in matrices for centering in CENTERED]
    width = CLOUD * len(columns)
    height = (CLOUD + 0.15) * len(steps)
    most_entries = table.groupby(["revision", "matrix", "centered"])["entry"].size().max()
    sample = f"{OF_WEIGHTS} {most_entries:,} entries of the vocabulary are drawn."
    notes = [*captions.describe_omissions(inputs), captions.SCALES_DIFFER, sample]
    figure, grid = marks.make_panels(len(steps), len(columns), height, *notes, width=width)
    for step, row in zip(steps, grid, strict=True):
        for (matrix, centering), axes in zip(columns, row, strict=True):
            is_in_column = (table["matrix"] == matrix) & (table["centered"] == centering)
            _draw_points(axes, table[is_in_column & (table["step"] == step)])
        row[0].set_ylabel(f"Step {step:,}\n{SINGULAR.format('Second')}")
    for axes in grid[-1]:
        axes.set_xlabel(SINGULAR.format("First"))
    _name_points(figure)
    for (matrix, centering), axes in zip(columns, grid[0], strict=True):
        axes.set_title(f"{MATRIX_LABELS[matrix].capitalize()},\n{CENTERED[centering]}")
    names = ["model", "label", "revision", "step", "matrix", "centered", "entry", "x", "y"]
    return make_drawing(inputs, figure, table[names], "A panel has one scale for both of its axes.")


def _name_points(figure: Figure) -> None:
    """Put a legend of the three kinds of points above the panels."""
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
        If there are no rows, or if the verdicts leave out every checkpoint.
    """
    tables.require_rows(rows, inputs, "no matrix has numbers")
    if inputs.verdicts is None:
        return tables.add_labels(rows.assign(verdict="", hollow=False), inputs)
    rows = rows.merge(tables.list_shown_checkpoints(inputs), on=tables.CHECKPOINT)
    return tables.add_labels_and_verdicts(rows, inputs)


def _select_measurements(inputs: FigureInputs, kind: str) -> pd.DataFrame:
    rows = inputs.tables[kind]
    names = [measure.name for measure in inputs.measures]
    return _label_rows(inputs, rows[rows["estimator"].isin(names)])


def _make_drawing(inputs: FigureInputs, figure: Figure, table: pd.DataFrame) -> Drawing:
    return make_drawing(inputs, figure, table[[name for name in COLUMNS if name in table]])


def _write_notes(inputs: FigureInputs, table: pd.DataFrame, *sentences: str) -> list[str]:
    """Write the sentences below the panels: omissions, missing values, definitions and the sample."""
    sample = OF_WEIGHTS
    if "loss" in table:
        token_counts = captions.format_counts(inputs.tables["verdicts"]["predicted_tokens"])
        sample = captions.describe_sample(inputs, f"{token_counts} tokens are predicted")
    definitions = captions.define_quantities(inputs)
    undefined_labels = table.loc[table["value"].isna(), "label"].drop_duplicates()
    undefined_note = f"Undefined: {', '.join(undefined_labels)}." if len(undefined_labels) else ""
    omissions = captions.describe_omissions(inputs)
    return [*omissions, undefined_note, *sentences, *definitions, sample]


def _split_by_end(table: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Return the title and the rows of the matrix at each end of the models."""
    return [(end, table[table["matrix"].isin(names)]) for end, names in ENDS.items()]


def _draw_points(axes: Axes, points: pd.DataFrame) -> None:
    dots = {"s": DOT, "color": style.COLOURS[0], "alpha": DOT_OPACITY, "linewidths": 0}
    axes.scatter(points["x"], points["y"], rasterized=True, **dots)
    middle = points["x"].mean(), points["y"].mean()
    for (x, y), look in (((0, 0), ORIGIN), (middle, MEAN)):
        axes.add_line(Line2D([x], [y], linestyle="none", label="_middle", **look, **RING))
    axes.set_aspect("equal", adjustable="datalim")
    axes.grid(visible=False)
    axes.locator_params(nbins=4)
