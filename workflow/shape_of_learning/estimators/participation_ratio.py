"""Participation ratio: over how many directions the variance of a cloud of vectors is spread."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.estimators.arrays import as_matrix, as_numpy, centred, namespace

# Rows per product of blocks: of 4096 numbers each, 8 MiB.
ROWS_PER_BLOCK = 256
# What is less than that share of what it is the difference of has lost six of sixteen digits.
LOST_DIGITS = 1e-6


def participation_ratio(X: ArrayLike) -> float:
    r"""Square of the sum of the covariance's eigenvalues over the sum of their squares.

    .. math:: \mathrm{PR} = \frac{(\sum_i \lambda_i)^2}{\sum_i \lambda_i^2}
              = \frac{(\operatorname{tr} S)^2}{\operatorname{tr} S^2}

    with the covariance S of the rows.

    Parameters
    ----------
    X : array_like or torch.Tensor, shape (n, d)
        At least two vectors of any real dtype; computed in float64, those on a GPU there if they are float32,
        bfloat16 or float16.

    Returns
    -------
    float
        In [1, min(n - 1, d)]. NaN if there is no variance.

    Raises
    ------
    ValueError
        If `X` is not two-dimensional, has fewer than two rows, or holds NaN or infinity.

    Notes
    -----
    Of n vectors it is too small: of n from a Gaussian, 1/PR is about 1/n too large.
    :func:`participation_ratio_corrected` is not.

    No eigenvalue is needed: the denominator is the sum of squares of the smaller Gram matrix.

    References
    ----------
    Gao et al., A theory of multineuronal dimensionality, dynamics and measurement, bioRxiv 214262 (2017).

    Examples
    --------
    >>> participation_ratio([[2, 0], [-2, 0], [0, 1], [0, -1]])
    1.4705882352941178
    """
    return leaving_out(X, [])[0]


def participation_ratio_corrected(X: ArrayLike) -> float:
    r"""Participation ratio without the bias of few vectors: a ratio of two unbiased estimators.

    .. math:: \frac{2 \operatorname{tr} S^2 + (n^2 - 3n + 1) (\operatorname{tr} S)^2 - n Q}
                   {(n-1)(n-2) \operatorname{tr} S^2 + (\operatorname{tr} S)^2 - n Q}, \qquad
              Q = \frac{1}{n-1} \sum_i \|x_i - \bar x\|^4,

    with the covariance S of the n rows, :math:`(n-1) S = \sum_i (x_i - \bar x)(x_i - \bar x)^T`.

    Parameters
    ----------
    X : array_like or torch.Tensor, shape (n, d)
        As in :func:`participation_ratio`, errors likewise.

    Returns
    -------
    float
        Not bounded by n. NaN of fewer than four vectors, or if the estimate of the denominator is not above
        zero, as may happen where n is far below the participation ratio.

    Notes
    -----
    Numerator and denominator, times (n-1) / (n (n-2) (n-3)), are the means over all quadruples of different
    rows of

    .. math:: \tfrac14 \|x_i - x_j\|^2 \|x_k - x_l\|^2 \quad\text{and}\quad
              \tfrac14 \left[ (x_i - x_j) \cdot (x_k - x_l) \right]^2,

    in which no vector meets itself: one huge vector alone, which lowers the participation ratio to 1, counts
    for little. Their expectations, for independent rows of any distribution with
    fourth moments, are :math:`(\operatorname{tr} \Sigma)^2` and :math:`\operatorname{tr} \Sigma^2` of its covariance. The ratio of
    the two still has a bias of the order 1/n of its variance.

    References
    ----------
    Chun et al., Estimating dimensionality of neural representations from finite samples, arXiv
    2509.26560 (2025); without its correction for a sample of coordinates, all of which are here. Himeno and
    Yamada, Estimations for some functions of covariance matrix in high dimension under non-normality,
    Journal of Multivariate Analysis 130 (2014) (the two closed forms).

    Examples
    --------
    >>> round(participation_ratio_corrected([[2, 0], [-2, 0], [0, 1], [0, -1]]), 4)
    1.8571
    """
    return corrected_leaving_out(X, [])[0]


def leaving_out(X: ArrayLike, parts: Sequence[np.ndarray]) -> tuple[float, np.ndarray]:
    """:func:`participation_ratio` of all rows, and of those that are left without each of some parts.

    Parameters
    ----------
    X
        As in :func:`participation_ratio`, errors likewise.
    parts : sequence of ndarray of int
        Numbers of the rows that are left out each time. No row is in two of them.

    Returns
    -------
    value : float
    without : ndarray of float64, shape (parts,)
        NaN where undefined.
    """
    return of_moments(_ratio, X, parts)


def corrected_leaving_out(X: ArrayLike, parts: Sequence[np.ndarray]) -> tuple[float, np.ndarray]:
    """:func:`participation_ratio_corrected`, likewise; parameters and results as of :func:`leaving_out`."""
    return of_moments(_corrected, X, parts)


class Moments(NamedTuple):
    """Of rows less their mean: their number, and three sums.

    Attributes
    ----------
    n : float
    squares : float
        Of their squared norms: the trace of the scatter matrix.
    scatter : float
        Of squares of the entries of the scatter matrix: the trace of its square.
    fourth : float
        Of the fourth powers of their norms.
    """

    n: float
    squares: float
    scatter: float
    fourth: float


def _ratio(found: Moments) -> float:
    return found.squares**2 / found.scatter if found.squares > 0 else math.nan


def _corrected(found: Moments) -> float:
    n, trace = found.n, found.squares**2
    if n < 4:
        return math.nan
    fourth = n * (n - 1) * found.fourth
    above = 2 * found.scatter + (n * n - 3 * n + 1) * trace - fourth
    below = (n - 1) * (n - 2) * found.scatter + trace - fourth
    # What is no more than the rounding of the terms that it is the difference of is none.
    return above / below if below > 1e-13 * fourth else math.nan


def of_moments(
    function: Callable[[Moments], float], X: ArrayLike, parts: Sequence[np.ndarray]
) -> tuple[float, np.ndarray]:
    """Take a function of the moments of all rows, and of those that are left without each part.

    Parameters
    ----------
    function : callable
        NaN where undefined.
    X, parts
        As in :func:`leaving_out`; results and errors likewise.
    """
    X = as_matrix(X, stay=True)
    n, d = X.shape
    if n < 2:
        raise ValueError(f"X has {n} row, but variance takes at least 2")
    rows = centred(X)
    xp = namespace(rows)
    # A column for all rows, and one for those that are left without each part.
    left = np.ones((n, 1 + len(parts)))
    for number, part in enumerate(parts, 1):
        left[part, number] = 0
    there = xp.asarray(left, device=rows.device)
    counts = left.sum(axis=0)
    norms = xp.einsum("ij,ij->i", rows, rows)
    means = (rows.T @ there) / xp.asarray(np.maximum(counts, 1), device=rows.device)
    along = rows @ means
    deviations = (norms[:, None] - 2 * along + (means**2).sum(axis=0)) * there
    squares = as_numpy(deviations.sum(axis=0))
    fourth = as_numpy((deviations**2).sum(axis=0))
    if 2 * d <= n or (not parts and d <= n):
        scatter, lost = _by_columns(rows, parts, means, counts)
    else:
        total = as_numpy(((along * there) ** 2).sum(axis=0))
        lengths = as_numpy((means**2).sum(axis=0))
        products = _by_rows(rows, parts)
        scatter = products - 2 * counts * total + (counts * lengths) ** 2
        lost = scatter <= LOST_DIGITS * products
    lost |= squares <= LOST_DIGITS * (as_numpy(norms) @ left)
    table = np.stack([counts, squares, scatter, fourth], axis=1).tolist()
    values = [function(Moments(*each)) for each in table]
    for number in np.flatnonzero(lost[1:]).tolist():
        some = np.delete(np.arange(n), parts[number])
        values[1 + number] = of_moments(function, X[some], [])[0] if len(some) > 1 else math.nan
    return values[0], np.array(values[1:])


def _by_columns(
    X: Any, parts: Sequence[np.ndarray], means: Any, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of squares of scatter matrices, from (d, d) matrices; and where digits were lost."""
    xp = namespace(X)
    whole = X.T @ X
    found = [_square_sum(whole)]
    for number, part in enumerate(parts, 1):
        mean = means[:, number]
        found.append(
            _square_sum(whole - X[part].T @ X[part] - counts[number] * xp.outer(mean, mean))
        )
    scatter = np.array(found)
    return scatter, scatter <= LOST_DIGITS**2 * scatter[0]


