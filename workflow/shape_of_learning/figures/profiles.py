"""Measures of one checkpoint of each model, by depth, and beside what authors have published."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from shape_of_learning.figures import captions, marks, style
from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.figures.output import Drawing, drawing
from shape_of_learning.figures.tables import by_layer

MARKERS = "ovsD"  # of published values, one per source
LOOK = {"linestyle": "", "color": style.INK, "markerfacecolor": "none", "markeredgewidth": 0.6}
KEY = ["model", "estimator", "layer"]


def profiles_drawing(
    figure: Figure, table: pd.DataFrame, inputs: FigureInputs, *sentences: str
) -> Drawing:
    """Put together a figure, its numbers from :func:`.by_layer` and its caption with these sentences."""
    values = captions.lines_and_bands(inputs, table)
    return drawing(inputs, figure, table, *sentences, values, *captions.marked(inputs, table))


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
    height = (style.LOW_PANEL_HEIGHT + 0.3) * len(inputs.measures) + 0.4
    figure, grid = marks.panels(len(inputs.measures), len(models), height, sharex="col")
    styles = style.line_styles(inputs.models)
    sources = dict(zip(values["source"].unique(), MARKERS * len(values), strict=False))
    for panels, measure in zip(grid, inputs.measures, strict=True):
        panels[0].set_ylabel(measure.label)
        for axes, model in zip(panels, models, strict=True):
            own, of = (
                rows[(rows["model"] == model.name) & (rows["estimator"] == measure.name)]
                for rows in (measured, values)
            )
            marks.draw_line(axes, own, "layer", styles[model.name], label=model.label)
            _draw_points(axes, of, sources)
    for axes, model in zip(grid[0], models, strict=True):
        axes.set_title(marks.panel_title(model.label, figure, len(models)))
    for axes in grid[-1]:
        axes.set_xlabel("Block" if measured["layer"].min() > 0 else "Layer")
    handles = [Line2D([], [], label=source, marker=m, **LOOK) for source, m in sources.items()]
    figure.legend(handles=handles, loc="outside lower left")
    table = values.rename(columns={"value": "published"}).merge(
        measured[[*KEY, "revision", "selection", "value", "low", "high", "n"]], "left", on=KEY
    )
    table["difference"] = table["value"] - table["published"]
    sentences = [
        *_on_differences(inputs, table),
        captions.lines_and_bands(inputs, measured),
        *captions.marked(inputs, measured),
    ]
    return drawing(inputs, figure, table, *sentences)


def _draw_points(axes: Axes, values: pd.DataFrame, sources: Mapping[str, str]) -> None:
    for source, rows in values.groupby("source", sort=False):
        axes.errorbar(
            rows["layer"],
            rows["value"],
            yerr=rows["reading_error"],
            elinewidth=0.6,
            capsize=1.5,
            marker=sources[source],
            markersize=3,
            zorder=3,
            **LOOK,
        )


def _on_differences(inputs: FigureInputs, table: pd.DataFrame) -> list[str]:
    labels = {measure.name: measure.label for measure in inputs.measures}
    away = table["difference"].abs().groupby(table["estimator"], sort=False)
    medians = away.median().dropna()  # what is undefined in all layers has none
    differences = [f"{labels[name]} {median:.3g}" for name, median in medians.items()]
    protocols = captions.enumerated([*table["protocol"].unique()])
    return [
        f"Points: as published, of {protocols}; bars: the error of reading printed figures.",
        f"Median absolute difference: {captions.enumerated(differences)}." if differences else "",
        "Differences hold other windows and other batches, too.",
    ]
