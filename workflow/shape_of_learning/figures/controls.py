"""A model beside its null models: curves by layer, and means over layers by training step."""

from collections.abc import Collection, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from shape_of_learning.figures import captions, marks, scales, style
from shape_of_learning.figures.curves import log_measures
from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.figures.output import Drawing, make_drawing
from shape_of_learning.figures.style import LineStyle
from shape_of_learning.figures.tables import (
    AVERAGED_LAYERS_IN_WORDS,
    CHECKPOINT,
    add_labels,
    select_averages,
    select_layers,
)
from shape_of_learning.metrics.intervals import interval
from shape_of_learning.metrics.tidy import GROUPS

MODEL = "model itself"
# By the names in tables: what a line is called, how it looks, and what a caption says of it.
CONTROLS = {
    MODEL: ("model", LineStyle(style.INK, "-", "o"), ""),
    "shuffled_within_windows": (
        "tokens shuffled within windows",
        LineStyle(style.COLOURS[0], (0, (4, 1.2)), "s"),
        "the tokens of each window in another order",
    ),
    "shuffled_unigram": (
        "tokens shuffled over windows",
        LineStyle(style.COLOURS[1], (0, (1, 1)), "D"),
        "the tokens of all windows in another order",
    ),
    "untrained": (
        "untrained weights",
        LineStyle(style.COLOURS[2], (0, (7, 1.5)), "^"),
        "the same architecture with weights as they are initialised",
    ),
    "gaussian": (
        "Gaussian",
        LineStyle(style.COLOURS[3], (0, (4, 1, 1, 1)), "v"),
        "vectors with the mean and the covariance of the hidden states",
    ),
}
ROW_HEIGHT, COMPARED_HEIGHT, FRAME = 1.15, 0.65, 0.5  # inches
SPAN_OF_RATIOS = 30  # from the lowest to the highest, up to which a low panel labels 1, 2 and 5
COMPARED = " beside the model"  # after an estimator, the row of panels that compares
WITHOUT = [f"without_{group}" for group in range(GROUPS)]
COLUMNS = ["model", "revision", "step", "tokens", "estimator", "control"]
MARKS = ["hollow", "marked", "bare"]


def controls_by_layer(inputs: FigureInputs) -> Drawing:
    """Draw a panel per measure (row) and model (column), with one line per control, by layer."""
    own = select_layers(inputs).assign(control=MODEL)
    found = _select_controls(inputs)
    found = _add_intervals(found.merge(own[CHECKPOINT].drop_duplicates(), on=CHECKPOINT))
    bare = found["estimator"].isin(
        [measure.name for measure in inputs.measures if not measure.has_interval]
    )
    found.loc[bare, ["low", "high"]] = np.nan
    table = pd.concat([own, found], ignore_index=True)
    return _make_drawing(inputs, table, "layer", own)


def controls_by_step(inputs: FigureInputs, average_over: str = "block_outputs") -> Drawing:
    """Draw the same of means over layers, by training step; untrained weights at every step."""
    own = select_averages(inputs, average_over).assign(control=MODEL)
    found = _select_controls(inputs)
    found = found[found["layer"] >= (average_over == "block_outputs")]
    places = pd.MultiIndex.from_frame(own[CHECKPOINT])
    is_shown = pd.MultiIndex.from_frame(found[CHECKPOINT]).isin(places)
    found = found[is_shown | (found["control"] == "untrained")]
    keys = [*CHECKPOINT, "step", "tokens", "estimator", "control"]
    means = found.groupby(keys, sort=False, dropna=False)[["value", *WITHOUT]].mean().reset_index()
    table = pd.concat([own, _add_intervals(_repeat_at_every_step(means, own))], ignore_index=True)
    return _make_drawing(inputs, table, "step", own, AVERAGED_LAYERS_IN_WORDS[average_over])


def _select_controls(inputs: FigureInputs) -> pd.DataFrame:
    """Rows of the models and measures that are drawn."""
    found = inputs.tables["controls"]
    names = [measure.name for measure in inputs.measures]
    models = [model.name for model in inputs.models]
    return found[found["estimator"].isin(names) & found["model"].isin(models)]


