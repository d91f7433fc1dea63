"""Draw measures by layer and by training step: lines and heat maps."""

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
from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.figures.job import DrawnMeasure
from shape_of_learning.figures.output import Drawing, make_drawing
from shape_of_learning.figures.tables import (
    AVERAGED_LAYERS_IN_WORDS,
    select_averages,
    select_layers,
)

ROW_HEIGHT = 1.7  # inches, if there are several rows
FRAME = 0.4  # inches
OVERVIEW_COLUMNS = 3  # panels beside each other
CELL_COLOURS = matplotlib.colormaps["viridis"]
# Layer 0 has no colour if it would widen the span of the blocks by more than this factor.
MOST_SPAN = 2
WIDE = 10  # values whose ratio is larger have a logarithmic scale
LIGHT = 0.6  # colours above this share are light, so marks on them are dark
NO_VALUE = "0.9"  # a grey level
GAP = 3  # points between step 0 and the others
CELL_SHARE = 0.6  # the size of a mark over the smaller side of its cell
LARGEST_MARK = 4  # points
UNTRAINED = style.LineStyle("0.35", (0, (2, 2)), "o")  # grey and dashed
DOTTED = (0, (1, 1.2))  # the line of a checkpoint that is not ok
DASHED = (0, (5, 1.5))  # the line of a measure without massive tokens
LONG_DASHES = "{} (long dashes: without massive tokens)"
ONE_LINE = "{} (no massive tokens: one line)"
WITHOUT_MASSIVE = "_without_massive_tokens"  # suffix of a measure
MOST_BANDS = 20  # steps with bands; more bands would cover the lines
MOST_IN_LEGEND = 6  # more trained steps have a bar of colours instead of a legend
ONLY = "the only checkpoint"  # label of a model without steps


def profiles_by_step(inputs: FigureInputs) -> Drawing:
    """Draw a panel per measure (row) and model (column), with one line per training step."""
    table, measures = select_layers(inputs), inputs.measures
    models = dict(list(table.groupby("label", sort=False)))
    notes = _make_footnote(inputs, table)
    rows, columns = len(measures), len(models)
    figure, grid = marks.make_panels(
        rows, columns, _choose_height(rows), *notes, sharex="col", sharey="row"
    )
    draw_columns(grid, models, measures)
    for axes, measure in zip(grid[:, 0], measures, strict=True):
        axes.set_ylabel(scales.name_axis(measure) if len(measures) > 1 else measure.axis)
    set_scales(grid, table, measures)
    return _make_line_drawing(inputs, figure, table)


def draw_columns(
    grid: np.ndarray,
    models: Mapping[str, pd.DataFrame],
    measures: Sequence[DrawnMeasure],
    start: str = "untrained",
) -> None:
    """Draw a line per step in each panel of measures (rows) and models (columns), with a legend of the steps.

    Parameters
    ----------
    grid : numpy.ndarray of Axes, shape (measures, models)
    models : mapping of str to pandas.DataFrame
        The rows of each model, by label.
    measures : sequence of DrawnMeasure
    start : str
        The state of a model at step 0.
    """
    legend: dict[str, Line2D] = {}
    colours = style.choose_step_colours(_list_trained_steps(pd.concat(models.values())))
    for column, (label, table) in zip(grid.T, models.items(), strict=True):
        for axes, measure in zip(column, measures, strict=True):
            legend |= _draw_measure(axes, table, measure, colours, start)
        column[0].set_title(marks.wrap_panel_title(label, column[0].figure, len(models)))
        column[-1].set_xlabel(marks.X_LABELS["layer"])
    _add_step_legend(grid, colours, legend)


