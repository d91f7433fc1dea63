"""Measures over relative depth, one line per model, of one checkpoint each."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shape_of_learning.figures.averages import by_layer, with_labels
from shape_of_learning.figures.captions import caption, lines_and_bands
from shape_of_learning.figures.drawn_rows import drawn_estimates, require_one_checkpoint
from shape_of_learning.figures.inputs import DrawnModel, FigureInputs
from shape_of_learning.figures.line_labels import LabelledLine
from shape_of_learning.figures.lines import draw_line
from shape_of_learning.figures.output import Drawing
from shape_of_learning.figures.style import line_styles
from shape_of_learning.figures.suspects import suspects


def profiles(inputs: FigureInputs) -> pd.DataFrame:
    """Keep the layers of one checkpoint of each model, with labels.

    Raises
    ------
    InputError
        As :func:`.drawn_estimates`, and if there are several checkpoints of a model.
    """
    estimates = drawn_estimates(inputs)
    require_one_checkpoint(estimates)
    return with_labels(by_layer(estimates, inputs.measures), inputs.models)


def draw_profiles(
    axes: Axes, table: pd.DataFrame, models: Sequence[DrawnModel]
) -> list[LabelledLine]:
    """Draw the line and band of each model of a table, in the styles that it has among all `models`."""
    styles = line_styles(models)
    return [
        LabelledLine(draw_line(axes, rows, "depth", styles[name], name=name), rows["label"].iloc[0])
        for name, rows in table.groupby("model", sort=False)
    ]


def profiles_drawing(
    figure: Figure,
    table: pd.DataFrame,
    inputs: FigureInputs,
    *sentences: str,
    of: str | None = "batches",
) -> Drawing:
    """Put together a figure, its numbers and its caption.

    Parameters
    ----------
    figure : Figure
    table : pandas.DataFrame
        From :func:`profiles`.
    inputs : FigureInputs
    *sentences : str
        What the caption says before it explains lines and bands.
    of : str or None
        As in :func:`.lines_and_bands`.
    """
    words = caption(
        inputs.caption,
        *sentences,
        lines_and_bands(table, inputs.measures, of=of),
        *suspects(table, inputs.measures),
    )
    return Drawing(figure, table.drop(columns="suspect"), words)
