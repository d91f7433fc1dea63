"""Intrinsic dimension averaged over layers, during training."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from shape_of_learning.figures.averages import over_layers, with_labels
from shape_of_learning.figures.captions import bands_over_batches, caption, details, estimator_label
from shape_of_learning.figures.lines import (
    LabelledLine,
    draw_line,
    height_for_labels,
    label_line_ends,
)
from shape_of_learning.figures.output import Drawing
from shape_of_learning.figures.scales import set_measure_axes, set_progress_axis
from shape_of_learning.figures.style import (
    COLUMN_WIDTH,
    PANEL_HEIGHT,
    TEXT_WIDTH,
    DrawnModel,
    line_styles,
)
from shape_of_learning.figures.tidy_table import Measurements, require_progress, select

LAYERS_IN_WORDS = {
    "block_outputs": "the outputs of all blocks, without the embedding output",
    "all_layers": "the embedding output and the outputs of all blocks",
}
PROGRESS_LABELS = {"step": "Training step", "tokens": "Training tokens"}


def draw_dimension_by_step(
    measurements: Measurements,
    models: Sequence[DrawnModel],
    protocol: str,
    estimators: Sequence[str] = ("two_nn",),
    average_over: str = "block_outputs",
    progress: str = "step",
) -> Drawing:
    """Figures 4 and 5: intrinsic dimension against the training step, one panel per estimator.

    Parameters
    ----------
    measurements : Measurements
    models : sequence of DrawnModel
    protocol : str
        Closing sentences of the caption.
    estimators : sequence of str
    average_over : {"block_outputs", "all_layers"}
        See :func:`~shape_of_learning.figures.averages.over_layers`.
    progress : {"step", "tokens"}
        What the x axis counts.

    Returns
    -------
    Drawing

    Raises
    ------
    InputError
        If a checkpoint does not say its step or its tokens, or if batch sizes are mixed.
    """
    chosen = select(measurements, [model.name for model in models], estimators)
    require_progress(chosen, progress)
    table = with_labels(over_layers(chosen, average_over), models)
    height = max(PANEL_HEIGHT, height_for_labels(len(models)))
    width = COLUMN_WIDTH if len(estimators) == 1 else TEXT_WIDTH
    figure = Figure(figsize=(width, height + 0.4))
    panels = figure.subplots(1, len(estimators), squeeze=False)[0]
    styles = line_styles(models)
    for axes, estimator in zip(panels, estimators, strict=True):
        lines = []
        for name, rows in table[table["estimator"] == estimator].groupby("model", sort=False):
            rows = rows.sort_values(progress)
            line = draw_line(axes, rows, progress, styles[name], name=name, markers=True)
            lines.append(LabelledLine(line, rows["label"].iloc[0]))
        set_progress_axis(axes, [int(value) for value in table[progress]])
        axes.set(title=estimator_label(estimator), xlabel=PROGRESS_LABELS[progress])
    panels[0].set_ylabel("Intrinsic dimension,\nmean over layers")
    set_measure_axes(panels, estimators)
    label_line_ends(panels[-1], lines)
    words = caption(
        f"Intrinsic dimension averaged over layers ({LAYERS_IN_WORDS[average_over]}) during "
        f"training, by {', '.join(map(estimator_label, estimators))}.",
        details(estimators),
        bands_over_batches(table, of="layers and batches"),
        "Left of the axis break: before training." if 0 in set(table[progress]) else "",
        protocol,
    )
    return Drawing(figure, table, words)