def _add_intervals(rows: pd.DataFrame) -> pd.DataFrame:
    low, high = interval(rows["value"].to_numpy(float), rows[WITHOUT].to_numpy(float))
    return rows.assign(low=low, high=high, bare=False, hollow=False, marked=False)


def _repeat_at_every_step(means: pd.DataFrame, own: pd.DataFrame) -> pd.DataFrame:
    """Repeat what is of no step."""
    is_constant = means["control"] == "untrained"
    places = own[[*CHECKPOINT, "step", "tokens"]].drop_duplicates()
    fixed = means[is_constant].drop(columns=["revision", "step", "tokens"])
    return pd.concat([means[~is_constant], fixed.merge(places, on="model")], ignore_index=True)


def _make_drawing(
    inputs: FigureInputs, table: pd.DataFrame, x: str, own: pd.DataFrame, *sentences: str
) -> Drawing:
    place = ["layer", "depth"] if x == "layer" else []
    table = add_labels(
        table[[*COLUMNS, *place, "value", "low", "high", "batch_sd", *MARKS]], inputs
    )
    looks = {name: look for name, (_, look, _) in CONTROLS.items()}
    words = {name: said for name, (said, _, _) in CONTROLS.items()}
    rows = {
        measure.name: measure.axis
        if measure.label == measure.axis
        else f"{measure.axis},\n{measure.label}"
        for measure in inputs.measures
    }
    *defined, adds = _describe_controls(inputs, table)
    lines = table.assign(row=table["estimator"], kind=table["control"])
    heights, logarithmic = [ROW_HEIGHT] * len(rows), log_measures(table, inputs.measures)
    if x == "layer":
        # Null models that coincide with the model are told apart by what they differ in.
        table = _compare_with_model(table, logarithmic)
        compared = table[table["control"] != MODEL]
        compared = compared.assign(
            row=compared["estimator"] + COMPARED,
            kind=compared["control"],
            value=compared["difference"].fillna(compared["ratio"]),
            low=np.nan,
            high=np.nan,
        )
        lines = pd.concat([lines, compared])
        both: dict[str, str] = {}
        for name, label in rows.items():
            word = "ratio to" if name in logarithmic else "difference\nfrom"
            both |= {name: label, name + COMPARED: f"{word} the\nmodel"}
        rows = both
        heights = [ROW_HEIGHT, COMPARED_HEIGHT] * len(inputs.measures)
    notes = [*captions.write_footnote(inputs, own), *defined]
    figure, grid = draw_line_panels(inputs, lines, x, rows, (looks, words), *notes, heights=heights)
    panels_by_row = dict(zip(rows, grid, strict=True))
    for measure in inputs.measures:
        for axes in panels_by_row[measure.name]:
            if measure.name in logarithmic:
                scales.set_log_axis(axes)
            scales.begin_at_zero(axes, [measure])
        for axes in panels_by_row.get(measure.name + COMPARED, ()):
            is_ratio = measure.name in logarithmic
            axes.axhline(1 if is_ratio else 0, color=style.INK, linewidth=0.6, zorder=1)
            if is_ratio:
                scales.set_log_axis(axes, SPAN_OF_RATIOS)
    return make_drawing(inputs, figure, table, captions.describe_estimates(own), *sentences, adds)


def _compare_with_model(table: pd.DataFrame, logarithmic: Collection[str]) -> pd.DataFrame:
    """Compare null models with the model at the same layer: by ``difference``, on a log axis by ``ratio``."""
    keys = [*CHECKPOINT, "estimator", "layer"]
    is_model = table["control"] == MODEL
    model = table[is_model].set_index(keys)["value"].rename("of_model")
    of_model = table.join(model, on=keys)["of_model"].mask(is_model)
    is_ratio = table["estimator"].isin(logarithmic)
    return table.assign(
        difference=(table["value"] - of_model).mask(is_ratio),
        ratio=(table["value"] / of_model).where(is_ratio),
    )


