"""The figures of "Your Transformer is Secretly Linear", whose content paper.yaml describes."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch

from shape_of_learning.figures import captions, marks, scales, style
from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.figures.output import Drawing, make_drawing
from shape_of_learning.figures.tables import (
    CHECKPOINT,
    list_shown_checkpoints,
    select_averages,
    select_layers,
)
from shape_of_learning.metrics.intervals import interval
from shape_of_learning.metrics.tidy import GROUPS
from shape_of_learning.words import capitalise

THIN = 0.5  # points, the width of a model's second line
SCORES = {"linearity": "Output", "linearity_increment": "Increment"}
ROWS = {"": "all tokens", "_without_first_token": "without first tokens"}
QUANTITIES = {
    "linearity_increment": "Linearity of\nthe increment",
    "linearity_increment_adjusted": "Linearity of the\nincrement, adjusted",
    "anisotropy": "Anisotropy",
    "two_nn": "Dimension\n(TwoNN)",
    "held_out_loss": "Held-out loss\n(nats per token)",
}
SHARES = ("linearity_increment", "linearity_increment_adjusted", "anisotropy")
MARGIN = 0.05  # the share of the range of the values that an axis adds at an end
# Quantiles of the errors at the ends of a band -> the share of colour in the band.
BANDS = {
    ("quantile_0.01", "quantile_0.99"): 0.15,
    ("quantile_0.1", "quantile_0.9"): 0.36,
    ("quantile_0.25", "quantile_0.75"): 0.65,
}
MEDIAN = "quantile_0.5"
EQUAL_ERRORS = {"color": "0.5", "linewidth": 0.6, "linestyle": (0, (1, 1))}
SEED_PITCH = 0.08  # inches between the bars of two seeds
HEIGHTS = (1.6, 0.9)  # inches, of the upper and the lower panel
FRAME_OF_ERRORS = 0.7  # inches above and below the panels
BEYOND_BANDS = 1.1  # the lower limit of a panel is the lowest band over this number


def linearity_by_depth(inputs: FigureInputs) -> Drawing:
    """Draw figure 1: the paper's two scores above; below, adjusted scores, and held-out scores as thin lines."""
    table = select_layers(inputs)
    styles = style.choose_line_styles(inputs.models)
    scores = {name: table[table["estimator"] == name] for name in table["estimator"].unique()}
    panels = [
        [
            (f"{title}: {kind}", scores.get(f"{score}{suffix}", table[:0]))
            for score, title in SCORES.items()
        ]
        for suffix, kind in (("", "the paper's score"), ("_adjusted", "adjusted; thin: held out"))
    ]
    adjusted_rows = pd.concat([model_rows for _, model_rows in panels[1]])
    held_out_rows = table[table["estimator"].isin([f"{score}_held_out" for score in SCORES])]
    lowest = _find_lowest_drawn(adjusted_rows["value"], held_out_rows["value"])
    interval_note = (
        "The paper's scores and held-out scores have no interval, since we do not know how often one would hold the "
        "truth."
    )
    edge_note = "Thin lines end at the edge of the panel where that score is below it."
    notes = [
        *captions.format_footnote(inputs, adjusted_rows),
        edge_note if (held_out_rows["value"] < lowest).any() else "",
        interval_note if table.drop(index=adjusted_rows.index)["low"].isna().all() else "",
    ]
    figure, grid, lines = marks.make_model_panels(
        inputs, "depth", panels, *notes, sharex=True, sharey=True
    )
    for axes, score in zip(grid[1], SCORES, strict=True):
        scores_of_halves = held_out_rows[held_out_rows["estimator"] == f"{score}_held_out"]
        for name, model_rows in scores_of_halves.groupby("model", sort=False):
            axes.plot(
                model_rows["depth"],
                model_rows["value"],
                color=styles[name].colour,
                linewidth=THIN,
                label="_held_out",
            )
    for axes in grid[:, 0]:
        axes.set_ylabel("Linearity")
    margin = MARGIN * (1 - lowest)
    grid[0, 0].set_ylim(lowest - margin, 1 + margin)
    marks.name_lines(grid[0, -1:], lines)
    thin_lines = "Thin lines: scores on windows that were not used to fit the map."
    described_rows = adjusted_rows if adjusted_rows["value"].notna().any() else table
    return make_drawing(
        inputs, figure, table, thin_lines, captions.describe_estimates(described_rows)
    )