def overview(inputs: FigureInputs) -> Drawing:
    """Draw all measures on one page, with a line per step of a single model, or else a line per model.

    For one model, a measure without massive tokens is dashed in the panel of the same measure with them. Models of
    different depths are drawn by relative depth.
    """
    table = select_layers(inputs)
    is_one = len(inputs.models) == 1
    x = choose_layer_column(table)
    dashed_measures = _pair_with_massive_tokens(inputs.measures) if is_one else {}
    measures = [measure for measure in inputs.measures if measure not in dashed_measures.values()]
    number = len(measures)
    columns = number // 2 if number == OVERVIEW_COLUMNS + 1 else min(OVERVIEW_COLUMNS, number)
    rows = -(-number // columns)
    width = style.COLUMN_WIDTH if columns == 1 else style.TEXT_WIDTH
    notes = _make_footnote(inputs, table)
    if len({measure.axis for measure in measures}) < number:
        notes.append(captions.SCALES_DIFFER)
    figure, grid = marks.make_panels(rows, columns, _choose_height(rows), *notes, width=width)
    legend: dict[str, Line2D] = {}
    colours = style.choose_step_colours(_list_trained_steps(table))
    for axes, measure in zip(grid.flat, measures, strict=False):
        if is_one:
            legend |= _draw_measure(axes, table, measure, colours)
        else:
            measure_rows = table[table["estimator"] == measure.name]
            lines = marks.draw_models(axes, measure_rows, x, inputs.models)
            legend |= {str(line.get_label()): line for line in lines}
        if measure.name in dashed_measures:
            _draw_measure(axes, table, dashed_measures[measure.name], colours, is_dashed=True)
        title = measure.label
        if measure.name in dashed_measures:
            is_same = _have_equal_values(table, measure, dashed_measures[measure.name])
            title = (ONE_LINE if is_same else LONG_DASHES).format(measure.label)
        axes.set(title=marks.wrap_panel_title(title, figure, columns), ylabel=measure.axis)
    set_scales([[axes] for axes in grid.flat], table, measures)
    for axes in grid.flat[max(0, number - columns) : number]:
        axes.set_xlabel(marks.X_LABELS[x])
    for axes in grid.flat[number:]:
        axes.set_axis_off()
    if not is_one:
        marks.add_legend(figure, legend, "left")
    else:
        figure.suptitle(
            marks.wrap_panel_title(inputs.models[0].label, figure, 2), x=0.01, ha="left"
        )
        _add_step_legend(grid, colours, legend)
    return _make_line_drawing(inputs, figure, table)


def choose_layer_column(table: pd.DataFrame) -> str:
    """Return ``depth`` if models differ in their number of layers and all values have a depth, else ``layer``."""
    is_uneven = table.groupby("model")["layer"].max().nunique() > 1
    return "depth" if is_uneven and table["depth"].notna().all() else "layer"


def means_by_step(inputs: FigureInputs, average_over: str = "block_outputs") -> Drawing:
    """Draw averages over layers by training progress: a panel per measure, a line per model.

    Parameters
    ----------
    inputs : FigureInputs
    average_over : {"block_outputs", "all_layers"}
        The layers of the averages, as in :func:`.select_averages`.
    """
    table, measures = select_averages(inputs, average_over), inputs.measures
    x = scales.choose_progress_column(table)
    row = [(measure.label, table[table["estimator"] == measure.name]) for measure in measures]
    notes = [*captions.format_footnote(inputs, table), scales.describe_progress(table, x)]
    notes.append(captions.SCALES_DIFFER if len(measures) > 1 else "")
    figure, (panels,), lines = marks.make_model_panels(inputs, x, [row], *notes, frame=0.4)
    panels[0].set_ylabel(f"{measures[0].axis},\nmean over layers")
    for axes, measure in zip(panels, measures, strict=True):
        scales.begin_at_zero(axes, [measure])
    if any(axes.get_ylim()[0] == 0 for axes in panels):
        # In a panel that begins just below its values the same change would look larger.
        for axes in panels:
            axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))
    marks.name_lines(panels[-1:], lines)
    averaged_layers = AVERAGED_LAYERS_IN_WORDS[average_over]
    return make_drawing(inputs, figure, table, averaged_layers, captions.describe_estimates(table))


