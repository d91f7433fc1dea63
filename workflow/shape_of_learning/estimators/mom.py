"""Method of moments (MOM): intrinsic dimension from mean distances to neighbours."""

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.estimators.arrays import as_count
from shape_of_learning.estimators.neighbour_radii import combined, nearest


def mom(distances: ArrayLike, k: int = 100, combine: str = "mean") -> float:
    r"""Method of moments: from the mean distance to the k neighbours.

    .. math:: d(x) = \frac{m_1}{w - m_1}, \qquad m_1 = \frac{1}{k} \sum_{j \le k} r_j, \quad w = r_k

    Parameters
    ----------
    distances : array_like or torch.Tensor, shape (m, at least k)
        From :func:`shape_of_learning.nearest_distances`.
    k : int
        At least 2.
    combine : {"mean", "median", "harmonic"}
        As in :func:`shape_of_learning.mada`; a tie is :math:`r_1 = r_k`.

    Returns
    -------
    float
        NaN where undefined: fewer than k neighbours, or ties everywhere.

    Raises
    ------
    ValueError
        If `k` or `combine` is not allowed, or `distances` is not what is described above.

    Notes
    -----
    In the exact model the mean is 2.0 % too large at k = 100, and 11.2 % at k = 20.

    References
    ----------
    Amsaleg et al., Extreme-value-theoretic estimation of local intrinsic dimensionality, Data
    Mining and Knowledge Discovery 32 (2018).
    """
    k = as_count(k, "k", 2)
    r = nearest(distances, k)
    w = r[:, -1:]
    # Gaps, not w - m_1: exactly zero for a tie, and no cancellation near one.
    return combined(np.mean((w - r) / w, axis=1) / np.mean(r / w, axis=1), combine)
