"""Values of measures, the tables that hold them, and their columns."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np

from shape_of_learning.metrics.batches import Batch
from shape_of_learning.metrics.left_out import measure_batch
from shape_of_learning.metrics.measure_entry import ChosenMeasure
from shape_of_learning.metrics.neighbour_lists import NeighbourLists
from shape_of_learning.metrics.resampling import GROUPS, left_out_values
from shape_of_learning.metrics.table_columns import WITHOUT_COLUMNS
from shape_of_learning.storage.csv_table import write_table


@dataclass(frozen=True)
class BatchValue:
    """One value of one batch.

    Attributes
    ----------
    batch : int
        Number of the batch within its layer.
    n, n_unique : int
        Vectors of the batch, and distinct ones among them.
    value : float
        NaN where it is undefined, which the table shows as an empty cell.
    """

    batch: int
    n: int
    n_unique: int
    value: float


# Of one checkpoint and estimator, and of measurements.csv.
LAYER_COLUMNS = ("layer", *(field.name for field in fields(BatchValue)))
COLUMNS = (
    *("model", "role", "revision", "step", "tokens", "layer", "depth", "estimator"),
    *LAYER_COLUMNS[1:],
)


def relative_depth(layer: int, layers: int) -> float:
    """Layer over number of layers: 0 for the embedding output, 1 for the last hidden state."""
    return layer / layers


@dataclass(frozen=True)
class Estimate:
    """What the batches of a layer say together, and what they say without each group of windows.

    Attributes
    ----------
    value : float
        Mean over batches, NaN if it is undefined in any.
    batch_sd : float
        Standard deviation over batches, with one degree of freedom less than there are; NaN for one batch.
    n, n_unique : float
        Vectors of a batch, and distinct ones among them, in the mean over batches.
    near_duplicates : float
        Share of the vectors with a near-duplicate, :meth:`.NeighbourLists.near_duplicates`, in the mean
        over batches. NaN for measures that are not of neighbours.
    windows : int
        How many windows have vectors in the batches.
    left_out : tuple of float
        Values without each group of windows: means over the batches, as far as vectors are left. NaN where
        undefined, and all of them where there are not windows of every group.
    """

    value: float
    batch_sd: float
    n: float
    n_unique: float
    near_duplicates: float
    windows: int
    left_out: tuple[float, ...]


# Of one checkpoint and estimator: what intervals come from.
LEFT_OUT_COLUMNS = (
    "layer",
    *(field.name for field in fields(Estimate) if field.name != "left_out"),
    *WITHOUT_COLUMNS,
)


@dataclass(frozen=True)
class Measured:
    """What one measure says of a layer: batch by batch, and all together."""

    values: list[BatchValue]
    estimate: Estimate


def measure_batches(
    batches: Sequence[Batch], measure: ChosenMeasure, groups: np.ndarray
) -> Measured:
    """Measure the batches of a layer, with all windows and without each group of them.

    Parameters
    ----------
    batches : sequence of Batch
        They hold what the measure is taken of.
    measure : ChosenMeasure
        Which.
    groups : ndarray of int64, shape (windows,)
        From :func:`.window_groups`.

    Returns
    -------
    Measured
        NaN where a batch holds NaN or infinity.

    Raises
    ------
    ValueError
        If the measure refuses what it is given, such as distances that are none.
    """
    # Vectors of each group in each batch.
    counts = np.array([np.bincount(groups[batch.windows], minlength=GROUPS) for batch in batches])
    all_groups = bool(counts.any(axis=0).all())
    measured = [
        measure_batch(batch, measure, groups[batch.windows] if all_groups else np.full(batch.n, -1))
        for batch in batches
    ]
    values = np.array([value for value, _, _ in measured])
    lists = [batch.content for batch in batches if isinstance(batch.content, NeighbourLists)]
    left_out = np.full(GROUPS, math.nan)
    if all_groups and not np.isnan(values).any():
        # Without its only group, a batch says nothing.
        speaks = counts < counts.sum(axis=1, keepdims=True)
        rows, anew = (
            _mean_where(np.array(kind), speaks) for kind in list(zip(*measured, strict=True))[1:]
        )
        left_out = left_out_values(rows, anew)
    estimate = Estimate(
        value=float(values.mean()),
        batch_sd=float(values.std(ddof=1)) if len(values) > 1 else math.nan,
        n=_mean([batch.n for batch in batches]),
        n_unique=_mean([batch.n_unique for batch in batches]),
        near_duplicates=float(np.mean([found.near_duplicates() for found in lists] or math.nan)),
        windows=len(np.unique(np.concatenate([batch.windows for batch in batches]))),
        left_out=tuple(left_out.tolist()),
    )
    return Measured(
        [
            BatchValue(number, batch.n, batch.n_unique, value)
            for number, (batch, value) in enumerate(zip(batches, values.tolist(), strict=True))
        ],
        estimate,
    )


def _mean(numbers: Sequence[int]) -> float:
    """Mean, as a whole number where it is one."""
    mean = sum(numbers) / len(numbers)
    return int(mean) if mean.is_integer() else mean


def _mean_where(values: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """Means of columns over the rows that count; NaN where none does."""
    totals = np.where(counted, values, 0).sum(axis=0)
    return totals / np.where(counted.any(axis=0), counted.sum(axis=0), np.nan)


def write_measurements(path: Path, layers: Mapping[int, Measured]) -> None:
    """Write the values per batch of one checkpoint and estimator, all layers."""
    rows = ((layer, *astuple(value)) for layer, of in layers.items() for value in of.values)
    write_table(path, LAYER_COLUMNS, rows)


def write_left_out(path: Path, layers: Mapping[int, Measured]) -> None:
    """Write the estimates of one checkpoint and estimator, all layers, with `LEFT_OUT_COLUMNS`."""

    def row(layer: int, estimate: Estimate) -> tuple[object, ...]:
        *columns, left_out = (getattr(estimate, field.name) for field in fields(estimate))
        return (layer, *columns, *left_out)

    rows = (row(layer, measured.estimate) for layer, measured in layers.items())
    write_table(path, LEFT_OUT_COLUMNS, rows)
