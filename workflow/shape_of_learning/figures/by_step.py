"""Averages over layers against training progress, one panel per measure, one line per model."""

from matplotlib.figure import Figure

from shape_of_learning.figures.averages import over_layers, uneven_averages, with_labels
from shape_of_learning.figures.captions import caption, lines_and_bands, undefined
from shape_of_learning.figures.drawn_rows import drawn_estimates, require_steps, with_verdicts
from shape_of_learning.figures.footnotes import add_footnote
from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.figures.line_labels import LabelledLine, height_for_labels, label_line_ends
from shape_of_learning.figures.lines import draw_line
from shape_of_learning.figures.omissions import omissions
from shape_of_learning.figures.output import Drawing
from shape_of_learning.figures.progress import LABELS, on_progress, progress_column
from shape_of_learning.figures.scales import set_measure_axes, set_progress_axis
from shape_of_learning.figures.style import COLUMN_WIDTH, TEXT_WIDTH, line_styles
from shape_of_learning.figures.suspects import suspects
from shape_of_learning.figures.visible_changes import smallest_visible_changes

NOT_IN_CSV = ["hollow", "suspect"]  # for drawing


def draw_by_step(
    inputs: FigureInputs,
    quantity: str,
    averaged: str,
    average_over: str = "block_outputs",
    progress: str = "auto",
    *,
    of: str | None = "layers and batches",
) -> Drawing:
    """Draw averages over layers of the checkpoints that the verdicts show.

    Parameters
    ----------
    inputs : FigureInputs
    quantity : str
        On the y axis.
    averaged : str
        A sentence on what is averaged.
    average_over : {"block_outputs", "all_layers"}
        See :func:`.over_layers`.
    progress : {"auto", "step", "tokens"}
        What the x axis counts, see :func:`.progress_column`.
    of : str or None
        As in :func:`.lines_and_bands`.

    Raises
    ------
    InputError
        If a checkpoint does not say its step or its tokens.
    """
    models, measures, verdicts = inputs.models, inputs.measures, inputs.verdicts
    chosen = drawn_estimates(inputs)
    require_steps(chosen)
    rows = over_layers(chosen, measures, average_over)
    table = with_labels(with_verdicts(rows, verdicts), models)
    counted = progress_column(table, progress)
    height = height_for_labels(len(models))
    width = COLUMN_WIDTH if len(measures) == 1 else TEXT_WIDTH
    figure = Figure(figsize=(width, height + 0.4))
    marked = [*uneven_averages(table, measures), *suspects(table, measures)]
    add_footnote(figure, [*omissions(verdicts, models, sources=False), *marked, *undefined(table)])
    panels = figure.subplots(1, len(measures), squeeze=False)[0]
    styles = line_styles(models)
    for axes, measure in zip(panels, measures, strict=True):
        lines = []
        for name, rows in table[table["estimator"] == measure.name].groupby("model", sort=False):
            rows = rows.sort_values(counted)
            line = draw_line(axes, rows, counted, styles[name], name=name, markers=True)
            lines.append(LabelledLine(line, rows["label"].iloc[0]))
        set_progress_axis(axes, [int(value) for value in table[counted]])
        axes.set(title=measure.label, xlabel=LABELS[counted], ylabel=quantity)
    set_measure_axes(panels, measures)
    label_line_ends(panels[-1], lines)
    words = caption(
        inputs.caption,
        averaged,
        lines_and_bands(table, measures, of=of),
        smallest_visible_changes(inputs, table),
        *omissions(verdicts, models),
        *marked,
        on_progress(table, counted),
    )
    return Drawing(figure, table.drop(columns=NOT_IN_CSV), words)
