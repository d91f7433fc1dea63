"""Nearest neighbours: distances from a matrix product, and where that is too coarse from differences.

A matrix product gives all squared distances fast, as |x|^2 + |y|^2 - 2 x.y, but wrong by an amount
that grows with the norms of x and y; differences give each distance right, but slowly. A bound on what
rounding can have done to the product tells the few pairs, too close for their norms, that need differences.
Where only a few neighbours are asked for, a coarser product is enough to tell who can be among them.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.estimators.arrays import as_count, as_matrix, first_equals
from shape_of_learning.estimators.few_neighbours import nearest_few
from shape_of_learning.estimators.neighbours_on_gpu import search_on_gpu
from shape_of_learning.estimators.squared_distances import median_point, too_close

# All products at once, which spares half of the operations since they are symmetric, up to this many
# bytes, 5792 vectors; they are then looked at in parts that fit in the cache. Beyond, a block at a time.
ALL_BYTES, CACHE_BYTES, BLOCK_BYTES = 2**28, 2**20, 2**24
# Groups of columns for each neighbour: then few of the nearest share a group.
GROUPS_PER_NEIGHBOUR = 4
# Rows that differences are computed with at a time, so that they are gathered into the cache.
GATHERED_ROWS = 256
# Beyond, the difference of two numbers could overflow.
LARGEST = 2.0**1000
# Vectors are not scaled if the median of their squared norms is below this and above its inverse.
COMFORTABLE = 2.0**200
# Beyond, where the median is at that scale, a norm is not squared.
OUTLYING = 2.0**300


class Neighbours(NamedTuple):
    """Nearest others of the distinct vectors among n.

    Attributes
    ----------
    distances : ndarray of float64, shape (m, k)
        As :func:`nearest_distances` describes them.
    indices : ndarray of int64, shape (m, k)
        Which of the m distinct vectors is that far away; 0 where the distance is NaN. Which of several
        at the same distance come first, or at all, is not said, but it is always the same.
    distinct_of : ndarray of int64, shape (n,)
        Which of the m distinct vectors each of the n is.
    """

    distances: np.ndarray
    indices: np.ndarray
    distinct_of: np.ndarray


def nearest_distances(X: ArrayLike, k: int) -> np.ndarray:
    """Euclidean distances from every distinct vector to its k nearest others.

    Parameters
    ----------
    X : array_like or torch.Tensor, shape (n, d)
        Vectors, n >= k + 1. Any real dtype; searched in float64, those on a GPU there if they are
        float32, bfloat16 or float16.
    k : int
        Number of neighbours.

    Returns
    -------
    ndarray of float64, shape (m, k)
        Ascending in each row, the vector itself left out. One row per *distinct* vector, m <= n, in
        order of first appearance (:func:`~shape_of_learning.estimators.arrays.distinct_rows`), so no distance
        is zero. Where m <= k, the columns from m - 1 on are NaN: those neighbours do not exist.

    Raises
    ------
    ValueError
        If `X` is not two-dimensional, has fewer than k + 1 rows, holds NaN, infinity or numbers
        beyond 2^1000 (1e301), or if `k` is no whole number above zero.

    Notes
    -----
    Exact to 1e-9 relative, whatever offset, scale or outlying coordinates the vectors have
    (:func:`.squared_distances.too_close` has the proof, and for five neighbours or fewer, which are found
    twice as fast, :func:`.few_neighbours.nearest_few`), down to 1e-307, below which numbers themselves are
    coarser. Within that, the last bits are those of the BLAS library that multiplies. Time O(n^2 d);
    memory O(n (d + k)) and n^2 numbers, but no more than 256 MiB of these.

    Examples
    --------
    >>> nearest_distances([[0, 0], [3, 4], [0, 1], [0, 0]], 2)
    array([[1.        , 5.        ],
           [4.24264069, 5.        ],
           [1.        , 4.24264069]])
    """
    return nearest_neighbours(X, k).distances


def nearest_neighbours(X: ArrayLike, k: int) -> Neighbours:
    """Find the k nearest others of every distinct vector.

    Parameters, errors and exactness are those of :func:`nearest_distances`, whose search this is.

    Returns
    -------
    Neighbours
        Distances, whose they are, and which vectors are equal.

    Examples
    --------
    >>> nearest_neighbours([[0, 0], [3, 4], [0, 1], [0, 0]], 2).indices
    array([[2, 1],
           [2, 0],
           [0, 1]])
    """
    X, given = as_matrix(X, finite=False, stay=True), X
    k = as_count(k, "k", 1)
    if len(X) < k + 1:
        raise ValueError(f"X has {len(X)} rows, but k={k} neighbours take at least {k + 1}")
    if not max(float(X.max()), -float(X.min())) <= LARGEST:
        as_matrix(given)  # which tells NaN and infinity apart
        raise ValueError("X holds numbers beyond 2^1000, whose differences could overflow")
    first = first_equals(X)
    distinct = np.flatnonzero(first == np.arange(len(first)))
    m = len(distinct)
    if m < len(X):
        X = X[distinct]
    distances, indices = np.full((m, k), np.nan), np.zeros((m, k), np.int64)
    existing = min(k, m - 1)
    if existing:
        distances[:, :existing], indices[:, :existing] = _nearest(X, existing)
    return Neighbours(distances, indices, np.searchsorted(distinct, first))


def _nearest(X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(X, np.ndarray):
        return search_on_gpu(X, k)
    X = np.ascontiguousarray(X)
    few = nearest_few(X, k)
    return _search(X, k) if few is None else few


def _search(X: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    m, d = X.shape
    vectors, halves, exponent = _shifted_and_scaled(X)
    # Vectors too far out for their squares are nobody's neighbour at first, and have none.
    outlying = ~(halves < OUTLYING**2 / 2)
    vectors[outlying], halves[outlying] = 0, np.inf
    limits = too_close(halves, d)
    distances, indices = np.empty((m, k)), np.empty((m, k), np.int64)
    room = np.empty((GATHERED_ROWS, d))
    for rows, products in _products(vectors):
        # |y|^2 / 2 - x.y: half the squared distance, short of |x|^2 / 2, which is the same along a row
        np.subtract(halves, products, out=products)
        np.fill_diagonal(products[:, rows], np.inf)
        by_differences = {}
        for i in np.flatnonzero(products.min(axis=1) <= limits[rows]):
            row = rows.start + i
            close = np.flatnonzero(products[i] <= limits[row])
            by_differences[row] = _by_differences(X, row, close, room), close
            products[i, close] = np.inf
        smallest, indices[rows] = _smallest(products, k)
        distances[rows] = np.ldexp(np.sqrt(2 * (smallest + halves[rows, None])), exponent)
        for row, (close_by, close) in by_differences.items():
            values = np.concatenate([distances[row], close_by])
            others = np.concatenate([indices[row], close])
            order = np.argsort(values, kind="stable")[:k]
            distances[row], indices[row] = values[order], others[order]
    incomplete = distances[:, -1] == np.inf
    if outlying.any():
        # A vector far out is nearer than the k-th only to one that is half as far out, or has it as far away.
        half = OUTLYING / 2
        incomplete |= (halves > half**2 / 2) | (np.ldexp(distances[:, -1], -exponent) > half)
    everyone = np.arange(m)
    for row in np.flatnonzero(incomplete).tolist():
        others = np.delete(everyone, row)
        values = _by_differences(X, row, others, room)
        order = np.argsort(values, kind="stable")[:k]
        distances[row], indices[row] = values[order], others[order]
    return distances, indices


def _shifted_and_scaled(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Bring most of the vectors near the origin, and to a scale at which they can be squared.

    Returns the vectors less :func:`median_point`, divided by two to the power that is returned last, and
    half of their squared norms.
    """
    vectors, exponent = X - median_point(X), 0
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        halves = np.einsum("ij,ij->i", vectors, vectors) / 2
        if not 1 / COMFORTABLE < np.median(halves) < COMFORTABLE:
            extents = np.maximum(vectors.max(axis=1), -vectors.min(axis=1))
            exponent = int(np.frexp(np.median(extents[extents > 0]))[1])
            np.ldexp(vectors, -exponent, out=vectors)
            halves = np.einsum("ij,ij->i", vectors, vectors) / 2
    return vectors, halves, exponent


