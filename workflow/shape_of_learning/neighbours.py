"""Distances to nearest neighbours: found by a matrix product, computed by differences.

A matrix product gives all squared distances fast, as |x|^2 + |y|^2 - 2 x.y, but wrong by an amount
that grows with the norms of x and y; differences give each distance right, but slowly. So products
only shortlist candidates, whose distances are then computed by differences, and a bound on what
rounding can have done to the product certifies that nobody outside the shortlist is nearer.
"""

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.arrays import as_count, as_matrix, distinct_rows

# Candidates beyond k. To settle a row at the first attempt, its k-th and last candidate must differ
# in squared distance by more than the rounding of float32, about 1e-3 of a squared norm.
SPARE = 16
# Columns are searched for candidates in groups, of which there are this many for each candidate:
# then few candidates share a group, and the search by groups finds few more than it must.
GROUPS_PER_CANDIDATE = 8
# Entries of one block of products, 8 MiB in float32: enough rows for the matrix product to be fast,
# and still in the cache when the candidates are picked.
BLOCK_ENTRIES = 2**21
# Rows, at least, whose median stands for that of all: enough not to meet massive ones in the middle.
MEDIAN_ROWS = 256
# Two distances whose squares differ by less are the same, so that a tie at rank k can be certified:
# 0.5e-10 in a distance, well within the 1e-9 that is promised.
SAME = 1e-10
# Beyond, the difference of two numbers could overflow.
LARGEST = 2.0**1000


def nearest_distances(X: ArrayLike, k: int) -> np.ndarray:
    """Euclidean distances from every distinct vector to its k nearest others.

    Parameters
    ----------
    X : array_like or torch.Tensor, shape (n, d)
        Vectors, n >= k + 1. Any real dtype.
    k : int
        Number of neighbours.

    Returns
    -------
    ndarray of float64, shape (m, k)
        Ascending in each row, the vector itself left out. One row per *distinct* vector, m <= n, in
        order of first appearance (:func:`~shape_of_learning.arrays.distinct_rows`), so no distance
        is zero. Where m <= k, the columns from m - 1 on are NaN: those neighbours do not exist.

    Raises
    ------
    ValueError
        If `X` is not two-dimensional, has fewer than k + 1 rows, holds NaN, infinity or numbers
        beyond 2^1000 (1e301), or if `k` is no whole number above zero.

    Notes
    -----
    Exact to 1e-9 relative, whatever offset, scale or outlying coordinates the vectors have: a row
    is accepted only with the proof, in :func:`_certified`, that no other vector is nearer, first
    from products in float32, else in float64; what remains is compared with all by differences.
    The number of threads of the matrix product does not change the result. Time O(n^2 d), memory
    O(n (d + k)) and one block.

    Examples
    --------
    >>> nearest_distances([[0, 0], [3, 4], [0, 1], [0, 0]], 2)
    array([[1.        , 5.        ],
           [4.24264069, 5.        ],
           [1.        , 4.24264069]])
    """
    X = as_matrix(X)
    k = as_count(k, "k", 1)
    if len(X) < k + 1:
        raise ValueError(f"X has {len(X)} rows, but k={k} neighbours take at least {k + 1}")
    if max(X.max(), -X.min()) > LARGEST:
        raise ValueError("X holds numbers beyond 2^1000, whose differences could overflow")
    first = distinct_rows(X)
    if len(first) < len(X):
        X = X[first]
    m = len(X)
    distances = np.full((m, k), np.nan)
    existing = min(k, m - 1)
    if existing:
        distances[:, :existing] = _search(np.ascontiguousarray(X), existing)
    return distances


def _search(X: np.ndarray, k: int) -> np.ndarray:
    m = len(X)
    distances = np.empty((m, k))
    unsettled = np.arange(m)
    if k + SPARE < m - 1:
        shifted, exponent = _shifted_and_scaled(X)
        for dtype in (np.float32, np.float64):
            unsettled = _shortlisted(X, shifted, exponent, unsettled, k, dtype, distances)
            if not unsettled.size:
                break
    everyone = np.arange(m)
    room = np.empty((k + SPARE, X.shape[1]))
    for row in unsettled:
        distances[row] = _by_differences(X, row, np.delete(everyone, row), room)[:k]
    return distances