def _pair_with_massive_tokens(measures: Sequence[DrawnMeasure]) -> dict[str, DrawnMeasure]:
    """Map each measure's name to the same measure without massive tokens, if both are drawn."""
    names = {measure.name for measure in measures}
    pairs = [(measure.name.removesuffix(WITHOUT_MASSIVE), measure) for measure in measures]
    return {name: measure for name, measure in pairs if name in names and name != measure.name}


def _have_equal_values(table: pd.DataFrame, first: DrawnMeasure, second: DrawnMeasure) -> bool:
    """Tell whether two measures have the same value everywhere."""
    values, other = (
        table[table["estimator"] == measure.name].set_index(["revision", "layer"])["value"]
        for measure in (first, second)
    )
    return values.equals(other)


def heat_maps(inputs: FigureInputs) -> Drawing:
    """Draw a panel per measure (row) and model (column), with a cell per layer and training step.

    Steps are on a logarithmic axis. The models of a row share their colours, which span the values of the blocks. The
    embedding output has cells if its values hardly widen this span. Colours are logarithmic if this span is wide.
    Suspect values do not decide the colours, unless all are suspect. Linear colours then begin at 0.
    """
    table = select_layers(inputs)
    models = dict(list(table.groupby("label", sort=False)))
    cells_by_measure = {measure.name: _select_cells(table, measure) for measure in inputs.measures}
    notes = [
        _describe_embedding_output(table, cells_by_measure[measure.name], measure)
        for measure in inputs.measures
    ]
    notes += captions.format_footnote(inputs, table, captions.CELLS)
    rows = len(inputs.measures)
    figure, grid = marks.make_panels(rows, len(models), _choose_height(rows), *notes)
    panels = []
    for row, measure in zip(grid, inputs.measures, strict=True):
        cells = cells_by_measure[measure.name]
        norm = _choose_norm(cells)
        for axes, label in zip(row, models, strict=True):
            model_cells = cells[cells["label"] == label]
            _draw_cells(axes, model_cells, norm)
            panels.append((axes, model_cells, norm))
        has_embeddings = (cells["layer"] == 0).any()
        row[0].set_ylabel(marks.X_LABELS["layer"] if has_embeddings else "Layer\n(n: block n)")
        mappable = ScalarMappable(norm, CELL_COLOURS)
        name = scales.name_axis(measure)
        bar = scales.add_bar(mappable, row[np.newaxis], name, _choose_bar_ends(cells, norm))
        if isinstance(norm, LogNorm):
            bar.set_label(f"{name} (log scale)")
            scales.set_log_ticks(bar.ax.yaxis)
    for label, column in zip(models, grid.T, strict=True):
        column[0].set_title(marks.wrap_panel_title(label, figure, len(models)))
        column[-1].set_xlabel("Training step")
    figure.draw_without_rendering()  # fixes the size of the cells
    for panel in panels:
        _mark_cells(*panel)
    along = "Steps are on a logarithmic axis, on which step 0 is set apart."
    has_steps = (table["step"] == 0).any() and (table["step"] > 0).any()
    words = captions.describe_estimates(table, captions.CELLS, bands=False)
    return make_drawing(inputs, figure, table, along if has_steps else "", words)


def _select_cells(table: pd.DataFrame, measure: DrawnMeasure) -> pd.DataFrame:
    """Select the rows of a heat map, without layer 0 if its values would take most of the colours."""
    rows = table[table["estimator"] == measure.name]
    blocks = rows[rows["layer"] > 0]
    if blocks.empty:
        return rows
    span_of_blocks, span = (
        _select_finite(table, measure)["value"].agg(np.ptp) for table in (blocks, rows)
    )
    return blocks if span > MOST_SPAN * span_of_blocks else rows


def _choose_norm(cells: pd.DataFrame) -> Normalize:
    """Return a norm that spans the values that are not suspect, logarithmic if they span a wide range.

    If all values are suspect, a linear norm begins at 0, so that their colours differ little.
    """
    finite = cells[np.isfinite(cells["value"])]
    values = select_trusted(finite)
    if _is_wide(values):
        return LogNorm(values.min(), values.max())
    minimum = values.min()
    if finite["marked"].all() and minimum > 0:
        minimum = 0.0
    return Normalize(minimum, values.max())


