"""The figures of the paper on fine-tuning and isotropy; paper.yaml says what each of them shows."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from shape_of_learning.figures import captions, marks, scales
from shape_of_learning.figures.by_layer import LAYER, draw_steps, name_steps
from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.figures.output import Drawing
from shape_of_learning.figures.style import (
    COLOURS,
    COLUMN_WIDTH,
    PANEL_HEIGHT,
    TEXT_WIDTH,
    LineStyle,
)

ELONGATED = 10  # times the median eigenvalue
WHEN = {"before": "before fine-tuning", "after": "after fine-tuning"}
STYLES = {
    "before": LineStyle("0.4", (0, (4, 1.2)), "s"),
    "after": LineStyle(COLOURS[0], "-", "o"),
}
ONLY = {
    "before": LineStyle("0.6", (0, (1, 1)), "D"),
    "after": LineStyle(COLOURS[1], (0, (1, 1)), "^"),
}
MEASURES = {"log_partition_isotropy": "Partition isotropy ln I", "average_cosine": "Mean cosine"}
SHARES = ("top_1_share", "top_10_share")
STRUCTURE = {
    "share_between_token_types": "Share of variance between\ntoken types",
    "share_between_frequency_bands": "Share of variance between\nbands of frequency",
}
SCORES = {
    "accuracy": "Accuracy",
    "matthews": "Matthews correlation",
    "spearman": "Spearman correlation",
}
ACROSS = 2  # panels beside each other that have room for long words below
# Places on the axis of removed directions for what has no number of them.
AS_IT_IS, CLUSTERED = -5, (38, 43)


def isotropy_by_layer(inputs: FigureInputs) -> Drawing:
    """Figure 1: ln I and mean cosine by layer, a line per step of the fine-tuning, a column per family."""
    rows = _with_family(inputs, "finetuning_layers")
    rows = rows[rows["estimator"].isin(MEASURES)]
    table = _over_seeds(rows, ["estimator", "step", "layer"])
    families = list(dict.fromkeys(table["family"]))
    figure, grid = _panels(2, len(families), share=True)
    named = {}
    for column, family in enumerate(families):
        for axes, (estimator, label) in zip(grid[:, column], MEASURES.items(), strict=True):
            own = table[(table["family"] == family) & (table["estimator"] == estimator)]
            named |= draw_steps(axes, own.assign(hollow=False), "before fine-tuning")
            scales.set_whole_ticks(axes.xaxis)
            if not column:
                axes.set_ylabel(label)
            scales.open_frame(axes)
        grid[0, column].set_title(marks.panel_title(family, figure, len(families)))
        grid[1, column].set_xlabel(LAYER if len(families) <= ACROSS else "Layer")
    name_steps(grid, [table[table["family"] == family] for family in families], named)
    return _drawing(figure, inputs, rows, table)


def spectra(inputs: FigureInputs) -> Drawing:
    """Figure 2: spectrum, elongated directions and top shares before and after, a row per family.

    The CSV has elongated directions as estimator ``elongated_directions``, where all that the table holds are
    elongated a number that is too small.
    """
    spectrum = _first_and_last(_with_family(inputs, "finetuning_spectra"))
    layers = _first_and_last(_with_family(inputs, "finetuning_layers"))
    counted, capped = _elongated(spectrum)
    last = spectrum[spectrum["layer"] == spectrum.groupby("model")["layer"].transform("max")]
    eigenvalues = last.assign(estimator="eigenvalue", value=last["eigenvalue"])
    shares = layers[layers["estimator"].isin(SHARES)]
    rows = pd.concat([eigenvalues, counted, shares], ignore_index=True)
    table = _over_seeds(rows, ["estimator", "when", "step", "layer", "place"])
    families = list(dict.fromkeys(table["family"]))
    figure, grid = _panels(len(families), 3)
    note = "Where all eigenvalues that are kept are elongated, there may be more of them."
    note = note if capped else ""
    marks.add_footnote(figure, note)
    for row, family in enumerate(families):
        own = table[table["family"] == family]
        _lines(grid[row, 0], own[own["estimator"] == "eigenvalue"], "place")
        _logarithmic(grid[row, 0], "Place of the direction", "Eigenvalue")
        lines = _lines(grid[row, 1], own[own["estimator"] == "elongated_directions"], "layer")
        grid[row, 1].set(xlabel="Layer", ylabel="Elongated directions")
        _lines(grid[row, 2], own[own["estimator"] == "top_1_share"], "layer")
        ten = _lines(grid[row, 2], own[own["estimator"] == "top_10_share"], "layer", ONLY)
        grid[row, 2].set(xlabel="Layer", ylabel="Share of variance", ylim=(0, 1))
        grid[row, 0].set_title(marks.panel_title(family, figure, 3))
        for axes in grid[row, 1:]:
            scales.set_whole_ticks(axes.xaxis)
        grid[row, 1].set_ylim(bottom=0)
        scales.set_whole_ticks(grid[row, 1].yaxis)
    ten_largest = {f"in ten directions, {when}": line for when, line in ten.items()}
    _name_lines(figure, {WHEN[when]: line for when, line in lines.items()} | ten_largest)
    return _drawing(figure, inputs, layers, table, note)


def probe_scores(inputs: FigureInputs, fitted_on: str = "training") -> Drawing:
    """Figure 3: what a linear probe reads after adjustments, a panel per family.

    Parameters
    ----------
    inputs : FigureInputs
    fitted_on : {"training", "each split"}
        Of what tokens the adjustments are; the latter is the papers' way.
    """
    rows = _first_and_last(_with_family(inputs, "finetuning_probes"))
    rows = rows[rows["fitted_on"].isin((fitted_on, "nothing"))].assign(value=lambda r: r["score"])
    keys = ["when", "step", "layer", "adjustment", "clusters", "directions", "metric"]
    table = _over_seeds(rows, keys)
    families = list(dict.fromkeys(table["family"]))
    rows_of_panels = -(-len(families) // ACROSS)
    across = min(ACROSS, len(families))
    figure, grid = _panels(rows_of_panels, across, height=PANEL_HEIGHT + 0.5)
    for axes in grid.flat[len(families) :]:
        axes.set_axis_off()
    for axes, family in zip(grid.flat, families, strict=False):
        own = table[table["family"] == family]
        curves = own[own["adjustment"] == "without_directions"]
        lines = _lines(axes, curves, "directions")
        only = _lines(axes, own[own["adjustment"] == "only_directions"], "directions", ONLY)
        _other_adjustments(axes, own)
        places = [AS_IT_IS, 0, 8, 16, 24, 32, *CLUSTERED]
        words = ["as\nit is", "0", "8", "16", "24", "32", "27\ncl.", "27 cl.,\n12 dir."]
        axes.set_xticks(places, words)
        axes.set_title(marks.panel_title(family, figure, across))
        axes.set(xlabel="Principal directions", ylabel=SCORES[own["metric"].iloc[0]])
        scales.open_frame(axes)
    only_these = {f"only these directions, {when}": line for when, line in only.items()}
    _name_lines(figure, {WHEN[when]: line for when, line in lines.items()} | only_these, rows=2)
    words = "Adjustments are fitted on the tokens of each split, as in the paper."
    return _drawing(figure, inputs, rows, table, words if fitted_on == "each split" else "")


def local_structure(inputs: FigureInputs) -> Drawing:
    """Figure 4: ln I by the number of clusters, and shares of variance between tokens, a row per family."""
    rows = _first_and_last(_with_family(inputs, "finetuning_structure"))
    table = _over_seeds(rows, ["quantity", "when", "step", "layer", "clusters"])
    families = list(dict.fromkeys(table["family"]))
    figure, grid = _panels(len(families), 3)
    for row, family in enumerate(families):
        own = table[table["family"] == family]
        by_clusters = own[own["quantity"] == "log_partition_isotropy"]
        _lines(grid[row, 0], by_clusters, "clusters")
        grid[row, 0].set_title(marks.panel_title(family, figure, 3))
        grid[row, 0].set(xlabel="Clusters", ylabel=MEASURES["log_partition_isotropy"])
        for axes, (quantity, label) in zip(grid[row, 1:], STRUCTURE.items(), strict=True):
            lines = _lines(axes, own[own["quantity"] == quantity], "layer")
            axes.set(xlabel="Layer", ylabel=label)
            axes.set_ylim(bottom=0)
            scales.set_whole_ticks(axes.xaxis)
    _name_lines(figure, {WHEN[when]: line for when, line in lines.items()})
    return _drawing(figure, inputs, rows, table)


def adjustments(
    entries: Sequence[Mapping[str, Any]], tables: Mapping[str, pd.DataFrame]
) -> tuple[pd.DataFrame, str]:
    """Table 1: probe scores and ln I after each adjustment, before and after, means over a family's seeds.

    The CSV has both ways of fitting; the Markdown has what is fitted on training tokens.
    """
    family = _families({e["name"]: (e["family"], e["model"]) for e in entries})
    rows = _first_and_last(tables["finetuning_probes"])
    rows = rows.assign(family=rows["model"].map(family))
    keys = ["family", "sample", "metric", "adjustment", "clusters", "directions", "fitted_on"]
    values = ["score", "log_partition_isotropy", "average_cosine"]
    means = rows.groupby([*keys, "when"], sort=False, dropna=False)[values].mean().unstack("when")
    means = means.reindex(columns=[(value, when) for value in values for when in WHEN])
    means.columns = [f"{value}_{when}" for value, when in means.columns]
    seeds = rows.groupby(keys, sort=False, dropna=False)["model"].nunique().rename("seeds")
    table = means.join(seeds).reset_index()
    shown = table[table["fitted_on"] != "each split"]
    heading = ["Model", "Adjustment", "Score before", "after", "ln I before", "after"]
    lines = [heading, [":--", ":--", "--:", "--:", "--:", "--:"]]
    for row in shown.to_dict("records"):
        numbers = [row[f"{value}_{when}"] for value in values[:2] for when in WHEN]
        cells = ["" if np.isnan(number) else f"{number:.3f}" for number in numbers]
        lines.append([str(row["family"]), _in_words(row), *cells])
    return table, "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _in_words(row: Mapping[str, Any]) -> str:
    """Name an adjustment."""
    if row["adjustment"] == "none":
        return "As it is"
    k, clusters = int(row["directions"]), int(row["clusters"])
    directions = "1 direction" if k == 1 else f"{k} directions"
    if row["adjustment"] == "only_directions":
        return f"Only {directions}"
    where = "" if clusters == 1 else f"{clusters} clusters: "
    return f"{where}zero mean" + (f", without {directions}" if k else "")


def _families(models: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """By the name of a model its family, or its label if there is no other one of the family."""
    members = Counter(family for family, _ in models.values())
    return {n: family if members[family] > 1 else label for n, (family, label) in models.items()}


def _with_family(inputs: FigureInputs, name: str) -> pd.DataFrame:
    """The rows of a table of the drawn models, with the family of each; of a single one that is its label."""
    family = _families({m.name: (m.family, m.label) for m in inputs.models})
    rows = inputs.tables[name]
    rows = rows[rows["model"].isin(family)]
    return rows.assign(family=rows["model"].map(family))


def _first_and_last(rows: pd.DataFrame) -> pd.DataFrame:
    """The first and the last step of each model, and which of them it is as ``when``."""
    steps = rows.groupby("model")["step"]
    first, last = steps.transform("min"), steps.transform("max")
    rows = rows.assign(when=np.where(rows["step"] == last, "after", "before"))
    return rows[(rows["step"] == first) | (rows["step"] == last)]


def _over_seeds(rows: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Means over the models of a family, and the range of them where there are several."""
    by = rows.groupby(["family", "sample", *keys], sort=False, dropna=False)["value"]
    table = by.agg(value="mean", low="min", high="max", seeds="size").reset_index()
    alone = table["seeds"] == 1
    table.loc[alone, ["low", "high"]] = np.nan
    return table


