"""The sizes of hidden states: their mean norm, their largest coordinate, and the kurtosis of their coordinates.

These measures show the outliers that massive tokens cause and low precision cuts off. Each measure takes all vectors of
a layer at once.
"""

import math

from numpy.typing import ArrayLike

from shape_of_learning.estimators.arrays import CACHE_BYTES, namespace, read_matrix, split_rows


def mean_norm(X: ArrayLike, windows: ArrayLike | None = None) -> float:
    r"""Mean Euclidean length of the rows.

    .. math:: \frac{1}{n} \sum_i \|x_i\|

    Parameters
    ----------
    X : array_like or torch.Tensor, shape (n, d)
        Vectors of any real dtype; computed in float64.
    windows : array_like of int, shape (n,), optional
        Not used; all measures without batches get the window of each vector.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If `X` is not two-dimensional, is empty, or holds NaN or infinity.

    Examples
    --------
    >>> mean_norm([[3, 4], [0, 1]])
    3.0
    """
    X = read_matrix(X, stay=True)
    return float(namespace(X).linalg.norm(X, None, 1).mean())


def largest_coordinate(X: ArrayLike, windows: ArrayLike | None = None) -> float:
    r"""Largest absolute coordinate of any row, :math:`\max_{ij} |x_{ij}|`.

    Parameters, returns and errors as in :func:`mean_norm`.

    References
    ----------
    Sun et al., Massive activations in large language models, 2024 (arXiv 2402.17762): a coordinate is massive if its
    magnitude is above 100, and about 1,000 times the median magnitude of its layer.

    Examples
    --------
    >>> largest_coordinate([[3, -4], [0, 1]])
    4.0
    """
    X = read_matrix(X, stay=True)
    return max(float(X.max()), -float(X.min()))


def kurtosis(X: ArrayLike, windows: ArrayLike | None = None) -> float:
    r"""Kurtosis of all coordinates of all rows, pooled: 3 for a Gaussian, large if a few coordinates are large.

    .. math:: \frac{\frac{1}{nd} \sum_{ij} (x_{ij} - m)^4}{\left(\frac{1}{nd} \sum_{ij} (x_{ij} - m)^2\right)^2},
              \qquad m = \frac{1}{nd} \sum_{ij} x_{ij}

    Parameters and errors as in :func:`mean_norm`.

    Returns
    -------
    float
        At least 1, and up to about nd; not the excess over 3. NaN if all coordinates are equal.

    Notes
    -----
    Sums are in float64 about the mean, which a first pass finds. Mean and variance are those of all coordinates
    together, so a coordinate with another mean or variance increases the kurtosis, as an outlier coordinate does.

    Examples
    --------
    >>> kurtosis([[1, -1], [1, -1]])
    1.0
    >>> kurtosis([[0, 0, 0, 0], [0, 0, 0, 8]])
    6.142857142857143
    """
    X = read_matrix(X, stay=True)
    count, mean = math.prod(X.shape), float(X.mean())
    second = fourth = 0.0
    for rows in split_rows(X, CACHE_BYTES // (8 * X.shape[1])):
        squares = (X[rows] - mean) ** 2
        second += float(squares.sum())
        fourth += float((squares * squares).sum())
    # Rounding of the mean would make equal coordinates differ from it.
    if float(X.min()) == float(X.max()):
        return math.nan
    return fourth * count / second**2 if second else math.nan
