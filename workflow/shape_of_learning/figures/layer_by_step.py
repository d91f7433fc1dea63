"""Measures by layer and training step: as lines, one per step, and as heat maps."""

from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from shape_of_learning.figures.averages import by_layer, with_labels
from shape_of_learning.figures.by_step import NOT_IN_CSV
from shape_of_learning.figures.captions import CELL, GAP, caption, lines_and_bands, undefined
from shape_of_learning.figures.drawn_rows import drawn_estimates, require_steps, with_verdicts
from shape_of_learning.figures.footnotes import add_footnote
from shape_of_learning.figures.inputs import DrawnMeasure, FigureInputs
from shape_of_learning.figures.line_labels import panel_title
from shape_of_learning.figures.omissions import omissions
from shape_of_learning.figures.output import Drawing
from shape_of_learning.figures.scales import (
    add_bar,
    open_frame,
    set_log_axis,
    set_log_ticks,
    set_measure_axes,
    set_rank_ticks,
    set_whole_ticks,
)
from shape_of_learning.figures.step_lines import MOST_BANDS, draw_steps, name_steps, on_bands
from shape_of_learning.figures.style import COLUMN_WIDTH, PANEL_HEIGHT, TEXT_WIDTH
from shape_of_learning.figures.suspects import POINT, suspects
from shape_of_learning.figures.visible_changes import smallest_visible_changes

LAYER = "Layer (0 is the embedding output)"
ROW_HEIGHT = 1.7  # inches, where there are several
FRAME = 0.4  # inches
ACROSS = 3  # panels of an overview beside each other
STEP_ROOM = 0.3  # inches, for the label of one step under a heat map
CELL_COLOURS = matplotlib.colormaps["viridis"]
WIDE = 10  # times the smallest value, from which on a scale is logarithmic
LIGHT = 0.6  # share of these colours from which on marks are dark
NO_VALUE = "0.9"  # a grey level
CELL_SHARE = 0.6  # of a cell's smaller side, for a mark
LARGEST_MARK = 4  # points


def draw_layer_by_step(inputs: FigureInputs) -> Drawing:
    """Draw a panel per measure (row) and model (column), with one line per training step.

    Raises
    ------
    InputError
        If there is a checkpoint without its step.
    """
    table = _by_layer_and_step(inputs)
    models = dict(list(table.groupby("label", sort=False)))
    figure, said = _figure(inputs, table, len(inputs.measures), len(models))
    grid = figure.subplots(
        len(inputs.measures), len(models), sharex="col", sharey="row", squeeze=False
    )
    named: dict[str, Line2D] = {}
    for column, (label, own) in zip(grid.T, models.items(), strict=True):
        for axes, measure in zip(column, inputs.measures, strict=True):
            named |= _draw_lines(axes, own, measure)
        column[0].set_title(panel_title(label, figure, len(models)))
        column[-1].set_xlabel(LAYER if len(models) < ACROSS else "Layer")
    for axes, measure in zip(grid[:, 0], inputs.measures, strict=True):
        axes.set_ylabel(_quantity(measure, inputs.measures))
        _set_scale(axes, table, measure)
    name_steps(grid, [*models.values()], named)
    return _drawing(figure, inputs, table, [on_bands(table), *said])


