"""The figures of "Your Transformer is Secretly Linear"; paper.yaml says what each of them shows."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from shape_of_learning.errors import InputError
from shape_of_learning.figures import captions, marks, scales
from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.figures.output import Drawing
from shape_of_learning.figures.profiles import draw_profiles, profiles_drawing
from shape_of_learning.figures.style import (
    COLOURS,
    COLUMN_WIDTH,
    INK,
    LOW_PANEL_HEIGHT,
    MARKERS,
    PANEL_HEIGHT,
    TEXT_WIDTH,
    line_styles,
)
from shape_of_learning.figures.tables import by_layer, over_layers

THIN = 0.5  # points, of a line beside another one of the same model
FRAME = 0.5  # inches above and below a panel, for its title and the x axis
SCORES = {"linearity": "Output", "linearity_increment": "Increment"}
ROWS = {"": "All tokens", "_without_first_token": "Without first tokens"}
DEPTH = "Relative depth"
QUANTITIES = {
    "linearity_increment_adjusted": "Linearity of the\nincrement, adjusted",
    "linearity_adjusted": "Linearity,\nadjusted",
    "anisotropy": "Anisotropy",
    "two_nn": "Dimension\n(TwoNN)",
    "held_out_loss": "Held-out loss\n(nats per token)",
}
SMALLEST_TOLD = 0.001  # change of a score
# Of the errors: from one quantile to another, with the opacity of the band between them.
BANDS = {
    ("quantile_0.01", "quantile_0.99"): 0.15,
    ("quantile_0.1", "quantile_0.9"): 0.25,
    ("quantile_0.25", "quantile_0.75"): 0.45,
}
MEDIAN = "quantile_0.5"
WIDE = 100  # times the smallest error, from which on powers of ten are labels enough
HEIGHTS = (1.6, 0.9)  # inches of the panels above each other
FRAME_OF_ERRORS = 0.7  # inches above and below


def linearity_by_depth(inputs: FigureInputs) -> Drawing:
    """Figure 1: scores of both kinds; lines are adjusted, thin ones the held-out score."""
    table = by_layer(inputs)
    figure = Figure(figsize=(TEXT_WIDTH, marks.height_for_labels(len(inputs.models)) + FRAME))
    panels = figure.subplots(1, len(SCORES), sharey=True)
    styles = line_styles(inputs.models)
    adjusted = table[table["estimator"].isin([f"{score}_adjusted" for score in SCORES])]
    adjusted = adjusted.assign(low=np.nan, high=np.nan)  # a band would look like an interval
    held_out = table[table["estimator"].isin([f"{score}_held_out" for score in SCORES])]
    for axes, (score, title) in zip(panels, SCORES.items(), strict=True):
        own = adjusted[adjusted["estimator"] == f"{score}_adjusted"]
        lines = draw_profiles(axes, own, inputs.models)
        others = held_out[held_out["estimator"] == f"{score}_held_out"]
        for name, rows in others.groupby("model", sort=False):
            thin = {"color": styles[name].colour, "linewidth": THIN, "label": "_held_out"}
            axes.plot(rows["depth"], rows["value"], **thin)
        axes.set(title=title, xlabel=DEPTH)
        scales.open_frame(axes)
    panels[0].set_ylabel("Linearity")
    # Where a model is wide and the sample is small, held-out scores are far below the lines.
    lowest = min(0.0, float(adjusted["value"].min())) if adjusted["value"].notna().any() else 0.0
    panels[0].set_ylim(lowest - 0.02, 1.02)
    widths = {"adjusted": None, "held out": THIN}
    handles = [Line2D([], [], color=INK, linewidth=w, label=name) for name, w in widths.items()]
    figure.legend(handles=handles, loc="outside upper right", ncols=len(handles))
    marks.label_line_ends(panels[-1], lines)
    sizes = captions.range_of(table.loc[table["value"].notna(), "n"])
    words = captions.caption(
        inputs.caption,
        f"Lines: share of the variance that least squares on {sizes} vectors explains, adjusted for the "
        "number of directions that they span; thin lines: the score of vectors that the map was not fitted "
        "to, in two folds of whole windows.",
        "Thin lines end at the edge of the panel where that score is below it."
        if (held_out["value"] < lowest - 0.02).any()
        else "",
        "The numbers also have the score as the paper defines it, which noise raises by the number of "
        "directions over that of vectors, and 95 % intervals of all three.",
        captions.undefined(table),
    )
    return Drawing(figure, table.drop(columns="suspect"), words)


def norm_ratio_by_depth(inputs: FigureInputs) -> Drawing:
    """Figure 3: the norm of what a block adds over that of its output, on a log axis."""
    table = by_layer(inputs)
    height = marks.height_for_labels(len(inputs.models)) + FRAME
    figure = Figure(figsize=(COLUMN_WIDTH, height))
    axes = figure.subplots()
    lines = draw_profiles(axes, table, inputs.models)
    axes.set(xlabel=DEPTH, ylabel=inputs.measures[0].axis)
    scales.set_log_axis(axes)
    scales.open_frame(axes)
    marks.label_line_ends(axes, lines)
    return profiles_drawing(figure, table, inputs)


def first_tokens(inputs: FigureInputs) -> Drawing:
    """Figure 1 as the paper has it, with each window's first token above and without it below."""
    table = by_layer(inputs)
    height = marks.height_for_labels(len(inputs.models), LOW_PANEL_HEIGHT) + 0.7 * FRAME
    figure = Figure(figsize=(TEXT_WIDTH, 2 * height))
    grid = figure.subplots(len(ROWS), len(SCORES), sharex=True, sharey=True)
    for row, (suffix, tokens) in zip(grid, ROWS.items(), strict=True):
        for axes, (score, title) in zip(row, SCORES.items(), strict=True):
            rows = table[table["estimator"] == f"{score}{suffix}"]
            lines = draw_profiles(axes, rows, inputs.models)
            axes.set_title(f"{title}: {tokens[:1].lower()}{tokens[1:]}")
            scales.open_frame(axes)
        if not suffix:
            labelled = lines
        row[0].set_ylabel("Linearity")
    for axes in grid[-1]:
        axes.set_xlabel(DEPTH)
    grid[0, 0].set_ylim(-0.02, 1.02)
    marks.label_line_ends(grid[0, -1], labelled)
    changes = [_change(table, score, title) for score, title in SCORES.items()]
    return profiles_drawing(figure, table, inputs, *changes)