def _by_rows(X: Any, parts: Sequence[np.ndarray]) -> np.ndarray:
    """Sums of squares of the inner products of the rows that are left each time, in blocks of rows."""
    n = len(X)
    part_of = np.full(n, len(parts))
    for number, part in enumerate(parts):
        part_of[part] = number
    order = np.argsort(part_of, kind="stable")
    X, part_of = X[order], part_of[order]
    sums = np.zeros((1 + len(parts),) * 2)
    for start in range(0, n, ROWS_PER_BLOCK):
        stop = min(start + ROWS_PER_BLOCK, n)
        products = X[start:stop] @ X[start:].T
        for number in np.unique(part_of[start:stop]).tolist():
            some = np.flatnonzero(part_of[start:stop] == number)
            columns = as_numpy((products[some[0] : some[-1] + 1] ** 2).sum(axis=0))
            columns[stop - start :] *= 2  # and the products below the diagonal
            sums[number] += np.bincount(part_of[start:], columns, len(sums))
    # Which parts are left each time.
    kept = np.hstack([np.ones((len(sums), 1)), 1 - np.eye(len(sums))[:, :-1]])
    return np.einsum("gc,gh,hc->c", kept, sums, kept)


def _square_sum(X: Any) -> float:
    return float(namespace(X).einsum("ij,ij->", X, X))
