"""Effective rank: the exponential of the entropy of a spectrum."""

import math

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.estimators.eigenvalues import as_eigenvalues
from shape_of_learning.estimators.spectrum import spectrum


def effective_rank(X: ArrayLike, exponent: float = 2) -> float:
    r"""Number of directions that equally large singular values would need for the same entropy.

    .. math:: \exp \Big( -\sum_i p_i \ln p_i \Big), \qquad p_i = \frac{\sigma_i^q}{\sum_j \sigma_j^q}

    with the singular values :math:`\sigma_i` of the centred matrix and the exponent q.

    Parameters
    ----------
    X : array_like or torch.Tensor, shape (n, d)
        At least two vectors of any real dtype; computed in float64, those on a GPU there if they are float32,
        bfloat16 or float16.
    exponent : float
        2 for shares of variance, 1 for those of singular values, as in RankMe. Values of different exponents
        are never to be compared.

    Returns
    -------
    float
        In [1, min(n - 1, d)]. NaN if there is no variance.

    Raises
    ------
    ValueError
        If `X` is not two-dimensional, has fewer than two rows, or holds NaN or infinity; if the exponent is
        not above zero.

    References
    ----------
    Roy and Vetterli, The effective rank, EUSIPCO 2007, definition 1 (q = 1). Garrido et al., RankMe, ICML
    2023, equation 1 (q = 1; not centred, and 1e-7 added to each share).

    Examples
    --------
    >>> round(effective_rank([[1, 0], [-1, 0], [0, 1], [0, -1]]), 9)
    2.0
    """
    return of_eigenvalues(spectrum(X), exponent)


def of_eigenvalues(eigenvalues: ArrayLike, exponent: float = 2) -> float:
    """:func:`effective_rank` of the eigenvalues of a covariance, shape (r,), descending.

    Raises
    ------
    ValueError
        If they are not such, or the exponent is not above zero.
    """
    if not exponent > 0:
        raise ValueError(f"exponent must be above zero, not {exponent}")
    values = as_eigenvalues(eigenvalues)
    values = values[values > 0]
    if not len(values):
        return math.nan
    powers = (values / values[0]) ** (exponent / 2)
    shares = powers / powers.sum()
    shares = shares[shares > 0]
    return math.exp(-float((shares * np.log(shares)).sum()))