def _change(table: pd.DataFrame, score: str, title: str) -> str:
    """Say how much of a score rests on first tokens: its change without them."""
    of_layer = ["label", "layer"]
    kinds = [table[table["estimator"] == f"{score}{suffix}"].set_index(of_layer) for suffix in ROWS]
    both = pd.concat([kind["value"] for kind in kinds], axis=1, keys=["all", "without"]).dropna()
    if both.empty:
        return ""
    change = both["without"] - both["all"]
    if change.abs().max() < SMALLEST_TOLD:
        return f"{title}: without first tokens no score changes by {SMALLEST_TOLD}."
    label, block = change.abs().idxmax()
    before, after = both.loc[(label, block), ["all", "without"]]
    return (
        f"{title}: without first tokens the score changes by {change.mean():+.4f} in the mean over blocks "
        f"and models, and most at block {block} of {label}, from {before:.4f} to {after:.4f}."
    )


def twins(inputs: FigureInputs) -> Drawing:
    """Figure 4: each quantity of a model and of its twins, and the difference over seeds."""
    table = _twins(inputs)
    quantities = list(dict.fromkeys(table["quantity"]))
    figure = Figure(figsize=(TEXT_WIDTH, PANEL_HEIGHT))
    settings = list(dict.fromkeys(table["setting"]))
    for axes, quantity in zip(figure.subplots(1, len(quantities)), quantities, strict=True):
        rows = table[table["quantity"] == quantity]
        for place, setting in enumerate(settings):
            own = rows[rows["setting"] == setting]
            style = {
                "color": COLOURS[place % len(COLOURS)],
                "marker": MARKERS[place % len(MARKERS)],
            }
            ends = own[["plain", "value"]].to_numpy().T
            axes.plot([0, place + 1], ends, **style)
        slanted = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
        axes.set_xticks(range(len(settings) + 1), ["none", *settings], **slanted)
        axes.set_title(QUANTITIES[quantity])
        axes.margins(x=0.2)
        scales.open_frame(axes)
    differences = [
        f"{setting}: "
        + "; ".join(
            f"{QUANTITIES[quantity].replace(chr(10), ' ')} {_mean_and_deviation(rows['difference'])}"
            for quantity, rows in own.groupby("quantity", sort=False)
        )
        for setting, own in table.groupby("setting", sort=False)
    ]
    words = captions.caption(
        inputs.caption,
        "A line joins twins. Paired differences, mean and standard deviation over pairs.",
        f"{'. '.join(each[:1].upper() + each[1:] for each in differences)}.",
    )
    return Drawing(figure, table, words)


