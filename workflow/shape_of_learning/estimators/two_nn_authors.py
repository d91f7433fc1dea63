"""TwoNN as the released code of Razzhigaev et al. (2024) computes it."""

import math

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.estimators.arrays import as_matrix, namespace
from shape_of_learning.estimators.neighbour_radii import log_ratio, nearest

# What their code takes for zero: a distance, and how much a ratio exceeds one.
ZERO = 1e-8


def two_nn_authors(distances: ArrayLike) -> float:
    r"""TwoNN, as the code that the paper's authors released computes it.

    As :func:`shape_of_learning.two_nn`, with three differences. Copies are vectors of their own. A vector
    that has a copy, or two neighbours equally far, is left out of the ratios, but its place is kept: with n
    ratios and u vectors left out, :math:`F(\mu_{(i)}) = (i + u) / (n + u)`. And the line is fitted to the
    first :math:`\lfloor n / 5 \rfloor` ratios.

    Parameters
    ----------
    distances : array_like or torch.Tensor, shape (all vectors, at least 2)
        Ascending distances from each vector to its two nearest others, zero to a copy, divided by
        :func:`mean_distance_to_mean`. That unit decides nothing but which distance is below 1e-8.

    Returns
    -------
    float
        NaN where undefined: no second neighbour, or fewer than five ratios.

    Raises
    ------
    ValueError
        If `distances` is not what is described above.

    Notes
    -----
    The code computes F in float32, which on 4,096 hidden states is a relative difference of 2e-9. Because of
    the places that are kept, the line begins at :math:`y \approx -\ln(1 - u / (n + u))` and not at zero: 5 %
    of copies make the estimate about a third larger, 20 % more than double it.

    References
    ----------
    Function ``intrinsic_dimension`` of the package llm-microscope 0.0.7.

    Examples
    --------
    >>> round(two_nn_authors([[0, 1], [0, 1], *([1, 1 + i / 10] for i in range(1, 9))]), 3)
    3.742
    """
    r = nearest(distances, 2, copies=True)
    if np.isnan(r).any():
        return math.nan
    others = r[r[:, 0] >= ZERO]
    x = np.sort(log_ratio(others[:, 1], others[:, 0]))
    x = x[x > math.log1p(ZERO)]
    count, left_out = len(x) // 5, len(r) - len(x)
    if count < 1:
        return math.nan
    x = x[:count]
    y = -np.log1p(-np.arange(left_out + 1, left_out + count + 1) / len(r))
    return float(np.sum(x * y) / np.sum(x * x))


def mean_distance_to_mean(X: ArrayLike) -> float:
    """Mean Euclidean distance of vectors to their mean: the authors' unit of distances.

    Parameters
    ----------
    X : array_like or torch.Tensor, shape (n, d)
        Of any real dtype, in the range of float32; computed in float64, on a GPU where they are there.

    Returns
    -------
    float
        Zero if all are the same.

    Examples
    --------
    >>> mean_distance_to_mean([[0, 0], [6, 8]])
    5.0
    """
    X = as_matrix(X, stay=True)
    X = X - X.mean(axis=0)
    xp = namespace(X)
    return float(xp.sqrt(xp.einsum("ij,ij->i", X, X)).mean())
