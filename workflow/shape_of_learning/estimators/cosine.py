"""Average cosine similarity of all pairs of vectors, and of pairs within and between windows of text.

Sums of unit vectors give exact values in O(n d).
"""

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.estimators import arrays
from shape_of_learning.estimators.arrays import copy_to_host, namespace

# Rows are read in blocks of this many bytes, to save memory.
BLOCK_BYTES = 1 << 24
# A squared norm below this share of its minuend has lost six of sixteen digits.
LOST_DIGITS = 1e-6


def average_cosine(X: ArrayLike, center: bool = False) -> float:
    r"""Mean cosine of the angle between two different rows, over all pairs.

    .. math:: \frac{1}{n (n - 1)} \sum_{i \ne j} u_i \cdot u_j
              = \frac{\|\sum_i u_i\|^2 - n}{n (n - 1)},
              \qquad u_i = x_i / \|x_i\|

    Parameters
    ----------
    X : array_like or torch.Tensor, shape (n, d)
        Vectors, n >= 2, of any real dtype; computed in float64. A tensor of float32, bfloat16 or float16 on a GPU is
        computed there.
    center : bool
        Whether to subtract the mean vector first.

    Returns
    -------
    float
        In [-1/(n-1), 1]. Rows of norm zero have no direction and are left out; NaN if fewer than two rows remain. After
        centring, a row as small as the rounding of the mean counts as zero.

    Raises
    ------
    ValueError
        If `X` is not two-dimensional, has fewer than two rows, or holds NaN or infinity.

    Notes
    -----
    Exact over all pairs in O(n d), without sampling of pairs. Repeated rows count as often as they appear.

    References
    ----------
    Ethayarajh, How contextual are contextualized word representations?, EMNLP 2019
    (the mean cosine of random pairs as a baseline). Machina and Mercer, Anisotropy is not inherent
    to transformers, NAACL 2024 (the closed form).

    Examples
    --------
    >>> average_cosine([[1, 0], [0, 2], [-3, 0]])
    -0.3333333333333333
    """
    return _average_cosine(arrays.read_vectors(X), center)


def _average_cosine(X: Any, center: bool) -> float:
    if not center:
        return _average_directions((X[rows] for rows in _split_rows(X)), noise=0.0)
    xp = namespace(X)
    low, high = xp.amin(X, axis=0), xp.amax(X, axis=0)
    if arrays.is_constant(low, high):
        return math.nan
    # The mean has two parts, the first row and the rest, so that a common offset costs no digits.
    first, rest = X[0], _mean_difference(X[0], X)
    # A row equal to the mean keeps the rounding of the mean, whose direction says nothing.
    reach = xp.maximum(abs(low - first - rest), abs(high - first - rest))
    noise = 8 * np.finfo(float).eps * float(reach @ reach) ** 0.5
    return _average_directions((X[rows] - first - rest for rows in _split_rows(X)), noise)


def average_cosine_jackknife(
    X: ArrayLike, parts: Sequence[np.ndarray], center: bool = False
) -> tuple[float, np.ndarray]:
    r"""Return :func:`average_cosine` of all rows, and its values without each part of the rows.

    Parameters
    ----------
    X, center
        As in :func:`average_cosine`, with its errors.
    parts : sequence of ndarray of int
        Row numbers of each part.

    Returns
    -------
    value : float
    jackknife_values : ndarray of float64, shape (parts,)
        NaN where undefined.

    Notes
    -----
    With the mean m of the remaining rows, relative to the mean of all,
    :math:`|x - m|^2 = |x|^2 - 2 x \cdot m + |m|^2` gives the norms for all parts by one matrix product; a second
    product gives the sums of directions. If that would cost digits, a value is computed from the remaining rows.
    """
    X = arrays.read_vectors(X)
    value, values = _average_cosine(X, center), np.empty(0)
    if parts:
        rows = arrays.centre(X) if center else X
        values = _leave_parts_out(rows, arrays.mark_remaining_rows(rows, parts), center)
    return value, arrays.complete_values(values, X, parts, lambda X: _average_cosine(X, center), 2)


