"""Search nearest neighbours by a matrix product, or by differences if the product is too coarse.

A matrix product gives all squared distances fast, as |x|^2 + |y|^2 - 2 x.y, but with an error that grows with the norms
of x and y; differences give exact distances slowly. A bound on the rounding of the product finds the few pairs that are
too close for their norms and need differences.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.estimators import arrays
from shape_of_learning.estimators.arrays import copy_to_host, namespace

# Largest relative error of squared distances. It is 0.95e-9 for a distance, which leaves a part of the promised 1e-9 to
# differences and square roots.
ACCURACY = 1.9e-9
# Products of up to 5792 vectors are computed at once, with half of the operations, since they are symmetric, and then
# read in parts that fit into the cache. Products of more vectors are computed block by block.
ALL_BYTES = 2**28
CACHE_BYTES = 2**20
BLOCK_BYTES = 2**24
# Unused numbers behind each row. Rows whose length is a power of two, such as 4096, would share lines of the cache
# while NumPy mirrors the computed half, which then takes four times as long.
ODD_ROOM = 8
# Blocks on a GPU are larger, since small products leave most of it idle.
GPU_BLOCK_BYTES = 2**29
# Groups of columns per neighbour, so that few of the nearest share a group.
GROUPS_PER_NEIGHBOUR = 4
# Differences are computed for this many bytes of rows at a time, which fit into the cache of a CPU.
GATHERED_BYTES = 2**20
GATHERED_BYTES_ON_GPU = 2**29
# The median of so many rows replaces the median of all rows; too few of them are massive to reach the middle.
MEDIAN_ROWS = 256
# Multiples of this number, modulo one, are as far from each other as possible, and have no period.
GOLDEN_RATIO = (5**0.5 - 1) / 2


class Neighbours(NamedTuple):
    """The nearest neighbours of the distinct vectors among n.

    Attributes
    ----------
    distances : ndarray of float64, shape (m, k)
        The result of :func:`nearest_distances`.
    indices : ndarray of int64, shape (m, k)
        The distinct vectors at these distances; 0 if the distance is NaN. The order of vectors at equal distances is
        arbitrary; on a CPU it is always the same.
    distinct_of : ndarray of int64, shape (n,)
        The distinct vector that each of the n vectors equals.
    """

    distances: np.ndarray
    indices: np.ndarray
    distinct_of: np.ndarray


def nearest_distances(X: ArrayLike, k: int) -> np.ndarray:
    """Compute the Euclidean distances from every distinct vector to its k nearest neighbours.

    Parameters
    ----------
    X : array_like or torch.Tensor, shape (n, d)
        Vectors, n >= k + 1, of any real dtype; searched in float64. A tensor of float32, bfloat16 or float16 on a GPU
        is searched there.
    k : int
        Number of neighbours.

    Returns
    -------
    ndarray of float64, shape (m, k)
        Ascending in each row, without the vector itself. There is one row per *distinct* vector, m <= n, in order of
        first appearance (:func:`~shape_of_learning.estimators.arrays.distinct_rows`), so no distance is zero. If
        m <= k, the columns from m - 1 on are NaN, since these neighbours do not exist.

    Raises
    ------
    ValueError
        If `X` is not two-dimensional, has fewer than k + 1 rows, or holds NaN, infinity or numbers beyond 1e60, or if
        `k` is not a whole number above zero.

    Notes
    -----
    Distances are exact to 1e-9 relative, for vectors of float32 with any offset, scale or outlying coordinates
    (:func:`_find_coarse_limit` has the proof), but squares of differences below 1e-150 underflow. The last bits depend
    on the BLAS library. The search takes O(n^2 d) time and O(n (d + k)) memory, and for n^2 products at most 256 MiB,
    or 512 MiB on a GPU.

    Examples
    --------
    >>> nearest_distances([[0, 0], [3, 4], [0, 1], [0, 0]], 2)
    array([[1.        , 5.        ],
           [4.24264069, 5.        ],
           [1.        , 4.24264069]])
    """
    return nearest_neighbours(X, k).distances


def nearest_neighbours(X: ArrayLike, k: int) -> Neighbours:
    """Find the k nearest neighbours of every distinct vector.

    Parameters, errors and exactness are those of :func:`nearest_distances`.

    Returns
    -------
    Neighbours
        The distances, the neighbours at these distances, and the distinct vector that each vector equals.

    Examples
    --------
    >>> nearest_neighbours([[0, 0], [3, 4], [0, 1], [0, 0]], 2).indices
    array([[2, 1],
           [2, 0],
           [0, 1]])
    """
    X = arrays.read_matrix(X, stay=True)
    k = arrays.read_count(k, "k", 1)
    if len(X) < k + 1:
        raise ValueError(f"X has {len(X)} rows, but k={k} neighbours take at least {k + 1}")
    first = arrays.find_first_equals(X)
    distinct = np.flatnonzero(first == np.arange(len(first)))
    m = len(distinct)
    if m < len(X):
        X = X[distinct]
    distances, indices = np.full((m, k), np.nan), np.zeros((m, k), np.int64)
    existing = min(k, m - 1)
    if existing:
        distances[:, :existing], indices[:, :existing] = _search(X, existing)
    return Neighbours(distances, indices, np.searchsorted(distinct, first))


def _search(X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Search the k nearest neighbours of distinct vectors, (m, d); return distances and indices, (m, k)."""
    xp = namespace(X)
    m, d = X.shape
    vectors = X - xp.asarray(find_median_point(X), device=X.device)
    halves = xp.einsum("ij,ij->i", vectors, vectors) / 2
    limits = _find_coarse_limit(halves, d)
    distances, indices = np.empty((m, k)), np.empty((m, k), np.int64)
    for rows, products in _multiply_rows(vectors):
        # |y|^2 / 2 - x.y is half the squared distance less |x|^2 / 2, which is the same along a row.
        xp.subtract(halves, products, out=products)
        diagonal = np.arange(rows.start, rows.stop)
        products[diagonal - rows.start, diagonal] = np.inf
        close_rows, close_columns = _find_close_pairs(products, limits[rows])
        products[close_rows, close_columns] = np.inf
        smallest, columns = _select_smallest(products, k)
        distances[rows] = copy_to_host(xp.sqrt(2 * (smallest + halves[rows, None])))
        indices[rows] = copy_to_host(columns)
        if len(close_rows):
            close_rows += rows.start
            _insert_pairs(
                distances,
                indices,
                close_rows,
                close_columns,
                _measure_distances(X, close_rows, close_columns),
            )
    return distances, indices


