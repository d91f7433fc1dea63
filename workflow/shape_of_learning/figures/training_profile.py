"""The profile of one model at each of its training steps."""

from collections.abc import Sequence
from dataclasses import replace

from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, to_hex
from matplotlib.figure import Figure

from shape_of_learning.errors import InputError
from shape_of_learning.figures.averages import by_layer, with_labels
from shape_of_learning.figures.captions import bands_over_batches, caption, details, estimator_label
from shape_of_learning.figures.footnotes import add_footnote
from shape_of_learning.figures.lines import draw_line
from shape_of_learning.figures.omissions import omissions
from shape_of_learning.figures.output import Drawing
from shape_of_learning.figures.scales import set_measure_axes, set_step_ticks
from shape_of_learning.figures.shown_checkpoints import select_shown, with_verdicts
from shape_of_learning.figures.style import (
    COLUMN_WIDTH,
    PANEL_HEIGHT,
    DrawnModel,
    LineStyle,
    step_colours,
)
from shape_of_learning.figures.tidy_table import Measurements, require_progress
from shape_of_learning.figures.verdicts import Verdicts

UNTRAINED = LineStyle("0.35", (0, (2, 2)), "o")  # grey and dashed: step 0 has no logarithm
DOTTED = (0, (1, 1.2))  # the line of a hollow checkpoint


def draw_training_profile(
    measurements: Measurements,
    models: Sequence[DrawnModel],
    protocol: str,
    estimator: str = "anisotropy",
    verdicts: Verdicts | None = None,
) -> Drawing:
    """Figures 2 and 3: a measure by layer, one line per training step, coloured by step.

    Parameters
    ----------
    measurements : Measurements
    models : sequence of DrawnModel
        One.
    protocol : str
        Closing sentences of the caption.
    estimator : str
    verdicts : Verdicts, optional
        Without them every checkpoint is shown.

    Returns
    -------
    Drawing

    Raises
    ------
    InputError
        If there is more than one model, a checkpoint without its step, or if the verdicts are not
        on the measured checkpoints.
    """
    if len(models) != 1:
        raise InputError(f"a profile by training step shows one model, not {len(models)}")
    (model,) = models
    chosen = select_shown(measurements, verdicts, models, [estimator])
    require_progress(chosen, "step")
    table = with_labels(with_verdicts(by_layer(chosen), verdicts), models)
    figure = Figure(figsize=(COLUMN_WIDTH, PANEL_HEIGHT + 0.4))
    add_footnote(figure, omissions(verdicts, models, sources=False))
    axes = figure.subplots()
    colours = step_colours()
    steps = sorted({int(step) for step in table["step"] if step > 0})
    norm = LogNorm(steps[0], max(steps[-1], 10 * steps[0])) if steps else None
    for step, rows in table.groupby("step"):
        style = LineStyle(to_hex(colours(norm(step))), "-", "o") if step else UNTRAINED
        if rows["hollow"].all():
            style = replace(style, dashes=DOTTED)
        line = draw_line(axes, rows, "layer", style, name=str(step))
        if not step:
            line.set_zorder(2.5)  # the first trained steps hardly differ and would hide it
            place = {"loc": "lower right", "bbox_to_anchor": (1, 1), "borderaxespad": 0.2}
            axes.legend([line], ["step 0, untrained"], **place)
    if norm:
        mapped = ScalarMappable(norm, colours)
        bar = figure.colorbar(
            mapped, ax=axes, label="Training step (log scale)", pad=0.02, aspect=25
        )
        bar.outline.set_visible(False)
        set_step_ticks(bar, steps)
    axes.set(
        title=model.label,
        xlabel="Layer (0 is the embedding output)",
        ylabel=estimator_label(estimator),
    )
    axes.xaxis.get_major_locator().set_params(integer=True)
    set_measure_axes([axes], [estimator])
    words = caption(
        f"{estimator_label(estimator)} of {model.label} by layer and training step.",
        details([estimator]),
        bands_over_batches(table),
        *omissions(verdicts, models),
        protocol,
    )
    return Drawing(figure, table.drop(columns="hollow"), words)
