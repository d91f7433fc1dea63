"""Measures by layer: a line per training step, and heat maps."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from shape_of_learning.figures import captions, marks, scales, style
from shape_of_learning.figures.inputs import DrawnMeasure, FigureInputs
from shape_of_learning.figures.output import Drawing, drawing
from shape_of_learning.figures.tables import by_layer

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
UNTRAINED = style.LineStyle("0.35", (0, (2, 2)), "o")  # grey and dashed: training has not begun
DOTTED = (0, (1, 1.2))  # the line of a hollow checkpoint
MOST_BANDS = 20  # steps; the bands of more would cover the lines


def profiles_by_step(inputs: FigureInputs) -> Drawing:
    """Draw a panel per measure (row) and model (column), with one line per training step."""
    table, measures = by_layer(inputs), inputs.measures
    models = dict(list(table.groupby("label", sort=False)))
    shape, notes = (len(measures), len(models)), captions.footnote(inputs, table)
    figure, grid = marks.panels(*shape, _height(len(measures)), *notes, sharex="col", sharey="row")
    draw_columns(grid, models, measures)
    for axes, measure in zip(grid[:, 0], measures, strict=True):
        is_named = len(measures) > 1 and measure.label != measure.axis
        axes.set_ylabel(f"{measure.axis},\n{measure.label}" if is_named else measure.axis)
        _set_scale(axes, table, measure)
    return _drawing_of_lines(inputs, figure, table)


def draw_columns(
    grid: np.ndarray,
    models: Mapping[str, pd.DataFrame],
    measures: Sequence[DrawnMeasure],
    start: str = "untrained",
) -> None:
    """Draw a line per step into a panel for each measure (row) and model (column), and name the steps.

    Parameters
    ----------
    grid : numpy.ndarray of Axes, shape (measures, models)
    models : mapping of str to pandas.DataFrame
        By label.
    measures : sequence of DrawnMeasure
    start : str
        What a model is at step 0.
    """
    named: dict[str, Line2D] = {}
    for column, (label, own) in zip(grid.T, models.items(), strict=True):
        for axes, measure in zip(column, measures, strict=True):
            named |= _draw_measure(axes, own, measure, start)
        column[0].set_title(marks.panel_title(label, column[0].figure, len(models)))
        column[-1].set_xlabel(LAYER if len(models) < ACROSS else "Layer")
    _name_steps(grid, [*models.values()], named)


def overview(inputs: FigureInputs) -> Drawing:
    """Draw all measures of one model on one page, a panel each, with one line per training step."""
    table, number = by_layer(inputs), len(inputs.measures)
    rows = -(-number // ACROSS)
    figure, grid = marks.panels(rows, ACROSS, _height(rows), *captions.footnote(inputs, table))
    figure.suptitle(marks.panel_title(inputs.models[0].label, figure, 2), x=0.01, ha="left")
    named: dict[str, Line2D] = {}
    for axes, measure in zip(grid.flat, inputs.measures, strict=False):
        named |= _draw_measure(axes, table, measure)
        axes.set(title=measure.label, ylabel=measure.axis, xlabel="Layer")
        _set_scale(axes, table, measure)
    for axes in grid.flat[number:]:
        axes.set_axis_off()
    _name_steps(grid, [table], named)
    return _drawing_of_lines(inputs, figure, table)


def heat_maps(inputs: FigureInputs) -> Drawing:
    """Draw a panel per measure (row) and model (column), with a cell per layer and training step.

    All cells are equally wide, whatever lies between two steps. The models of a row share their colours.
    """
    table = by_layer(inputs)
    models = dict(list(table.groupby("label", sort=False)))
    rows, notes = len(inputs.measures), captions.footnote(inputs, table, captions.CELLS)
    figure, grid = marks.panels(rows, len(models), _height(rows), *notes)
    panels = []
    for row, measure in zip(grid, inputs.measures, strict=True):
        values = _finite_values(table, measure)
        norm = (LogNorm if _is_wide(values) else Normalize)(values.min(), values.max())
        for axes, own in zip(row, models.values(), strict=True):
            cells = own[own["estimator"] == measure.name]
            _draw_cells(axes, cells, norm)
            panels.append((axes, cells, norm))
        row[0].set_ylabel("Layer")
        bar = scales.add_bar(ScalarMappable(norm, CELL_COLOURS), row[np.newaxis], measure.label)
        if isinstance(norm, LogNorm):
            bar.set_label(f"{measure.label} (log scale)")
            scales.set_log_ticks(bar.ax.yaxis)
    for label, column in zip(models, grid.T, strict=True):
        column[0].set_title(marks.panel_title(label, figure, len(models)))
        column[-1].set_xlabel("Training step")
    figure.draw_without_rendering()  # fixes the size of the cells
    for panel in panels:
        _mark_cells(*panel)
    said = captions.on_estimates(inputs, table, captions.CELLS, bands=False)
    return drawing(inputs, figure, table, *said, "Cells of all steps are equally wide.")


def _height(rows: int) -> float:
    return FRAME + (style.PANEL_HEIGHT if rows == 1 else rows * ROW_HEIGHT)


def _drawing_of_lines(inputs: FigureInputs, figure: Figure, table: pd.DataFrame) -> Drawing:
    steps = table.groupby("label", sort=False)["step"].nunique()
    many = ", ".join(steps[steps > MOST_BANDS].index)
    numbers = f"Too many steps for bands: {many}; the numbers have the intervals." if many else ""
    said = captions.on_estimates(inputs, table, bands=steps.min() <= MOST_BANDS)
    return drawing(inputs, figure, table, said[0], numbers, *said[1:])


def _draw_measure(
    axes: Axes, table: pd.DataFrame, measure: DrawnMeasure, start: str = "untrained"
) -> dict[str, Line2D]:
    """Draw a measure; what a bar of colours does not name, which is step 0 and a single trained one."""
    named = _draw_steps(axes, table[table["estimator"] == measure.name], start)
    axes.locator_params(axis="x", integer=True)
    scales.begin_at_zero(axes, [measure])
    return named


def _set_scale(axes: Axes, table: pd.DataFrame, measure: DrawnMeasure) -> None:
    """Make the y axis of a measure, and of all panels that share it, logarithmic where that shows more."""
    if not measure.from_zero and _is_wide(_finite_values(table, measure)):
        scales.set_log_axis(axes)


def _finite_values(table: pd.DataFrame, measure: DrawnMeasure) -> pd.Series:
    values = table.loc[table["estimator"] == measure.name, "value"]
    return values[np.isfinite(values)]


def _is_wide(values: pd.Series) -> bool:
    """Whether one large value would leave all others the same height or colour."""
    return 0 < WIDE * values.min() < values.max()


def _draw_cells(axes: Axes, rows: pd.DataFrame, norm: Normalize) -> None:
    """Draw the values of one measure and model; undefined and infinite ones are grey."""
    cells = rows.pivot(index="layer", columns="step", values="value").astype("float64")
    edges = np.arange(cells.shape[1] + 1) - 0.5, np.append(cells.index, cells.index[-1] + 1) - 0.5
    axes.set_facecolor(NO_VALUE)
    axes.grid(visible=False)
    axes.pcolormesh(
        *edges, cells.where(np.isfinite(cells)), norm=norm, cmap=CELL_COLOURS, rasterized=True
    )
    axes.locator_params(axis="y", integer=True)


def _mark_cells(axes: Axes, rows: pd.DataFrame, norm: Normalize) -> None:
    """Label steps where there is room; mark undefined and suspect cells, and those of hollow checkpoints."""
    steps = sorted({int(step) for step in rows["step"]})
    size = axes.get_window_extent().size / axes.figure.dpi
    scales.set_rank_ticks(axes.xaxis, steps, max(2, int(size[0] / STEP_ROOM)))
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
        look = {"linestyle": "none", "marker": marker, "rasterized": True, "label": "_marks"}
        look["markersize"] = min(LARGEST_MARK, CELL_SHARE * side)
        look["markeredgewidth"] = 0 if marker == "." else min(0.7, 0.1 * side)
        for shade, own in rows[marked].groupby(ink[marked]):
            face = "none" if marker == "o" else shade
            axes.plot(places[own.index], own["layer"], color=shade, markerfacecolor=face, **look)


def _trained_steps(table: pd.DataFrame) -> list[int]:
    """List the steps of a table but 0, ascending."""
    return sorted({int(step) for step in table["step"] if step > 0})


def _draw_steps(axes: Axes, table: pd.DataFrame, start: str) -> dict[str, Line2D]:
    """Draw a line by layer for each step; step 0, the start, is grey, on top.

    Of more than :data:`MOST_BANDS` steps there are no bands.
    """
    steps = _trained_steps(table)
    colours = style.step_colours(steps)
    if table["step"].nunique() > MOST_BANDS:
        table = table.assign(low=np.nan, high=np.nan)
    named = {}
    for step, rows in table.groupby("step"):
        look = style.LineStyle(colours[int(step)], "-", "o") if step else UNTRAINED
        if rows["hollow"].all():
            look = replace(look, dashes=DOTTED)
        line = marks.draw_line(axes, rows, "layer", look, label=str(step))
        if not step:
            line.set_zorder(2.5)  # the first trained steps hardly differ and would hide it
            named[f"step 0, {start}"] = line
        elif len(steps) == 1:
            named[f"step {step:,.0f}"] = line
    return named


def _name_steps(
    panels: np.ndarray, tables: Sequence[pd.DataFrame], named: dict[str, Line2D]
) -> None:
    """Say which line is of which step: bars of colours at the right, and above what these do not name.

    Columns, which show the `tables`, share a bar if they have the same steps; a single step has none.
    """
    if named:
        place = {"loc": "outside upper right", "ncols": len(named)}
        panels[0, 0].figure.legend(named.values(), named.keys(), **place)
    of_columns = [_trained_steps(table) for table in tables]
    are_alike = all(steps == of_columns[0] for steps in of_columns)
    groups = [panels] if are_alike else np.hsplit(panels, panels.shape[1])
    for group, steps in zip(groups, of_columns, strict=False):
        if len(steps) > 1:
            norm = BoundaryNorm(np.arange(len(steps) + 1) - 0.5, len(steps))
            colours = ListedColormap([*style.step_colours(steps).values()])
            bar = scales.add_bar(ScalarMappable(norm, colours), group, "Training step")
            scales.set_rank_ticks(bar.ax.yaxis, steps, scales.MOST_RANKS * len(panels))