def find_median_point(X: Any) -> np.ndarray:
    """Return a point near most of the vectors, from which their norms are small; shape (d,).

    The median, unlike the mean, stays near most rows if a few rows have a massive coordinate. Any point near most rows
    will do, so we take the lower median of some rows. They are chosen without a period, since windows of text may have
    one.
    """
    count = min(len(X), MEDIAN_ROWS)
    sample = copy_to_host(X[(np.arange(count) * GOLDEN_RATIO % 1 * len(X)).astype(int)])
    middle = (len(sample) - 1) // 2
    return np.partition(sample, middle, axis=0)[middle]


def _find_coarse_limit(halves: Any, d: int) -> Any:
    r"""Return the values up to which products in float64 are too coarse, so that differences are needed.

    Parameters
    ----------
    halves : ndarray or torch.Tensor of float64, shape (m,)
        :math:`|x|^2 / 2` of each vector x.
    d : int
        Number of coordinates.

    Returns
    -------
    ndarray or torch.Tensor of float64, shape (m,)
        For each x a value of :math:`|y|^2 / 2 - x \cdot y`. For any y with a larger value, the squared distance by
        products has a relative error of at most `ACCURACY`.

    Notes
    -----
    With unit roundoff u, the error of a squared distance s by products is at most

    .. math:: e = \gamma (|x| + |y|)^2, \qquad \gamma = \frac{(d + 16) u}{1 - (d + 16) u},

    which is d u for a sum of d products in any order (Higham, Accuracy and Stability of Numerical Algorithms, 2002,
    section 3.1), and at most 16 u for shift, norms and the last sums. If
    :math:`|y| > 2 |x|`, then :math:`s \ge (|y| / 2)^2` and :math:`e \le 9 \gamma s`. Else
    :math:`e \le 9 \gamma |x|^2`. So with :math:`\varepsilon = 9 \gamma`, which is below `ACCURACY` up to a
    million coordinates, :math:`s \ge \varepsilon |x|^2 / \mathrm{ACCURACY}` is enough. If numbers have at most a
    relative error, the j-th smallest of them has at most the same error as the true j-th smallest, whichever vector it
    belongs to.
    """
    steps = (d + 16) * float(np.finfo(np.float64).eps) / 2
    error = 9 * steps / (1 - steps)
    return 1.01 * error * halves / ACCURACY - halves