def _find_lowest_drawn(adjusted_scores: pd.Series, held_out_scores: pd.Series) -> float:
    """Find the smallest score that a panel shows.

    Held-out scores of a wide model on a small sample are far below the adjusted scores. The panel ends as far below
    the lowest adjusted score as that score is below 1.
    """
    lowest = adjusted_scores.min() if adjusted_scores.notna().any() else 0.0
    return float(max(min(lowest, held_out_scores.min()), 2 * lowest - 1))


def linearity_by_step(inputs: FigureInputs) -> Drawing:
    """Draw figure 2: means over blocks of both scores; lines are adjusted scores, thin lines the paper's."""
    table = select_averages(inputs)
    styles = style.choose_line_styles(inputs.models)
    tables = dict(list(table.groupby("estimator", sort=False)))
    progress = scales.choose_progress_column(table)
    titled_tables = [(title, tables[f"{score}_adjusted"]) for score, title in SCORES.items()]
    notes = [*captions.format_footnote(inputs, table), scales.describe_progress(table, progress)]
    notes.append(captions.SCALES_DIFFER)
    figure, (panels,), lines = marks.make_model_panels(
        inputs, progress, [titled_tables], *notes, frame=0.4
    )
    for axes, score in zip(panels, SCORES, strict=True):
        for name, rows in tables[score].groupby("model", sort=False):
            axes.plot(
                rows[progress],
                rows["value"],
                color=styles[name].colour,
                linewidth=THIN,
                label="_raw",
            )
        scales.begin_at_zero(axes, inputs.measures)
    panels[0].set_ylabel("Linearity,\nmean over blocks")
    handles = [
        marks.make_legend_handle(name, color=style.INK, linewidth=width)
        for name, width in {"adjusted": None, "the paper's score": THIN}.items()
    ]
    figure.legend(handles=handles, loc="outside upper right", ncols=len(handles))
    marks.name_lines(panels[-1:], lines)
    sentence = "Thin lines: the paper's score, which noise increases. Averages are over all blocks."
    return make_drawing(inputs, figure, table, sentence, captions.describe_estimates(table))


def norm_ratio_by_depth(inputs: FigureInputs) -> Drawing:
    """Draw figure 3: the norm of a block's increment over the norm of its output, on a logarithmic axis."""
    table = select_layers(inputs)
    notes = captions.format_footnote(inputs, table)
    figure, ((axes,),), lines = marks.make_model_panels(inputs, "depth", [[("", table)]], *notes)
    axes.set_ylabel(inputs.measures[0].axis.replace(" / ", " /\n"))  # one line would be too tall
    scales.set_log_axis(axes)
    marks.name_lines([axes], lines)
    return make_drawing(inputs, figure, table, captions.describe_estimates(table))


def first_tokens(inputs: FigureInputs) -> Drawing:
    """Draw figure 1 of the paper with all tokens above, and without the first token of each window below."""
    table = select_layers(inputs)
    titled_tables = [
        [
            (f"{title}: {tokens}", table[table["estimator"] == f"{score}{suffix}"])
            for score, title in SCORES.items()
        ]
        for suffix, tokens in ROWS.items()
    ]
    notes = captions.format_footnote(inputs, table)
    figure, grid, lines = marks.make_model_panels(
        inputs, "depth", titled_tables, *notes, sharex=True, sharey=True
    )
    for axes in grid[:, 0]:
        axes.set_ylabel("Linearity")
    marks.name_lines(grid[0, -1:], lines)
    return make_drawing(inputs, figure, table, captions.describe_estimates(table))