def _elongated(spectrum: pd.DataFrame) -> tuple[pd.DataFrame, bool]:
    """Count the elongated directions of each checkpoint and layer; whether some count is only a bound."""
    start = spectrum[(spectrum["when"] == "before") & (spectrum["place"] == 1)]
    reference = start.set_index(["model", "layer"])["median"]
    places = pd.MultiIndex.from_frame(spectrum[["model", "layer"]])
    median = reference.reindex(places).to_numpy()
    spectrum = spectrum.assign(
        above=spectrum["eigenvalue"].to_numpy() > ELONGATED * median,
        defined=np.isfinite(median) & np.isfinite(spectrum["eigenvalue"].to_numpy()) & (median > 0),
    )
    keys = ["model", "family", "sample", "when", "step", "layer"]
    grouped = spectrum.groupby(keys, sort=False)
    counted = grouped.agg(
        value=("above", "sum"), kept=("above", "size"), defined=("defined", "all")
    )
    counted = counted.reset_index().assign(estimator="elongated_directions")
    counted["value"] = counted["value"].astype(float).where(counted["defined"])
    return counted.drop(columns=["kept", "defined"]), bool(
        (counted["value"] == counted["kept"]).any()
    )


def _panels(
    rows: int, columns: int, *, height: float = PANEL_HEIGHT, share: bool = False
) -> tuple[Figure, np.ndarray]:
    width = COLUMN_WIDTH + 0.8 if columns == 1 else TEXT_WIDTH
    figure = Figure(figsize=(width, rows * height + 0.4))
    shared = {"sharex": "col", "sharey": "row"} if share else {}
    return figure, figure.subplots(rows, columns, squeeze=False, **shared)


