"""Anisotropy and average cosine of one layer, batch by batch."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.estimators.arrays import (
    DistinctRowCount,
    NotFiniteError,
    distinct_rows,
    is_finite,
    is_on_gpu,
)
from shape_of_learning.estimators.moments import Moments, rows_per_block
from shape_of_learning.metrics.batches import contiguous_batches
from shape_of_learning.metrics.measurements import BatchValue
from shape_of_learning.metrics.registry import Estimator

if TYPE_CHECKING:
    import torch

# Up to this size as float64, 8192 rows of 4096 numbers, a batch is held in memory: its spectrum then takes a
# fraction of the operations of the moments that a pass over the rows collects.
MATRIX_BYTES = 1 << 28
# Of a broken checkpoint, whose hidden states may be NaN or infinite, as if all vectors were one.
DISTINCT_OF_NOT_FINITE = 1


class LayerRows(Protocol):
    """Rows of a layer, on a disk or in memory, of which some are asked for at a time.

    Attributes
    ----------
    width : int
        Number of coordinates.
    is_on_gpu : bool
        Whether they are tensors on a GPU, where all are measured at once.
    """

    width: int
    is_on_gpu: bool

    def __len__(self) -> int:
        """Number of rows."""

    def blocks(self, rows: slice, size: int) -> Iterator[np.ndarray]:
        """Return `rows`, at most `size` at a time."""

    def read(self, rows: slice) -> np.ndarray:
        """Return `rows` at once."""


@dataclass(frozen=True)
class MatrixRows:
    """Rows that are in memory already, or in that of a GPU, shape (n, width)."""

    matrix: "np.ndarray | torch.Tensor"

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return self.matrix.shape[1]

    @property
    def is_on_gpu(self) -> bool:
        """Whether it is a tensor on a GPU."""
        return is_on_gpu(self.matrix)

    def __len__(self) -> int:
        return len(self.matrix)

    def blocks(self, rows: slice, size: int) -> Iterator[np.ndarray]:
        """Return views of `rows`, at most `size` at a time."""
        for start in range(rows.start, rows.stop, size):
            yield self.matrix[start : min(start + size, rows.stop)]

    def read(self, rows: slice) -> np.ndarray:
        """Return a view of `rows`."""
        return self.matrix[rows]


def isotropy_values(
    layer: LayerRows, batch_vectors: int, estimators: Mapping[str, Estimator]
) -> dict[str, list[BatchValue]]:
    """Estimate on contiguous batches.

    Parameters
    ----------
    layer : LayerRows
        In dump order.
    batch_vectors : int
        Least number of vectors in a batch.
    estimators : mapping of str to Estimator
        Those that take the vectors themselves, or their moments. Of a batch that is too large for memory, all
        of them come from one pass over its rows; centred cosines take a second one.

    Returns
    -------
    dict of str to list of BatchValue
        For each estimator one value per batch; NaN where the batch holds NaN or infinity.
    """
    values: dict[str, list[BatchValue]] = {name: [] for name in estimators}
    for number, rows in enumerate(contiguous_batches(len(layer), batch_vectors)):
        distinct, estimates = _measure(layer, rows, list(estimators.values()))
        for column, estimate in zip(values.values(), estimates, strict=True):
            column.append(BatchValue(number, rows.stop - rows.start, distinct, estimate))
    return values


def _measure(layer: LayerRows, rows: slice, estimators: list[Estimator]) -> tuple[int, list[float]]:
    """Count the distinct vectors of one batch and estimate."""
    if layer.is_on_gpu or 8 * layer.width * (rows.stop - rows.start) <= MATRIX_BYTES:
        matrix = layer.read(rows)
        if not is_finite(matrix):
            return DISTINCT_OF_NOT_FINITE, [math.nan] * len(estimators)
        return len(distinct_rows(matrix)), [_estimate(entry, matrix) for entry in estimators]
    streamed = [entry for entry in estimators if entry.parts]
    try:
        moments, distinct = _collect(layer, rows, {p for e in streamed for p in e.parts})
    except NotFiniteError:
        return DISTINCT_OF_NOT_FINITE, [math.nan] * len(estimators)
    # Estimators that moments do not serve get the batch itself, whatever its size.
    matrix = layer.read(rows) if len(streamed) < len(estimators) else None
    clouds = [moments if entry in streamed else matrix for entry in estimators]
    return distinct, list(map(_estimate, estimators, clouds))


def _estimate(entry: Estimator, X: ArrayLike | Moments) -> float:
    return entry.load()(X, **entry.arguments)


def _collect(layer: LayerRows, rows: slice, parts: set[str]) -> tuple[Moments, int]:
    """Collect moments and count distinct vectors, in one pass, or two for centred directions."""
    moments, distinct = Moments(layer.width, parts), DistinctRowCount()
    size = rows_per_block(layer.width)
    for block in layer.blocks(rows, size):
        moments.add(block)
        distinct.add(block)
    if "centred_directions" in parts:
        for block in layer.blocks(rows, size):
            moments.add_directions(block)
    return moments, len(distinct)
