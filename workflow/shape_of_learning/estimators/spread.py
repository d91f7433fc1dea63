"""Measure the spread of variance over directions, for vectors and for the eigenvalues of their covariance.

Measures of vectors raise ValueError if `X` is not two-dimensional, has fewer than two rows, or holds NaN or
infinity; they are NaN if there is no variance. Measures of eigenvalues take the result of :func:`spectrum`.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.estimators.anisotropy import leading_direction
from shape_of_learning.estimators.arrays import (
    centre,
    copy_to_host,
    namespace,
    read_count,
    read_vectors,
    read_windows,
)


def spectrum(X: ArrayLike) -> np.ndarray:
    r"""Eigenvalues of the covariance.

    .. math:: \lambda_i = \sigma_i^2 / (n - 1)

    with the singular values :math:`\sigma_1 \ge \sigma_2 \ge \dots` of the centred matrix.

    Parameters
    ----------
    X : array_like or torch.Tensor, shape (n, d)
        At least two vectors of any real dtype; computed in float64. A tensor on a GPU may be computed there.

    Returns
    -------
    ndarray of float64, shape (min(n, d),)
        Descending, at least zero, with a rounding error of about 1e-16 of the largest. All further eigenvalues are
        zero.

    Notes
    -----
    The eigenvalues are those of the smaller Gram matrix. It takes n d min(n, d) operations, and the cube of its side
    for the eigenvalues.

    Examples
    --------
    >>> spectrum([[2, 0], [-2, 0], [0, 1], [0, -1]])
    array([2.66666667, 0.66666667])
    """
    X = centre(read_vectors(X))
    gram = X.T @ X if X.shape[1] <= len(X) else X @ X.T
    ascending = copy_to_host(namespace(X).linalg.eigvalsh(gram))
    return np.maximum(ascending[::-1], 0) / (len(X) - 1)


def _sum_moments(X: ArrayLike) -> tuple[int, float, float, float]:
    """Return the number of rows, and for centred rows the sums of norms^2, norms^4 and the squared scatter matrix."""
    X = centre(read_vectors(X))
    xp = namespace(X)
    norms = copy_to_host(xp.einsum("ij,ij->i", X, X))
    gram = X.T @ X if X.shape[1] <= len(X) else X @ X.T
    scatter = float(xp.einsum("ij,ij->", gram, gram))
    return len(X), float(norms.sum()), float((norms**2).sum()), scatter


def participation_ratio(X: ArrayLike) -> float:
    r"""Square of the sum of the covariance's eigenvalues over the sum of their squares.

    .. math:: \mathrm{PR} = \frac{(\sum_i \lambda_i)^2}{\sum_i \lambda_i^2}
              = \frac{(\operatorname{tr} S)^2}{\operatorname{tr} S^2}

    with the covariance S of the rows. The computation needs no eigenvalues.

    Parameters
    ----------
    X : array_like or torch.Tensor, shape (n, d)
        As in :func:`spectrum`.

    Returns
    -------
    float
        In [1, min(n - 1, d)]. It is too small for few vectors: for n vectors of a Gaussian, 1/PR is about 1/n too
        large.
        :func:`participation_ratio_corrected` has less of this bias.

    References
    ----------
    Gao et al., A theory of multineuronal dimensionality, dynamics and measurement, bioRxiv 214262 (2017).

    Examples
    --------
    >>> participation_ratio([[2, 0], [-2, 0], [0, 1], [0, -1]])
    1.4705882352941178
    """
    _, squares, _, scatter = _sum_moments(X)
    return squares**2 / scatter if squares > 0 else math.nan


def participation_ratio_corrected(X: ArrayLike) -> float:
    r"""Participation ratio with less bias for few vectors: a ratio of two unbiased estimators.

    .. math:: \frac{2 \operatorname{tr} S^2 + (n^2 - 3n + 1) (\operatorname{tr} S)^2 - n Q}
                   {(n-1)(n-2) \operatorname{tr} S^2 + (\operatorname{tr} S)^2 - n Q}, \qquad
              Q = \frac{1}{n-1} \sum_i \|x_i - \bar x\|^4,

    with the covariance S of the n rows, :math:`(n-1) S = \sum_i (x_i - \bar x)(x_i - \bar x)^T`.

    Parameters
    ----------
    X : array_like or torch.Tensor, shape (n, d)
        As in :func:`spectrum`.

    Returns
    -------
    float
        Bounded neither by n nor by d. NaN for two or three vectors, or if the estimate of the denominator is not above
        zero, which can happen if n is far below the participation ratio.

    Notes
    -----
    Numerator and denominator, times (n-1) / (n (n-2) (n-3)), are the means over all quadruples of different
    rows of

    .. math:: \tfrac14 \|x_i - x_j\|^2 \|x_k - x_l\|^2 \quad\text{and}\quad
              \tfrac14 \left[ (x_i - x_j) \cdot (x_k - x_l) \right]^2,

    in which no vector enters with its fourth power. So a single huge vector, which lowers the participation ratio to 1,
    counts for little. For independent rows of any distribution with fourth moments and the covariance :math:`\Sigma`,
    their expectations are :math:`(\operatorname{tr} \Sigma)^2` and :math:`\operatorname{tr} \Sigma^2`. The bias of
    their ratio is of the order of its variance, and is large if few vectors hold much of the variance: for 4,096
    vectors of 100 dimensions, one in a thousand of them 300 long in one direction, the truth is 4.3, and the mean of
    200 estimates was 17.7. Without fourth moments there is no true value: Student's t with 1.5 degrees of freedom in
    100 dimensions gave 4 to 914.

    References
    ----------
    Chun, Canatar, Chung and Lee, Estimating dimensionality of neural representations from finite samples,
    arXiv 2509.26560 (2025): the estimator for a sample of rows with all coordinates. Himeno and
    Yamada, Estimations for some functions of covariance matrix in high dimension under non-normality, Journal
    of Multivariate Analysis 130 (2014): the two closed forms.

    Examples
    --------
    >>> round(participation_ratio_corrected([[2, 0], [-2, 0], [0, 1], [0, -1]]), 4)
    2.28
    """
    n, squares, fourth, scatter = _sum_moments(X)
    if n < 4:
        return math.nan
    trace, fourth = squares**2, n * (n - 1) * fourth
    numerator = 2 * scatter + (n * n - 3 * n + 1) * trace - fourth
    denominator = (n - 1) * (n - 2) * scatter + trace - fourth
    # A difference as small as the rounding of its terms has no value.
    return numerator / denominator if denominator > 1e-13 * fourth else math.nan


def isoscore(X: ArrayLike) -> float:
    r"""Participation ratio, scaled from [1, d] to [0, 1].

    .. math:: \mathrm{IsoScore} = \frac{\mathrm{PR} - 1}{d - 1}

    with :func:`participation_ratio`. It is 1 if all directions have the same variance, and 0 if one has all of it.

    Parameters
    ----------
    X : array_like or torch.Tensor, shape (n, d)
        As in :func:`spectrum`.

    Returns
    -------
    float
        In [0, 1], and at most (n - 2) / (d - 1) for n vectors. NaN also if d is 1.

    Notes
    -----
    The published definition uses an isotropy defect,
    :math:`\delta = \|\sqrt d \, \lambda / \|\lambda\| - 1\| / \sqrt{2 (d - \sqrt d)}`, and
    :math:`[(d - \delta^2 (d - \sqrt d))^2 - d] / (d (d - 1))`, which simplify to the formula above.

    References
    ----------
    Rudman et al., IsoScore: measuring the uniformity of embedding space utilization, Findings of ACL 2022,
    section 4.

    Examples
    --------
    >>> isoscore([[1, 0], [-1, 0], [0, 1], [0, -1]])
    1.0
    """
    ratio, d = participation_ratio(X), np.shape(X)[1]
    return (ratio - 1) / (d - 1) if d > 1 else math.nan


def effective_rank(X: ArrayLike, exponent: float = 2) -> float:
    r"""Number of directions that equally large singular values would need for the same entropy.

    .. math:: \exp \Big( -\sum_i p_i \ln p_i \Big), \qquad p_i = \frac{\sigma_i^q}{\sum_j \sigma_j^q}

    with the singular values :math:`\sigma_i` of the centred matrix and the exponent q.

    Parameters
    ----------
    X : array_like or torch.Tensor, shape (n, d)
        As in :func:`spectrum`.
    exponent : float
        2 for shares of variance, 1 for shares of singular values, as in RankMe; ValueError if not above zero. Never
        compare values of different exponents.

    Returns
    -------
    float
        In [1, min(n - 1, d)].

    References
    ----------
    Roy and Vetterli, The effective rank, EUSIPCO 2007, definition 1 (q = 1). Garrido et al., RankMe, ICML
    2023, equation 1 (q = 1; not centred, and 1e-7 added to each share).

    Examples
    --------
    >>> round(effective_rank([[1, 0], [-1, 0], [0, 1], [0, -1]]), 9)
    2.0
    """
    return effective_rank_of_spectrum(spectrum(X), exponent)


def effective_rank_of_spectrum(eigenvalues: ArrayLike, exponent: float = 2) -> float:
    """:func:`effective_rank` of the eigenvalues of a covariance, shape (r,), descending."""
    if not exponent > 0:
        raise ValueError(f"exponent must be above zero, not {exponent}")
    values = _clean_eigenvalues(eigenvalues)
    values = values[values > 0]
    if not len(values):
        return math.nan
    powers = (values / values[0]) ** (exponent / 2)
    shares = powers / powers.sum()
    shares = shares[shares > 0]
    return math.exp(-float((shares * np.log(shares)).sum()))


def top_share(eigenvalues: ArrayLike, directions: int = 10) -> float:
    r"""Share of the k leading principal directions in the variance.

    .. math:: \sum_{i \le k} \lambda_i \Big/ \sum_i \lambda_i

    NaN if there is no variance; ValueError if `directions`, k, is not a whole number above zero.

    Examples
    --------
    >>> top_share([4, 3, 2, 1], 2)
    0.7
    """
    k = read_count(directions, "directions", 1)
    values = _clean_eigenvalues(eigenvalues)
    return float(values[:k].sum() / values.sum()) if values[0] > 0 else math.nan


def directions_for(eigenvalues: ArrayLike, share: float = 0.9) -> float:
    r"""Smallest k such that k leading directions hold a share s of the variance, above 0 and at most 1.

    .. math:: \min \Big\{k : \sum_{i \le k} \lambda_i \ge s \sum_i \lambda_i \Big\}

    NaN if there is no variance.

    Examples
    --------
    >>> directions_for([4, 3, 2, 1], 0.7)
    2.0
    """
    if not 0 < share <= 1:
        raise ValueError(f"share must be above 0 and at most 1, not {share}")
    values = _clean_eigenvalues(eigenvalues)
    total = values.sum()
    if total == 0:
        return math.nan
    # Sums that differ only by rounding count as equal.
    is_reached = np.cumsum(values) >= share * total * (1 - len(values) * np.finfo(float).eps)
    return float(1 + np.argmax(is_reached))


def alpha_req(eigenvalues: ArrayLike, first: int = 11, last: int = 40) -> float:
    r"""Exponent of a power law through a range of the eigenvalues.

    :math:`\lambda_i \propto i^{-\alpha}` for i from `first` to `last`: the least squares line of
    :math:`\ln \lambda_i` on :math:`\ln i`, with weights 1/i, so that all octaves count alike.

    Parameters
    ----------
    eigenvalues : array_like, shape (r,)
        Eigenvalues of a covariance, descending.
    first, last : int
        The first and the last rank, counted from 1; ValueError if `first` is below 1 or `last` is not above it. Never
        compare values of different ranges.

    Returns
    -------
    float
        Minus the slope, which is 0 for a flat spectrum. NaN if fewer than `last` eigenvalues are above zero.

    References
    ----------
    Agrawal et al., alpha-ReQ: assessing representation quality in self-supervised learning by measuring
    eigenspectrum decay, NeurIPS 2022. Stringer et al., High-dimensional geometry of population responses in
    visual cortex, Nature 571 (2019), methods (ranks 11 to 500; the weights).

    Examples
    --------
    >>> round(alpha_req(1 / np.arange(1, 100) ** 1.5), 9)
    1.5
    """
    first = read_count(first, "first", 1)
    last = read_count(last, "last", first + 1)
    values = _clean_eigenvalues(eigenvalues)
    if len(values) < last or values[last - 1] == 0:
        return math.nan
    ranks = np.arange(first, last + 1, dtype=np.float64)
    x, y, weights = np.log(ranks), np.log(values[first - 1 : last]), 1 / ranks
    x = x - np.average(x, weights=weights)
    return -float((weights * x * y).sum() / (weights * x**2).sum())


def effective_windows(X: Any, windows: ArrayLike) -> float:
    r"""Number of windows that hold the direction of the largest variance.

    .. math:: \frac{\left( \sum_w s_w \right)^2}{\sum_w s_w^2}, \qquad s_w = \sum_{i \in w} (u \cdot (x_i - \bar x))^2,

    with the vectors i of window w, and the leading direction u of all vectors, as in :func:`.anisotropy`.

    Parameters
    ----------
    X : ndarray or torch.Tensor, shape (n, d)
        Vectors of any real dtype; computed in float64. A tensor on a GPU may be computed there.
    windows : array_like of int, shape (n,)
        The window of each vector.

    Returns
    -------
    float
        From 1 to the number of windows. NaN if there is no variance.

    Examples
    --------
    >>> effective_windows(np.array([[9, 0], [-9, 0], [0, 1], [0, -1]]), [0, 1, 2, 3])
    2.0
    """
    numbers = read_windows(windows, len(X))
    rows = centre(read_vectors(X, 1))
    variance = float(namespace(rows).einsum("ij,ij->i", rows, rows).sum())
    if variance == 0:
        return math.nan
    direction = leading_direction(rows, variance)[1]
    projections = copy_to_host(rows @ namespace(rows).asarray(direction, device=rows.device))
    squares = np.bincount(numbers, projections**2)
    return float(squares.sum() ** 2 / np.square(squares).sum())


def _clean_eigenvalues(eigenvalues: ArrayLike) -> np.ndarray:
    """Read the eigenvalues of a covariance; eigenvalues below the rounding of the largest become zero."""
    values = np.asarray(eigenvalues, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise ValueError(f"eigenvalues must have one dimension, but their shape is {values.shape}")
    if not (np.isfinite(values).all() and (np.diff(values) <= 0).all() and values[-1] >= 0):
        raise ValueError("eigenvalues must be finite numbers from zero on, in descending order")
    return np.where(values > len(values) * np.finfo(float).eps * values[0], values, 0.0)