def _leave_parts_out(X: Any, mask: Any, center: bool) -> np.ndarray:
    """Return the mean cosine without each part; NaN if a row is too near the mean."""
    xp = namespace(X)
    counts = mask.sum(axis=0)
    norms = squares = xp.einsum("ij,ij->i", X, X)[:, None]
    square_means: Any = 0.0
    if center:
        # A product of few rows with many is faster than a product of many rows with few.
        means = (mask.T @ X).T / counts
        square_means = (means * means).sum(axis=0)
        norms = squares - 2 * (means.T @ X.T).T + square_means
    is_safe = norms > LOST_DIGITS * (squares + square_means) + LOST_DIGITS**3 * squares.max()
    usable = copy_to_host((is_safe | (mask == 0)).all(axis=0) & (counts > 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        inverse = mask / xp.sqrt(xp.where(is_safe, norms, 1.0))
        total = (inverse.T @ X).T
        if center:
            total = total - means * inverse.sum(axis=0)
        cosines = copy_to_host(((total * total).sum(axis=0) - counts) / (counts * (counts - 1)))
    return np.where(usable, np.minimum(cosines, 1.0), np.nan)


def _average_directions(blocks: Iterable[Any], noise: float) -> float:
    """Return the mean cosine of rows in blocks; rows with a norm up to `noise` have no direction."""
    total: Any = 0.0
    count = 0
    for rows in blocks:
        xp = namespace(rows)
        norms = xp.sqrt(xp.einsum("ij,ij->i", rows, rows))
        has_direction = norms > noise
        norms[~has_direction] = math.inf
        # Not a matrix product, whose last bits depend on the number of threads.
        total = total + xp.einsum("i,ij->j", 1 / norms, rows)
        count += int(has_direction.sum())
    if count < 2:
        return math.nan
    return min((float((total**2).sum()) - count) / (count * (count - 1)), 1.0)


def _mean_difference(origin: Any, X: Any) -> Any:
    """Return the mean row less `origin`, as if summed in twice the precision.

    A centred cosine is a difference of two large sums, so the rounding of a plain mean would show in it.
    """
    total, lost = 0.0, 0.0
    for rows in _split_rows(X):
        part = _sum_columns(X[rows] - origin)
        # Knuth's exact sum of two numbers: `lost` collects the rounding errors of `total`.
        old, total = total, total + part
        rounded_part = total - old
        lost = lost + ((old - (total - rounded_part)) + (part - rounded_part))
    return (total + lost) / len(X)


def _sum_columns(X: Any) -> Any:
    # Sums of 32 rows are summed in a second step, so that rounding grows with 32 + n/32 instead of n.
    whole = len(X) // 32 * 32
    parts = X[:whole].reshape(whole // 32, 32, X.shape[1]).sum(axis=1)
    return parts.sum(axis=0) + X[whole:].sum(axis=0)


def _split_rows(X: Any) -> Iterable[slice]:
    return arrays.split_rows(X, BLOCK_BYTES // (8 * X.shape[1]))


def intra_window_cosine(X: ArrayLike, windows: ArrayLike) -> float:
    r"""Mean cosine of the angle between two vectors of the same window, over all such pairs.

    .. math:: \frac{\sum_w (\|s_w\|^2 - n_w)}{\sum_w n_w (n_w - 1)}, \qquad
              s_w = \sum_{i \in w} x_i / \|x_i\|

    Parameters
    ----------
    X : array_like or torch.Tensor, shape (n, d)
        Vectors of any real dtype; computed in float64. A tensor of float32, bfloat16 or float16 on a GPU is computed
        there.
    windows : array_like of int, shape (n,)
        The window of each vector.

    Returns
    -------
    float
        In [-1, 1]. Rows of norm zero have no direction and are left out; NaN if no window has two others.

    Raises
    ------
    ValueError
        If `X` is not two-dimensional, is empty, or holds NaN or infinity; if `windows` is not one whole
        number for each row.

    Notes
    -----
    Exact in O(n d), without sampling of pairs.

    References
    ----------
    Machina and Mercer, Anisotropy is not inherent to transformers, NAACL 2024 (intra- and inter-similarity;
    the definition is ours).

    Examples
    --------
    >>> intra_window_cosine([[1, 0], [2, 0], [0, 1], [0, -1]], [0, 0, 1, 1])
    0.0
    """
    return intra_window_cosine_jackknife(X, windows, [])[0]


def inter_window_cosine(X: ArrayLike, windows: ArrayLike) -> float:
    r"""Mean cosine of the angle between two vectors of different windows, over all such pairs.

    .. math:: \frac{\|\sum_w s_w\|^2 - \sum_w \|s_w\|^2}{n^2 - \sum_w n_w^2}

    Parameters, errors, notes and references as in :func:`intra_window_cosine`.

    Returns
    -------
    float
        In [-1, 1]. NaN if all rows with a direction are in one window.

    Examples
    --------
    >>> inter_window_cosine([[1, 0], [2, 0], [0, 1], [0, -1]], [0, 0, 1, 1])
    0.0
    """
    return inter_window_cosine_jackknife(X, windows, [])[0]


def _average_by_window(
    X: ArrayLike, windows: ArrayLike, parts: Sequence[np.ndarray], *, is_between: bool
) -> tuple[float, np.ndarray]:
    """Return the mean cosine within or between windows, of all rows and without each part of the rows.

    Parameters
    ----------
    X, windows
        As in :func:`intra_window_cosine`, with its errors.
    parts : sequence of ndarray of int
        Row numbers of each part. No row is in two parts.

    Returns
    -------
    value : float
    jackknife_values : ndarray of float64, shape (parts,)
        NaN where undefined.
    """
    X = arrays.read_matrix(X, stay=True)
    windows = arrays.read_windows(windows, len(X))
    part = arrays.number_parts(len(X), parts)
    # A cell has the rows of one window and part.
    order = np.lexsort((part, windows))
    edges = np.flatnonzero(np.diff(windows[order]) | np.diff(part[order])) + 1
    cells = np.split(order, edges)
    sums, counts = map(np.array, zip(*(_sum_unit_vectors(X[rows]) for rows in cells), strict=True))
    firsts = [rows[0] for rows in cells]
    window_of, part_of = windows[firsts], part[firsts]
    selections = [np.full(len(cells), True), *(part_of != number for number in range(len(parts)))]
    cosines = [
        _average_within_and_between(sums[is_selected], counts[is_selected], window_of[is_selected])[
            is_between
        ]
        for is_selected in selections
    ]
    value, *jackknife_values = (min(cosine, 1.0) for cosine in cosines)
    return value, np.array(jackknife_values)


intra_window_cosine_jackknife = partial(_average_by_window, is_between=False)
inter_window_cosine_jackknife = partial(_average_by_window, is_between=True)


def _average_within_and_between(
    sums: np.ndarray, counts: np.ndarray, windows: np.ndarray
) -> tuple[float, float]:
    """Return both mean cosines from the sum, the number and the window of the unit vectors of each cell."""
    names, index = np.unique(windows, return_inverse=True)
    window_sums = np.zeros((len(names), sums.shape[1]))
    np.add.at(window_sums, index, sums)
    n = np.bincount(index, counts, len(names))
    squares = float((window_sums**2).sum())
    square_of_all = float((window_sums.sum(axis=0) ** 2).sum())
    pairs_within = float((n * (n - 1)).sum())
    pairs_between = float(n.sum()) ** 2 - float((n**2).sum())
    return (
        (squares - float(n.sum())) / pairs_within if pairs_within else math.nan,
        (square_of_all - squares) / pairs_between if pairs_between else math.nan,
    )


def _sum_unit_vectors(rows: Any) -> tuple[np.ndarray, int]:
    """Return the sum of the unit vectors of rows, (d,), and the number of rows whose norm is not zero."""
    xp = namespace(rows)
    largest = xp.amax(abs(rows), axis=1)
    has_direction = largest > 0
    # Division before squaring avoids overflow and underflow.
    rows = rows[has_direction] / largest[has_direction][:, None]
    norms = xp.sqrt(xp.einsum("ij,ij->i", rows, rows))
    # Not a matrix product, whose last bits depend on the number of threads.
    return copy_to_host(xp.einsum("i,ij->j", 1 / norms, rows)), int(has_direction.sum())
