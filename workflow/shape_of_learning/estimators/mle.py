"""Maximum likelihood (MLE): intrinsic dimension from the logarithms of distances to neighbours."""

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.estimators.arrays import as_count
from shape_of_learning.estimators.neighbour_radii import combined, log_ratio, nearest


def mle(distances: ArrayLike, k: int = 20, combine: str = "harmonic") -> float:
    r"""Maximum likelihood, from the logarithms of all ratios to the k-th distance.

    .. math:: d(x) = \left[ \frac{1}{k - 1} \sum_{j < k} \ln \frac{r_k}{r_j} \right]^{-1}

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
    Levina and Bickel average d(x), 5.6 % too large in the exact model at k = 20. MacKay and
    Ghahramani average its inverse: the maximum likelihood of all points together, unbiased there.

    References
    ----------
    Levina and Bickel, NIPS 2004, equation 8. MacKay and Ghahramani, Comments on "Maximum likelihood
    estimation of intrinsic dimension", 2005.
    """
    k = as_count(k, "k", 2)
    r = nearest(distances, k)
    return combined(np.mean(log_ratio(r[:, -1:], r[:, :-1]), axis=1), combine)
