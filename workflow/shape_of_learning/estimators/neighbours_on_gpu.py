"""Distances to nearest neighbours on a GPU: as in `neighbours`, with another way to select the nearest."""

import math
from typing import TYPE_CHECKING

import numpy as np

from shape_of_learning.estimators.squared_distances import median_point, too_close

if TYPE_CHECKING:
    import torch

# Products are taken in so many bytes at a time: enough for a GPU's matrix products to be fast.
BLOCK_BYTES = 1 << 29


def search_on_gpu(X: "torch.Tensor", k: int) -> tuple[np.ndarray, np.ndarray]:
    """Find the k nearest others of every vector.

    Parameters
    ----------
    X : torch.Tensor of float64, shape (m, d)
        Finite vectors in the range of float32, no two the same.
    k : int
        Number of neighbours, at most m - 1.

    Returns
    -------
    distances : ndarray of float64, shape (m, k)
        Euclidean, ascending in each row, exact to 1e-9 relative, for the reason that
        :func:`shape_of_learning.nearest_distances` gives.
    indices : ndarray of int64, shape (m, k)
        Whose they are.
    """
    m, d = X.shape
    distances, indices = np.empty((m, k)), np.empty((m, k), np.int64)
    vectors = X - X.new_tensor(median_point(X))
    halves = vectors.square().sum(dim=1) / 2
    limits = X.new_tensor(too_close(halves.cpu().numpy(), d))
    size = _rows_per_block(m)
    for start in range(0, m, size):
        rows = slice(start, min(start + size, m))
        products = halves - vectors[rows] @ vectors.T
        products[:, rows].fill_diagonal_(math.inf)
        one, other = (products <= limits[rows, None]).nonzero(as_tuple=True)
        products[one, other] = math.inf
        nearest = products.topk(k, dim=1, largest=False)
        found = (2 * (nearest.values + halves[rows, None])).sqrt().cpu().numpy()
        whose = nearest.indices.cpu().numpy()
        by_differences = _differences(X, one + start, other)
        # Pairs come row by row.
        with_close, starts = np.unique(one.cpu().numpy(), return_index=True)
        close = zip(
            with_close,
            np.split(by_differences, starts)[1:],
            np.split(other.cpu().numpy(), starts)[1:],
            strict=True,
        )
        for row, values, others in close:
            all_values, all_others = np.append(found[row], values), np.append(whose[row], others)
            order = np.argsort(all_values, kind="stable")[:k]
            found[row], whose[row] = all_values[order], all_others[order]
        distances[rows], indices[rows] = found, whose
    return distances, indices


def _differences(X: "torch.Tensor", one: "torch.Tensor", other: "torch.Tensor") -> np.ndarray:
    """Distances of pairs of rows, by differences."""
    size = _rows_per_block(X.shape[1])
    pairs = zip(one.split(size), other.split(size), strict=True)
    return np.concatenate([(X[a] - X[b]).norm(dim=1).cpu().numpy() for a, b in pairs])


def _rows_per_block(width: int) -> int:
    return max(1, BLOCK_BYTES // (8 * width))
