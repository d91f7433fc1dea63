"""The plane in which a cloud of vectors is widest."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.linalg

from shape_of_learning.estimators.arrays import NotFiniteError

BLOCK_BYTES = 2**26  # of rows as float64, read at a time


def principal_plane(X: Any, center: bool = False) -> np.ndarray:
    r"""Find the two leading right singular vectors of a matrix.

    With :math:`X = U \Sigma V^T`, or the same of the rows less their mean, these are the first two columns of
    :math:`V`, found as eigenvectors of :math:`X^T X`. :math:`XV` are the coordinates :math:`U \Sigma` of the rows in
    the plane. The sign of each vector, which a decomposition leaves open, makes the sum of cubes of its coordinates
    positive: it points to where rows lie far out, hence along their mean if that is far from the origin.

    Parameters
    ----------
    X : array, shape (n, d)
        Anything with a shape whose slices are arrays, such as a dataset of HDF5; it is read by rows.
    center : bool
        Whether the mean row is taken off.

    Returns
    -------
    ndarray of float64, shape (2, d)
        Unit vectors, that of the larger singular value first.

    Raises
    ------
    ValueError
        If `X` is not two-dimensional, has fewer than two rows or columns, or holds NaN or infinity.

    Examples
    --------
    >>> principal_plane(np.array([[3.0, 0.0], [3.0, 0.5], [-1.0, 0.0]])).round(1)
    array([[1. , 0.1],
           [-0.1, 1. ]])
    """
    if len(X.shape) != 2 or min(X.shape) < 2:
        raise ValueError(f"X must have two rows and columns or more, but its shape is {X.shape}")
    n, d = X.shape
    mean, products = np.zeros(d), np.zeros((d, d))
    for block in _blocks(X):
        mean += block.sum(axis=0) / n
        products += block.T @ block
    if not np.isfinite(products).all():
        raise NotFiniteError("X holds NaN or infinity")
    if center:
        products -= n * np.outer(mean, mean)
    _, vectors = scipy.linalg.eigh(products, subset_by_index=[d - 2, d - 1], overwrite_a=True)
    plane = vectors.T[::-1]
    shift = plane @ mean if center else np.zeros(2)
    cubes = sum(((block @ plane.T - shift) ** 3).sum(axis=0) for block in _blocks(X))
    return np.where(cubes < 0, -1.0, 1.0)[:, np.newaxis] * plane


def _blocks(X: Any) -> Iterator[np.ndarray]:
    rows = max(1, BLOCK_BYTES // (8 * X.shape[1]))
    for start in range(0, X.shape[0], rows):
        yield np.asarray(X[start : start + rows], np.float64)
