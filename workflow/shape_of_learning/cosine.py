"""Average cosine similarity between vectors: how much they point one way."""

import math

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.arrays import as_matrix, centred

# Rows normalised at a time: 1024 rows of 4096 numbers are 32 MiB.
ROWS_PER_BLOCK = 1024


def average_cosine(X: ArrayLike, center: bool = False) -> float:
    r"""Mean cosine of the angle between two different rows, over all pairs.

    .. math:: \frac{1}{n (n - 1)} \sum_{i \ne j} u_i \cdot u_j
              = \frac{\|\sum_i u_i\|^2 - \sum_i \|u_i\|^2}{n (n - 1)},
              \qquad u_i = x_i / \|x_i\|

    Parameters
    ----------
    X : array_like or torch.Tensor, shape (n, d)
        Vectors, n >= 2. Any real dtype; computed in float64.
    center : bool
        Whether to subtract the mean vector first.

    Returns
    -------
    float
        In [-1/(n-1), 1]. Rows of norm zero have no direction and are left out; NaN if fewer than
        two are left. After centring, a row as small as the rounding of the mean counts as zero.

    Raises
    ------
    ValueError
        If `X` is not two-dimensional, has fewer than two rows, or holds NaN or infinity.

    Notes
    -----
    Exact over all pairs in O(n d), no pair is sampled. Repeated rows count as often as they appear.

    References
    ----------
    Ethayarajh, How contextual are contextualized word representations?, EMNLP 2019
    (the mean cosine of random pairs as a baseline). Machina and Mercer, Anisotropy is not inherent
    to transformers, NAACL 2024 (the closed form).

    Examples
    --------
    >>> average_cosine([[1, 0], [0, 2], [-3, 0]])
    -0.3333333333333333
    """
    X = as_matrix(X)
    if len(X) < 2:
        raise ValueError(f"X has {len(X)} row, but a pair takes at least 2")
    noise = 0.0
    if center:
        X = centred(X)
        # A row equal to the mean keeps the rounding of the mean, whose direction says nothing.
        noise = 8 * np.finfo(float).eps * float(np.linalg.norm(np.abs(X).max(axis=0)))

    total = np.zeros(X.shape[1])
    squares, directed = 0.0, 0
    for start in range(0, len(X), ROWS_PER_BLOCK):
        block = X[start : start + ROWS_PER_BLOCK]
        largest = np.abs(block).max(axis=1, keepdims=True)
        nonzero = largest[:, 0] > 0
        # Divided by its largest entry first, no row is too large or too small to be squared.
        units = block[nonzero] / largest[nonzero]
        norms = np.sqrt(np.einsum("ij,ij->i", units, units))
        heard = norms * largest[nonzero, 0] > noise
        units = units[heard] / norms[heard, None]
        total += units.sum(axis=0)
        squares += float(np.einsum("ij,ij->i", units, units).sum())
        directed += len(units)
    if directed < 2:
        return math.nan
    return min((float(np.square(total).sum()) - squares) / (directed * (directed - 1)), 1.0)