def _choose_bar_ends(cells: pd.DataFrame, norm: Normalize) -> str:
    """Return which ends of the colours values exceed, as matplotlib's `extend` of a colour bar."""
    values = cells.loc[np.isfinite(cells["value"]), "value"]
    is_below, is_above = (values < norm.vmin).any(), (values > norm.vmax).any()
    return {(True, True): "both", (True, False): "min", (False, True): "max"}.get(
        (bool(is_below), bool(is_above)), "neither"
    )


def _describe_embedding_output(
    table: pd.DataFrame, cells: pd.DataFrame, measure: DrawnMeasure
) -> str:
    """Return a sentence with the range of the embedding output if it has no cells, else an empty string."""
    values = _select_finite(table[table["layer"] == 0], measure)["value"]
    if values.empty or (cells["layer"] == 0).any():
        return ""
    ends = dict.fromkeys(f"{end:.3g}" for end in (values.min(), values.max()))
    return f"{measure.label} of layer 0, beyond the colours: {' to '.join(ends)}."


def _choose_height(rows: int) -> float:
    return FRAME + (style.PANEL_HEIGHT if rows == 1 else rows * ROW_HEIGHT)


def _make_line_drawing(inputs: FigureInputs, figure: Figure, table: pd.DataFrame) -> Drawing:
    steps = table.groupby("label", sort=False)["step"].nunique()
    words = captions.describe_estimates(table, bands=steps.min() <= MOST_BANDS)
    return make_drawing(inputs, figure, table, words)


def _make_footnote(inputs: FigureInputs, table: pd.DataFrame) -> list[str]:
    """List the sentences below the panels, with the models whose steps are too many for bands."""
    steps = table.groupby("label", sort=False)["step"].nunique()
    many = ", ".join(steps[steps > MOST_BANDS].index)
    notes = captions.format_footnote(inputs, table, bands=steps.min() <= MOST_BANDS)
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
    """Draw one measure by layer, with a line per step, and return the lines of the legend."""
    rows = table[table["estimator"] == measure.name]
    legend = _draw_steps(axes, rows, start, colours, is_dashed=is_dashed)
    scales.set_whole_ticks(axes.xaxis)
    return legend


def set_scales(
    rows: Iterable[Iterable[Axes]], table: pd.DataFrame, measures: Sequence[DrawnMeasure]
) -> None:
    """Make the y axes of each measure's row logarithmic, or let them begin at 0 if the values are not wide."""
    logarithmic = find_log_measures(table, measures)
    for row, measure in zip(rows, measures, strict=False):
        for axes in row:
            if measure.name in logarithmic:
                scales.set_log_axis(axes)
            else:
                scales.begin_at_zero(axes, [measure])


def find_log_measures(table: pd.DataFrame, measures: Sequence[DrawnMeasure]) -> set[str]:
    """Return the names of the measures with a logarithmic axis.

    If the values of a measure are wide, all measures of its quantity have one. Suspect values do not decide, unless
    most values are suspect.
    """
    candidates = [measure for measure in measures if not measure.begins_at_zero]
    wide = {
        measure.axis
        for measure in candidates
        if _is_wide(_select_deciding(_select_finite(table, measure)))
    }
    return {measure.name for measure in candidates if measure.axis in wide}


def _select_finite(table: pd.DataFrame, measure: DrawnMeasure) -> pd.DataFrame:
    return table[(table["estimator"] == measure.name) & np.isfinite(table["value"])]


def select_trusted(rows: pd.DataFrame) -> pd.Series:
    """Return the values that are not suspect, or all values if all are suspect."""
    trusted_rows = rows[~rows["marked"].astype(bool)]
    return (rows if trusted_rows.empty else trusted_rows)["value"]


def _select_deciding(rows: pd.DataFrame) -> pd.Series:
    """Return the values that are not suspect, or all values if most are suspect."""
    is_suspect = rows["marked"].astype(bool)
    return rows["value"] if is_suspect.mean() > 0.5 else rows.loc[~is_suspect, "value"]


