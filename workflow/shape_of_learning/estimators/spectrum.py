"""The spectrum of a cloud of vectors: how its variance is spread over directions."""

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.estimators.arrays import as_matrix, as_numpy, centred, namespace


def spectrum(X: ArrayLike) -> np.ndarray:
    r"""Eigenvalues of the covariance.

    .. math:: \lambda_i = \sigma_i^2 / (n - 1)

    with the singular values :math:`\sigma_1 \ge \sigma_2 \ge \dots` of the centred matrix.

    Parameters
    ----------
    X : array_like or torch.Tensor, shape (n, d)
        At least two vectors of any real dtype; computed in float64, on a GPU where they are there.

    Returns
    -------
    ndarray of float64, shape (min(n, d),)
        Descending, none below zero; all others are zero. To rounding: about 1e-16 of the largest.

    Raises
    ------
    ValueError
        If `X` is not two-dimensional, has fewer than two rows, or holds NaN or infinity.

    Notes
    -----
    They are those of the smaller Gram matrix, which takes n d min(n, d) operations, and as many cubed
    as its side.

    Examples
    --------
    >>> spectrum([[2, 0], [-2, 0], [0, 1], [0, -1]])
    array([2.66666667, 0.66666667])
    """
    X = as_matrix(X, stay=True)
    n, d = X.shape
    if n < 2:
        raise ValueError(f"X has {n} row, but variance takes at least 2")
    X = centred(X)
    gram = X.T @ X if d <= n else X @ X.T
    ascending = as_numpy(namespace(X).linalg.eigvalsh(gram))
    return np.maximum(ascending[::-1], 0) / (n - 1)
