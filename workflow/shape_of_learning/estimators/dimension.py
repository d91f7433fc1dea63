"""Estimate the intrinsic dimension from distances to nearest neighbours.

Every estimator but :func:`two_nn_authors`, which needs distances that count copies, takes vectors, or their distances
from :func:`shape_of_learning.nearest_distances`, so that one search can serve all; ``r_1 <= ... <= r_k`` is a row of
distances. An array whose rows all ascend from 0 or more counts as distances, so for vectors with ascending coordinates
pass ``nearest_distances(X, k)``. The local estimators, MADA, MOM and MLE, compute the *inverse* dimension of a point,
which is zero where distances are tied.

All estimators return NaN where they are undefined, and raise ValueError if vectors are too few for the neighbours or
hold NaN or infinity, if distances have too few columns, or if an argument is not allowed.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.estimators.arrays import namespace, read_count, read_matrix
from shape_of_learning.estimators.neighbours import nearest_distances

# In the authors' code, smaller distances count as zero, and ratios up to one plus this number as one.
ZERO = 1e-8
ROUNDING = 1e-12  # of a product of floats, so that 0.58 of 100 is 58


def two_nn(distances: ArrayLike, kept: float = 0.9) -> float:
    r"""TwoNN: from the ratio of the second to the first distance.

    Where the density is even, :math:`\mu = r_2 / r_1` follows :math:`F(\mu) = 1 - \mu^{-d}`. The
    ratios are sorted, :math:`F(\mu_{(i)}) = i / m`, and d is the slope of a line through the origin

    .. math:: d = \frac{\sum_i x_i y_i}{\sum_i x_i^2}, \qquad
              x_i = \ln \mu_{(i)}, \quad y_i = -\ln(1 - i / m),

    over the first :math:`\lfloor \text{kept} \cdot m \rfloor` ratios.

    Parameters
    ----------
    distances : array_like or torch.Tensor, shape (m, k >= 2) or (n, d)
        From :func:`shape_of_learning.nearest_distances`, or vectors. If the numbers of every row ascend from 0 or
        more, they are distances.
    kept : float
        Share of the ratios, from the smallest on, to which the line is fitted, in (0, 1]. The method's authors choose
        0.9. The last ratio, where y is infinite, is never used.

    Returns
    -------
    float
        NaN where undefined: no second neighbour, no ratio kept, or all kept ratios equal to one.

    Notes
    -----
    In the exact model the relative standard deviation at m = 4096 is 1.7 % for kept = 0.9 and 3.8 %
    for 0.2. A tie :math:`r_1 = r_2` has x = 0 and enters as such. Copies count as one vector, since
    `nearest_distances` collapses them.

    References
    ----------
    Facco, d'Errico, Rodriguez and Laio, Scientific Reports 7, 12140 (2017).

    Examples
    --------
    >>> round(two_nn([[1, 1.5], [1, 1.1], [1, 2.0], [1, 1.2]], kept=0.75), 3)
    3.463
    """
    if not (isinstance(kept, int | float | np.number) and 0 < kept <= 1):
        raise ValueError(f"kept must lie in (0, 1], but is {kept!r}")
    r = _check_distances(distances, 2)
    m = len(r)
    count = min(int(kept * m * (1 + ROUNDING)), m - 1)
    if np.isnan(r).any() or count < 1:
        return math.nan
    x = np.sort(np.log(r[:, 1] / r[:, 0]))[:count]
    y = -np.log1p(-np.arange(1, count + 1) / m)
    return _slope(x, y) if x[-1] > 0 else math.nan


def two_nn_authors(distances: ArrayLike) -> float:
    r"""TwoNN, as the code that the paper's authors released computes it.

    This is :func:`shape_of_learning.two_nn` with three differences. Copies count as separate vectors. A vector that has
    a copy, or two neighbours equally far, is left out of the ratios, but its place is kept: with n ratios and u vectors
    left out, :math:`F(\mu_{(i)}) = (i + u) / (n + u)`. The line is fitted to the first
    :math:`\lfloor n / 5 \rfloor` ratios.

    Parameters
    ----------
    distances : array_like or torch.Tensor, shape (all vectors, at least 2)
        Ascending distances from each vector to its two nearest neighbours, zero to a copy, divided by
        :func:`mean_distance_to_mean`. This unit only decides which distances are below 1e-8.

    Returns
    -------
    float
        NaN where undefined: no second neighbour, or fewer than five ratios.

    Notes
    -----
    The code computes F in float32, which on 4,096 hidden states makes a relative difference of 2e-9. Because of the
    kept places, the line begins at :math:`y \approx -\ln(1 - u / (n + u))` and not at zero, so that copies raise the
    estimate. With 4,096 vectors from a cube of 8 dimensions, copies multiply the estimate by

    =====================================  ====  ====
    copies                                  5 %  20 %
    =====================================  ====  ====
    of one vector                          1.34   2.5
    in pairs                               1.52   3.3
    of others, which overwrite rows        2.0    5.9
    =====================================  ====  ====

    where the share counts the vectors that are copies or, in pairs, the vectors that have a copy. :func:`.two_nn`
    counts copies once.

    References
    ----------
    Razzhigaev et al., The Shape of Learning, Findings of EACL 2024: function ``intrinsic_dimension`` of the
    package llm-microscope 0.0.7.

    Examples
    --------
    >>> round(two_nn_authors([[0, 1], [0, 1], *([1, 1 + i / 10] for i in range(1, 9))]), 3)
    3.742
    """
    r = _check_distances(distances, 2, copies=True)
    if np.isnan(r).any():
        return math.nan
    positive_rows = r[r[:, 0] >= ZERO]
    x = np.sort(np.log(positive_rows[:, 1] / positive_rows[:, 0]))
    x = x[x > math.log1p(ZERO)]
    count, left_out = len(x) // 5, len(r) - len(x)
    if count < 1:
        return math.nan
    y = -np.log1p(-np.arange(left_out + 1, left_out + count + 1) / len(r))
    return _slope(x[:count], y)


def mean_distance_to_mean(X: ArrayLike) -> float:
    """Mean Euclidean distance of vectors to their mean, in float64: the authors' unit of distances.

    Zero if all vectors are equal.

    Examples
    --------
    >>> mean_distance_to_mean([[0, 0], [6, 8]])
    5.0
    """
    X = read_matrix(X, stay=True)
    X = X - X.mean(axis=0)
    xp = namespace(X)
    return float(xp.sqrt(xp.einsum("ij,ij->i", X, X)).mean())


def gride(distances: ArrayLike, n1: int) -> float:
    r"""Generalised ratios (Gride): maximum likelihood from the ratio of the 2 n1-th to the n1-th distance.

    Where the density is even up to the 2 n1-th neighbour, :math:`\mu = r_{2 n_1} / r_{n_1}` has the density

    .. math:: f(\mu) = \frac{d \, (\mu^d - 1)^{n_1 - 1}}{B(n_1, n_1) \, \mu^{(2 n_1 - 1) d + 1}},

    so that the likelihood of m independent ratios is greatest at the unique d where

    .. math:: \sum_{i=1}^m \left[ 1 + (n_1 - 1) \frac{t_i}{e^{t_i} - 1} - n_1 t_i \right] = 0, \qquad
              t_i = d \ln \mu_i.

    Estimates at several `n1` show the scales of a dimension: it exists where many `n1` give the same value.

    Parameters
    ----------
    distances : array_like or torch.Tensor, shape (m, at least 2 n1)
        From :func:`shape_of_learning.nearest_distances`, or vectors.
    n1 : int
        Rank of the nearer neighbour, at least 1. It sets the scale. If it is 1, the ratios are those of
        :func:`shape_of_learning.two_nn`, and d is m over the sum of their logarithms.

    Returns
    -------
    float
        NaN where undefined: fewer than 2 n1 distinct neighbours, or ties everywhere.

    Notes
    -----
    A tight cluster of more than `n1` and at most 2 `n1` vectors, such as the vectors of one special token, lowers the
    estimate much, since the likelihood counts their large ratios in full. With `n1` = 1, pairs of near copies are such
    clusters, of which hidden states have many. Since :func:`.two_nn` leaves out the largest tenth of the ratios, it can
    be several times as high.

    No term grows with d, and all terms but those of ties fall, so the root is unique. It lies between :math:`1 / n_1`
    and 1 times :math:`m / \sum_i \ln \mu_i`. A tie, :math:`\mu = 1`, is used like any other ratio.

    In the exact model, with m independent ratios, the estimate is too large by 1 / (m - 1) at most, and its
    relative standard deviation is

    .. math:: \frac{1}{\sqrt{m I}}, \qquad
              I = 1 + (n_1 - 1) \, \mathrm{E}\!\left[ \frac{V \ln^2 V}{(1 - V)^2} \right],

    with :math:`V = \mu^{-d}`, which follows a Beta(n1, n1) law: at m = 4096, 1.56 % for n1 = 1, 1.13 %
    for 2, 0.56 % for 8 and 0.20 % for 64. Overlapping neighbourhoods are not independent, so the deviation for m
    vectors shrinks less as `n1` grows.

    References
    ----------
    Denti, Doimo, Laio and Mira, The generalized ratios intrinsic dimension estimator, Scientific Reports
    12, 20005 (2022).

    Examples
    --------
    >>> round(gride([[1, 1.5], [1, 1.1], [1, 2.0], [1, 1.2]], n1=1), 3)
    2.906
    """
    n1 = read_count(n1, "n1", 1)
    r = _check_distances(distances, 2 * n1)
    if np.isnan(r[:, -1]).any():
        return math.nan
    x = np.log(r[:, -1] / r[:, n1 - 1])
    mean = float(np.mean(x))
    if mean == 0:
        return math.nan
    x /= mean
    return _solve_likelihood(x, n1) / mean


def _solve_likelihood(x: np.ndarray, n1: int) -> float:
    """Solve the likelihood equation of Gride for logarithms of ratios whose mean is 1."""
    if n1 == 1:
        return 1.0
    from scipy.optimize import brentq
    from scipy.special import exprel

    def score(d: float) -> float:
        # exprel(t) is (e^t - 1) / t, 1 at 0.
        return 1 + (n1 - 1) * float(np.mean(1 / exprel(d * x))) - n1 * d

    return float(brentq(score, 1 / n1, 1, xtol=1e-15, rtol=4 * np.finfo(float).eps))


def mada(distances: ArrayLike, k: int = 20, combine: str = "mean") -> float:
    r"""Manifold-adaptive dimension estimation (MADA): from the radii that hold k and k/2 neighbours.

    .. math:: d(x) = \frac{\ln 2}{\ln (r_k / r_{\lfloor k/2 \rfloor})}

    Parameters
    ----------
    distances : array_like or torch.Tensor, shape (m, at least k)
        From :func:`shape_of_learning.nearest_distances`, or vectors.
    k : int
        At least 2.
    combine : {"mean", "median", "harmonic"}
        How the points are combined, see Notes.

    Returns
    -------
    float
        NaN where undefined: fewer than k neighbours, or ties everywhere.

    Notes
    -----
    Ties, :math:`r_k = r_{\lfloor k/2 \rfloor}`, make d(x) infinite. ``mean`` leaves tied points out, since it would be
    infinite, too. ``median`` ranks them above all other points, and is NaN if it is infinite itself. ``harmonic`` is
    1 / mean(1 / d(x)), where they add 0. In the exact model at k = 20 the mean is 7.7 % too large (its distribution has
    a long tail), the harmonic mean 3.6 % too small, the median right.

    References
    ----------
    Farahmand, Szepesvári and Audibert, Manifold-adaptive dimension estimation, ICML 2007. They clip and round before
    they combine; this function does neither, as is usual by now.
    """
    k = read_count(k, "k", 2)
    r = _check_distances(distances, k)
    return _combine_inverses(np.log(r[:, k - 1] / r[:, k // 2 - 1]) / math.log(2), combine)


def mom(distances: ArrayLike, k: int = 100, combine: str = "mean") -> float:
    r"""Method of moments (MOM): from the mean distance to the k neighbours.

    .. math:: d(x) = \frac{m_1}{w - m_1}, \qquad m_1 = \frac{1}{k} \sum_{j \le k} r_j, \quad w = r_k

    Parameters
    ----------
    distances, k, combine
        As in :func:`mada`; a tie is :math:`r_1 = r_k`.

    Returns
    -------
    float
        NaN where undefined: fewer than k neighbours, or ties everywhere.

    Notes
    -----
    In the exact model the mean is 2.0 % too large at k = 100, and 11.2 % at k = 20.

    References
    ----------
    Amsaleg et al., Extreme-value-theoretic estimation of local intrinsic dimensionality, Data
    Mining and Knowledge Discovery 32 (2018).
    """
    k = read_count(k, "k", 2)
    r = _check_distances(distances, k)
    w = r[:, -1:]
    # Unlike w - m_1, gaps are exactly zero for a tie, and do not cancel near one.
    return _combine_inverses(np.mean((w - r) / w, axis=1) / np.mean(r / w, axis=1), combine)


def mle(distances: ArrayLike, k: int = 20, combine: str = "harmonic") -> float:
    r"""Maximum likelihood (MLE), from the logarithms of all ratios to the k-th distance.

    .. math:: d(x) = \left[ \frac{1}{k - 1} \sum_{j < k} \ln \frac{r_k}{r_j} \right]^{-1}

    Parameters
    ----------
    distances, k, combine
        As in :func:`mada`; a tie is :math:`r_1 = r_k`.

    Returns
    -------
    float
        NaN where undefined: fewer than k neighbours, or ties everywhere.

    Notes
    -----
    Levina and Bickel average d(x). In the exact model at k = 20, this mean is 5.6 % too large. MacKay and Ghahramani
    average the inverse of d(x). The result is the maximum likelihood of all points together, and has no bias there.

    References
    ----------
    Levina and Bickel, NIPS 2004, equation 8. MacKay and Ghahramani, Comments on "Maximum likelihood
    estimation of intrinsic dimension", 2005.
    """
    k = read_count(k, "k", 2)
    r = _check_distances(distances, k)
    return _combine_inverses(np.mean(np.log(r[:, -1:] / r[:, :-1]), axis=1), combine)


def _check_distances(distances: ArrayLike, k: int, *, copies: bool = False) -> np.ndarray:
    """Check and return the first `k` columns of distances, with NaN for neighbours that do not exist.

    With `copies`, neighbours may be copies, at distance zero.
    """
    r = read_matrix(distances, "distances", finite=False)
    if not copies and not _are_distances(r):
        r = nearest_distances(distances, k)
    m, columns = r.shape
    if k > columns:
        raise ValueError(f"k={k} neighbours are needed, but distances has {columns} columns")
    r = r[:, :k]
    # Nearly all distances pass this check, which takes a third of the time of the detailed checks.
    is_far = (r[:, 0] >= 0 if copies else r[:, 0] > 0).all()
    if is_far and np.isfinite(r[:, -1]).all() and (r[:, 1:] >= r[:, :-1]).all():
        return r
    # Each of m vectors has m - 1 neighbours, so all later columns may be empty.
    absent = np.isnan(r).all(axis=0) & (np.arange(k) >= m - 1)
    present = r[:, ~absent]
    if np.isnan(present).any():
        raise ValueError("distances holds NaN in a column whose neighbours exist")
    if not (np.isfinite(present) & (present >= 0)).all() or not (copies or present.all()):
        if copies:
            raise ValueError("distances must be finite and not negative")
        raise ValueError(
            "distances must be finite and positive, without the distance of a vector to itself or to a copy. An array "
            "whose rows all ascend counts as distances; for vectors, pass nearest_distances(X, k)"
        )
    if (np.diff(present, axis=1) < 0).any():
        raise ValueError("distances must ascend within every row")
    return r


def _are_distances(r: np.ndarray) -> bool:
    """Tell whether an array holds NaN, or all its rows ascend from 0 or more, as those of vectors hardly ever do."""
    if np.isnan(r).any():
        return True
    return r.shape[1] > 1 and bool((r[:, 0] >= 0).all()) and not (r[:, 1:] < r[:, :-1]).any()


def _slope(x: np.ndarray, y: np.ndarray) -> float:
    """Return the slope of the least-squares line through the origin."""
    return float(np.sum(x * y) / np.sum(x * x))


def _combine_inverses(inverse: np.ndarray, combine: str) -> float:
    """Combine the inverse dimensions of all points, (m,), which are zero for ties, into one dimension."""
    if combine not in ("mean", "median", "harmonic"):
        raise ValueError(f"combine must be 'mean', 'median' or 'harmonic', but is {combine!r}")
    if np.isnan(inverse).any() or not inverse.any():
        return math.nan
    if combine == "harmonic":
        return float(1 / np.mean(inverse))
    if combine == "mean":
        return float(np.mean(1 / inverse[inverse > 0]))
    with np.errstate(divide="ignore"):
        median = float(np.median(1 / inverse))
    return median if math.isfinite(median) else math.nan
