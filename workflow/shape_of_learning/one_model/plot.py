"""Plot estimates: a panel per measure, a line per model or step, bands, and marks of suspect values."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from matplotlib import rc_context

from shape_of_learning.errors import InputError, escape_controls
from shape_of_learning.figures.captions import format_counts
from shape_of_learning.figures.curves import choose_layer_column, overview
from shape_of_learning.figures.inputs import COLUMN_TYPES, MEAN_COLUMN_TYPES, FigureInputs
from shape_of_learning.figures.job import DrawnModel, make_drawn_measures
from shape_of_learning.figures.marks import draw_models
from shape_of_learning.figures.output import Drawing
from shape_of_learning.figures.style import use_theme
from shape_of_learning.figures.tables import select_layers
from shape_of_learning.metrics.registry import find_measure
from shape_of_learning.one_model.options import UNKNOWN_TEXT

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


NEEDED_COLUMNS = (
    *("model", "role", "revision", "step", "layer", "estimator"),
    *("value", "low", "high", "batch_sd", "n", "windows", "reason"),
)


@contextmanager
def plot_theme() -> Iterator[None]:
    """Draw in the style of the project's figures, so that equal tables give equal SVGs."""
    with use_theme(), rc_context({"svg.hashsalt": "shape-of-learning"}):
        yield


def plot(
    table: "pd.DataFrame", measures: str | Sequence[str] = (), *, ax: "Axes | None" = None
) -> "Figure | Axes":
    """Draw a table of :func:`.measure`: a line per model, bands of 95 % intervals, and rings at suspect values.

    Parameters
    ----------
    table : pandas.DataFrame
        Tables of several models, joined by `pandas.concat`, have a line for each model; a table of one model at
        several steps has a line for each step.
    measures : str or sequence of str
        By default all measures of the table.
    ax : matplotlib.axes.Axes, optional
        Axes for a single measure.

    Returns
    -------
    matplotlib.figure.Figure, or `ax`

    Raises
    ------
    InputError
        If the table lacks a measure, or `ax` is given for several.
    """
    names = [measures] if isinstance(measures, str) else list(measures)
    if ax is None:
        with plot_theme():
            return draw_estimates(table, names).figure
    inputs = make_inputs(table, names)
    names = [measure.name for measure in inputs.measures]
    if len(names) != 1:
        raise InputError(f"`ax` has room for one measure; choose one of {', '.join(names)}")
    rows = select_layers(inputs)
    lines = draw_models(ax, rows, "layer", inputs.models)
    ax.set(xlabel="Layer", ylabel=inputs.measures[0].label)
    if len(inputs.models) > 1:
        ax.legend(lines, [line.get_label() for line in lines])
    return ax


def draw_estimates(table: "pd.DataFrame", measures: Sequence[str] = ()) -> Drawing:
    """Draw a table of estimates as :func:`plot` does, and return the caption, too."""
    return overview(make_inputs(table, measures))


def make_inputs(table: "pd.DataFrame", measures: Sequence[str]) -> FigureInputs:
    """Make the models and measures of a drawing; InputError if the table lacks a measure or has no layers."""
    columns = getattr(table, "columns", ())
    if lacking := [name for name in NEEDED_COLUMNS if name not in columns]:
        raise InputError(
            f"`table` is a {type(table).__name__} without a column `{lacking[0]}`; give a table that `measure` returns"
        )
    text = table.attrs.get("text")
    table = table[table["layer"].notna()]
    table_measures = list(dict.fromkeys(table["estimator"]))
    if absent := [name for name in measures if name not in table_measures]:
        raise InputError(f"the table has no `{absent[0]}`; it has {', '.join(table_measures)}")
    if table.empty:
        raise InputError("the table has no rows of layers; give a table that `measure` returns")
    names = list(dict.fromkeys(measures or table_measures))
    table = table[table["estimator"].isin(names)]
    table = table.assign(revision=table["revision"].astype(str))
    steps = table.groupby("model")["step"].nunique()
    has_training = bool((steps > 1).any())
    if len(steps) > 1 and has_training:
        raise InputError(
            "the table has several models at several steps; give one model, or one step of each"
        )
    models = []
    for (name, revision), rows in table.groupby(["model", "revision"], sort=False):
        label = escape_controls(name if revision == "main" else f"{name} at {revision}")
        models.append(
            DrawnModel(f"{name}@{revision}", label, label, rows["role"].iloc[0], revision)
        )
    table = table.assign(model=table["model"] + "@" + table["revision"])
    tables = {}
    if has_training:  # the only model has a line for each step
        models = [DrawnModel(models[0].name, models[0].label, models[0].family, models[0].role)]
        table = table.assign(model=models[0].name)
        verdicts = table[["model", "revision", "step"]].drop_duplicates()
        tables["verdicts"] = verdicts.assign(verdict="not judged", shown="yes")
    kinds = {
        column: kind
        for column, kind in (COLUMN_TYPES | MEAN_COLUMN_TYPES).items()
        if column in table
    }
    drawn_measures = [find_measure(name).configure(name, {}) for name in names]
    windows = f"{format_counts(table['windows'])} windows"
    place = {"layer": "layer", "depth": "relative depth"}[choose_layer_column(table)]
    return FigureInputs(
        models=models,
        measures=make_drawn_measures(drawn_measures),
        caption=f"Measures of {', '.join(model.label for model in models)} by {place}.",
        tables={"estimates": table.astype(kinds), **tables},
        sample="" if text == UNKNOWN_TEXT else " of ".join(filter(None, (windows, text))),
    )
