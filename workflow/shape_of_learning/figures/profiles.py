"""Profiles over relative depth: a measure against the layer, one line per model."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shape_of_learning.figures.averages import by_layer, with_labels
from shape_of_learning.figures.captions import bands_over_batches, caption, details, estimator_label
from shape_of_learning.figures.line_labels import (
    LabelledLine,
    height_for_labels,
    label_line_ends,
)
from shape_of_learning.figures.lines import draw_line
from shape_of_learning.figures.output import Drawing
from shape_of_learning.figures.scales import set_measure_axes
from shape_of_learning.figures.style import PANEL_HEIGHT, TEXT_WIDTH, DrawnModel, line_styles
from shape_of_learning.figures.tidy_table import Measurements, last_checkpoints, select

ROLES = {"decoder": "Decoders", "encoder": "Encoders"}
FRAME = 0.5  # inches above and below a panel, for its title and the x axis
# Section 2.3 of the paper: spectrum beside cosine, not centred above centred.
MEASURES = {
    "anisotropy_uncentered": ("Anisotropy", "Not centred"),
    "average_cosine": ("Average cosine", "Not centred"),
    "anisotropy": ("Anisotropy", "Centred"),
    "average_cosine_centered": ("Average cosine", "Centred"),
}
LOW_PANEL = 1.5  # inches, where panels stand above each other


def draw_profiles_by_role(
    measurements: Measurements,
    models: Sequence[DrawnModel],
    protocol: str,
    estimator: str = "anisotropy",
) -> Drawing:
    """Figure 1: profiles over relative depth, decoders beside encoders.

    Parameters
    ----------
    measurements : Measurements
        Of several checkpoints of a model the last one is drawn.
    models : sequence of DrawnModel
    protocol : str
        Closing sentences of the caption.
    estimator : str

    Returns
    -------
    Drawing
    """
    table = _last_profiles(measurements, models, [estimator])
    by_role = {role: table[table["role"] == role] for role in ROLES if role in set(table["role"])}
    most = max(rows["model"].nunique() for rows in by_role.values())
    panel_height = max(PANEL_HEIGHT, height_for_labels(most))
    figure = Figure(figsize=(TEXT_WIDTH, panel_height + FRAME))
    panels = figure.subplots(1, len(by_role), sharey=True, squeeze=False)[0]
    drawn = [
        _draw_models(axes, rows, models)
        for axes, rows in zip(panels, by_role.values(), strict=True)
    ]
    for axes, role in zip(panels, by_role, strict=True):
        axes.set(title=ROLES[role], xlabel="Relative depth")
    panels[0].set_ylabel(estimator_label(estimator))
    set_measure_axes(panels, [estimator])
    for axes, lines in zip(panels, drawn, strict=True):
        label_line_ends(axes, lines)
    words = caption(
        f"{estimator_label(estimator)} by relative depth (layer over number of layers, 0 is the "
        "embedding output) of each model's last checkpoint.",
        details([estimator]),
        bands_over_batches(table),
        protocol,
    )
    return Drawing(figure, table, words)


def draw_anisotropy_measures(
    measurements: Measurements, models: Sequence[DrawnModel], protocol: str
) -> Drawing:
    """Section 2.3: anisotropy beside average cosine, centred and not.

    Parameters
    ----------
    measurements : Measurements
        Of several checkpoints of a model the last one is drawn.
    models : sequence of DrawnModel
    protocol : str
        Closing sentences of the caption.

    Returns
    -------
    Drawing
    """
    table = _last_profiles(measurements, models, list(MEASURES))
    height = max(LOW_PANEL, height_for_labels(len(models))) + 0.7 * FRAME
    figure = Figure(figsize=(TEXT_WIDTH, 2 * height))
    grid = figure.subplots(2, 2, sharex=True, sharey=True)
    for axes, (estimator, (measure, title)) in zip(grid.flat, MEASURES.items(), strict=True):
        lines = _draw_models(axes, table[table["estimator"] == estimator], models)
        axes.set(title=title, ylabel=measure)
        if axes is grid[0, 1]:
            labelled = lines
    for axes in grid[-1]:
        axes.set_xlabel("Relative depth")
    set_measure_axes(grid.flat, MEASURES)
    label_line_ends(grid[0, 1], labelled)
    words = caption(
        "Anisotropy and the average cosine of pairs by relative depth (layer over number of "
        "layers, 0 is the embedding output), of the vectors as they are above and centred "
        "below; each model's last checkpoint.",
        details(MEASURES),
        bands_over_batches(table),
        protocol,
    )
    return Drawing(figure, table, words)


def _last_profiles(
    measurements: Measurements, models: Sequence[DrawnModel], estimators: Sequence[str]
) -> pd.DataFrame:
    chosen = select(measurements, [model.name for model in models], estimators)
    return with_labels(by_layer(last_checkpoints(chosen)), models)


def _draw_models(
    axes: Axes, table: pd.DataFrame, models: Sequence[DrawnModel]
) -> list[LabelledLine]:
    styles = line_styles(models)
    return [
        LabelledLine(draw_line(axes, rows, "depth", styles[name], name=name), rows["label"].iloc[0])
        for name, rows in table.groupby("model", sort=False)
    ]