def changes_by_finetuning(inputs: FigureInputs) -> Drawing:
    """Table 1: the last less the first step of each fine-tuning, by what was tuned on which task."""
    table = _changes(inputs)
    groups = list(dict.fromkeys(table["setting"]))
    measures = [each.name for each in inputs.measures]
    figure = Figure(figsize=(TEXT_WIDTH, FRAME + 0.35 * (1 + len(groups))))
    panels = figure.subplots(1, len(measures), sharey=True)
    said = []
    for axes, measure in zip(panels, inputs.measures, strict=True):
        for place, group in enumerate(groups):
            own = table[(table["setting"] == group) & (table["estimator"] == measure.name)]
            axes.plot(own["change"], [place] * len(own), linestyle="", marker="o", color=COLOURS[0])
            said.append(f"{measure.label}, {group} {_mean_and_deviation(own['change'])}")
        axes.axvline(0, color=INK, linewidth=0.6)
        axes.set(title=measure.label, xlabel="Change")
        scales.open_frame(axes)
    marks.make_room_for(figure, groups)
    panels[0].set_yticks(range(len(groups)), groups)
    panels[0].set_ylim(len(groups) - 0.5, -0.5)
    words = captions.caption(
        inputs.caption,
        f"Dots: seeds. Mean and standard deviation over seeds: {'; '.join(said)}.",
        "Published, of other models and tasks: 0.004 to 0.382.",
    )
    return Drawing(figure, table, words)


def _twins(inputs: FigureInputs) -> pd.DataFrame:
    """One row for each twin and quantity, with the value of the plain one and the difference."""
    training = inputs.tables["training"]
    # Not `last()`, which would pass by the last loss of a training that diverged: it is missing.
    last = training.sort_values("step").groupby("model").tail(1).set_index("model")
    means = over_layers(inputs).set_index(["estimator", "model"])["value"]
    losses = pd.concat({"held_out_loss": last["held_out_loss"]})
    values = pd.concat([means, losses])
    rows = []
    for model in inputs.models:
        plain = last["twin_of"].get(model.name)
        if not isinstance(plain, str) or plain not in last.index:
            continue
        setting = f"{last['regulariser'][model.name]} {last['strength'][model.name]:g}"
        for quantity in QUANTITIES:
            both = [values.get((quantity, name), np.nan) for name in (plain, model.name)]
            rows.append((model.name, plain, setting, quantity, *both, both[1] - both[0]))
    if not rows:
        raise InputError(
            "the figure draws no twin together with the model that it is the twin of; name both in its key "
            "of `figures`"
        )
    columns = ["model", "twin_of", "setting", "quantity", "plain", "value", "difference"]
    return pd.DataFrame(rows, columns=columns)