def draw_line_panels(
    inputs: FigureInputs,
    table: pd.DataFrame,
    x: str,
    rows: Mapping[str, str],
    kinds: tuple[Mapping[str, LineStyle], Mapping[str, str]],
    *notes: str,
    heights: Sequence[float] = (),
) -> tuple[Figure, np.ndarray]:
    """Draw a panel per quantity (row) and model (column), with one line per kind and a legend.

    The panels of a row have one y axis, those of a column one x axis. Rows with lines of other kinds have legends
    of their own.

    Parameters
    ----------
    inputs : FigureInputs
    table : pandas.DataFrame
        Points, with the columns ``label``, of the model, ``row``, ``kind``, `x`, ``value``, ``low``, ``high``.
    x : {"layer", "step"}
    rows : mapping of str to str
        Label of the y axis of each row.
    kinds : tuple of mapping of str
        How the line of each kind looks, and what the legend calls it.
    notes : str
        Sentences of the footnote.
    heights : sequence of float
        Inches of each row; all alike if empty.
    """
    models = dict([*table.groupby("label", sort=False)])
    heights = heights or [ROW_HEIGHT] * len(rows)
    shape: dict[str, Any] = {"height_ratios": heights, "width": style.TEXT_WIDTH}
    shape |= {"sharex": "col", "sharey": "row"}
    figure, grid = marks.make_panels(len(rows), len(models), FRAME + sum(heights), *notes, **shape)
    named: list[dict[str, Line2D]] = [{} for _ in rows]
    for (row, name), (column, of) in product(enumerate(rows), enumerate(models.values())):
        axes, own = grid[row, column], of[of["row"] == name]
        steps = own.loc[own["kind"] == next(iter(kinds[0])), x]
        for kind, look in kinds[0].items():
            line = own[own["kind"] == kind].sort_values(x)
            if len(line):
                label = kinds[1][kind]
                # Of a control of few steps nothing is known in between.
                is_whole = x == "layer" or steps.isin(line[x]).all()
                for part in [line] if is_whole else [point for _, point in line.groupby(x)]:
                    drawn = marks.draw_line(axes, part, x, look, label=label, markers=x == "step")
                    named[row].setdefault(label, drawn)
        if x == "step":
            scales.set_progress_axis(axes, of["step"])
        else:
            scales.set_whole_ticks(axes.xaxis)
    for label, axes in zip(models, grid[0], strict=True):
        axes.set_title(marks.wrap_panel_title(label, figure, len(models)))
    for axes in grid[-1]:
        axes.set_xlabel(marks.ALONG[x])
    for axes, label in zip(grid[:, 0], rows.values(), strict=True):
        axes.set_ylabel(label)
    _name_kinds(figure, grid, named)
    return figure, grid


def _name_kinds(figure: Figure, grid: np.ndarray, named: Sequence[Mapping[str, Line2D]]) -> None:
    """Put one legend above all panels if a row has all kinds of lines, else one beside each row."""
    everything = {label: line for of_row in named for label, line in of_row.items()}
    if any(len(of_row) == len(everything) for of_row in named):
        place = {"loc": "outside upper left", "ncols": 3}
        figure.legend(everything.values(), everything.keys(), **place)
        return
    for of_row, axes in zip(named, grid[:, -1], strict=True):
        axes.legend(of_row.values(), of_row.keys(), loc="upper left", bbox_to_anchor=(1, 1))


def _describe_controls(inputs: FigureInputs, table: pd.DataFrame) -> list[str]:
    """What the controls are, and which measures have none."""
    shown = [name for name in CONTROLS if name in set(table["control"]) and name != MODEL]
    said = [f"{CONTROLS[name][0]}: {CONTROLS[name][2]}" for name in shown]
    has_gaussian = set(table.loc[table["control"] == "gaussian", "estimator"])
    without = [m.label for m in inputs.measures if m.name not in has_gaussian]
    same = (
        f"A Gaussian has the same {captions.enumerate_items(without or [''])}, by its covariance."
    )
    return [
        f"Null models: {'; '.join(said)}.",
        same if has_gaussian and without else "",
        "Shuffled tokens show what their order adds, untrained weights what training adds"
        + (", and a Gaussian what is beyond the covariance." if has_gaussian else "."),
    ]
