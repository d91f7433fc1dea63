"""Measures by layer and by training step: lines and heat maps."""

from collections.abc import Iterable, Mapping, Sequence
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
from shape_of_learning.figures.output import Drawing, make_drawing
from shape_of_learning.figures.tables import (
    AVERAGED_LAYERS_IN_WORDS,
    select_averages,
    select_layers,
)

ROW_HEIGHT = 1.7  # inches, where there are several
FRAME = 0.4  # inches
ACROSS = 3  # panels of an overview beside each other
CELL_COLOURS = matplotlib.colormaps["viridis"]
MOST_SPAN = 2  # times the span of the blocks, that layer 0 may make of the colours
WIDE = 10  # times the smallest value, from which on a scale is logarithmic
LIGHT = 0.6  # share of these colours from which on marks are dark
NO_VALUE = "0.9"  # a grey level
CELL_SHARE = 0.6  # of a cell's smaller side, for a mark
LARGEST_MARK = 4  # points
UNTRAINED = style.LineStyle("0.35", (0, (2, 2)), "o")  # grey and dashed: training has not begun
DOTTED = (0, (1, 1.2))  # the line of a checkpoint that is not ok
DASHED = (0, (5, 1.5))  # the line of a measure without massive tokens
LONG_DASHES = "{} (long dashes: without massive tokens)"
WITHOUT_MASSIVE = "_without_massive_tokens"  # ends the name of such a measure
MOST_BANDS = 20  # steps; the bands of more would cover the lines
MOST_NAMED = 6  # trained steps in a legend; more have a bar of colours
ONLY = "the only checkpoint"  # of a model without steps


def profiles_by_step(inputs: FigureInputs) -> Drawing:
    """Draw a panel per measure (row) and model (column), with one line per training step."""
    table, measures = select_layers(inputs), inputs.measures
    models = dict(list(table.groupby("label", sort=False)))
    shape, notes = (len(measures), len(models)), _make_footnote(inputs, table)
    figure, grid = marks.make_panels(
        *shape, _choose_height(len(measures)), *notes, sharex="col", sharey="row"
    )
    draw_columns(grid, models, measures)
    for axes, measure in zip(grid[:, 0], measures, strict=True):
        is_named = len(measures) > 1 and measure.label != measure.axis
        axes.set_ylabel(f"{measure.axis},\n{measure.label}" if is_named else measure.axis)
    set_scales(grid, table, measures)
    return _make_line_drawing(inputs, figure, table)


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
    colours = style.step_colours(_list_trained_steps(pd.concat(models.values())))
    for column, (label, own) in zip(grid.T, models.items(), strict=True):
        for axes, measure in zip(column, measures, strict=True):
            named |= _draw_measure(axes, own, measure, colours, start)
        column[0].set_title(marks.wrap_panel_title(label, column[0].figure, len(models)))
        column[-1].set_xlabel(marks.ALONG["layer"])
    _name_steps(grid, colours, named)