def draw_overview(inputs: FigureInputs) -> Drawing:
    """Draw all measures of one model on one page, a panel each, with one line per training step.

    Raises
    ------
    InputError
        If there is a checkpoint without its step.
    """
    table = _by_layer_and_step(inputs)
    rows = -(-len(inputs.measures) // ACROSS)
    figure, said = _figure(inputs, table, rows, ACROSS)
    figure.suptitle(panel_title(inputs.models[0].label, figure, 2), x=0.01, ha="left")
    grid = figure.subplots(rows, ACROSS, squeeze=False)
    named: dict[str, Line2D] = {}
    for axes, measure in zip(grid.flat, inputs.measures, strict=False):
        named |= _draw_lines(axes, table, measure)
        axes.set(title=measure.label, ylabel=measure.axis, xlabel="Layer")
        _set_scale(axes, table, measure)
    for axes in grid.flat[len(inputs.measures) :]:
        axes.set_axis_off()
    name_steps(grid, [table], named)
    return _drawing(figure, inputs, table, [on_bands(table), *said])


def draw_heat_maps(inputs: FigureInputs) -> Drawing:
    """Draw a panel per measure (row) and model (column), with a cell per layer and training step.

    All cells are equally wide, whatever lies between two steps. The models of a row share their colours.

    Raises
    ------
    InputError
        If there is a checkpoint without its step.
    """
    table = _by_layer_and_step(inputs)
    models = dict(list(table.groupby("label", sort=False)))
    figure, said = _figure(inputs, table, len(inputs.measures), len(models), mark="Dot")
    grid = figure.subplots(len(inputs.measures), len(models), squeeze=False)
    norms: list[Normalize] = []
    for row, measure in zip(grid, inputs.measures, strict=True):
        values = _finite_values(table, measure)
        norms.append(_colour_scale(values.min(), values.max()))
        for axes, own in zip(row, models.values(), strict=True):
            _draw_cells(axes, own[own["estimator"] == measure.name], norms[-1])
        row[0].set_ylabel("Layer")
        bar = add_bar(ScalarMappable(norms[-1], CELL_COLOURS), row[np.newaxis], measure.label)
        if isinstance(norms[-1], LogNorm):
            bar.set_label(f"{measure.label} (log scale)")
            set_log_ticks(bar.ax.yaxis)
    for label, column in zip(models, grid.T, strict=True):
        column[0].set_title(panel_title(label, figure, len(models)))
        column[-1].set_xlabel("Training step")
    figure.draw_without_rendering()  # fixes the size of the cells
    for row, measure, norm in zip(grid, inputs.measures, norms, strict=True):
        for axes, own in zip(row, models.values(), strict=True):
            _mark_cells(axes, own[own["estimator"] == measure.name], norm)
    said.append("Cells of all steps are equally wide.")
    return _drawing(figure, inputs, table, said, lines="Colours", bands=False)


def _by_layer_and_step(inputs: FigureInputs) -> pd.DataFrame:
    chosen = drawn_estimates(inputs)
    require_steps(chosen)
    rows = by_layer(chosen, inputs.measures)
    return with_labels(with_verdicts(rows, inputs.verdicts), inputs.models)


def _figure(
    inputs: FigureInputs, table: pd.DataFrame, rows: int, columns: int, mark: str = POINT
) -> tuple[Figure, list[str]]:
    """A figure with its footnote, and those sentences of its caption that the footnote has, too."""
    width = COLUMN_WIDTH if columns == 1 else TEXT_WIDTH
    height = PANEL_HEIGHT if rows == 1 else rows * ROW_HEIGHT
    figure = Figure(figsize=(width, height + FRAME))
    marked = suspects(table, inputs.measures, mark)
    notes = undefined(table, CELL if mark != POINT else GAP)
    add_footnote(
        figure, [*omissions(inputs.verdicts, inputs.models, sources=False), *marked, *notes]
    )
    return figure, [*omissions(inputs.verdicts, inputs.models), *marked]


def _drawing(
    figure: Figure, inputs: FigureInputs, table: pd.DataFrame, said: Sequence[str], **shown: Any
) -> Drawing:
    if table.groupby("label")["step"].nunique().min() > MOST_BANDS:
        shown["bands"] = False
    words = caption(
        inputs.caption,
        lines_and_bands(table, inputs.measures, **shown),
        smallest_visible_changes(inputs, table),
        *said,
    )
    return Drawing(figure, table.drop(columns=NOT_IN_CSV), words)


def _quantity(measure: DrawnMeasure, measures: Sequence[DrawnMeasure]) -> str:
    """What an axis says of a measure: one of several is named, too."""
    is_named = len(measures) == 1 or measure.label == measure.axis
    return measure.axis if is_named else f"{measure.axis},\n{measure.label}"


def _draw_lines(axes: Axes, table: pd.DataFrame, measure: DrawnMeasure) -> dict[str, Line2D]:
    named = draw_steps(axes, table[table["estimator"] == measure.name])
    set_whole_ticks(axes)
    set_measure_axes([axes], [measure])
    return named


def _set_scale(axes: Axes, table: pd.DataFrame, measure: DrawnMeasure) -> None:
    """Make the y axis of a measure, and of all panels that share it, logarithmic where that shows more."""
    values = _finite_values(table, measure)
    if measure.depends_on_n and _is_wide(values.min(), values.max()):
        set_log_axis(axes)


def _finite_values(table: pd.DataFrame, measure: DrawnMeasure) -> pd.Series:
    values = table.loc[table["estimator"] == measure.name, "value"]
    return values[np.isfinite(values)]


def _is_wide(low: float, high: float) -> bool:
    """Whether one large value would leave all others the same height or colour."""
    return 0 < WIDE * low < high


def _colour_scale(low: float, high: float) -> Normalize:
    return LogNorm(low, high) if _is_wide(low, high) else Normalize(low, high)


def _draw_cells(axes: Axes, rows: pd.DataFrame, norm: Normalize) -> None:
    """Draw the values of one measure and model; undefined and infinite ones are grey."""
    cells = rows.pivot(index="layer", columns="step", values="value").astype("float64")
    edges = np.arange(cells.shape[1] + 1) - 0.5, np.append(cells.index, cells.index[-1] + 1) - 0.5
    axes.set_facecolor(NO_VALUE)
    axes.grid(visible=False)
    axes.pcolormesh(
        *edges, cells.where(np.isfinite(cells)), norm=norm, cmap=CELL_COLOURS, rasterized=True
    )
    axes.yaxis.get_major_locator().set_params(integer=True)
    open_frame(axes)


def _mark_cells(axes: Axes, rows: pd.DataFrame, norm: Normalize) -> None:
    """Label steps where there is room; mark undefined and suspect cells, and those of hollow checkpoints."""
    steps = sorted({int(step) for step in rows["step"]})
    size = axes.get_window_extent().size / axes.figure.dpi
    set_rank_ticks(axes.xaxis, steps, max(2, int(size[0] / STEP_ROOM)))
    side = 72 * min(size[0] / len(steps), size[1] / rows["layer"].nunique())
    places = rows["step"].map({step: place for place, step in enumerate(steps)})
    is_undefined = ~np.isfinite(rows["value"])
    is_light = norm(rows["value"].to_numpy("float64")) > LIGHT
    ink = pd.Series(np.select([is_undefined, is_light], ["0.4", "0.1"], "1"), rows.index)
    for marked, marker in (
        (is_undefined, "x"),
        (~is_undefined & rows["hollow"], "o"),
        (~is_undefined & rows["suspect"], "."),
    ):
        for shade, own in rows[marked].groupby(ink[marked]):
            axes.plot(
                places[own.index],
                own["layer"],
                color=shade,
                linestyle="none",
                marker=marker,
                markersize=min(LARGEST_MARK, CELL_SHARE * side),
                markerfacecolor="none" if marker == "o" else shade,
                markeredgewidth=0 if marker == "." else min(0.7, 0.1 * side),
                rasterized=True,
                label="_marks",
            )
