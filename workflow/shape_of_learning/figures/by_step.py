"""Averages over layers against training progress, one panel per measure, one line per model."""

from shape_of_learning.errors import InputError
from shape_of_learning.figures import captions, marks, scales
from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.figures.output import Drawing, drawing
from shape_of_learning.figures.tables import AVERAGED_LAYERS_IN_WORDS, over_layers


def means_by_step(
    inputs: FigureInputs,
    average_over: str = "block_outputs",
    quantity: str = "",
    of_blocks: bool = False,
    columns: int = 0,
) -> Drawing:
    """Draw averages over layers of the checkpoints that the verdicts show.

    Parameters
    ----------
    inputs : FigureInputs
    average_over : {"block_outputs", "all_layers"}
        See :func:`.over_layers`.
    quantity : str
        On the y axis, if not what the first measure has there.
    of_blocks : bool
        Whether the measures are of blocks, which the embedding output is none of.
    columns : int
        Panels of a row; 0 for all.
    """
    table, measures = over_layers(inputs, average_over), inputs.measures
    counted = scales.progress_column(table)
    shown = [(each.label, table[table["estimator"] == each.name]) for each in measures]
    notes = [*captions.footnote(inputs, table), scales.on_progress(table, counted)]
    size = columns or len(shown)
    if len(shown) % size:
        raise InputError(
            f"`columns: {size}` does not divide {len(shown)} panels; correct `options`"
        )
    rows = [shown[first : first + size] for first in range(0, len(shown), size)]
    figure, panels, lines = marks.model_panels(inputs, counted, rows, *notes, frame=0.4)
    over = "blocks" if of_blocks else "layers"
    for axes in panels.flat:
        axes.set_ylabel(f"{quantity or measures[0].axis},\nmean over {over}")
        scales.begin_at_zero(axes, measures)
    marks.name_lines(panels[0, -1:], lines)
    averaged = (
        "Averages are over all blocks." if of_blocks else AVERAGED_LAYERS_IN_WORDS[average_over]
    )
    return drawing(inputs, figure, table, averaged, captions.on_estimates(table))