def twins(inputs: FigureInputs) -> Drawing:
    """Draw figure 4: each quantity of a model and of its twins, and the differences over seeds."""
    means = select_averages(inputs)
    table = _tabulate_twins(inputs, means)
    quantities = list(dict.fromkeys(table["quantity"]))
    settings = list(dict.fromkeys(table["setting"]))
    looks = list(zip(style.COLOURS, style.MARKERS, strict=False))
    tick_look = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    differences = []
    has_seeds = table.groupby(["setting", "quantity"]).size().max() > 1
    for setting, setting_rows in table.groupby("setting", sort=False):
        parts = [
            f"{' '.join(QUANTITIES[quantity].split())} {_format_mean_and_deviation(values)}"
            for quantity, values in setting_rows.groupby("quantity", sort=False)["difference"]
        ]
        differences.append(f"{capitalise(setting)} less none: {'; '.join(parts)}.")
    notes = [
        *differences,
        *captions.describe_marks(inputs, means),
        "Held-out loss: of the end of the training text; loss_by_step uses other windows.",
        captions.describe_sample(inputs, captions.count_vectors(inputs, means)),
    ]
    figure, (panels,) = marks.make_panels(1, len(quantities), style.PANEL_HEIGHT, *notes)
    for axes, quantity in zip(panels, quantities, strict=True):
        rows = table[table["quantity"] == quantity]
        for place, setting in enumerate(settings):
            ends = rows.loc[rows["setting"] == setting, ["plain", "value"]].to_numpy().T
            colour, marker = looks[place % len(looks)]
            # A line joins a model and its twin if there are several seeds; a single line would suggest a trend.
            linestyle = "-" if ends.shape[1] > 1 else ""
            axes.plot([0, place + 1], ends, color=colour, marker=marker, linestyle=linestyle)
            _draw_rings(axes, rows[rows["setting"] == setting], means, place + 1, colour)
        axes.set_xticks(range(len(settings) + 1), ["none", *settings], **tick_look)
        axes.set_title(QUANTITIES[quantity])
        axes.margins(x=0.2)
    _scale_axes(dict(zip(quantities, panels, strict=True)))
    sentence = (
        "Lines join the twins of one seed. Below: mean and standard deviation of the differences over seeds."
        if has_seeds
        else "Below: the differences of the only seed, which has no deviation."
    )
    sentence += " Axes of shares have equal length, all others begin at 0."
    return make_drawing(inputs, figure, table, sentence)


def _draw_rings(
    axes: Axes, twins: pd.DataFrame, means: pd.DataFrame, place: int, colour: str
) -> None:
    """Mark the means over suspect layers, of originals at place 0 and of their twins at `place`."""
    suspect_means = {(row.model, row.estimator) for row in means.itertuples() if row.marked}
    look = {"color": colour, "zorder": marks.ABOVE_LINES, **style.MARKS[style.SUSPECT].look}
    for x, model, value in ((0, "twin_of", "plain"), (place, "model", "value")):
        is_marked = [(row[model], row["quantity"]) in suspect_means for _, row in twins.iterrows()]
        values = twins.loc[is_marked, value]
        if len(values):
            axes.plot([x] * len(values), values, label=style.SUSPECT, **look)


def _scale_axes(panels: Mapping[str, Axes]) -> None:
    """Give axes of shares equal length and begin other axes at 0, so that a steep line is a large difference."""
    limits = {name: axes.get_ylim() for name, axes in panels.items()}
    span = max((high - low for name, (low, high) in limits.items() if name in SHARES), default=0)
    for name, axes in panels.items():
        low, high = limits[name]
        if name in SHARES:
            high = min((low + high + span) / 2, 1 + MARGIN * span)  # no share is above 1
            axes.set_ylim(high - span, high)
        elif np.isfinite(axes.dataLim.y1):  # some value is defined
            axes.set_ylim(0, axes.dataLim.y1 / (1 - MARGIN))


def changes_by_finetuning(inputs: FigureInputs) -> Drawing:
    """Draw the changes of table 1, from the first to the last step of each fine-tuning, by model and task."""
    means_by_step = select_averages(inputs)
    table = _tabulate_changes(inputs, means_by_step)
    groups = list(dict.fromkeys(table["setting"]))
    seeds = table.groupby("setting")["model"].nunique().max()
    height = marks.FRAME + max(0.35, SEED_PITCH * (seeds + 1)) * (1 + len(groups))
    changes = table.groupby(["estimator", "setting"], sort=False)["change"]
    labels = {measure.name: measure.label for measure in inputs.measures}
    means = [
        f"{labels[n]}, {group} {_format_mean_and_deviation(values)}"
        for (n, group), values in changes
    ]
    note = f"Mean and standard deviation over seeds: {'; '.join(means)}."
    withheld_labels = [m.label for m in inputs.measures if not m.conditions.has_interval]
    notes = (
        "Dots: seeds; bars: 95 % intervals over windows.",
        *(f"{label}: no bars, since coverage is not established." for label in withheld_labels),
        *captions.describe_omissions(inputs),
        note,
        captions.describe_sample(inputs, captions.count_vectors(inputs, means_by_step)),
    )
    figure, (panels,) = marks.make_panels(1, len(labels), height, *notes, sharex=True, sharey=True)
    dots = {"linestyle": "", "marker": "o", "color": style.COLOURS[0]}
    for axes, (name, label) in zip(panels, labels.items(), strict=True):
        rows = table[table["estimator"] == name]
        rank = rows.groupby("setting").cumcount()
        middle = (rows.groupby("setting")["model"].transform("size") - 1) / 2
        # The seeds of a setting are at different heights, so that no bar covers another.
        places = rows["setting"].map(groups.index) + (rank - middle) / (seeds + 1)
        axes.plot(rows["change"], places, **dots)
        axes.hlines(places, rows["low"], rows["high"], style.COLOURS[0], linewidth=1)
        axes.axvline(0, color=style.INK, linewidth=0.6, zorder=1)
        axes.set(title=label, xlabel="Change")
        axes.locator_params(axis="x", nbins=4)
    marks.make_room(figure, groups)
    panels[0].set_yticks(range(len(groups)), groups)
    panels[0].set_ylim(len(groups) - 0.5, -0.5)
    published_note = "Published, of other models and tasks: 0.004 to 0.382."
    return make_drawing(inputs, figure, table, published_note)


