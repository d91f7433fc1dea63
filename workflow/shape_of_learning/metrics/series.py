"""The measured models whose tables are gathered, and the jobs that gather them.

This module imports nothing heavy, because the Snakefile reads it at every start.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from shape_of_learning.metrics.suspects import Conditions
from shape_of_learning.metrics.tidy import AVERAGED_LAYERS

MeasuredCheckpoint = tuple[str, int | None, int | None]  # revision, step and tokens


@dataclass(frozen=True)
class MeasuredModel:
    """A model with its measured checkpoints.

    Attributes
    ----------
    name, role : str
    layers : int
        Hidden states are 0 to `layers`.
    checkpoints : sequence of (str, int or None, int or None)
        Revision, step and tokens, by ascending step.
    average_over : {"block_outputs", "all_layers"}
        Layers 1 to L, or 0 to L.
    width : int
        Coordinates of a hidden state; 0 if unknown.
    """

    name: str
    role: str
    layers: int
    checkpoints: Sequence[MeasuredCheckpoint]
    average_over: str
    width: int = 0

    @property
    def first(self) -> int:
        """The first layer in an average."""
        return AVERAGED_LAYERS[self.average_over]


@dataclass(frozen=True)
class MeasuredSeries:
    """One measure over the checkpoints of a model.

    Attributes
    ----------
    estimator, family : str
    conditions : Conditions
        The conditions of the measure.
    revisions : sequence of str
        The measured revisions.
    """

    estimator: str
    family: str
    conditions: Conditions
    revisions: Sequence[str]


class ModelTablesJob(NamedTuple):
    """A model whose measurements are gathered.

    Attributes
    ----------
    folder : str
        The folder within the results that holds a folder of measurements for each model.
    model : MeasuredModel
    series : tuple of MeasuredSeries
        In the order of the tables.
    """

    folder: str
    model: MeasuredModel
    series: tuple[MeasuredSeries, ...]


class TablesJob(NamedTuple):
    """Tables of one kind that are joined into one.

    Attributes
    ----------
    kind : str
        The kind of their columns, such as ``estimates``.
    series : tuple of (str, str), optional
        Model and estimator of the rows to take, in the order of the joined table; by default all rows in their order.
    checkpoints : tuple of (model, role, revision, step, tokens), optional
        The checkpoint of each table, if rows do not name their checkpoint.
    """

    kind: str
    series: tuple[tuple[str, str], ...] | None = None
    checkpoints: tuple[tuple[str, str, str, int | None, int | None], ...] | None = None
