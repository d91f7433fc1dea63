"""Eigenvalues of a covariance as they come, and what a table keeps of them."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

# Of a layer's eigenvalues, a table has so many.
LARGEST = 64
# An elongated direction has so many times the variance of the median one.
ELONGATED = 10


class SpectrumSummary(NamedTuple):
    """What a table keeps of the spectrum of a layer.

    Attributes
    ----------
    largest : ndarray of float64, shape (64,)
        Eigenvalues, descending; NaN beyond the last.
    median : float
        Of all eigenvalues that there are: of n vectors with d coordinates, min(n, d).
    trace : float
        Their sum, the total variance.
    """

    largest: np.ndarray
    median: float
    trace: float


def spectrum_summary(eigenvalues: ArrayLike) -> SpectrumSummary:
    """Summarise a spectrum.

    Parameters
    ----------
    eigenvalues : array_like, shape (r,)
        From :func:`~shape_of_learning.estimators.spectrum.spectrum`.

    Raises
    ------
    ValueError
        If they are not what is described above.
    """
    found = as_eigenvalues(eigenvalues)
    largest = np.full(LARGEST, math.nan)
    largest[: len(found)] = found[:LARGEST]
    return SpectrumSummary(largest, float(np.median(found)), float(found.sum()))


def elongated_directions(eigenvalues: ArrayLike, reference_median: float) -> int:
    r"""Number of eigenvalues above ten times a median one.

    .. math:: \#\{i : \lambda_i > 10 \, \lambda_{\text{median}}\}

    Parameters
    ----------
    eigenvalues : array_like, shape (r,)
        Descending. Of a summary, the largest 64: then 64 means that many or more.
    reference_median : float
        Of a spectrum of the same layer on the same tokens at the start of a fine-tuning, so that a direction
        that grows does not raise what it is compared with. Above zero.

    Raises
    ------
    ValueError
        If `reference_median` is not above zero, or the eigenvalues are none.
    """
    if not reference_median > 0:
        raise ValueError(f"reference_median must be above zero, but is {reference_median}")
    values = np.asarray(eigenvalues, dtype=np.float64)
    return int((as_eigenvalues(values[~np.isnan(values)]) > ELONGATED * reference_median).sum())


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
