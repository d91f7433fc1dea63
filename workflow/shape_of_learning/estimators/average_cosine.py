"""Average cosine similarity between vectors: how much they point one way."""

import math

from numpy.typing import ArrayLike

from shape_of_learning.estimators.arrays import as_matrix, is_on_gpu
from shape_of_learning.estimators.moments import Moments


def average_cosine(X: ArrayLike | Moments, center: bool = False) -> float:
    r"""Mean cosine of the angle between two different rows, over all pairs.

    .. math:: \frac{1}{n (n - 1)} \sum_{i \ne j} u_i \cdot u_j
              = \frac{\|\sum_i u_i\|^2 - n}{n (n - 1)},
              \qquad u_i = x_i / \|x_i\|

    Parameters
    ----------
    X : array_like or torch.Tensor, shape (n, d), or Moments
        Vectors, n >= 2, of any real dtype; computed in float64. Or what a pass over them left, with
        the part ``"directions"``, or ``"centred_directions"`` if they are centred.
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
        If `X` is not two-dimensional, has fewer than two rows, or holds NaN or infinity; if moments
        lack the part.

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
    if is_on_gpu(X):
        from shape_of_learning.estimators.on_gpu import average_cosine as on_gpu

        return on_gpu.average_cosine(X, center)
    if isinstance(X, Moments):
        moments = X
    else:
        X = as_matrix(X)
        moments = Moments(X.shape[1], () if center else ("directions",))
        moments.add(X)
        if center:
            moments.add_directions(X)
    if moments.n < 2:
        raise ValueError(f"X has {moments.n} row, but a pair takes at least 2")
    if center and moments.is_constant:
        return math.nan
    directions = moments.centred_directions if center else moments.directions
    if directions is None:
        raise ValueError("X are moments without the directions that this cosine takes")
    return directions.average_cosine()