def _lines(
    axes: Axes, table: pd.DataFrame, x: str, styles: Mapping[str, LineStyle] = STYLES
) -> dict[str, Line2D]:
    """Draw a line before and one after the fine-tuning."""
    lines = {}
    for when, rows in table.groupby("when", sort=False):
        rows = rows.sort_values(x)
        lines[when] = marks.draw_line(
            axes, rows, x, styles[when], name=when, markers=len(rows) < 20
        )
    scales.open_frame(axes)
    return lines


def _name_lines(figure: Figure, lines: Mapping[str, Line2D], rows: int = 1) -> None:
    """Say above the panels which lines are which: they are the same in all."""
    columns = -(-len(lines) // rows)
    legend = figure.legend(lines.values(), lines.keys(), loc="outside upper right", ncols=columns)
    for sample in legend.get_lines():
        sample.set_marker("")  # which would look like a point


def _other_adjustments(axes: Axes, table: pd.DataFrame) -> None:
    """Draw the scores of the space as it is and of cluster-based adjustments as points beside the lines."""
    places = {("none", None): AS_IT_IS, ("cluster_based", 0): CLUSTERED[0]}
    for row in table[table["adjustment"].isin(("none", "cluster_based"))].to_dict("records"):
        style = STYLES[row["when"]]
        k = None if row["adjustment"] == "none" else int(row["directions"] > 0)
        x = places.get((row["adjustment"], k), CLUSTERED[1])
        axes.plot([x], [row["value"]], style.marker, color=style.colour, label="_other")
        if np.isfinite(row["low"]):
            axes.vlines([x], row["low"], row["high"], style.colour, linewidth=1)


def _logarithmic(axes: Axes, x: str, y: str) -> None:
    axes.set(xscale="log", yscale="log", xlabel=x, ylabel=y)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks([1, 4, 16, 64], ["1", "4", "16", "64"])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _drawing(
    figure: Figure, inputs: FigureInputs, rows: pd.DataFrame, table: pd.DataFrame, *more: str
) -> Drawing:
    """Put a drawing together, and say what its lines are means of."""
    samples = captions.enumerated(
        [sample.replace("/held_out", "") for sample in dict.fromkeys(rows["sample"])]
    )
    of_seeds = f"Means over {captions.range_of(table['seeds'])} seeds; bands: their range."
    words = captions.caption(
        inputs.caption,
        f"Texts of {samples}, {captions.range_of(rows['n'])} tokens.",
        of_seeds if table["seeds"].max() > 1 else "One seed.",
        captions.undefined(table),
        *more,
    )
    return Drawing(figure, table, words)