def _is_wide(values: pd.Series) -> bool:
    """Return whether values differ so much that small ones would share a height or colour on a linear scale."""
    return 0 < WIDE * values.min() < values.max()


def _draw_cells(axes: Axes, rows: pd.DataFrame, norm: Normalize) -> None:
    """Draw a cell for each value of one measure and model, in grey for undefined and infinite values."""
    # A model without steps has one column.
    rows = rows.assign(step=rows["step"].fillna(0))
    cells = rows.pivot(index="layer", columns="step", values="value").astype("float64")
    steps = scales.find_cell_edges(scales.place_steps([*cells.columns]))
    layers = np.append(cells.index, cells.index[-1] + 1) - 0.5
    values = cells.where(np.isfinite(cells))
    axes.set_facecolor(NO_VALUE)
    axes.grid(visible=False)
    axes.pcolormesh(steps, layers, values, norm=norm, cmap=CELL_COLOURS, rasterized=True)
    if cells.columns[0] == 0 and len(cells.columns) > 1:
        axes.axvline(steps[1], color="white", linewidth=GAP)  # 0 has no place on a logarithmic axis
    scales.set_whole_ticks(axes.yaxis)


def _mark_cells(axes: Axes, rows: pd.DataFrame, norm: Normalize) -> None:
    """Label as many steps as fit, and mark undefined and suspect cells and hollow checkpoints."""
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
    for label, is_marked, size in (
        (style.UNDEFINED, is_undefined, 1.0),
        (style.NOT_OK, ~is_undefined & rows["hollow"], 1.0),
        (style.SUSPECT, ~is_undefined & rows["marked"], 0.7),
    ):
        look = {**style.MARKS[label].look, "markerfacecolor": "none", "rasterized": True}
        look["markersize"] = size * min(LARGEST_MARK, CELL_SHARE * side)
        look["markeredgewidth"] = min(0.7, 0.1 * side)
        for shade, cells in rows[is_marked].groupby(ink[is_marked]):
            axes.plot(places[cells.index], cells["layer"], color=shade, label=label, **look)


def _list_trained_steps(table: pd.DataFrame) -> list[int]:
    """List the steps of a table above 0, ascending."""
    return sorted({int(step) for step in table["step"].dropna() if step > 0})


def _draw_steps(
    axes: Axes,
    table: pd.DataFrame,
    start: str,
    colours: Mapping[int, str],
    *,
    is_dashed: bool = False,
) -> dict[str, Line2D]:
    """Draw a line by layer for each step, and return the lines of the legend.

    Step 0 is grey and on top. With more than :data:`MOST_BANDS` steps there are no bands.
    """
    if table["step"].nunique() > MOST_BANDS:
        table = table.assign(low=np.nan, high=np.nan)
    legend = {}
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
            line.set_zorder(2.5)  # the first trained steps would hide it
            legend[f"step 0, {start}"] = line
        elif not is_only and len(colours) <= MOST_IN_LEGEND:
            legend[f"step {step:,.0f}"] = line
    return legend


def _add_step_legend(
    panels: np.ndarray, colours: Mapping[int, str], lines: dict[str, Line2D]
) -> None:
    """Add a legend of the steps above the panels, and a bar of colours at the right if steps are many."""
    if lines:
        order = sorted(lines, key=lambda name: int(name.split()[1].strip(",").replace(",", "")))
        marks.add_legend(panels[0, 0].figure, {name: lines[name] for name in order}, "right")
    if len(colours) > MOST_IN_LEGEND:
        norm = BoundaryNorm(np.arange(len(colours) + 1) - 0.5, len(colours))
        mappable = ScalarMappable(norm, ListedColormap([*colours.values()]))
        bar = scales.add_bar(mappable, panels, "Training step")
        scales.set_rank_ticks(bar.ax.yaxis, [*colours], scales.MOST_RANKS * len(panels))
