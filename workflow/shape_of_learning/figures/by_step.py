"""Averages over layers against training progress, one panel per measure, one line per model."""

from shape_of_learning.figures import captions, marks, scales
from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.figures.output import Drawing, make_drawing
from shape_of_learning.figures.tables import AVERAGED_LAYERS_IN_WORDS, select_averages


def means_by_step(inputs: FigureInputs, average_over: str = "block_outputs") -> Drawing:
    """Draw averages over layers of the checkpoints that the verdicts show.

    Parameters
    ----------
    inputs : FigureInputs
    average_over : {"block_outputs", "all_layers"}
        See :func:`.select_averages`.
    """
    table, measures = select_averages(inputs, average_over), inputs.measures
    counted = scales.choose_progress_column(table)
    shown = [(measure.label, table[table["estimator"] == measure.name]) for measure in measures]
    notes = [*captions.write_footnote(inputs, table), scales.describe_progress(table, counted)]
    notes.append(captions.SCALES_DIFFER if len(measures) > 1 else "")
    figure, (panels,), lines = marks.make_model_panels(inputs, counted, [shown], *notes, frame=0.4)
    panels[0].set_ylabel(f"{measures[0].axis},\nmean over layers")
    for axes, measure in zip(panels, measures, strict=True):
        scales.begin_at_zero(axes, [measure])
    marks.name_lines(panels[-1:], lines)
    averaged = AVERAGED_LAYERS_IN_WORDS[average_over]
    return make_drawing(inputs, figure, table, averaged, captions.describe_estimates(table))
