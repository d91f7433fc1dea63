"""How much a block adds to its input, and how much it turns it."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.estimators.pair import Pair, blocks


def block_norm_ratio(X: ArrayLike, Y: ArrayLike) -> float:
    r"""Median of :math:`\|y - x\| / \|y\|` over the vectors.

    Parameters
    ----------
    X, Y : array_like or torch.Tensor, shape (n, d)
        Vectors before and after a block, of any real dtype; computed in float64.

    Returns
    -------
    float
        At least 0. Vectors y of norm zero are left out; NaN if no other is left, or if the widths of X
        and Y differ.

    Raises
    ------
    ValueError
        If X or Y is not two-dimensional, if their lengths differ, or if one holds NaN or infinity.

    References
    ----------
    Razzhigaev et al., Your Transformer is Secretly Linear, ACL 2024, figure 3 (the ratio of a block's output
    to the stream after it).

    Examples
    --------
    >>> block_norm_ratio([[1.0, 0.0], [0.0, 2.0]], [[2.0, 0.0], [0.0, 4.0]])
    0.5
    """
    return norm_ratio_without(Pair(X, Y), [])[0]


def block_cosine(X: ArrayLike, Y: ArrayLike) -> float:
    r"""Mean of the cosine of the angle between x and y.

    Parameters
    ----------
    X, Y
        As in :func:`block_norm_ratio`, errors likewise.

    Returns
    -------
    float
        In [-1, 1]. Pairs with a vector of norm zero are left out; NaN if no other is left, or if the widths
        of X and Y differ.

    Examples
    --------
    >>> block_cosine([[1.0, 0.0], [0.0, 2.0]], [[2.0, 0.0], [1.0, 0.0]])
    0.5
    """
    return cosine_without(Pair(X, Y), [])[0]


def norm_ratio_without(pair: Pair, parts: Sequence[np.ndarray]) -> tuple[float, np.ndarray]:
    """:func:`block_norm_ratio` of a pair, and without each part of its rows, shape (parts,)."""
    return _without(_ratios_and_cosines(pair)[0], np.median, parts)


def cosine_without(pair: Pair, parts: Sequence[np.ndarray]) -> tuple[float, np.ndarray]:
    """:func:`block_cosine` of a pair, and without each part of its rows, shape (parts,)."""
    return _without(_ratios_and_cosines(pair)[1], np.mean, parts)


def _without(
    values: np.ndarray, average: Callable[[np.ndarray], Any], parts: Sequence[np.ndarray]
) -> tuple[float, np.ndarray]:
    def of(some: np.ndarray) -> float:
        some = some[~np.isnan(some)]
        return float(average(some)) if len(some) else math.nan

    return of(values), np.array([of(np.delete(values, part)) for part in parts])


def _ratios_and_cosines(pair: Pair) -> tuple[np.ndarray, np.ndarray]:
    """Of each vector, shapes (n,); NaN where undefined."""
    return pair.shared("norms", [], lambda: _measured(pair))


def _measured(pair: Pair) -> tuple[np.ndarray, np.ndarray]:
    ratios, cosines = np.full((2, len(pair)), math.nan)
    if pair.is_increment:
        for some in blocks(np.arange(len(pair))):
            x, added = pair.rows(some)
            y = x + added
            before, after, change = (np.sqrt(np.einsum("ij,ij->i", z, z)) for z in (x, y, added))
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios[some] = np.where(after > 0, change / after, math.nan)
                products = np.einsum("ij,ij->i", x, y) / before / after
            cosines[some] = np.clip(products, -1, 1)
    return ratios, cosines
