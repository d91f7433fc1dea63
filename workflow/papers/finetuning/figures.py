"""The figures of the paper on fine-tuning and isotropy, whose content paper.yaml describes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator
from scipy.special import ndtri

from papers.finetuning.columns import ELONGATED
from shape_of_learning.figures import captions, marks, scales, style
from shape_of_learning.figures.curves import draw_columns
from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.figures.job import DrawnMeasure
from shape_of_learning.figures.output import Drawing, make_drawing
from shape_of_learning.metrics.intervals import LEVEL
from shape_of_learning.words import enumerate_items

ROUNDING = 1e-8  # of the largest eigenvalue; smaller eigenvalues of float32 vectors are 0 apart from rounding
STYLES = {
    "before": style.LineStyle("0.4", (0, (4, 1.2)), "s"),
    "after": style.LineStyle(style.COLOURS[0], "-", "o"),
}
STYLES_ALONE = {
    "before": style.LineStyle("0.6", (0, (1, 1)), "D"),
    "after": style.LineStyle(style.COLOURS[1], (0, (1, 1)), "^"),
}
MEASURES = {"log_partition_isotropy": "Partition isotropy ln I", "average_cosine": "Mean cosine"}
SHARES = ("top_1_share", "top_10_share")
TOP_SHARES = "Share of variance in the\nlargest direction, or ten"
STRUCTURE = {
    "share_between_token_types": "Share of variance between\ntoken types",
    "share_between_frequency_bands": "Share of variance between\nbands of frequency",
}
SCORES = {
    "accuracy": "Accuracy",
    "matthews": "Matthews correlation",
    "spearman": "Spearman correlation",
}
MARGIN = 1.3  # the limits of the axis lie this factor beyond the eigenvalues
CHANCE_LOOK = {"color": style.INK, "linewidth": 0.6, "linestyle": (0, (1, 1))}
CLUSTER_TICKS = (1, 5, 9, 14, 20, 27)
MOST_COLUMNS = 2  # of panels, so that the long words below a panel have room
ADJUSTMENTS = ("none", "without_directions", "only_directions", "cluster_based")
# The x axis counts directions. Vectors as they are, and vectors less clusters, have places beside these numbers.
UNADJUSTED_PLACE = -7
CLUSTER_PLACES = (41, 51)
OFFSETS = {"before": -0.4, "after": 0.4}  # along the x axis, so that no bar covers another
TICKS = {UNADJUSTED_PLACE: "as\nit is", 0: "0\n(centred)"} | {k: str(k) for k in (8, 16, 24, 32)}
TICKS |= {
    CLUSTER_PLACES[0]: "27\nclusters\ncentred",
    CLUSTER_PLACES[1]: "less 12\ndirections\nof each",
}


def isotropy_by_layer(inputs: FigureInputs) -> Drawing:
    """Draw figure 1: ln I and mean cosine by layer, a line per step of the fine-tuning, a column per family."""
    rows = _select_rows(inputs, "finetuning_layers")
    rows = rows[rows["estimator"].isin(MEASURES)]
    table = _average_over_seeds(rows, ["estimator", "step", "layer"]).assign(hollow=False)
    families = dict(list(table.groupby("family", sort=False)))
    notes = (captions.DEFINITIONS[captions.LN_I], _describe_lines(rows, table))
    figure, grid = _make_panels(len(MEASURES), len(families), *notes, sharex="col", sharey="row")
    measures = [
        DrawnMeasure(name, label, axis="", begins_at_zero=False) for name, label in MEASURES.items()
    ]
    draw_columns(grid, families, measures, "before fine-tuning")
    for axes, label in zip(grid[:, 0], MEASURES.values(), strict=True):
        axes.set_ylabel(label)
    return _make_drawing(inputs, figure, rows, table)


def spectra(inputs: FigureInputs) -> Drawing:
    """Draw figure 2: spectrum, elongated directions and top shares before and after, a row per family.

    In the CSV, the values of the estimator ``elongated_directions`` are numbers of directions. The table of spectra
    holds the leading eigenvalues only, so a number is too small if all eigenvalues in the table are elongated.
    """
    spectrum = _select_ends(_select_rows(inputs, "finetuning_spectra"))
    layers = _select_ends(_select_rows(inputs, "finetuning_layers"))
    counts, is_bound = _count_elongated_directions(spectrum)
    last = spectrum[spectrum["layer"] == spectrum.groupby("model")["layer"].transform("max")]
    eigenvalues = last.assign(estimator="eigenvalue", value=last["eigenvalue"])
    shares = layers[layers["estimator"].isin(SHARES)]
    rows = pd.concat([eigenvalues, counts, shares], ignore_index=True)
    table = _average_over_seeds(rows, ["estimator", "when", "step", "layer", "place"])
    bound_note = (
        "Where every eigenvalue in the table is elongated, there may be more." if is_bound else ""
    )
    rounding_note = (
        f"Lines leave the panel at eigenvalues below {ROUNDING:g} of the largest, "
        "which are rounding errors."
    )
    panel_values = table[table["estimator"] == "eigenvalue"].groupby("family")["value"]
    is_rounded = any(_find_rounding_errors(values).any() for _, values in panel_values)
    notes = (
        rounding_note if is_rounded else "",
        f"Elongated: with more than {ELONGATED} times the layer's median eigenvalue at the first step.",
        bound_note,
        _describe_lines(layers, table),
    )
    figure, rows_of_panels = _make_row_per_family(table, "estimator", 3, *notes)
    for row, tables in rows_of_panels:
        _draw_lines(row[0], tables["eigenvalue"], "place")
        _set_spectrum_axes(row[0], tables["eigenvalue"]["value"])
        _draw_lines_by_layer(row[1], tables["elongated_directions"], "Elongated directions")
        scales.set_whole_ticks(row[1].yaxis)
        lines = _draw_lines_by_layer(row[2], tables["top_1_share"], TOP_SHARES)
        lines_of_ten = _draw_lines(
            row[2], tables["top_10_share"], "layer", "ten directions, {}", STYLES_ALONE
        )
        row[2].set_ylim(top=1)
    _add_legend(figure, [*lines, *lines_of_ten])
    return _make_drawing(inputs, figure, layers, table, bound_note)


def probe_scores(inputs: FigureInputs, fitted_on: str = "training") -> Drawing:
    """Draw figure 3: scores of a linear probe after adjustments, a panel per family.

    Parameters
    ----------
    inputs : FigureInputs
    fitted_on : {"training", "each split"}
        The tokens that the adjustments are fitted on; the paper fits them on each split.
    """
    rows = _select_ends(_select_rows(inputs, "finetuning_probes"))
    rows = rows[rows["fitted_on"].isin((fitted_on, "nothing"))].assign(value=lambda r: r["score"])
    keys = ["when", "step", "layer", "adjustment", "clusters", "directions", "metric", "chance"]
    table = _add_binomial_intervals(_average_over_seeds(rows, [*keys, "examples"]))
    families = dict(list(table.groupby("family", sort=False)))
    columns = min(MOST_COLUMNS, len(families))
    note = _describe_scores(rows, table)
    height = style.PANEL_HEIGHT + 0.5
    figure, grid = _make_panels(-(-len(families) // MOST_COLUMNS), columns, note, height=height)
    for axes in grid.flat[len(families) :]:
        axes.set_axis_off()
    lines: list[Line2D] = []
    lines_alone: list[Line2D] = []
    for axes, (family, scores) in zip(grid.flat, families.items(), strict=False):
        # A table is empty if hidden states are NaN; that of clusters also if there are few tokens.
        tables = {name: scores[scores["adjustment"] == name] for name in ADJUSTMENTS}
        lines += _draw_lines(axes, tables["without_directions"], "directions")
        lines_alone += _draw_lines(
            axes, tables["only_directions"], "directions", "only these directions, {}", STYLES_ALONE
        )
        _draw_points(axes, tables["none"], UNADJUSTED_PLACE)
        for is_without, cluster_scores in tables["cluster_based"].groupby(scores["directions"] > 0):
            _draw_points(axes, cluster_scores, CLUSTER_PLACES[int(is_without)])
        axes.axhline(scores["chance"].mean(), **CHANCE_LOOK)
        axes.set_xticks([*TICKS], [*TICKS.values()])
        axes.set_title(marks.wrap_panel_title(family, figure, columns))
        axes.set(
            xlabel="Principal directions removed, or kept alone",
            ylabel=SCORES[scores["metric"].iloc[0]],
        )
    lines_by_label = {line.get_label(): line for line in (*lines, *lines_alone)}
    chance = marks.make_legend_handle("chance", **CHANCE_LOOK)
    _add_legend(figure, [*lines_by_label.values(), chance], rows=2)
    fitting_note = "Adjustments are fitted on the tokens of each split, as in the paper."
    return _make_drawing(
        inputs, figure, rows, table, fitting_note if fitted_on == "each split" else ""
    )


def local_structure(inputs: FigureInputs) -> Drawing:
    """Draw figure 4: ln I by the number of clusters, and shares of variance between tokens, a row per family."""
    rows = _select_ends(_select_rows(inputs, "finetuning_structure"))
    table = _average_over_seeds(rows, ["quantity", "when", "step", "layer", "clusters"])
    clusters_note = "Clusters are of these tokens; those of Table 1 are of the training texts."
    notes = (captions.DEFINITIONS[captions.LN_I], clusters_note, _describe_lines(rows, table))
    figure, rows_of_panels = _make_row_per_family(table, "quantity", 1 + len(STRUCTURE), *notes)
    for row, tables in rows_of_panels:
        _draw_lines(row[0], tables["log_partition_isotropy"], "clusters")
        row[0].set(xlabel="Centred clusters, last layer", ylabel=MEASURES["log_partition_isotropy"])
        row[0].set_xticks(CLUSTER_TICKS)
        for axes, (quantity, label) in zip(row[1:], STRUCTURE.items(), strict=True):
            lines = _draw_lines_by_layer(axes, tables[quantity], label)
    _add_legend(figure, lines)
    return _make_drawing(inputs, figure, rows, table)


def adjustments(
    entries: Sequence[Mapping[str, Any]], tables: Mapping[str, pd.DataFrame]
) -> tuple[pd.DataFrame, str]:
    """Write table 1: probe scores and ln I after each adjustment, before and after fine-tuning, means over seeds.

    The CSV has the adjustments that are fitted on training tokens and those that are fitted on each split; the
    Markdown has only the former.
    """
    family = _name_families({e["name"]: (e["family"], e["model"]) for e in entries})
    rows = _select_ends(tables["finetuning_probes"])
    rows = rows.assign(family=rows["model"].map(family))
    keys = ["family", "sample", "metric", "adjustment", "clusters", "directions", "fitted_on"]
    values = ["score", "log_partition_isotropy", "average_cosine"]
    means = rows.groupby([*keys, "when"], sort=False, dropna=False)[values].mean().unstack("when")
    means = means.reindex(columns=[(value, moment) for value in values for moment in STYLES])
    means.columns = [f"{value}_{moment}" for value, moment in means.columns]
    seeds = rows.groupby(keys, sort=False, dropna=False)["model"].nunique().rename("seeds")
    table = means.join(seeds).reset_index()
    shown_rows = table[table["fitted_on"] != "each split"]
    heading = ["Model", "Adjustment", "Score before", "after", "ln I before", "after"]
    lines = []
    for row in shown_rows.to_dict("records"):
        numbers = [row[f"{value}_{moment}"] for value in values[:2] for moment in STYLES]
        cells = ["" if np.isnan(number) else f"{number:.3f}" for number in numbers]
        lines.append([str(row["family"]), _name_adjustment(row), *cells])
    return table, captions.format_markdown_table(heading, lines, words=2)


def _name_adjustment(row: Mapping[str, Any]) -> str:
    """Name an adjustment in words."""
    if row["adjustment"] == "none":
        return "As it is"
    k = int(row["directions"])
    clusters = int(row["clusters"])
    directions = "1 direction" if k == 1 else f"{k} directions"
    if row["adjustment"] == "only_directions":
        return f"Only {directions}"
    where = "" if clusters == 1 else f"{clusters} clusters: "
    return f"{where}zero mean" + (f", without {directions}" if k else "")


def _name_families(models: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Return the family of each model, or its label if no other model here is of that family."""
    members = Counter(family for family, _ in models.values())
    return {
        model: family if members[family] > 1 else label for model, (family, label) in models.items()
    }


