"""Eigenvalues of a covariance as they come."""

import numpy as np
from numpy.typing import ArrayLike


def as_eigenvalues(eigenvalues: ArrayLike) -> np.ndarray:
    """Read the eigenvalues of a covariance.

    Parameters
    ----------
    eigenvalues : array_like, shape (r,)
        Descending, none below zero.

    Returns
    -------
    ndarray of float64, shape (r,)
        Zero where the rounding of their computation is all that there is: up to r units in the last place of
        the largest.

    Raises
    ------
    ValueError
        If they are not one-dimensional, none, below zero, not descending, or hold NaN or infinity.
    """
    found = np.asarray(eigenvalues, dtype=np.float64)
    if found.ndim != 1 or not len(found):
        raise ValueError(f"eigenvalues must have one dimension, but their shape is {found.shape}")
    if not (np.isfinite(found).all() and (np.diff(found) <= 0).all() and found[-1] >= 0):
        raise ValueError("eigenvalues must be finite numbers from zero on, in descending order")
    return np.where(found > len(found) * np.finfo(float).eps * found[0], found, 0.0)
