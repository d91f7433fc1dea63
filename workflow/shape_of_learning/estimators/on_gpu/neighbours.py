"""Distances to nearest neighbours among vectors on a GPU."""

import math
from typing import TYPE_CHECKING

import numpy as np

from shape_of_learning.estimators.arrays import distinct_rows
from shape_of_learning.estimators.neighbours import enough_neighbours
from shape_of_learning.estimators.on_gpu.blocks import extremes, rows_per_block
from shape_of_learning.estimators.squared_distances import median_point, too_close

if TYPE_CHECKING:
    import torch


def nearest_distances(X: "torch.Tensor", k: int) -> np.ndarray:
    """Euclidean distances from every distinct vector to its k nearest others.

    Parameters
    ----------
    X : torch.Tensor, shape (n, d)
        Of a type in :data:`~shape_of_learning.estimators.arrays.SMALL_TYPES`; n >= k + 1.
    k : int
        Number of neighbours.

    Returns
    -------
    ndarray of float64, shape (m, k)
        As :func:`shape_of_learning.nearest_distances`, exact to 1e-9 relative for the same reason.

    Raises
    ------
    ValueError
        As there.
    """
    X = X.detach()
    extremes(X)
    k = enough_neighbours(X, k)
    first = distinct_rows(X)
    if len(first) < len(X):
        X = X[first]
    X = X.double()
    m, d = X.shape
    distances = np.full((m, k), np.nan)
    existing = min(k, m - 1)
    if not existing:
        return distances
    vectors = X - X.new_tensor(median_point(X))
    halves = vectors.square().sum(dim=1) / 2
    limits = X.new_tensor(too_close(halves.cpu().numpy(), d))
    size = rows_per_block(m)
    for start in range(0, m, size):
        rows = slice(start, min(start + size, m))
        products = halves - vectors[rows] @ vectors.T
        products[:, rows].fill_diagonal_(math.inf)
        one, other = (products <= limits[rows, None]).nonzero(as_tuple=True)
        products[one, other] = math.inf
        nearest = products.topk(existing, dim=1, largest=False).values
        found = (2 * (nearest + halves[rows, None])).sqrt().cpu().numpy()
        by_differences = _differences(X, one + start, other)
        # Pairs come row by row.
        with_close, starts = np.unique(one.cpu().numpy(), return_index=True)
        for row, close in zip(with_close, np.split(by_differences, starts)[1:], strict=True):
            found[row] = np.sort(np.append(found[row], close))[:existing]
        distances[rows, :existing] = found
    return distances


def _differences(X: "torch.Tensor", one: "torch.Tensor", other: "torch.Tensor") -> np.ndarray:
    """Distances of pairs of rows, by differences."""
    size = rows_per_block(X.shape[1])
    pairs = zip(one.split(size), other.split(size), strict=True)
    return np.concatenate([(X[a] - X[b]).norm(dim=1).cpu().numpy() for a, b in pairs])
