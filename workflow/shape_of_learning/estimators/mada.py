"""Manifold-adaptive dimension estimation (MADA): intrinsic dimension from two radii around each point."""

import math

from numpy.typing import ArrayLike

from shape_of_learning.estimators.arrays import as_count
from shape_of_learning.estimators.neighbour_radii import combined, log_ratio, nearest


def mada(distances: ArrayLike, k: int = 20, combine: str = "mean") -> float:
    r"""Manifold-adaptive dimension estimation: from the radii that hold k and k/2 neighbours.

    .. math:: d(x) = \frac{\ln 2}{\ln (r_k / r_{\lfloor k/2 \rfloor})}

    Parameters
    ----------
    distances : array_like or torch.Tensor, shape (m, at least k)
        From :func:`shape_of_learning.nearest_distances`.
    k : int
        At least 2.
    combine : {"mean", "median", "harmonic"}
        How the points are combined, see Notes.

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
    Ties, :math:`r_k = r_{\lfloor k/2 \rfloor}`, make d(x) infinite. ``mean`` leaves them out, as it
    would be infinite too. ``median`` needs only an order, so they count, above all others, and it
    is NaN where it is itself infinite. ``harmonic`` is 1 / mean(1 / d(x)), to which they add 0.
    In the exact model at k = 20 the mean is 7.7 % too large (its distribution has a long tail), the
    harmonic mean 3.6 % too small, the median right.

    References
    ----------
    Farahmand, Szepesvári and Audibert, Manifold-adaptive dimension estimation, ICML 2007, who
    clip and round before they combine; as is usual by now, neither is done here.
    """
    k = as_count(k, "k", 2)
    r = nearest(distances, k)
    return combined(log_ratio(r[:, k - 1], r[:, k // 2 - 1]) / math.log(2), combine)
