"""The figures of "The Shape of Learning" and its Table 1; paper.yaml says what each of them shows."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator, ScalarFormatter

from shape_of_learning.figures import captions, marks, scales
from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.figures.output import Drawing
from shape_of_learning.figures.profiles import profiles_drawing
from shape_of_learning.figures.style import INK, LOW_PANEL_HEIGHT, TEXT_WIDTH
from shape_of_learning.figures.tables import by_layer

ROLES = {"decoder": "Decoders", "encoder": "Encoders"}
FRAME = 0.5  # inches above and below a panel, for its title and the x axis
# Section 2.3 of the paper: spectrum beside cosine, not centred above centred.
PANELS = {
    "anisotropy_uncentered": "Not centred",
    "average_cosine": "Not centred",
    "anisotropy": "Centred",
    "average_cosine_centered": "Centred",
}
SMALL = 0.02  # of the largest value in any panel
# Which of L blocks a panel shows: one panel each.
PLACES = {
    "First block": lambda L: 1,
    "Middle block": lambda L: (L + 1) // 2,
    "Last block": lambda L: L,
}
# What counts as a plateau: so many successive scales, and the largest value this much above the smallest.
PLATEAU_SCALES, PLATEAU_RISE = 4, 0.10


def profiles_by_role(inputs: FigureInputs) -> Drawing:
    """Figure 1: a measure over relative depth, decoders beside encoders, one checkpoint of each model."""
    table = by_layer(inputs)
    by_role = {role: table[table["role"] == role] for role in ROLES if role in set(table["role"])}
    most = max(rows["model"].nunique() for rows in by_role.values())
    height, notes = marks.height_for_labels(most) + FRAME, captions.footnote(inputs, table)
    whole = {"width": TEXT_WIDTH, "sharey": True}
    figure, (panels,) = marks.panels(1, len(by_role), height, *notes, **whole)
    drawn = []
    for axes, (role, rows) in zip(panels, by_role.items(), strict=True):
        drawn.append(marks.draw_models(axes, rows, "depth", inputs.models))
        axes.set(title=ROLES[role], xlabel="Relative depth")
    panels[0].set_ylabel(inputs.measures[0].label)
    for axes, lines in zip(panels, drawn, strict=True):
        scales.begin_at_zero(axes, inputs.measures)
        marks.label_line_ends(axes, lines)
    return profiles_drawing(figure, table, inputs)


def anisotropy_measures(inputs: FigureInputs) -> Drawing:
    """Section 2.3: anisotropy beside average cosine, centred and not, one checkpoint of each model."""
    table = by_layer(inputs)
    height = marks.height_for_labels(len(inputs.models), LOW_PANEL_HEIGHT) + 0.7 * FRAME
    notes = captions.footnote(inputs, table)
    figure, grid = marks.panels(2, 2, 2 * height, *notes, sharex=True, sharey=True)
    quantities = {measure.name: measure.axis for measure in inputs.measures}
    drawn = []
    for axes, (estimator, title) in zip(grid.flat, PANELS.items(), strict=True):
        rows = table[table["estimator"] == estimator]
        drawn.append(marks.draw_models(axes, rows, "depth", inputs.models))
        axes.set(title=title, ylabel=quantities[estimator])
        _name_small_values(axes, rows, table)
    for axes in grid[-1]:
        axes.set_xlabel("Relative depth")
    for axes in grid.flat:
        scales.begin_at_zero(axes, inputs.measures)
    marks.label_line_ends(grid[0, 1], drawn[1])
    return profiles_drawing(figure, table, inputs)


def _name_small_values(axes: Axes, rows: pd.DataFrame, table: pd.DataFrame) -> None:
    """Write into a panel that shares its y axis how large its values are, where they look like zero."""
    largest = rows["value"].abs().max()
    if largest < SMALL * table["value"].abs().max():
        words = f"all between -{largest:.2g} and {largest:.2g}"
        axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", color=INK)


def dimension_by_scale(inputs: FigureInputs, parameter: str) -> Drawing:
    """Draw measures that differ in one number against it: first, middle and last block, a line per model.

    Parameters
    ----------
    inputs : FigureInputs
        Its measures ascend in `parameter`.
    parameter : str
        An argument of their function; it doubles from each to the next.

    Returns
    -------
    Drawing
        The table has this column, and ``block``, the title of the panel. The caption says how many lines have
        a plateau.
    """
    table = _of_blocks(by_layer(inputs))
    values = {measure.name: int(measure.parameters[parameter]) for measure in inputs.measures}
    place = int(table.columns.get_loc("layer"))
    table.insert(place, parameter, table["estimator"].map(values))

    height = marks.height_for_labels(len(inputs.models)) + 0.4
    notes = captions.footnote(inputs, table)
    figure, (panels,) = marks.panels(1, len(PLACES), height, *notes, sharey=True)
    for axes, block in zip(panels, PLACES, strict=True):
        own = table[table["block"] == block]
        lines = marks.draw_models(axes, own, parameter, inputs.models, markers=True)
        axes.set_xscale("log", base=2)
        axes.set_xticks(sorted(values.values()))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.set(title=block, xlabel=parameter)
    panels[0].set_ylabel(inputs.measures[0].axis)
    for axes in panels:
        scales.begin_at_zero(axes, inputs.measures)
    marks.label_line_ends(panels[-1], lines)
    return profiles_drawing(figure, table, inputs, _on_plateaus(table, parameter))


def has_plateau(values: np.ndarray) -> bool:
    """Whether a dimension, shape (scales,), is about the same at four successive scales; NaN is none."""
    windows = np.lib.stride_tricks.sliding_window_view(values, min(PLATEAU_SCALES, len(values)))
    rises = windows.max(axis=1) / windows.min(axis=1)
    return len(values) >= PLATEAU_SCALES and bool((rises <= 1 + PLATEAU_RISE).any())


def _of_blocks(table: pd.DataFrame) -> pd.DataFrame:
    """Keep the layers that are drawn; in a model of one block that is drawn in every panel."""
    last = table.groupby("model")["layer"].transform("max")
    own = {block: table["layer"] == last.map(choose) for block, choose in PLACES.items()}
    return pd.concat(
        [table[rows].assign(block=block) for block, rows in own.items()], ignore_index=True
    )


def _on_plateaus(table: pd.DataFrame, parameter: str) -> str:
    lines = table.groupby(["block", "model"])["value"]
    count = sum(has_plateau(values.to_numpy()) for _, values in lines)
    return (
        f"A plateau, {PLATEAU_SCALES} successive {parameter} whose dimensions differ by at most "
        f"{100 * PLATEAU_RISE:g} %, is on {count or 'none'} of {lines.ngroups} lines."
    )


def _scientific(number: float) -> str:
    mantissa, exponent = f"{number:.3e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"


# Of Table 1: the heading of each column for people, and how a value is printed there.
RECIPE: dict[str, tuple[str, Callable]] = {
    "model": ("Model", captions.as_markup),
    "layers": ("Layers", "{:,}".format),
    "hidden_size": ("Hidden size", "{:,}".format),
    "attention_heads": ("Attention heads", "{:,}".format),
    "vocabulary": ("Vocabulary", "{:,}".format),
    "batch_size": ("Global batch size (sequences)", "{:,}".format),
    "learning_rate": ("Learning rate", _scientific),
    "training_tokens": ("Training tokens", captions.short_number),
}


def training_recipes(entries: Sequence[Mapping[str, str | float]]) -> tuple[pd.DataFrame, str]:
    """Table 1: how each model was trained, numbers as they are, and as Markdown for people."""
    table = pd.DataFrame(entries, columns=list(RECIPE))
    lines = [
        [heading for heading, _ in RECIPE.values()],
        [":--"] + ["--:"] * (len(RECIPE) - 1),
        *([printed(entry[key]) for key, (_, printed) in RECIPE.items()] for entry in entries),
    ]
    return table, "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
