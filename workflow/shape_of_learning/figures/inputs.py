"""What a figure is given."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from shape_of_learning.errors import InputError
from shape_of_learning.figures.table_reader import Table


@dataclass(frozen=True)
class DrawnModel:
    """A model of a figure: its name in tables, the label that is printed, its family and its role."""

    name: str
    label: str
    family: str
    role: str


@dataclass(frozen=True)
class DrawnMeasure:
    """A measure of a figure.

    Attributes
    ----------
    name : str
        In tables.
    label, axis : str
        As printed: of the measure with its settings, and of the quantity.
    depends_on_n : bool
        Whether values from batches of different sizes must not meet.
    interval : bool
        Whether the intervals of single layers cover; if not, tables have those of averages only.
    suspect_above : float or None
        The share of near-duplicates above which a point is marked.
    parameters : mapping
        All arguments of its function but the first.
    """

    name: str
    label: str
    axis: str
    depends_on_n: bool
    interval: bool = True
    suspect_above: float | None = None
    parameters: Mapping[str, bool | int | float | str] = field(default_factory=dict)


@dataclass(frozen=True)
class FigureInputs:
    """What a drawing function is given.

    Attributes
    ----------
    models : sequence of DrawnModel
        In the order in which they are drawn; sizes of a family ascending. No two have the same label.
    measures : sequence of DrawnMeasure
        In the order of panels.
    caption : str
        What can be said before the tables are read; the function adds what they tell.
    estimates : Table, optional
        Columns :data:`~shape_of_learning.figures.table_reader.ESTIMATES`. It may hold other models,
        measures and checkpoints, see :func:`~shape_of_learning.figures.drawn_rows.drawn_estimates`.
    changes : Table, optional
        Columns :data:`~shape_of_learning.figures.table_reader.CHANGES`.
    verdicts : Table, optional
        Columns :data:`~shape_of_learning.figures.table_reader.VERDICTS`; which checkpoints are shown, and why
        others are not. Without them every checkpoint is shown.
    tables : mapping of str to pandas.DataFrame
        What the figure `reads` besides, by the names in its paper.yaml: the tables of its models one after
        another, with the column ``model``. They are read by
        :func:`~shape_of_learning.figures.table_reader.read_further_tables`.
    """

    models: Sequence[DrawnModel]
    measures: Sequence[DrawnMeasure] = ()
    caption: str = ""
    estimates: Table | None = None
    changes: Table | None = None
    verdicts: Table | None = None
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    def __post_init__(self) -> None:
        labels = [model.label for model in self.models]
        if twice := sorted({label for label in labels if labels.count(label) > 1}):
            raise InputError(
                f"two models of a figure have the label {twice[0]!r}; give one of them another in its entry"
            )


def figure_inputs(
    specification: str, caption: str, **tables: Any
) -> tuple[FigureInputs, Mapping[str, object]]:
    """Put together what a figure's function is given, and the options that it takes besides.

    Parameters
    ----------
    specification : str
        JSON with the keys ``models`` and ``measures``, lists of what the classes above hold, and ``options``.
    caption : str
    **tables : Table, mapping or None
        As in :class:`FigureInputs`.
    """
    given = json.loads(specification)
    inputs = FigureInputs(
        models=[DrawnModel(**model) for model in given["models"]],
        measures=[DrawnMeasure(**measure) for measure in given["measures"]],
        caption=caption,
        **tables,
    )
    return inputs, given["options"]
