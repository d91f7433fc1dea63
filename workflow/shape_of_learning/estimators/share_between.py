"""How much of the spread of vectors is between groups of them."""

import math

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.estimators.arrays import as_matrix, centred


def share_between(X: ArrayLike, groups: ArrayLike) -> float:
    r"""Share of the variance that is between groups.

    .. math:: \frac{\sum_g n_g \|\mu_g - \mu\|^2}{\sum_i \|x_i - \mu\|^2}

    Parameters
    ----------
    X : array_like, shape (n, d)
    groups : array_like of int, shape (n,)
        Group of each vector.

    Returns
    -------
    float
        0 to 1; NaN where all vectors are equal. Of m groups that say nothing it is about (m - 1) / (n - 1):
        values of different groupings do not compare; those of one grouping at several steps do.

    Raises
    ------
    ValueError
        If `X` is not two-dimensional, is empty or holds NaN or infinity; if not each row has a group.
    """
    rows = centred(as_matrix(X))
    names, member = np.unique(np.asarray(groups), return_inverse=True)
    if member.shape != (len(rows),):
        raise ValueError(f"groups must be one for each of {len(rows)} rows, not {member.shape}")
    total = float(np.einsum("ij,ij->", rows, rows))
    if total == 0:
        return math.nan
    order = np.argsort(member, kind="stable")
    counts = np.bincount(member, minlength=len(names))
    sums = np.add.reduceat(rows[order], np.cumsum(counts) - counts, axis=0)
    return float((np.einsum("ij,ij->i", sums, sums) / counts).sum()) / total
