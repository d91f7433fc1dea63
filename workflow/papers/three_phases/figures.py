"""The figure of three phases, whose content paper.yaml describes."""

from shape_of_learning.figures import captions, marks, scales
from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.figures.output import Drawing, make_drawing
from shape_of_learning.figures.tables import select_layers


def last_layer_by_step(inputs: FigureInputs) -> Drawing:
    """Draw measures of the last layer by training progress: a panel per measure, a line per model."""
    layers = select_layers(inputs)
    table = layers[layers["layer"] == layers.groupby("model")["layer"].transform("max")]
    progress = scales.choose_progress_column(table)
    titled_tables = [
        (measure.label, table[table["estimator"] == measure.name]) for measure in inputs.measures
    ]
    notes = [*captions.format_footnote(inputs, table), scales.describe_progress(table, progress)]
    figure, (panels,), lines = marks.make_model_panels(
        inputs, progress, [titled_tables], *notes, captions.SCALES_DIFFER, frame=0.4
    )
    for axes, measure in zip(panels, inputs.measures, strict=True):
        axes.set_ylabel(measure.axis)
    marks.name_lines(panels[-1:], lines)
    return make_drawing(inputs, figure, table, captions.describe_estimates(table))