def _tabulate_twins(inputs: FigureInputs, means: pd.DataFrame) -> pd.DataFrame:
    """Make a table with a row per twin and quantity: the values of the original and the twin, and their difference."""
    training = inputs.tables["training"]
    # `last()` of pandas would skip a missing last loss. A training that diverged has one.
    last = training.sort_values("step").groupby("model").tail(1).set_index("model")
    layer_means = means.set_index(["estimator", "model"])["value"]
    values = pd.concat([layer_means, pd.concat({"held_out_loss": last["held_out_loss"]})])
    rows = []
    for model in inputs.models:
        training_row = last.loc[model.name]
        plain = training_row["twin_of"]
        if plain not in last.index:
            continue
        setting = f"{training_row['regulariser']} {training_row['strength']:g}"
        for quantity in QUANTITIES:
            twin_values = [values.get((quantity, name), np.nan) for name in (plain, model.name)]
            rows.append(
                (
                    model.name,
                    plain,
                    setting,
                    quantity,
                    *twin_values,
                    twin_values[1] - twin_values[0],
                )
            )
    columns = ["model", "twin_of", "setting", "quantity", "plain", "value", "difference"]
    return pd.DataFrame(rows, columns=columns)


def _tabulate_changes(inputs: FigureInputs, means: pd.DataFrame) -> pd.DataFrame:
    """Make a table with a row per fine-tuning and estimator: the first value, the last value and their difference."""
    training = inputs.tables["training"].drop_duplicates("model").set_index("model")
    settings = {model.name: model.label.partition(", seed")[0] for model in inputs.models}
    values = means.groupby(["model", "estimator"], sort=False)["value"]
    # `first` and `last` of pandas would skip undefined values.
    table = values.agg(
        first=lambda series: series.iloc[0], last=lambda series: series.iloc[-1]
    ).reset_index()
    table = table.assign(
        change=table["last"] - table["first"], setting=table["model"].map(settings)
    )
    table = table.join(training[["task", "seed"]], on="model")
    table = table.join(_compute_change_intervals(inputs), on=["model", "estimator"])
    names = ["model", "setting", "task", "seed", "estimator", "first", "last", "change"]
    return table[[*names, "low", "high"]]


def _compute_change_intervals(inputs: FigureInputs) -> pd.DataFrame:
    """Compute the paired interval of the change of a mean over blocks, from the first shown step to the last.

    A mean over blocks has no interval if a block or the measure has none.
    """
    values = ["value", *(f"without_{group}" for group in range(GROUPS))]
    shown_rows = inputs.tables["jackknife"].merge(list_shown_checkpoints(inputs), on=CHECKPOINT)
    blocks = shown_rows[(shown_rows["layer"] >= 1) & shown_rows["value"].notna()]
    keys = ["model", "estimator"]
    groups = blocks.sort_values("step", kind="stable").groupby([*keys, "step"])[values]
    means = groups.mean().where(groups.count().eq(groups.size(), axis=0))
    ends = means.groupby(keys)
    change = ends.nth(-1).droplevel("step") - ends.nth(0).droplevel("step")
    low, high = interval(change["value"].to_numpy(), change[values[1:]].to_numpy())
    intervals = pd.DataFrame({"low": low, "high": high}, change.index)
    names = [measure.name for measure in inputs.measures if not measure.conditions.has_interval]
    intervals.loc[intervals.index.isin(names, level="estimator")] = np.nan
    return intervals


