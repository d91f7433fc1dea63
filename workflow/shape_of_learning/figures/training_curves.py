"""Intrinsic dimension averaged over layers, during training."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from shape_of_learning.figures.averages import over_layers, with_labels
from shape_of_learning.figures.captions import bands_over_batches, caption, details, estimator_label
from shape_of_learning.figures.footnotes import add_footnote
from shape_of_learning.figures.line_labels import (
    LabelledLine,
    height_for_labels,
    label_line_ends,
)
from shape_of_learning.figures.lines import draw_line
from shape_of_learning.figures.omissions import omissions
from shape_of_learning.figures.output import Drawing
from shape_of_learning.figures.scales import set_measure_axes, set_progress_axis
from shape_of_learning.figures.shown_checkpoints import select_shown, with_verdicts
from shape_of_learning.figures.style import (
    COLUMN_WIDTH,
    PANEL_HEIGHT,
    TEXT_WIDTH,
    DrawnModel,
    line_styles,
)
from shape_of_learning.figures.tidy_table import Measurements, require_progress
from shape_of_learning.figures.verdicts import Verdicts

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
    verdicts: Verdicts | None = None,
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
    verdicts : Verdicts, optional
        Without them every checkpoint is shown.

    Returns
    -------
    Drawing

    Raises
    ------
    InputError
        If a checkpoint does not say its step or its tokens, if batch sizes are mixed, or if the
        verdicts are not on the measured checkpoints.
    """
    chosen = select_shown(measurements, verdicts, models, estimators)
    require_progress(chosen, progress)
    table = with_labels(with_verdicts(over_layers(chosen, average_over), verdicts), models)
    height = max(PANEL_HEIGHT, height_for_labels(len(models)))
    width = COLUMN_WIDTH if len(estimators) == 1 else TEXT_WIDTH
    figure = Figure(figsize=(width, height + 0.4))
    add_footnote(figure, omissions(verdicts, models, sources=False))
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
        *omissions(verdicts, models),
        "Left of the axis break: before training." if 0 in set(table[progress]) else "",
        protocol,
    )
    return Drawing(figure, table.drop(columns="hollow"), words)
