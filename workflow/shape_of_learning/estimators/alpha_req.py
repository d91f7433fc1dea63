"""Alpha-ReQ: how fast the eigenvalues of the covariance decay."""

import math

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.estimators.arrays import as_count
from shape_of_learning.estimators.eigenvalues import as_eigenvalues


def alpha_req(eigenvalues: ArrayLike, first: int = 11, last: int = 40) -> float:
    r"""Exponent of a power law through a range of the eigenvalues.

    :math:`\lambda_i \propto i^{-\alpha}` for i from `first` to `last`: the least squares line of
    :math:`\ln \lambda_i` on :math:`\ln i`, each with the weight 1/i, so that all octaves count alike.

    Parameters
    ----------
    eigenvalues : array_like, shape (r,)
        Of a covariance, descending, from :func:`~shape_of_learning.estimators.spectrum.spectrum`.
    first, last : int
        Ranks, counted from 1, both included. Values of different ranges are never to be compared.

    Returns
    -------
    float
        Minus the slope: 0 of a flat spectrum. NaN if there are fewer than `last` eigenvalues above zero.

    Raises
    ------
    ValueError
        If `first` is below 1 or `last` not above it, or the eigenvalues are none.

    References
    ----------
    Agrawal et al., alpha-ReQ: assessing representation quality in self-supervised learning by measuring
    eigenspectrum decay, NeurIPS 2022. Stringer et al., High-dimensional geometry of population responses in
    visual cortex, Nature 571 (2019), methods (ranks 11 to 500; the weights).

    Examples
    --------
    >>> round(alpha_req(1 / np.arange(1, 100) ** 1.5), 9)
    1.5
    """
    first = as_count(first, "first", 1)
    last = as_count(last, "last", first + 1)
    values = as_eigenvalues(eigenvalues)
    if len(values) < last or values[last - 1] == 0:
        return math.nan
    ranks = np.arange(first, last + 1, dtype=np.float64)
    x, y, weights = np.log(ranks), np.log(values[first - 1 : last]), 1 / ranks
    x = x - np.average(x, weights=weights)
    return -float((weights * x * y).sum() / (weights * x**2).sum())
