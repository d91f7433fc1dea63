"""Measures of a model's own matrices: lengths of its final normalisation, and a plane of its embeddings."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.estimators.arrays import as_matrix, matrix_blocks

BLOCK_BYTES = 2**26  # of rows as float64, read at a time


def gain_length(gain: ArrayLike, bias: ArrayLike | None = None) -> float:
    r"""Euclidean length of the gain g of a normalisation :math:`y = g \odot \hat x + b`.

    Parameters
    ----------
    gain : array_like or torch.Tensor, shape (d,)
        What the normalised vector is multiplied with.
    bias : array_like or torch.Tensor, shape (d,), optional
        What is added; a normalisation by the root mean square has none.

    Raises
    ------
    ValueError
        If one holds NaN or infinity.

    References
    ----------
    Machina and Mercer, Anisotropy is not inherent to transformers, NAACL 2024.

    Examples
    --------
    >>> gain_length([3, 4])
    5.0
    """
    return _length(gain)


def bias_length(gain: ArrayLike, bias: ArrayLike | None = None) -> float:
    """Euclidean length of the bias; NaN without one. Otherwise as :func:`gain_length`."""
    return math.nan if bias is None else _length(bias)


def bias_gain_ratio(gain: ArrayLike, bias: ArrayLike | None = None) -> float:
    r"""Length of the bias over that of the gain, :math:`\|b\| / \|g\|`.

    NaN without a bias, or with a gain of zeros. Otherwise as :func:`gain_length`.

    Examples
    --------
    >>> bias_gain_ratio([3, 4], [0, 1])
    0.2
    """
    length = _length(gain)
    return bias_length(gain, bias) / length if length else math.nan


def _length(vector: ArrayLike) -> float:
    return float(np.linalg.norm(as_matrix(np.asarray(vector)[None])))


def principal_coordinates(X: Any, center: bool = False) -> np.ndarray:
    r"""Find the coordinates of the rows along the two leading right singular vectors.

    With :math:`X = U \Sigma V^T`, or the same of the rows less their mean, these are the first two columns of
    :math:`U \Sigma = X V`; those of :math:`V` are found as eigenvectors of :math:`X^T X`. The sign of each,
    which a decomposition leaves open, makes the sum of cubes of its coordinates positive: it points to where
    rows lie far out, hence along their mean if that is far from the origin.

    Parameters
    ----------
    X : array, shape (n, d)
        Of real numbers. Anything with a shape whose slices are arrays, such as a dataset of HDF5, is read by
        rows.
    center : bool
        Whether the mean row is taken off.

    Returns
    -------
    ndarray of float64, shape (n, 2)
        In the unit of `X`, that of the larger singular value first.

    Raises
    ------
    ValueError
        If `X` is not two-dimensional or has fewer than two rows or columns; if it holds NaN or infinity,
        :class:`.NotFiniteError`.

    Examples
    --------
    >>> principal_coordinates(np.array([[0.0, 3.0], [1.0, 0.0], [0.0, -1.0]])).round(9) + 0.0
    array([[ 3.,  0.],
           [ 0.,  1.],
           [-1.,  0.]])
    """
    if len(X.shape) != 2 or min(X.shape) < 2:
        raise ValueError(f"X must have two rows and columns or more, but its shape is {X.shape}")
    from scipy.linalg import eigh

    n, d = X.shape
    rows = max(1, BLOCK_BYTES // (8 * d))
    total, products = np.zeros(d), np.zeros((d, d))
    for block in matrix_blocks(X, rows):
        total += block.sum(axis=0)
        products += block.T @ block
    mean = total / n if center else np.zeros(d)
    products -= n * np.outer(mean, mean)
    _, axes = eigh(products, subset_by_index=[d - 2, d - 1], overwrite_a=True)
    plane = axes[:, ::-1]
    coordinates = np.concatenate([block @ plane for block in matrix_blocks(X, rows)]) - mean @ plane
    return np.where((coordinates**3).sum(axis=0) < 0, -1.0, 1.0) * coordinates
