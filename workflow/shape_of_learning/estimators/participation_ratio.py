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
    for little. For independent rows of any distribution with fourth moments and the covariance
    :math:`\Sigma`, their expectations are :math:`(\operatorname{tr} \Sigma)^2` and
    :math:`\operatorname{tr} \Sigma^2`. The ratio of the two still has a bias, of the order of its variance.

    References
    ----------
    Chun, Canatar, Chung and Lee, Estimating dimensionality of neural representations from finite samples,
    arXiv 2509.26560 (2025): its estimator for a sample of rows, since all coordinates are here. Himeno and
    Yamada, Estimations for some functions of covariance matrix in high dimension under non-normality, Journal
    of Multivariate Analysis 130 (2014): the two closed forms.

    Examples
    --------
    >>> round(participation_ratio_corrected([[2, 0], [-2, 0], [0, 1], [0, -1]]), 4)
    2.28
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
    norms = as_numpy(namespace(rows).einsum("ij,ij->i", rows, rows))
    without: list[Moments | None] = []
    if d <= n:
        gram = rows.T @ rows
        scatter = _square_sum(gram)
        if 2 * d <= n:
            without = _by_columns(rows, norms, parts, gram)
        elif parts:
            without = _by_rows(rows, norms, parts)[1]
    else:
        scatter, without = _by_rows(rows, norms, parts)
    value = function(Moments(n, float(norms.sum()), scatter, float((norms**2).sum())))
    values = [math.nan if found is None else function(found) for found in without]
    for number in (number for number, found in enumerate(without) if found is None):
        left = np.delete(np.arange(n), parts[number])
        if len(left) > 1:
            values[number] = of_moments(function, X[left], [])[0]
    return value, np.array(values)


class _Left(NamedTuple):
    """Rows that are left without a part.

    Attributes
    ----------
    moments : Moments
        `scatter` is none yet.
    mean : ndarray or torch.Tensor, shape (d,)
    along : ndarray, shape (left,)
        Of each row, the inner product with the mean.
    """

    moments: Moments
    mean: Any
    along: np.ndarray


def _left(X: Any, norms: np.ndarray, part: np.ndarray) -> _Left | None:
    """Find them; None where too few are left or the digits of their variance are lost."""
    kept = np.ones(len(X), bool)
    kept[part] = False
    n = int(kept.sum())
    if n < 2:
        return None
    # All rows together have the sum zero.
    mean = -X[part].sum(axis=0) / n
    along = as_numpy(X @ mean)[kept]
    deviations = norms[kept] - 2 * along + float(mean @ mean)
    squares = float(deviations.sum())
    if squares <= LOST_DIGITS * float(norms[kept].sum()):
        return None
    return _Left(Moments(n, squares, math.nan, float((deviations**2).sum())), mean, along)


def _by_columns(
    X: Any, norms: np.ndarray, parts: Sequence[np.ndarray], whole: Any
) -> list[Moments | None]:
    """Moments without each part, by scatter matrices (d, d), of which `whole` is that of all rows."""
    xp = namespace(X)
    total = _square_sum(whole)
    found: list[Moments | None] = []
    for part in parts:
        left = _left(X, norms, part)
        if left is not None:
            rows, n = X[part], left.moments.n
            scatter = _square_sum(whole - rows.T @ rows - n * xp.outer(left.mean, left.mean))
            kept_digits = scatter > LOST_DIGITS**2 * total
            found.append(left.moments._replace(scatter=scatter) if kept_digits else None)
        else:
            found.append(None)
    return found


def _by_rows(
    X: Any, norms: np.ndarray, parts: Sequence[np.ndarray]
) -> tuple[float, list[Moments | None]]:
    """Sum of squares of the scatter matrix, and the moments without each part, by inner products of rows."""
    part_of = np.full(len(X), len(parts))
    for number, part in enumerate(parts):
        part_of[part] = number
    labels = np.eye(1 + len(parts))[part_of]
    total, between = 0.0, np.zeros((labels.shape[1],) * 2)
    for start in range(0, len(X), ROWS_PER_BLOCK):
        rows = slice(start, start + ROWS_PER_BLOCK)
        squares = as_numpy(X[rows] @ X[start:].T) ** 2
        squares[:, len(squares) :] *= 2  # and the products below the diagonal
        total += float(squares.sum())
        between += labels[rows].T @ squares @ labels[start:]
    found: list[Moments | None] = []
    for number, part in enumerate(parts):
        left = _left(X, norms, part)
        if left is not None:
            kept = np.arange(len(between)) != number
            products = float(between[kept][:, kept].sum())
            n, length = left.moments.n, float(left.mean @ left.mean)
            scatter = products - 2 * n * float((left.along**2).sum()) + (n * length) ** 2
            kept_digits = scatter > LOST_DIGITS * products
            found.append(left.moments._replace(scatter=scatter) if kept_digits else None)
        else:
            found.append(None)
    return total, found


def _square_sum(X: Any) -> float:
    return float(namespace(X).einsum("ij,ij->", X, X))
