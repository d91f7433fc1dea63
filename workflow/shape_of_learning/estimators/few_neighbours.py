"""Distances to a few nearest neighbours: who they can be by float32, how far they are by differences.

A matrix product in float32 takes half the time of one in float64. It is too coarse for distances, but a bound
on its error leaves few vectors that can be among the nearest, and differences tell their distances.
"""

import numpy as np

from shape_of_learning.estimators.squared_distances import median_point, relative_error, underflow

# Up to so many neighbours, and pairs for each vector, differences are faster than a product in float64.
FEW_NEIGHBOURS = 5
PAIRS_PER_VECTOR = 8
# The product of all vectors with all is in memory; of 5792 vectors at most.
PRODUCT_BYTES = 2**27
# Vectors that share a minimum are so few that seldom two of the nearest are among them, and at most so
# many that their distances stay in the cache.
GROUPS_PER_NEIGHBOUR, LARGEST_GROUP = 16, 128
# Pairs whose differences are taken at a time, so that they stay in the cache.
PAIRS_AT_A_TIME = 32
# Squared norms below are far from the end of float32; squared distances above from that of float64.
LARGEST_SQUARE, SMALLEST_SQUARE = 2.0**100, 2.0**-900
# More than the float32 that a limit is rounded to can be off.
ROUNDED_UP = 1 + 2.0**-20


def nearest_few(X: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray] | None:
    r"""Find the k nearest others of every vector, if that is fast.

    Parameters
    ----------
    X : ndarray of float64, shape (m, d)
        Finite vectors, no two the same.
    k : int
        Number of neighbours, at most m - 1.

    Returns
    -------
    distances : ndarray of float64, shape (m, k)
        Euclidean, ascending in each row, by differences.
    indices : ndarray of int, shape (m, k)
        Whose they are. Instead of both, None where k or m is too large, norms are beyond the
        range of float32, or too many vectors are too close to each other for it.

    Notes
    -----
    By :func:`.squared_distances.relative_error`, a squared distance s from x comes out as some
    :math:`\hat s` with :math:`|\hat s - s| \le \varepsilon \max(|x|^2, s)`. If b bounds the k smallest
    :math:`\hat s`, the true ones of these, and with them the k smallest, are at most
    :math:`t = (b + \varepsilon |x|^2) / (1 - \varepsilon)`; whoever is as near as that has
    :math:`\hat s \le (1 + \varepsilon) t + \varepsilon |x|^2`. All these are looked at.
    """
    m, d = X.shape
    error = relative_error(d, np.float32)
    if k > FEW_NEIGHBOURS or 4 * m * m > PRODUCT_BYTES or error > 1 / 2:
        return None
    from scipy.linalg.blas import ssyrk  # here, so that jobs that look for more start without it

    vectors = np.empty(X.shape, np.float32)
    with np.errstate(over="ignore", under="ignore"):
        np.subtract(X, median_point(X), out=vectors, casting="same_kind")
    halves = np.einsum("ij,ij->i", vectors, vectors) / 2
    if not halves.max() < LARGEST_SQUARE:
        return None
    # Only what is below the diagonal.
    products = ssyrk(1.0, vectors.T, trans=1).T
    group = min(LARGEST_GROUP, max(1, m // (GROUPS_PER_NEIGHBOUR * k)))
    bounds = _distances_and_bounds(products, halves, k, group)
    # Norms are rounded, too: by less than a tenth of themselves, since the error is no larger than 1/2.
    blurred = 1.1 * error * halves.astype(np.float64) + underflow(d, np.float32)
    # Above the bounds, so that each vector has at least k others within its limit.
    limits = (1 + error) * (bounds + blurred) / (1 - error) + blurred
    pairs = _pairs_within(products, (limits * ROUNDED_UP).astype(np.float32), group)
    if pairs is None:
        return None
    squares = _squared_differences(X, *pairs)
    if not squares.min() > SMALLEST_SQUARE:
        return None
    squares, indices = _smallest_of_each(pairs, squares, m, k)
    return np.sqrt(squares), indices


def _distances_and_bounds(
    products: np.ndarray, halves: np.ndarray, k: int, group: int
) -> np.ndarray:
    """Turn products, below the diagonal, into half squared distances, and bound each vector's k smallest.

    The k-th smallest of the minima of groups of the others is a bound.
    """
    m = len(products)
    starts = np.arange(0, m, group)
    # In a vector's row are those before it, in its column those after it.
    before = np.full((m, len(starts)), np.inf, np.float32)
    after = np.full((len(starts), m), np.inf, np.float32)
    for number, start in enumerate(starts):
        rows = slice(start, start + group)
        block = products[rows, : start + group]
        np.subtract(halves[: start + group], block, out=block)
        block += halves[rows, None]
        own = block[:, start:]
        own[np.triu_indices_from(own)] = np.inf
        np.minimum.reduceat(block, starts[: number + 1], axis=1, out=before[rows, : number + 1])
        block.min(axis=0, out=after[number, : start + group])
    minima = np.hstack([before, after.T])
    return np.partition(minima, k - 1, axis=1)[:, k - 1].astype(np.float64)


def _pairs_within(
    distances: np.ndarray, limits: np.ndarray, group: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Pairs of vectors that are closer than the limit of either; None if they are too many."""
    pairs, count = [], 0
    for start in range(0, len(distances), group):
        rows, columns = slice(start, start + group), slice(0, start + group)
        within = distances[rows, columns] < np.maximum(limits[columns], limits[rows, None])
        one, other = np.nonzero(within)
        count += len(one)
        if count > PAIRS_PER_VECTOR * len(distances):
            return None
        pairs.append((one + start, other))
    ones, others = zip(*pairs, strict=True)
    return np.concatenate(ones), np.concatenate(others)


def _squared_differences(X: np.ndarray, ones: np.ndarray, others: np.ndarray) -> np.ndarray:
    squares = np.empty(len(ones))
    for start in range(0, len(ones), PAIRS_AT_A_TIME):
        part = slice(start, start + PAIRS_AT_A_TIME)
        difference = X[ones[part]]
        difference -= X[others[part]]
        np.einsum("ij,ij->i", difference, difference, out=squares[part])
    return squares


def _smallest_of_each(
    pairs: tuple[np.ndarray, np.ndarray], squares: np.ndarray, m: int, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """The k smallest of `squares` for each vector that is in a pair of theirs, ascending, and of whom."""
    owners, others, values = np.concatenate(pairs), np.concatenate(pairs[::-1]), np.tile(squares, 2)
    order = np.lexsort((values, owners))
    first = np.searchsorted(owners[order], np.arange(m))
    nearest = order[first[:, None] + np.arange(k)]
    return values[nearest], others[nearest]