def _mix_with_white(share: float) -> tuple[float, ...]:
    """Mix the colour of the errors with white; `share` is the share of this colour."""
    return tuple(1 - share * (1 - part) for part in to_rgb(style.COLOURS[0]))


def _format_percent_range(low: str, high: str) -> str:
    """Write a band of quantiles, such as "10 to 90 % of tokens"."""
    ends = [f"{100 * float(name.partition('_')[2]):g}" for name in (low, high)]
    return f"{' to '.join(ends)} % of tokens"


def _format_mean_and_deviation(values: pd.Series) -> str:
    """Write a mean, and the standard deviation if there are several values."""
    defined_values = values.dropna()
    if defined_values.empty:
        return "undefined"
    spread = (
        f" (sd {defined_values.std():.3f}, n {len(defined_values)})"
        if len(defined_values) > 1
        else " (n 1)"
    )
    return f"{defined_values.mean():+.3f}{spread}"


def errors_of_tokens(inputs: FigureInputs) -> Drawing:
    """Draw figure 9: quantiles of the errors of tokens above; below, the share of the worst tokens."""
    labels = {model.name: model.label for model in inputs.models}
    table = _scale_errors(inputs.tables["fit_errors"])
    table.insert(1, "label", table["model"].map(labels))
    note = captions.describe_sample(inputs, f"{captions.format_counts(table['tokens'])} tokens")
    figure, grid = marks.make_panels(
        2,
        len(labels),
        sum(HEIGHTS) + FRAME_OF_ERRORS,
        note,
        sharex="col",
        sharey="row",
        height_ratios=HEIGHTS,
    )
    for (upper, lower), (name, label) in zip(grid.T, labels.items(), strict=True):
        rows = table[table["model"] == name]
        for (low, high), share in BANDS.items():
            # Bands are opaque, so that a band has the colour of the legend even where it covers another band.
            upper.fill_between(
                rows["layer"], rows[low], rows[high], color=_mix_with_white(share), linewidth=0
            )
        upper.plot(rows["layer"], rows[MEDIAN], color=style.COLOURS[0], marker="o")
        upper.set_title(marks.wrap_panel_title(label, figure, len(labels)))
        lower.plot(rows["layer"], rows["share_of_worst_tokens"], color=style.COLOURS[1], marker="o")
        lower.axhline(0.01, **EQUAL_ERRORS)
        lower.set(ylim=(0, None), xlabel="Block")
        scales.set_whole_ticks(lower.xaxis)
    scales.set_log_axis(grid[0, 0])
    # The limits of a logarithmic axis depend on the lines alone; widen them, so that the widest band is shown whole.
    (lowest, highest), *_ = BANDS
    low, high = grid[0, 0].get_ylim()
    ends = table[lowest].where(table[lowest] > 0).min(), table[highest].max()
    grid[0, 0].set_ylim(np.nanmin([low, ends[0] / BEYOND_BANDS]), np.nanmax([high, ends[1]]))
    grid[0, 0].set_ylabel("Error / typical length\nof a centred output")
    grid[1, 0].set_ylabel("Share of\nworst 1 %")
    blue = style.COLOURS[0]
    median = marks.make_legend_handle("median token", color=blue, marker="o")
    bands = [
        Patch(color=_mix_with_white(share), linewidth=0, label=_format_percent_range(*ends))
        for ends, share in reversed(BANDS.items())
    ]
    equal = marks.make_legend_handle("if all errors were equal", **EQUAL_ERRORS)
    figure.legend(handles=[median, *bands, equal], loc="outside upper left", ncols=2)
    sentence = (
        "Below: share of the worst 1 % of tokens in the sum of squares (dotted: if all were alike)."
    )
    return make_drawing(inputs, figure, table, sentence)


def _scale_errors(errors: pd.DataFrame) -> pd.DataFrame:
    """Divide errors by the root mean square length of a centred output, so that they do not depend on the sample.

    In the table of errors, as in the paper, errors are divided by the norm of the matrix of all centred outputs, which
    grows with the square root of the number of tokens.
    """
    quantiles = [name for name in errors if name.startswith("quantile_")]
    scaled_errors = errors[quantiles].mul(np.sqrt(errors["tokens"]), axis=0)
    return errors.assign(**scaled_errors)
