"""Averages over layers against training progress, one panel per measure, one line per model."""

from matplotlib.figure import Figure

from shape_of_learning.figures import captions, marks, scales
from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.figures.marks import draw_line
from shape_of_learning.figures.output import Drawing
from shape_of_learning.figures.style import COLUMN_WIDTH, TEXT_WIDTH, line_styles
from shape_of_learning.figures.tables import AVERAGED_LAYERS_IN_WORDS, NOT_IN_CSV, over_layers


def means_by_step(
    inputs: FigureInputs,
    average_over: str = "block_outputs",
    progress: str = "auto",
    quantity: str = "",
    of_blocks: bool = False,
) -> Drawing:
    """Draw averages over layers of the checkpoints that the verdicts show.

    Parameters
    ----------
    inputs : FigureInputs
    average_over : {"block_outputs", "all_layers"}
        See :func:`.over_layers`.
    progress : {"auto", "step", "tokens"}
        What the x axis counts, see :func:`.progress_column`.
    quantity : str
        On the y axis, if not what the first measure has there.
    of_blocks : bool
        Whether the measures are of blocks, which the embedding output is none of.
    """
    models, measures = inputs.models, inputs.measures
    table = over_layers(inputs, average_over)
    counted = scales.progress_column(table, progress)
    height = marks.height_for_labels(len(models))
    width = COLUMN_WIDTH if len(measures) == 1 else TEXT_WIDTH
    figure = Figure(figsize=(width, height + 0.4))
    marked = [*captions.uneven_averages(table, measures), *captions.suspects(table, measures)]
    marks.add_footnote(
        figure, *captions.omissions(inputs, sources=False), *marked, captions.undefined(table)
    )
    panels = figure.subplots(1, len(measures), squeeze=False)[0]
    styles = line_styles(models)
    over = "blocks" if of_blocks else "layers"
    for axes, measure in zip(panels, measures, strict=True):
        lines = []
        for name, rows in table[table["estimator"] == measure.name].groupby("model", sort=False):
            rows = rows.sort_values(counted)
            line = draw_line(axes, rows, counted, styles[name], name=name, markers=True)
            lines.append(marks.LabelledLine(line, rows["label"].iloc[0]))
        scales.set_progress_axis(axes, table[counted])
        axes.set(title=measure.label, xlabel=scales.PROGRESS[counted])
        axes.set_ylabel(f"{quantity or measures[0].axis},\nmean over {over}")
    scales.set_measure_axes(panels, measures)
    marks.label_line_ends(panels[-1], lines)
    words = captions.caption(
        inputs.caption,
        "Averaged are all blocks." if of_blocks else AVERAGED_LAYERS_IN_WORDS[average_over],
        captions.lines_and_bands(table, measures),
        captions.smallest_visible_changes(inputs, table),
        *captions.omissions(inputs),
        *marked,
        scales.on_progress(table, counted),
    )
    return Drawing(figure, table.drop(columns=NOT_IN_CSV), words)