def overview(inputs: FigureInputs) -> Drawing:
    """Draw all measures on one page, a panel each: of one model a line per step, of several a line per model.

    A measure of one model without massive tokens has dashed lines in the panel of the same with them.
    """
    table, is_one = select_layers(inputs), len(inputs.models) == 1
    dashed = _measures_without_massive_tokens(inputs.measures) if is_one else {}
    measures = [measure for measure in inputs.measures if measure not in dashed.values()]
    number = len(measures)
    across = number // 2 if number == ACROSS + 1 else min(ACROSS, number)
    rows = -(-number // across)
    width = style.COLUMN_WIDTH if across == 1 else style.TEXT_WIDTH
    notes = _make_footnote(inputs, table)
    figure, grid = marks.make_panels(rows, across, _choose_height(rows), *notes, width=width)
    named: dict[str, Line2D] = {}
    colours = style.step_colours(_list_trained_steps(table))
    for axes, measure in zip(grid.flat, measures, strict=False):
        if is_one:
            named |= _draw_measure(axes, table, measure, colours)
        else:
            own = table[table["estimator"] == measure.name]
            named |= {
                str(line.get_label()): line
                for line in marks.draw_models(axes, own, "layer", inputs.models)
            }
        if measure.name in dashed:
            _draw_measure(axes, table, dashed[measure.name], colours, is_dashed=True)
        words = LONG_DASHES.format(measure.label) if measure.name in dashed else measure.label
        axes.set(title=marks.wrap_panel_title(words, figure, across), ylabel=measure.axis)
    set_scales([[axes] for axes in grid.flat], table, measures)
    for axes in grid.flat[max(0, number - across) : number]:
        axes.set_xlabel(marks.ALONG["layer"])
    for axes in grid.flat[number:]:
        axes.set_axis_off()
    if not is_one:
        marks.add_legend(figure, named, "left")
    else:
        figure.suptitle(
            marks.wrap_panel_title(inputs.models[0].label, figure, 2), x=0.01, ha="left"
        )
        _name_steps(grid, colours, named)
    return _make_line_drawing(inputs, figure, table)


def means_by_step(inputs: FigureInputs, average_over: str = "block_outputs") -> Drawing:
    """Draw averages over layers of the checkpoints that the verdicts show.

    Parameters
    ----------
    inputs : FigureInputs
    average_over : {"block_outputs", "all_layers"}
        See :func:`.select_averages`.
    """
    table, measures = select_averages(inputs, average_over), inputs.measures
    counted = scales.choose_progress_column(table)
    shown = [(measure.label, table[table["estimator"] == measure.name]) for measure in measures]
    notes = [*captions.write_footnote(inputs, table), scales.describe_progress(table, counted)]
    notes.append(captions.SCALES_DIFFER if len(measures) > 1 else "")
    figure, (panels,), lines = marks.make_model_panels(inputs, counted, [shown], *notes, frame=0.4)
    panels[0].set_ylabel(f"{measures[0].axis},\nmean over layers")
    for axes, measure in zip(panels, measures, strict=True):
        scales.begin_at_zero(axes, [measure])
    marks.name_lines(panels[-1:], lines)
    averaged = AVERAGED_LAYERS_IN_WORDS[average_over]
    return make_drawing(inputs, figure, table, averaged, captions.describe_estimates(table))


def _measures_without_massive_tokens(measures: Sequence[DrawnMeasure]) -> dict[str, DrawnMeasure]:
    """Return those that leave out massive tokens, by the name of the same with them, where that is drawn."""
    names = {measure.name for measure in measures}
    ends = [(measure.name.removesuffix(WITHOUT_MASSIVE), measure) for measure in measures]
    return {name: measure for name, measure in ends if name in names and name != measure.name}


def heat_maps(inputs: FigureInputs) -> Drawing:
    """Draw a panel per measure (row) and model (column), with a cell per layer and training step.

    Steps are on a logarithmic axis, so that a cell is as wide as training goes on in it. The models of a row share
    their colours, which span the blocks; the embedding output is drawn where it fits in. Suspect values do not
    decide colours where there are others; where all are suspect colours begin at 0.
    """
    table = select_layers(inputs)
    models = dict(list(table.groupby("label", sort=False)))
    shown = {measure.name: _select_cells(table, measure) for measure in inputs.measures}
    rows, notes = len(inputs.measures), captions.write_footnote(inputs, table, captions.CELLS)
    norms = {name: _norm_of_cells(cells) for name, cells in shown.items()}
    left_out = [
        _describe_embedding_output(table, shown[measure.name], measure)
        for measure in inputs.measures
    ]
    figure, grid = marks.make_panels(rows, len(models), _choose_height(rows), *left_out, *notes)
    panels = []
    for row, measure in zip(grid, inputs.measures, strict=True):
        cells = shown[measure.name]
        norm = norms[measure.name]
        for axes, label in zip(row, models, strict=True):
            own = cells[cells["label"] == label]
            _draw_cells(axes, own, norm)
            panels.append((axes, own, norm))
        row[0].set_ylabel(marks.ALONG["layer"])
        mapped = ScalarMappable(norm, CELL_COLOURS)
        bar = scales.add_bar(mapped, row[np.newaxis], measure.label, _ends_beyond(cells, norm))
        if isinstance(norm, LogNorm):
            bar.set_label(f"{measure.label} (log scale)")
            scales.set_log_ticks(bar.ax.yaxis)
    for label, column in zip(models, grid.T, strict=True):
        column[0].set_title(marks.wrap_panel_title(label, figure, len(models)))
        column[-1].set_xlabel("Training step")
    figure.draw_without_rendering()  # fixes the size of the cells
    for panel in panels:
        _mark_cells(*panel)
    said = captions.describe_estimates(table, captions.CELLS, bands=False)
    return make_drawing(inputs, figure, table, said)


def _select_cells(table: pd.DataFrame, measure: DrawnMeasure) -> pd.DataFrame:
    """Keep what has cells: all layers, without layer 0 if its values would leave blocks a small part of the colours."""
    rows = table[table["estimator"] == measure.name]
    blocks = rows[rows["layer"] > 0]
    if blocks.empty:
        return rows
    spans = [_finite_rows(each, measure)["value"].agg(np.ptp) for each in (blocks, rows)]
    return blocks if spans[1] > MOST_SPAN * spans[0] else rows


def _norm_of_cells(cells: pd.DataFrame) -> Normalize:
    """Span the values that are not suspect; from 0 where all are, so that colours hardly tell them apart."""
    finite = cells[np.isfinite(cells["value"])]
    values = select_trusted(finite)
    if _is_wide(values):
        return LogNorm(values.min(), values.max())
    least = values.min()
    if finite["marked"].all() and least > 0:
        least = 0.0
    return Normalize(least, values.max())


def _ends_beyond(cells: pd.DataFrame, norm: Normalize) -> str:
    """Say at which ends of the colours values are beyond, in matplotlib's words."""
    values = cells.loc[np.isfinite(cells["value"]), "value"]
    is_below, is_above = (values < norm.vmin).any(), (values > norm.vmax).any()
    return {(True, True): "both", (True, False): "min", (False, True): "max"}.get(
        (bool(is_below), bool(is_above)), "neither"
    )


def _describe_embedding_output(
    table: pd.DataFrame, cells: pd.DataFrame, measure: DrawnMeasure
) -> str:
    """Say which values the embedding output has where it has no cells."""
    own = _finite_rows(table[table["layer"] == 0], measure)["value"]
    if own.empty or (cells["layer"] == 0).any():
        return ""
    ends = dict.fromkeys(f"{end:.3g}" for end in (own.min(), own.max()))
    return f"{measure.label} of layer 0, beyond the colours: {' to '.join(ends)}."


def _choose_height(rows: int) -> float:
    return FRAME + (style.PANEL_HEIGHT if rows == 1 else rows * ROW_HEIGHT)


def _make_line_drawing(inputs: FigureInputs, figure: Figure, table: pd.DataFrame) -> Drawing:
    steps = table.groupby("label", sort=False)["step"].nunique()
    said = captions.describe_estimates(table, bands=steps.min() <= MOST_BANDS)
    return make_drawing(inputs, figure, table, said)


def _make_footnote(inputs: FigureInputs, table: pd.DataFrame) -> list[str]:
    """What stands below lines by step: as elsewhere, and which models have too many steps for bands."""
    steps = table.groupby("label", sort=False)["step"].nunique()
    many = ", ".join(steps[steps > MOST_BANDS].index)
    notes = captions.write_footnote(inputs, table, bands=steps.min() <= MOST_BANDS)
    return [*notes, f"Too many steps for bands: {many}." if many else ""]


def _draw_measure(
    axes: Axes,
    table: pd.DataFrame,
    measure: DrawnMeasure,
    colours: Mapping[int, str],
    start: str = "untrained",
    *,
    is_dashed: bool = False,
) -> dict[str, Line2D]:
    """Draw a measure; return the lines that a legend names."""
    rows = table[table["estimator"] == measure.name]
    named = _draw_steps(axes, rows, start, colours, is_dashed=is_dashed)
    scales.set_whole_ticks(axes.xaxis)
    return named


def set_scales(
    rows: Iterable[Iterable[Axes]], table: pd.DataFrame, measures: Sequence[DrawnMeasure]
) -> None:
    """Make the y axes of measures, a row of panels each, logarithmic or begin at 0, see :func:`log_measures`."""
    logarithmic = log_measures(table, measures)
    for row, measure in zip(rows, measures, strict=False):
        for axes in row:
            if measure.name in logarithmic:
                scales.set_log_axis(axes)
            else:
                scales.begin_at_zero(axes, [measure])


def log_measures(table: pd.DataFrame, measures: Sequence[DrawnMeasure]) -> set[str]:
    """Name the measures with a logarithmic axis: all of a quantity where that shows more of one of them.

    Suspect values do not decide it where there are others.
    """
    free = [measure for measure in measures if not measure.from_zero]
    wide = {
        measure.axis for measure in free if _is_wide(select_trusted(_finite_rows(table, measure)))
    }
    return {measure.name for measure in free if measure.axis in wide}


def _finite_rows(table: pd.DataFrame, measure: DrawnMeasure) -> pd.DataFrame:
    return table[(table["estimator"] == measure.name) & np.isfinite(table["value"])]


def select_trusted(rows: pd.DataFrame) -> pd.Series:
    """Return the values that are not suspect, or all where all are."""
    kept = rows[~rows["marked"].astype(bool)]
    return (rows if kept.empty else kept)["value"]


def _is_wide(values: pd.Series) -> bool:
    """Whether one large value would leave all others the same height or colour."""
    return 0 < WIDE * values.min() < values.max()


def _draw_cells(axes: Axes, rows: pd.DataFrame, norm: Normalize) -> None:
    """Draw the values of one measure and model; undefined and infinite ones are grey."""
    # A model without steps has one column.
    rows = rows.assign(step=rows["step"].fillna(0))
    cells = rows.pivot(index="layer", columns="step", values="value").astype("float64")
    edges = (
        scales.find_cell_edges(scales.place_steps([*cells.columns])),
        np.append(cells.index, cells.index[-1] + 1) - 0.5,
    )
    axes.set_facecolor(NO_VALUE)
    axes.grid(visible=False)
    axes.pcolormesh(
        *edges, cells.where(np.isfinite(cells)), norm=norm, cmap=CELL_COLOURS, rasterized=True
    )
    scales.set_whole_ticks(axes.yaxis)


def _mark_cells(axes: Axes, rows: pd.DataFrame, norm: Normalize) -> None:
    """Label steps where there is room; mark undefined and suspect cells, and those of hollow checkpoints."""
    steps = sorted({int(step) for step in rows["step"].dropna()})
    size = axes.get_window_extent().size / axes.figure.dpi
    centres = scales.place_steps(steps or [0])
    widths = np.diff(scales.find_cell_edges(centres)) * size[0] / np.ptp(axes.get_xlim())
    if steps:
        scales.set_step_ticks(axes.xaxis, steps, size[0])
    else:
        axes.set(xticks=[], xlabel=ONLY.capitalize())
    side = 72 * min(widths.min(), size[1] / rows["layer"].nunique())
    places = rows["step"].map(dict(zip(steps, centres, strict=False))).fillna(centres[0])
    is_undefined = ~np.isfinite(rows["value"])
    is_light = norm(rows["value"].to_numpy("float64")) > LIGHT
    ink = pd.Series(np.select([is_undefined, is_light], ["0.4", "0.1"], "1"), rows.index)
    for label, marked, size in (
        (style.UNDEFINED, is_undefined, 1.0),
        (style.NOT_OK, ~is_undefined & rows["hollow"], 1.0),
        (style.SUSPECT, ~is_undefined & rows["marked"], 0.7),
    ):
        look = {**style.MARKS[label].look, "markerfacecolor": "none", "rasterized": True}
        look["markersize"] = size * min(LARGEST_MARK, CELL_SHARE * side)
        look["markeredgewidth"] = min(0.7, 0.1 * side)
        for shade, own in rows[marked].groupby(ink[marked]):
            axes.plot(places[own.index], own["layer"], color=shade, label=label, **look)


def _list_trained_steps(table: pd.DataFrame) -> list[int]:
    """List the steps of a table but 0, ascending."""
    return sorted({int(step) for step in table["step"].dropna() if step > 0})


def _draw_steps(
    axes: Axes,
    table: pd.DataFrame,
    start: str,
    colours: Mapping[int, str],
    *,
    is_dashed: bool = False,
) -> dict[str, Line2D]:
    """Draw a line by layer for each step, and return those that a legend names.

    Step 0, the start, is grey, on top. Of more than :data:`MOST_BANDS` steps there are no bands.
    """
    if table["step"].nunique() > MOST_BANDS:
        table = table.assign(low=np.nan, high=np.nan, bare=False)
    named = {}
    for step, rows in table.groupby("step", dropna=False):
        is_only = pd.isna(step)
        look = UNTRAINED
        if is_only or step:
            look = style.LineStyle(style.COLOURS[0] if is_only else colours[int(step)], "-", "o")
        if is_dashed:
            look = replace(look, dashes=DASHED)
        if rows["hollow"].all():
            look = replace(look, dashes=DOTTED)
        line = marks.draw_line(axes, rows, "layer", look, label=ONLY if is_only else str(step))
        if not is_only and step == 0:
            line.set_zorder(2.5)  # the first trained steps hardly differ and would hide it
            named[f"step 0, {start}"] = line
        elif not is_only and len(colours) <= MOST_NAMED:
            named[f"step {step:,.0f}"] = line
    return named


def _name_steps(panels: np.ndarray, colours: Mapping[int, str], named: dict[str, Line2D]) -> None:
    """Say which line is of which step: above the panels, and of many steps by a bar of colours at the right."""
    if named:
        order = sorted(named, key=lambda name: int(name.split()[1].strip(",").replace(",", "")))
        marks.add_legend(panels[0, 0].figure, {name: named[name] for name in order}, "right")
    if len(colours) > MOST_NAMED:
        norm = BoundaryNorm(np.arange(len(colours) + 1) - 0.5, len(colours))
        mapped = ScalarMappable(norm, ListedColormap([*colours.values()]))
        bar = scales.add_bar(mapped, panels, "Training step")
        scales.set_rank_ticks(bar.ax.yaxis, [*colours], scales.MOST_RANKS * len(panels))