def _select_rows(inputs: FigureInputs, name: str) -> pd.DataFrame:
    """Select the drawn models' rows of a table, and add the names of their families."""
    family = _name_families({m.name: (m.family, m.label) for m in inputs.models})
    rows = inputs.tables[name]
    rows = rows[rows["model"].isin(family)]
    return rows.assign(family=rows["model"].map(family))


def _select_ends(rows: pd.DataFrame) -> pd.DataFrame:
    """Select the first and the last step of each model, and add ``when``, which is "before" or "after"."""
    steps = rows.groupby("model")["step"]
    first, last = steps.transform("min"), steps.transform("max")
    rows = rows.assign(when=np.where(rows["step"] == last, "after", "before"))
    return rows[(rows["step"] == first) | (rows["step"] == last)]


def _average_over_seeds(rows: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Average over the models of a family, and add the range of their values if there are several models."""
    groups = rows.groupby(["family", "sample", *keys], sort=False, dropna=False)["value"]
    table = groups.agg(value="mean", low="min", high="max", seeds="size").reset_index()
    is_single = table["seeds"] == 1
    table.loc[is_single, ["low", "high"]] = np.nan
    return table


def _count_elongated_directions(spectrum: pd.DataFrame) -> tuple[pd.DataFrame, bool]:
    """Count the elongated directions of each checkpoint and layer, and return whether a count is a lower bound."""
    start = spectrum[(spectrum["when"] == "before") & (spectrum["place"] == 1)]
    reference = start.set_index(["model", "layer"])["median"].rename("reference")
    median = spectrum.join(reference, on=["model", "layer"])["reference"]
    values = spectrum["eigenvalue"]
    is_defined = np.isfinite(median) & (median > 0) & np.isfinite(values)
    spectrum = spectrum.assign(above=values > ELONGATED * median, defined=is_defined)
    keys = ["model", "family", "sample", "when", "step", "layer"]
    kinds = {"value": ("above", "sum"), "kept": ("above", "size"), "defined": ("defined", "all")}
    counts = spectrum.groupby(keys, sort=False).agg(**kinds).reset_index()
    counts["value"] = counts["value"].astype(float).where(counts["defined"])
    is_bound = (counts["value"] == counts["kept"]).any()
    counts = counts.drop(columns=["kept", "defined"]).assign(estimator="elongated_directions")
    return counts, bool(is_bound)


def _make_panels(
    rows: int, columns: int, *notes: str, height: float = style.PANEL_HEIGHT, **axes_options: str
) -> tuple[Figure, np.ndarray]:
    width = style.COLUMN_WIDTH + 0.8 if columns == 1 else style.TEXT_WIDTH
    return marks.make_panels(
        rows, columns, rows * height + 0.4, *notes, width=width, **axes_options
    )


def _make_row_per_family(
    table: pd.DataFrame, key: str, columns: int, *notes: str
) -> tuple[Figure, list[tuple[np.ndarray, dict[str, pd.DataFrame]]]]:
    """Make a figure with a row of panels per family, and group the family's rows of the table by a key."""
    families = dict(list(table.groupby("family", sort=False)))
    figure, grid = _make_panels(len(families), columns, *notes)
    for axes, family in zip(grid[:, 0], families, strict=True):
        axes.set_title(marks.wrap_panel_title(family, figure, columns))
    tables_by_family = [dict(list(rows.groupby(key))) for rows in families.values()]
    return figure, [*zip(grid, tables_by_family, strict=True)]


def _draw_lines(
    axes: Axes,
    table: pd.DataFrame,
    x: str,
    words: str = "{} fine-tuning",
    styles: Mapping[str, style.LineStyle] = STYLES,
) -> list[Line2D]:
    """Draw a line of the values before the fine-tuning, and a line of the values after it."""
    lines = []
    for moment, rows in table.groupby("when", sort=False):
        line = marks.draw_line(
            axes,
            rows.sort_values(x),
            x,
            styles[moment],
            label=words.format(moment),
            markers=len(rows) < 20,
        )
        lines.append(line)
    return lines


def _draw_lines_by_layer(axes: Axes, table: pd.DataFrame, quantity: str) -> list[Line2D]:
    lines = _draw_lines(axes, table, "layer")
    axes.set(xlabel="Layer", ylabel=quantity, ylim=(0, None))
    scales.set_whole_ticks(axes.xaxis)
    return lines


def _add_legend(figure: Figure, lines: Sequence[Line2D], rows: int = 1) -> None:
    """Put one legend above the panels, which all have the same lines."""
    columns = -(-len(lines) // rows)
    legend = figure.legend(handles=lines, loc="outside upper right", ncols=columns)
    for line in legend.get_lines():
        line.set_marker("")  # a marker would look like a point of a curve


def _draw_points(axes: Axes, table: pd.DataFrame, place: int) -> None:
    """Draw the scores of an adjustment as points beside the lines."""
    for row in table.to_dict("records"):
        look = STYLES[row["when"]]
        x = place + OFFSETS[row["when"]]
        axes.plot([x], [row["value"]], look.marker, color=look.colour, label="_other")
        if np.isfinite(row["low"]):
            axes.vlines([x], row["low"], row["high"], look.colour, linewidth=1)


def _set_spectrum_axes(axes: Axes, eigenvalues: pd.Series) -> None:
    """Make both axes logarithmic, and leave rounding errors below the panel."""
    labels = {"xlabel": "Rank of the direction", "ylabel": "Eigenvalue, last layer"}
    axes.set(xscale="log", yscale="log", **labels)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks([1, 4, 16, 64], ["1", "4", "16", "64"])
    is_rounded = _find_rounding_errors(eigenvalues)
    if is_rounded.any() and not is_rounded.all():
        axes.set_ylim(eigenvalues[~is_rounded].min() / MARGIN, eigenvalues.max() * MARGIN)
    scales.set_log_ticks(axes.yaxis)


def _find_rounding_errors(eigenvalues: pd.Series) -> pd.Series:
    """Return which eigenvalues are 0 apart from rounding errors."""
    return eigenvalues < ROUNDING * eigenvalues.max()


def _describe_lines(rows: pd.DataFrame, table: pd.DataFrame) -> str:
    """State the task, and the numbers of tokens and seeds."""
    tasks = enumerate_items([*rows["sample"].str.replace("/held_out", "").unique()])
    texts = f"Text: held-out texts of the task {tasks}; {captions.format_counts(rows['n'])} tokens."
    if table["seeds"].max() == 1:
        return f"{texts} One seed."
    return f"{texts} Means over {captions.format_counts(table['seeds'])} seeds; bands: their range."


def _add_binomial_intervals(table: pd.DataFrame) -> pd.DataFrame:
    """Add Wilson's intervals to the accuracies of a single seed, which has no range over seeds."""
    is_share = (table["seeds"] == 1) & (table["metric"] == "accuracy")
    score = table["value"].astype(float)
    n = table["examples"].astype(float)
    z2 = ndtri((1 + LEVEL) / 2) ** 2
    middle = (score + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (score * (1 - score) / n + z2 / (4 * n**2))) / (1 + z2 / n)
    return table.assign(
        low=table["low"].mask(is_share, middle - half),
        high=table["high"].mask(is_share, middle + half),
    )


def _describe_scores(rows: pd.DataFrame, table: pd.DataFrame) -> str:
    """State the number of scored texts, and the meaning of the bands."""
    has_binomial = ((table["seeds"] == 1) & table["low"].notna()).any()
    bands = "Bands: 95 % binomial intervals of the scores." if has_binomial else ""
    n = f"Scores: n = {captions.format_counts(table['examples'])} texts."
    return captions.join_sentences(_describe_lines(rows, table), n, bands)


def _make_drawing(
    inputs: FigureInputs, figure: Figure, rows: pd.DataFrame, table: pd.DataFrame, *notes: str
) -> Drawing:
    """Make the drawing, with the sample and the undefined values in its caption."""
    sentences = (_describe_lines(rows, table), captions.describe_undefined(table), *notes)
    return make_drawing(inputs, figure, table, *sentences)
