"""Draw a model and its null models: curves by layer, and means over layers by training step."""

from collections.abc import Collection, Mapping, Sequence
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator

from shape_of_learning.figures import captions, marks, scales, style
from shape_of_learning.figures.curves import find_log_measures
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
from shape_of_learning.metrics.suspects import FEW_WINDOWS, find_reasons
from shape_of_learning.metrics.tidy import AVERAGED_LAYERS, GROUPS
from shape_of_learning.words import enumerate_items

MODEL = "model itself"
# For each name in tables: the label of the line, its look, and its definition in the caption.
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
        "the same architecture with random weights, another draw than step 0",
    ),
    "gaussian": (
        "Gaussian",
        LineStyle(style.COLOURS[3], (0, (4, 1, 1, 1)), "v"),
        "vectors with the mean and the covariance of the hidden states",
    ),
    "gaussian_without_massive_tokens": (
        "Gaussian without massive tokens",
        LineStyle(style.COLOURS[4], (0, (2, 1)), "P"),
        "with those of all tokens but the massive ones",
    ),
}
ROW_HEIGHT, COMPARED_HEIGHT, FRAME = 1.15, 0.65, 0.5  # inches
MOST_POWERS = 5
SPAN_OF_RATIOS = 30  # a low panel whose ends have a smaller ratio also labels multiples by 2 and 5
COMPARED = " beside the model"  # suffix of the row of panels with ratios or differences
JACKKNIFE_COLUMNS = [f"without_{group}" for group in range(GROUPS)]
COLUMNS = ["model", "revision", "step", "tokens", "estimator", "control"]
MARKS = ["hollow", "marked", "bare"]
SHARES = ["near_duplicates", "same_token"]  # an average has the largest share of its layers


def controls_by_layer(inputs: FigureInputs) -> Drawing:
    """Draw a panel per measure (row) and model (column), with one line per null model, by layer."""
    model_rows = select_layers(inputs).assign(control=MODEL)
    checkpoints = model_rows[CHECKPOINT].drop_duplicates()
    controls = _add_intervals(_select_controls(inputs).merge(checkpoints, on=CHECKPOINT), inputs)
    table = pd.concat([model_rows, controls], ignore_index=True)
    return _make_drawing(inputs, table, "layer", model_rows)


def controls_by_step(inputs: FigureInputs, average_over: str = "block_outputs") -> Drawing:
    """Draw means over layers by training step, with one line per null model.

    The value of untrained weights is drawn at every step.
    """
    model_rows = select_averages(inputs, average_over).assign(control=MODEL)
    controls = _select_controls(inputs)
    controls = controls[controls["layer"] >= AVERAGED_LAYERS[average_over]]
    checkpoints = pd.MultiIndex.from_frame(model_rows[CHECKPOINT])
    is_shown = pd.MultiIndex.from_frame(controls[CHECKPOINT]).isin(checkpoints)
    controls = controls[is_shown | (controls["control"] == "untrained")]
    keys = [*CHECKPOINT, "step", "tokens", "estimator", "control"]
    controls = controls[controls["value"].notna()]
    groups = controls.groupby(keys, sort=False, dropna=False)
    means = groups.agg(
        dict.fromkeys(["value", *JACKKNIFE_COLUMNS], "mean") | dict.fromkeys(SHARES, "max")
    )
    # A mean over layers has no interval if a layer has none.
    counts = groups[JACKKNIFE_COLUMNS].count()
    means[JACKKNIFE_COLUMNS] = means[JACKKNIFE_COLUMNS].where(counts.eq(groups.size(), axis=0))
    means = means.reset_index()
    is_untrained = means["control"] == "untrained"
    steps = model_rows[[*CHECKPOINT, "step", "tokens"]].drop_duplicates()
    untrained_means = means[is_untrained].drop(columns=["revision", "step", "tokens"])
    means = pd.concat(
        [means[~is_untrained], untrained_means.merge(steps, on="model")], ignore_index=True
    )
    table = pd.concat([model_rows, _add_intervals(means, inputs)], ignore_index=True)
    return _make_drawing(inputs, table, "step", model_rows, AVERAGED_LAYERS_IN_WORDS[average_over])


def _select_controls(inputs: FigureInputs) -> pd.DataFrame:
    """Select the rows of the drawn models and measures."""
    rows = inputs.tables["controls"]
    names = [measure.name for measure in inputs.measures]
    models = [model.name for model in inputs.models]
    rows = rows[rows["estimator"].isin(names) & rows["model"].isin(models)]
    # Without a column of shares, the shares are NaN and mark no value.
    return rows.reindex(columns=list(dict.fromkeys([*rows, *SHARES])))


