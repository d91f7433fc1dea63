"""The arguments of a drawing function: models, measures, and the tables of the run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from shape_of_learning.figures.job import DrawnMeasure, DrawnModel
from shape_of_learning.metrics.tidy import TEXT_COLUMNS

WHOLE_COLUMNS = ("step", "tokens", "layer", "windows", "predicted_tokens", "vocabulary")
VERDICT_COLUMNS = ("verdict", "shown", "short_verdict")
COLUMN_TYPES = dict.fromkeys((*TEXT_COLUMNS, *VERDICT_COLUMNS), "str")
COLUMN_TYPES |= dict.fromkeys(WHOLE_COLUMNS, "Int64")
# In estimates these are means over batches, also if all batches are equally large.
MEAN_COLUMN_TYPES = dict.fromkeys(("n", "n_unique"), "float64")


@dataclass(frozen=True)
class FigureInputs:
    """The arguments of a drawing function.

    Attributes
    ----------
    models : sequence of DrawnModel
        Models in the order in which they are drawn, by family and ascending size.
    measures : sequence of DrawnMeasure
        Measures in the order of panels.
    caption : str
        The beginning of the caption; the drawing function adds sentences about the tables.
    tables : mapping of str to pandas.DataFrame
        Tables by kind, with the rows of all models: ``estimates`` if there are measures, ``verdicts`` if the figure
        shows a training, and the kinds in `reads` of ``paper.yaml``. Tables may hold further measures and checkpoints.
    note : str
        A note on the drawn checkpoints, below the panels.
    sample : str
        The windows and the text, below the panels.
    """

    models: Sequence[DrawnModel]
    measures: Sequence[DrawnMeasure] = ()
    caption: str = ""
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    note: str = ""
    sample: str = ""

    @property
    def verdicts(self) -> pd.DataFrame | None:
        """The verdicts on the checkpoints, with the columns ``shown`` and ``short_verdict``."""
        return self.tables.get("verdicts")


def read_tables(files: Mapping[str, Sequence[Path]]) -> dict[str, pd.DataFrame]:
    """Read the tables of each kind from one file per model; an empty cell is a missing value."""
    tables = {}
    for kind, paths in files.items():
        types = COLUMN_TYPES | MEAN_COLUMN_TYPES if kind == "estimates" else COLUMN_TYPES
        parts = [
            pd.read_csv(path, dtype=types, keep_default_na=False, na_values=[""]) for path in paths
        ]
        if parts:
            tables[kind] = pd.concat(parts, ignore_index=True)
    return tables