def _changes(inputs: FigureInputs) -> pd.DataFrame:
    """One row for each fine-tuning and estimator: its first and last value and what lies between."""
    training = inputs.tables["training"].drop_duplicates("model").set_index("model")
    means = over_layers(inputs)
    rows = []
    for model in inputs.models:
        tuned = training.loc[model.name]
        if not isinstance(tuned["origin"], str):
            continue
        for measure in inputs.measures:
            kept = (means["model"] == model.name) & (means["estimator"] == measure.name)
            first, last = means[kept]["value"].iloc[[0, -1]]
            setting = f"{tuned['origin']}, {tuned['task']}"
            rows.append(
                (model.name, setting, tuned["seed"], measure.name, first, last, last - first)
            )
    if not rows:
        raise InputError("the figure draws no fine-tuned model; name some in its key of `figures`")
    columns = ["model", "setting", "seed", "estimator", "first", "last", "change"]
    return pd.DataFrame(rows, columns=columns)


def _mean_and_deviation(values: pd.Series) -> str:
    """Say a mean, and the standard deviation where there are several values."""
    defined = values.dropna()
    if defined.empty:
        return "undefined"
    spread = f" (sd {defined.std():.3f}, n {len(defined)})" if len(defined) > 1 else " (n 1)"
    return f"{defined.mean():+.3f}{spread}"


def errors_of_tokens(inputs: FigureInputs) -> Drawing:
    """Figure 9, from ``fit_errors``: quantiles of the errors above, below the share of the worst tokens."""
    labels = {model.name: model.label for model in inputs.models}
    table = inputs.tables["fit_errors"].copy()
    table.insert(1, "label", table["model"].map(labels))
    width = COLUMN_WIDTH if len(labels) == 1 else TEXT_WIDTH
    figure = Figure(figsize=(width, sum(HEIGHTS) + FRAME_OF_ERRORS))
    grid = figure.subplots(
        2, len(labels), sharex="col", sharey="row", squeeze=False, height_ratios=HEIGHTS
    )
    for (above, below), (name, label) in zip(grid.T, labels.items(), strict=True):
        rows = table[table["model"] == name]
        _draw_quantiles(above, rows)
        below.plot(rows["layer"], rows["share_of_worst_tokens"], color=COLOURS[1], marker="o")
        below.axhline(0.01, color="0.5", linewidth=0.6, linestyle=(0, (1, 1)))
        below.set(ylim=(0, None), xlabel="Block")
        scales.set_whole_ticks(below.xaxis)
        above.set_title(marks.panel_title(label, figure, len(labels)))
        scales.open_frame(above)
        scales.open_frame(below)
    grid[0, 0].set_ylabel("Error of a token")
    grid[1, 0].set_ylabel("Share of\nworst 1 %")
    words = (
        "Line: median; bands: from the first to the third quartile, from 10 to 90 and from 1 to 99 % of the "
        "tokens. Below: what the 1 % of tokens with the largest errors have of the sum of squares (dotted: "
        f"if all had the same error); {captions.range_of(table['tokens'])} tokens."
    )
    return Drawing(figure, table, captions.caption(inputs.caption, words))


def _draw_quantiles(axes: Axes, rows: pd.DataFrame) -> None:
    drawn = rows[[quantile for band in BANDS for quantile in band]].stack()
    scales.set_log_axis(axes, (1, 2, 5) if drawn.max() < WIDE * drawn.min() else (1,))
    for (low, high), opacity in BANDS.items():
        axes.fill_between(
            rows["layer"], rows[low], rows[high], color=COLOURS[0], alpha=opacity, linewidth=0
        )
    axes.plot(rows["layer"], rows[MEDIAN], color=COLOURS[0], marker="o")