def _shifted_and_scaled(X: np.ndarray) -> tuple[np.ndarray, int]:
    """Bring the bulk of the vectors near the origin and their entries near one.

    Returns X - median, divided by two to the power that is returned with it. Distances only scale.
    The median, unlike the mean, stays with the bulk when a few rows have a massive coordinate. Any
    point near the bulk serves as well: that of some of the rows, and of an even number the lower middle.
    """
    some = X[:: max(1, len(X) // MEDIAN_ROWS)]
    middle = (len(some) - 1) // 2
    shifted = X - np.partition(some, middle, axis=0)[middle]
    extents = np.maximum(shifted.max(axis=1), -shifted.min(axis=1))
    _, exponent = np.frexp(np.median(extents[extents > 0]))
    with np.errstate(over="ignore"):
        return np.ldexp(shifted, -exponent, out=shifted), int(exponent)


def _shortlisted(
    X: np.ndarray,
    shifted: np.ndarray,
    exponent: int,
    rows: np.ndarray,
    k: int,
    dtype: type[np.floating],
    distances: np.ndarray,
) -> np.ndarray:
    """Write to `distances` those of `rows` that products in `dtype` settle; return the others."""
    m, d = X.shape
    with np.errstate(over="ignore"):
        squares = np.einsum("ij,ij->i", shifted, shifted)
    norms = np.sqrt(squares)
    # Vectors too far out for their squares are no candidates; _certified sees to what that means.
    far_out = 2.0 ** (np.finfo(dtype).maxexp // 3)
    near = norms < far_out
    group = max(1, m // (GROUPS_PER_CANDIDATE * (k + SPARE)))
    padded = -(-m // group) * group
    vectors = np.zeros((padded, d), dtype)
    np.copyto(vectors[:m], shifted, where=near[:, None], casting="same_kind")
    offsets = np.full(padded, np.inf, dtype)
    np.copyto(offsets[:m], squares, where=near, casting="same_kind")

    room = np.empty((2 * (k + SPARE), d))
    radius = np.full(len(rows), np.inf)
    edge = np.empty(len(rows))
    size = max(1, BLOCK_ENTRIES // padded)
    for start in range(0, len(rows), size):
        block = rows[start : start + size]
        # |y|^2 - 2 x.y: the squared distance, short of |x|^2, which is the same along a row (b, m)
        products = (-2 * vectors[block]) @ vectors.T
        products += offsets
        products[np.arange(len(block)), block] = np.inf
        # The (k + SPARE)-th smallest minimum of a group: at least so many entries are within it.
        minima = products.reshape(len(block), group, -1).min(axis=1)
        limits = np.partition(minima, k + SPARE - 1, axis=1)[:, k + SPARE - 1]
        edge[start : start + size] = limits + squares[block]
        limits = np.minimum(limits, np.finfo(dtype).max)
        # What fails even with neighbours at distance zero is not worth any differences.
        hopeful = _certified(0, norms[block], edge[start : start + size], d, far_out, dtype)
        for i in np.flatnonzero(hopeful):
            row = block[i]
            candidates = np.flatnonzero(products[i] <= limits[i])
            if len(candidates) >= k:
                distances[row] = _by_differences(X, row, candidates, room)[:k]
                with np.errstate(over="ignore"):
                    radius[start + i] = np.ldexp(distances[row, -1], -exponent)
    settled = _certified(radius, norms[rows], edge, d, far_out, dtype)
    return rows[~settled]


def _certified(
    radius: np.ndarray | float,
    norm: np.ndarray,
    edge: np.ndarray,
    d: int,
    far_out: float,
    dtype: type[np.floating],
) -> np.ndarray:
    r"""Tell for which rows no vector outside the shortlist can be nearer than the k-th inside.

    Parameters
    ----------
    radius : ndarray, shape (b,), or float
        Distance r to the k-th nearest of the shortlist, by differences.
    norm : ndarray, shape (b,)
        Norm of the vector x itself.
    edge : ndarray, shape (b,)
        Largest squared distance in the shortlist by products; all outside have at least that.
    d, far_out, dtype
        Coordinates, the norm from which vectors were left out, and the type of the products.

    Notes
    -----
    Let y be outside. If :math:`|y| > |x| + r`, the triangle inequality keeps it farther away than
    r; this covers those left out, if :math:`|x| + r` is below `far_out`. Else, with unit roundoff
    u, the squared distance by products is wrong by at most

    .. math:: \gamma (|x| + |y|)^2 \le \gamma (2 |x| + r)^2, \qquad
              \gamma = \frac{(d + 16) u}{1 - (d + 16) u},

    d u for a sum of d products in any order (Higham, Accuracy and Stability of Numerical
    Algorithms, 2002, section 3.1), and at most 16 u for shift, conversion, norms and the last two
    sums; in addition, products may vanish by underflow. So :math:`r^2 + error \le edge` proves it.
    """
    steps = (d + 16) * np.finfo(dtype).eps / 2
    gamma = steps / (1 - steps) if steps < 0.5 else np.inf
    reach = 2 * norm + radius
    with np.errstate(over="ignore", invalid="ignore"):
        error = 1.01 * gamma * reach**2 + 8 * d * np.finfo(dtype).tiny * (1 + reach)
        return (radius**2 * (1 - SAME) + error <= edge) & (1.01 * (norm + radius) < far_out)


def _by_differences(
    X: np.ndarray, row: int, candidates: np.ndarray, room: np.ndarray
) -> np.ndarray:
    """Ascending distances from one row to its `candidates`; `room` is where they are gathered."""
    from scipy.spatial.distance import cdist

    squares = np.empty(len(candidates))
    for start in range(0, len(candidates), len(room)):
        part = slice(start, start + len(room))
        others = room[: len(candidates[part])]
        np.take(X, candidates[part], axis=0, out=others, mode="clip")
        squares[part] = cdist(X[row : row + 1], others, "sqeuclidean")[0]
    distances = np.sqrt(squares)
    if not (squares.min() > 2.0**-900 and squares.max() < 2.0**900):
        # Squares left the range of float64: differences are divided by their largest entry first.
        for i, other in enumerate(candidates):
            difference = X[other] - X[row]
            largest = np.abs(difference).max()
            distances[i] = largest * np.sqrt(np.square(difference / largest).sum())
    distances.sort()
    return distances