def _add_intervals(rows: pd.DataFrame, inputs: FigureInputs) -> pd.DataFrame:
    """Add intervals, and mark suspect values by the rules for tables of estimates."""
    low, high = interval(rows["value"].to_numpy(float), rows[JACKKNIFE_COLUMNS].to_numpy(float))
    conditions = {measure.name: measure.conditions for measure in inputs.measures}
    has_interval = rows["estimator"].map(lambda name: conditions[name].has_interval)
    low, high = np.where(has_interval, low, np.nan), np.where(has_interval, high, np.nan)
    widths = {model.name: model.width for model in inputs.models}
    rows = rows.assign(low=low, high=high, bare=False, hollow=False)
    reasons_by_row = [
        find_reasons(
            conditions[row.estimator],
            row.value,
            row.low,
            row.high,
            near_duplicates=row.near_duplicates,
            same_token=row.same_token,
            width=widths[row.model],
        )
        for row in rows.itertuples()
    ]
    return rows.assign(marked=[bool({*reasons} - {FEW_WINDOWS}) for reasons in reasons_by_row])


def _make_drawing(
    inputs: FigureInputs, table: pd.DataFrame, x: str, model_rows: pd.DataFrame, *sentences: str
) -> Drawing:
    place = ["layer", "depth"] if x == "layer" else []
    table = add_labels(
        table[[*COLUMNS, *place, "value", "low", "high", "batch_sd", *MARKS]], inputs
    )
    looks = {name: look for name, (_, look, _) in CONTROLS.items()}
    labels = {name: label for name, (label, _, _) in CONTROLS.items()}
    rows = {measure.name: scales.name_axis(measure) for measure in inputs.measures}
    *definitions, purpose = _describe_controls(inputs, table)
    lines = table.assign(row=table["estimator"], kind=table["control"])
    heights = [ROW_HEIGHT] * len(rows)
    logarithmic = find_log_measures(table, inputs.measures)
    if x == "layer":
        # Where lines of null models cover the model's, a panel of differences tells them apart.
        table = _compare_with_model(table, logarithmic)
        comparison = table[table["control"] != MODEL]
        comparison = comparison.assign(
            row=comparison["estimator"] + COMPARED,
            kind=comparison["control"],
            value=comparison["difference"].fillna(comparison["ratio"]),
            low=np.nan,
            high=np.nan,
        )
        lines = pd.concat([lines, comparison])
        both: dict[str, str] = {}
        for name, label in rows.items():
            word = "ratio to" if name in logarithmic else "difference\nfrom"
            both |= {name: label, name + COMPARED: f"{word} the\nmodel"}
        rows = both
        heights = [ROW_HEIGHT, COMPARED_HEIGHT] * len(inputs.measures)
    is_null = table["control"] != MODEL
    rings = "Counts of rings are of the models. Null models have rings for the same reasons."
    if x == "layer":
        rings += " A ratio or difference has a ring if one of its two values has one."
    notes = [
        *captions.format_footnote(inputs, model_rows),
        rings if table.loc[is_null, "marked"].astype(bool).any() else "",
        *definitions,
        captions.join_sentences(
            "Rows differ in scale.", *(_describe_steps(table) if x == "step" else ())
        ),
    ]
    figure, grid = draw_line_panels(
        inputs, lines, x, rows, (looks, labels), *notes, heights=heights
    )
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
                if isinstance(powers := axes.yaxis.get_major_locator(), LogLocator):
                    powers.set_params(numticks=MOST_POWERS)  # else a low panel skips 1
    words = captions.describe_estimates(model_rows)
    return make_drawing(inputs, figure, table, words, *sentences, purpose)


def _describe_steps(table: pd.DataFrame) -> list[str]:
    """List notes on the x axis, and on null models that are not measured at every step."""
    steps = table.groupby(["model", "control"])["step"].nunique()
    is_sparse = (steps < steps.groupby("model").transform("max")).any()
    has_untrained = (table["control"] == "untrained").any()
    return [
        scales.describe_progress(table, "step"),
        "Untrained weights have one value, drawn at every step." if has_untrained else "",
        "Other null models are measured at some steps only: points." if is_sparse else "",
    ]


