"""What a drawing function is given: models, measures, and the tables of this run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

TEXT = (
    "model",
    "role",
    "revision",
    "estimator",
    "selection",
    "suspect",
    "reason",
    "verdict",
    "shown",
)
WHOLE = ("step", "tokens", "layer", "windows", "predicted_tokens", "vocabulary")
KINDS = dict.fromkeys(TEXT, "str") | dict.fromkeys(WHOLE, "Int64")
# Of estimates: means over batches, even where all batches are equally large.
MEANS = dict.fromkeys(("n", "n_unique"), "float64")


@dataclass(frozen=True)
class DrawnModel:
    """A model of a figure.

    Attributes
    ----------
    name : str
        In tables.
    label, family, role : str
        What is printed; what its colour goes by; ``decoder`` or ``encoder``.
    revision : str or None
        The checkpoint that is drawn; None where a figure shows all that the verdicts do.
    width : int
        Coordinates of a hidden state; 0 where nobody says.
    seeds_of : str
        The entry of which it is one seed; empty if it has no others.
    """

    name: str
    label: str
    family: str
    role: str
    revision: str | None = None
    width: int = 0
    seeds_of: str = ""


@dataclass(frozen=True)
class DrawnMeasure:
    """A measure of a figure.

    Attributes
    ----------
    name : str
        In tables.
    label, axis : str
        As printed: of the measure with its settings, and of the quantity.
    from_zero : bool
        Whether its axis begins at 0 or below, as that of shares and cosines; others may be logarithmic.
    interval : bool
        Whether its intervals cover; if not, tables have none.
    per_dimension : bool
        Whether it depends on how many vectors come to each coordinate, as scores of fits do.
    parameters : mapping
        All arguments of its function but the first.
    """

    name: str
    label: str
    axis: str
    from_zero: bool = True
    has_interval: bool = True
    per_dimension: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FigureInputs:
    """What a drawing function is given.

    Attributes
    ----------
    models : sequence of DrawnModel
        In the order in which they are drawn; sizes of a family ascending.
    measures : sequence of DrawnMeasure
        In the order of panels.
    caption : str
        What can be said before the tables are read; the function adds what they tell.
    tables : mapping of str to pandas.DataFrame
        By kind, the rows of its models one after another: ``estimates`` where there are measures, ``verdicts``
        where a figure shows a training, and what it `reads` besides. They may hold other measures and
        checkpoints.
    note : str
        Of the checkpoints that are drawn; it stands below the panels.
    sample : str
        Which windows of which text are measured; a line below the panels says it.
    """

    models: Sequence[DrawnModel]
    measures: Sequence[DrawnMeasure] = ()
    caption: str = ""
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    note: str = ""
    sample: str = ""

    @property
    def verdicts(self) -> pd.DataFrame | None:
        """Which checkpoints are shown, and why others are not."""
        return self.tables.get("verdicts")


def read_tables(files: Mapping[str, Sequence[Path]]) -> dict[str, pd.DataFrame]:
    """Read tables of this run, by kind one file of each model; an empty cell is a missing value."""
    return {
        kind: pd.concat([_read(path, kind == "estimates") for path in paths], ignore_index=True)
        for kind, paths in files.items()
        if paths
    }


def _read(path: Path, of_estimates: bool) -> pd.DataFrame:
    kinds = KINDS | MEANS if of_estimates else KINDS
    return pd.read_csv(path, dtype=kinds, keep_default_na=False, na_values=[""])
