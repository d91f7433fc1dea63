"""Measures of one checkpoint of each model, by depth, and beside what authors have published."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from shape_of_learning.figures import captions, marks
from shape_of_learning.figures.inputs import DrawnModel, FigureInputs
from shape_of_learning.figures.marks import draw_line
from shape_of_learning.figures.output import Drawing
from shape_of_learning.figures.style import (
    COLUMN_WIDTH,
    INK,
    LOW_PANEL_HEIGHT,
    TEXT_WIDTH,
    line_styles,
)
from shape_of_learning.figures.tables import by_layer

SOURCES = "ovsD"  # markers of published values, one per source
KEY = ["model", "estimator", "layer"]


def draw_profiles(
    axes: Axes, table: pd.DataFrame, models: Sequence[DrawnModel]
) -> list[marks.LabelledLine]:
    """Draw the line and band of each model of a table, in the styles that it has among all `models`."""
    styles = line_styles(models)
    return [
        marks.LabelledLine(
            draw_line(axes, rows, "depth", styles[name], name=name), rows["label"].iloc[0]
        )
        for name, rows in table.groupby("model", sort=False)
    ]


def profiles_drawing(
    figure: Figure, table: pd.DataFrame, inputs: FigureInputs, *sentences: str
) -> Drawing:
    """Put together a figure, its numbers from :func:`.by_layer` and its caption with these sentences."""
    words = captions.caption(
        inputs.caption,
        *sentences,
        captions.lines_and_bands(table, inputs.measures),
        *captions.suspects(table, inputs.measures),
    )
    return Drawing(figure, table.drop(columns="suspect"), words)


def published_values(inputs: FigureInputs, published: Sequence[Mapping[str, Any]]) -> Drawing:
    """Draw each measure of each model by layer, and what was published of it.

    Parameters
    ----------
    inputs : FigureInputs
    published : sequence of mapping
        Rows of ``published.csv`` of these models and measures.

    Returns
    -------
    Drawing
        Its table has one row per published value: what was measured there, ``value`` with its interval, and
        ``difference``, measured less published.
    """
    measured, values = by_layer(inputs), pd.DataFrame(published)
    models = [each for each in inputs.models if each.name in set(values["model"])]
    width = COLUMN_WIDTH if len(models) == 1 else TEXT_WIDTH
    figure = Figure(figsize=(width, (LOW_PANEL_HEIGHT + 0.3) * len(inputs.measures) + 0.4))
    grid = figure.subplots(len(inputs.measures), len(models), squeeze=False, sharex="col")
    styles = line_styles(inputs.models)
    sources = dict(zip(dict.fromkeys(values["source"]), SOURCES * len(values), strict=False))
    for panels, measure in zip(grid, inputs.measures, strict=True):
        for axes, model in zip(panels, models, strict=True):
            own = (measured["model"] == model.name) & (measured["estimator"] == measure.name)
            draw_line(axes, measured[own], "layer", styles[model.name], name=model.name)
            of = values[(values["model"] == model.name) & (values["estimator"] == measure.name)]
            for source, rows in of.groupby("source", sort=False):
                _draw_points(axes, rows, sources[source])
            axes.set(ylabel=measure.label if model is models[0] else "")
            if measure is inputs.measures[0]:
                axes.set_title(marks.panel_title(model.label, figure, len(models)))
    for axes in grid[-1]:
        axes.set_xlabel("Block" if measured["layer"].min() > 0 else "Layer")
    figure.legend(
        handles=[
            Line2D([], [], linestyle="", label=source, **_look(marker))
            for source, marker in sources.items()
        ],
        loc="outside lower left",
    )
    table = values.rename(columns={"value": "published"}).merge(
        measured[[*KEY, "revision", "selection", "value", "low", "high", "n"]], "left", on=KEY
    )
    table["difference"] = table["value"] - table["published"]
    return Drawing(figure, table, _caption(inputs, measured, values, table))


def _look(marker: str) -> dict[str, Any]:
    return {"marker": marker, "color": INK, "markerfacecolor": "none", "markeredgewidth": 0.6}


def _draw_points(axes: Any, rows: pd.DataFrame, marker: str) -> None:
    errors = {"yerr": rows["reading_error"], "elinewidth": 0.6, "capsize": 1.5}
    axes.errorbar(
        rows["layer"],
        rows["value"],
        **errors,
        linestyle="",
        markersize=3,
        zorder=3,
        **_look(marker),
    )


def _caption(
    inputs: FigureInputs, measured: pd.DataFrame, values: pd.DataFrame, table: pd.DataFrame
) -> str:
    apart = table.assign(away=table["difference"].abs()).groupby("estimator", sort=False)["away"]
    labels = {measure.name: measure.label for measure in inputs.measures}
    medians = apart.median().dropna()  # what is undefined in all layers has none
    differences = [f"{labels[name]} {median:.3g}" for name, median in medians.items()]
    protocols = values["protocol"].drop_duplicates().tolist()
    return captions.caption(
        inputs.caption,
        f"Points: as published, of {captions.enumerated(protocols)}; bars: the error of reading printed "
        "figures.",
        f"Median absolute difference: {captions.enumerated(differences)}." if differences else "",
        "Differences hold other windows and other batches, too.",
        captions.lines_and_bands(measured, inputs.measures),
        *captions.suspects(measured, inputs.measures),
    )
