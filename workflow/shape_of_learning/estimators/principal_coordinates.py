"""The rows of a matrix in the plane in which they are widest."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.linalg

from shape_of_learning.estimators.arrays import as_numpy, matrix_blocks

BLOCK_BYTES = 2**26  # of rows as float64, read at a time


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
    >>> principal_coordinates(np.array([[0.0, 3.0], [1.0, 0.0], [0.0, -1.0]]))
    array([[ 3.,  0.],
           [ 0.,  1.],
           [-1.,  0.]])
    """
    if len(X.shape) != 2 or min(X.shape) < 2:
        raise ValueError(f"X must have two rows and columns or more, but its shape is {X.shape}")
    n, d = X.shape
    total, products = np.zeros(d), np.zeros((d, d))
    for block in _blocks(X):
        total += block.sum(axis=0)
        products += block.T @ block
    mean = total / n if center else np.zeros(d)
    products -= n * np.outer(mean, mean)
    _, axes = scipy.linalg.eigh(products, subset_by_index=[d - 2, d - 1], overwrite_a=True)
    plane = axes[:, ::-1]
    coordinates = np.concatenate([block @ plane for block in _blocks(X)]) - mean @ plane
    return np.where((coordinates**3).sum(axis=0) < 0, -1.0, 1.0) * coordinates


def _blocks(X: Any) -> Iterator[np.ndarray]:
    for block in matrix_blocks(X, max(1, BLOCK_BYTES // (8 * X.shape[1]))):
        yield as_numpy(block)
