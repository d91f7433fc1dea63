"""How many principal directions hold a share of the variance."""

import math

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.estimators.eigenvalues import as_eigenvalues


def directions_for(eigenvalues: ArrayLike, share: float = 0.9) -> float:
    r"""Smallest k whose leading directions hold a share of the variance.

    .. math:: \min \Big\{k : \sum_{i \le k} \lambda_i \ge s \sum_i \lambda_i \Big\}

    Parameters
    ----------
    eigenvalues : array_like, shape (r,)
        Of a covariance, descending, from :func:`~shape_of_learning.estimators.spectrum.spectrum`.
    share : float
        s, above 0 and at most 1.

    Returns
    -------
    float
        A whole number; NaN if there is no variance.

    Raises
    ------
    ValueError
        If `share` is not in that range, or the eigenvalues are none.

    Examples
    --------
    >>> directions_for([4, 3, 2, 1], 0.7)
    2.0
    """
    if not 0 < share <= 1:
        raise ValueError(f"share must be above 0 and at most 1, not {share}")
    values = as_eigenvalues(eigenvalues)
    total = values.sum()
    if total == 0:
        return math.nan
    # Sums that differ by rounding only are the same.
    reached = np.cumsum(values) >= share * total * (1 - len(values) * np.finfo(float).eps)
    return float(1 + np.argmax(reached))