def _products(vectors: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Inner products of some rows with all, to be overwritten at will: (rows, products (b, m))."""
    m = len(vectors)
    everything = vectors @ vectors.T if m * m * 8 <= ALL_BYTES else None
    size = max(1, (BLOCK_BYTES if everything is None else CACHE_BYTES) // (8 * m))
    for start in range(0, m, size):
        rows = slice(start, min(start + size, m))
        yield rows, vectors[rows] @ vectors.T if everything is None else everything[rows]


def _smallest(values: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k smallest of each row of `values`, shape (b, m), ascending, and their columns.

    Columns are put into groups. As many entries as there are groups are no larger than the largest of their
    minima; so the k-th smallest minimum bounds the k-th smallest entry, and lets few others pass.
    """
    m = values.shape[1]
    group = max(1, m // (GROUPS_PER_NEIGHBOUR * k))
    minima = values[:, : m // group * group].reshape(len(values), group, -1).min(axis=1)
    limits = np.partition(minima, k - 1, axis=1)[:, k - 1]
    smallest, columns = np.empty((len(values), k)), np.empty((len(values), k), np.int64)
    for i, (row, limit) in enumerate(zip(values, limits, strict=True)):
        candidates = (row <= limit).nonzero()[0]
        entries = row[candidates]
        # Stable, so that of ties the first columns are taken on every machine.
        order = entries.argsort(kind="stable")[:k]
        smallest[i], columns[i] = entries[order], candidates[order]
    return smallest, columns


def _by_differences(
    X: np.ndarray, row: int, candidates: np.ndarray, room: np.ndarray
) -> np.ndarray:
    """Distances from one row to its `candidates`; `room` is where they are gathered."""
    squares = np.empty(len(candidates))
    for start in range(0, len(candidates), len(room)):
        part = slice(start, start + len(room))
        others = room[: len(candidates[part])]
        np.take(X, candidates[part], axis=0, out=others, mode="clip")
        others -= X[row]  # not cdist, which takes longer to import than a small layer to search
        np.einsum("ij,ij->i", others, others, out=squares[part])
    distances = np.sqrt(squares)
    if not (squares.min() > 2.0**-900 and squares.max() < 2.0**900):
        # Squares left the range of float64: differences are divided by their largest entry first.
        for i, other in enumerate(candidates):
            difference = X[other] - X[row]
            largest = np.abs(difference).max()
            distances[i] = largest * np.sqrt(np.square(difference / largest).sum())
    return distances