def _compare_with_model(table: pd.DataFrame, logarithmic: Collection[str]) -> pd.DataFrame:
    """Add ``difference``, a null model less the model at each layer, or ``ratio`` for a logarithmic axis."""
    keys = [*CHECKPOINT, "estimator", "layer"]
    is_model = table["control"] == MODEL
    model_values = table[is_model].set_index(keys)["value"].rename("model_value")
    model_value = table.join(model_values, on=keys)["model_value"].mask(is_model)
    is_ratio = table["estimator"].isin(logarithmic)
    model_marks = table[is_model].set_index(keys)["marked"].rename("model_is_suspect")
    model_is_suspect = table.join(model_marks, on=keys)["model_is_suspect"].eq(True)
    return table.assign(
        marked=table["marked"].astype(bool) | model_is_suspect,
        difference=(table["value"] - model_value).mask(is_ratio),
        ratio=(table["value"] / model_value).where(is_ratio),
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

    Panels of a row share the y axis, those of a column the x axis. Rows with different kinds have their own legends.

    Parameters
    ----------
    inputs : FigureInputs
    table : pandas.DataFrame
        Points, with the columns ``label`` of the model, ``row``, ``kind``, `x`, ``value``, ``low``, ``high``.
    x : {"layer", "step"}
    rows : mapping of str to str
        The label of each row's y axis.
    kinds : tuple of mapping of str
        The look of each kind's line, and its label in the legend.
    notes : str
        Sentences of the footnote.
    heights : sequence of float
        The heights of the rows in inches; by default :data:`ROW_HEIGHT`.
    """
    looks, labels = kinds
    models = dict([*table.groupby("label", sort=False)])
    heights = heights or [ROW_HEIGHT] * len(rows)
    figure, grid = marks.make_panels(
        len(rows),
        len(models),
        FRAME + sum(heights),
        *notes,
        height_ratios=heights,
        width=style.TEXT_WIDTH,
        sharex="col",
        sharey="row",
    )
    legends: list[dict[str, Line2D]] = [{} for _ in rows]
    for (row, name), (column, model_rows) in product(enumerate(rows), enumerate(models.values())):
        axes = grid[row, column]
        panel_rows = model_rows[model_rows["row"] == name]
        steps = panel_rows.loc[panel_rows["kind"] == next(iter(looks)), x]
        for kind, look in looks.items():
            points = panel_rows[panel_rows["kind"] == kind].sort_values(x)
            if len(points):
                # A null model of fewer steps than the model has points without a line.
                is_line = x == "layer" or steps.isin(points[x]).all()
                for part in [points] if is_line else [point for _, point in points.groupby(x)]:
                    line = marks.draw_line(
                        axes, part, x, look, label=labels[kind], markers=x == "step"
                    )
                    if not is_line:
                        line.set_linestyle("none")  # the legend shows no line either
                    legends[row].setdefault(labels[kind], line)
        if x == "step":
            scales.set_progress_axis(axes, model_rows["step"])
        else:
            scales.set_whole_ticks(axes.xaxis)
    for label, axes in zip(models, grid[0], strict=True):
        axes.set_title(marks.wrap_panel_title(label, figure, len(models)))
    for axes in grid[-1]:
        axes.set_xlabel(marks.X_LABELS[x])
    for axes, label in zip(grid[:, 0], rows.values(), strict=True):
        axes.set_ylabel(label)
    _add_legends(figure, grid, legends)
    return figure, grid


def _add_legends(figure: Figure, grid: np.ndarray, legends: Sequence[Mapping[str, Line2D]]) -> None:
    """Put one legend above all panels if any row has all kinds of lines, else a legend beside each row."""
    lines = {label: line for legend in legends for label, line in legend.items()}
    if any(len(legend) == len(lines) for legend in legends):
        figure.legend(lines.values(), lines.keys(), loc="outside upper left", ncols=3)
        return
    for legend, axes in zip(legends, grid[:, -1], strict=True):
        axes.legend(legend.values(), legend.keys(), loc="upper left", bbox_to_anchor=(1, 1))


def _describe_controls(inputs: FigureInputs, table: pd.DataFrame) -> list[str]:
    """Define the null models, list the measures whose values a Gaussian shares, and state their purpose."""
    names = [name for name in CONTROLS if name in set(table["control"]) and name != MODEL]
    definitions = [f"{CONTROLS[name][0]}: {CONTROLS[name][2]}" for name in names]
    gaussian_measures = set(table.loc[table["control"].str.startswith("gaussian"), "estimator"])
    labels_without_gaussian = [m.label for m in inputs.measures if m.name not in gaussian_measures]
    same = f"A Gaussian has the same {enumerate_items(labels_without_gaussian or [''])}, by its covariance."
    return [
        f"Null models: {'; '.join(definitions)}.",
        same if gaussian_measures and labels_without_gaussian else "",
        "Shuffled tokens show what their order adds, untrained weights what training adds"
        + (", and a Gaussian what is beyond the covariance." if gaussian_measures else "."),
    ]
