"""What all need to know of vectors on a GPU, taken in float64 by blocks of rows."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shape_of_learning.estimators.arrays import NotFiniteError, require_matrix

if TYPE_CHECKING:
    import torch

# Rows are taken in so many bytes of float64 at a time: enough for a GPU's matrix products to be fast.
BLOCK_BYTES = 1 << 29


def rows_per_block(width: int) -> int:
    """Return how many rows of so many numbers are taken in at a time."""
    return max(1, BLOCK_BYTES // (8 * width))


def extremes(X: "torch.Tensor") -> tuple["torch.Tensor", "torch.Tensor"]:
    """Least and greatest value of each coordinate in float64; ValueError unless there are such."""
    require_matrix(X)
    low, high = X.amin(dim=0).double(), X.amax(dim=0).double()
    if not bool((low.isfinite() & high.isfinite()).all()):
        raise NotFiniteError("X holds NaN or infinity")
    return low, high


def row_blocks(X: "torch.Tensor", *shifts: "torch.Tensor") -> Iterator["torch.Tensor"]:
    """Rows in float64, less one shift after the other, a block at a time."""
    for rows in X.split(rows_per_block(X.shape[1])):
        block = rows.double()
        for shift in shifts:
            block = block - shift
        yield block


def centre(X: "torch.Tensor") -> tuple["torch.Tensor", "torch.Tensor"]:
    """Two shifts that add up to the mean: the first row, lest an offset cost digits, and the rest."""
    first = X[0].double()
    return first, sum(block.sum(dim=0) for block in row_blocks(X, first)) / len(X)