def _multiply_rows(vectors: Any) -> Iterator[tuple[slice, Any]]:
    """Yield slices of rows, and their inner products with all rows, (b, m), which the caller may overwrite."""
    m, is_on_cpu = len(vectors), isinstance(vectors, np.ndarray)
    all_products, block_bytes = None, BLOCK_BYTES if is_on_cpu else GPU_BLOCK_BYTES
    if is_on_cpu and m * m * 8 <= ALL_BYTES:
        all_products, block_bytes = np.empty((m, m + ODD_ROOM))[:, :m], CACHE_BYTES
        np.matmul(vectors, vectors.T, out=all_products)
    size = max(1, block_bytes // (8 * m))
    for start in range(0, m, size):
        rows = slice(start, min(start + size, m))
        yield rows, vectors[rows] @ vectors.T if all_products is None else all_products[rows]


def _find_close_pairs(products: Any, limits: Any) -> tuple[np.ndarray, np.ndarray]:
    """Find the rows and columns of products that do not exceed the limit of their row."""
    # Most rows have no such product, which their minimum shows faster than a comparison of all products.
    minima = namespace(products).amin(products, axis=1)
    rows = np.flatnonzero(copy_to_host(minima <= limits))
    places, columns = np.nonzero(copy_to_host(products[rows] <= limits[rows][:, None]))
    return rows[places], columns


def _select_smallest(values: Any, k: int) -> tuple[Any, Any]:
    """Return the k smallest numbers of each row of `values`, (b, m), in ascending order, and their columns.

    Columns are put into groups. The k-th smallest minimum of the groups bounds the k-th smallest entry of the row,
    since k groups have an entry that is no larger, and few further entries are below it.
    """
    if not isinstance(values, np.ndarray):
        return values.topk(k, dim=1, largest=False)
    m = values.shape[1]
    group = max(1, m // (GROUPS_PER_NEIGHBOUR * k))
    minima = values[:, : m // group * group].reshape(len(values), group, -1).min(axis=1)
    limits = np.partition(minima, k - 1, axis=1)[:, k - 1]
    smallest, columns = np.empty((len(values), k)), np.empty((len(values), k), np.int64)
    for i, (row, limit) in enumerate(zip(values, limits, strict=True)):
        candidates = (row <= limit).nonzero()[0]
        entries = row[candidates]
        # A stable sort takes the first columns of ties, on every machine.
        order = entries.argsort(kind="stable")[:k]
        smallest[i], columns[i] = entries[order], candidates[order]
    return smallest, columns


def _measure_distances(X: Any, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Compute the distances of pairs of rows from differences."""
    squares = np.empty(len(first))
    block_bytes = GATHERED_BYTES if isinstance(X, np.ndarray) else GATHERED_BYTES_ON_GPU
    size = max(1, block_bytes // (8 * X.shape[1]))
    for start in range(0, len(first), size):
        part = slice(start, start + size)
        difference = X[first[part]] - X[second[part]]
        # Importing cdist takes longer than searching a small layer.
        squares[part] = copy_to_host(namespace(X).einsum("ij,ij->i", difference, difference))
    return np.sqrt(squares)


def _insert_pairs(
    distances: np.ndarray,
    indices: np.ndarray,
    pair_rows: np.ndarray,
    pair_columns: np.ndarray,
    pair_distances: np.ndarray,
) -> None:
    """Insert the distances of pairs, sorted by `pair_rows`, among the nearest distances."""
    rows, starts = np.unique(pair_rows, return_index=True)
    values_by_row = np.split(pair_distances, starts[1:])
    columns_by_row = np.split(pair_columns, starts[1:])
    for row, values, columns in zip(rows, values_by_row, columns_by_row, strict=True):
        values, columns = np.append(distances[row], values), np.append(indices[row], columns)
        order = np.argsort(values, kind="stable")[: distances.shape[1]]
        distances[row], indices[row] = values[order], columns[order]
