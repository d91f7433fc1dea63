"""IsoScore: how evenly the variance of a cloud of vectors is spread over all directions."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.estimators.participation_ratio import leaving_out as ratio_leaving_out


def isoscore(X: ArrayLike) -> float:
    r"""Participation ratio, brought from [1, d] to [0, 1].

    .. math:: \mathrm{IsoScore} = \frac{\mathrm{PR} - 1}{d - 1}

    with :func:`~shape_of_learning.participation_ratio`. 1 where all directions have the same variance, 0
    where one has all.

    Parameters
    ----------
    X : array_like or torch.Tensor, shape (n, d)
        At least two vectors, as rows.

    Returns
    -------
    float
        In [0, 1]; with n vectors at most (n - 2) / (d - 1). NaN if there is no variance, or d is 1.

    Raises
    ------
    ValueError
        If `X` is not two-dimensional, has fewer than two rows, or holds NaN or infinity.

    Notes
    -----
    The published definition goes by way of an isotropy defect,
    :math:`\delta = \|\sqrt d \, \lambda / \|\lambda\| - 1\| / \sqrt{2 (d - \sqrt d)}`, and
    :math:`[(d - \delta^2 (d - \sqrt d))^2 - d] / (d (d - 1))`, in which all but the above cancels.

    References
    ----------
    Rudman et al., IsoScore: measuring the uniformity of embedding space utilization, Findings of ACL 2022,
    section 4.

    Examples
    --------
    >>> isoscore([[1, 0], [-1, 0], [0, 1], [0, -1]])
    1.0
    """
    return leaving_out(X, [])[0]


def leaving_out(X: ArrayLike, parts: Sequence[np.ndarray]) -> tuple[float, np.ndarray]:
    """:func:`isoscore` without each of some parts: all as :func:`.participation_ratio.leaving_out` has it."""
    value, without = ratio_leaving_out(X, parts)
    d = np.shape(X)[1]
    if d == 1:
        return math.nan, np.full(len(parts), math.nan)
    return (value - 1) / (d - 1), (without - 1) / (d - 1)
