r"""Linearity of a block: how well its output is an affine map of its input.

.. math:: \text{linearity}(X, Y) = 1 - \min_A \frac{\|\tilde X A - \tilde Y\|_F^2}{\|\tilde Y\|_F^2}

with the centred matrices, which is the share of the variance of Y that least squares explains. The same for
X -> Y - X is that of the increment, what the block adds to its input.

References
----------
Razzhigaev et al., Your Transformer is Secretly Linear, ACL 2024, section 3 (the score), and its released code
(that of the increment).
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.estimators.fits_without_parts import (
    held_out,
    held_out_without,
    squares_without,
)
from shape_of_learning.estimators.least_squares import Squares
from shape_of_learning.estimators.pair import Pair


class LinearMap(NamedTuple):
    """An affine map: ``x @ weight + bias``.

    Attributes
    ----------
    weight : ndarray of float64, shape (d_in, d_out)
    bias : ndarray of float64, shape (d_out,)
    rank : int
        Of the vectors that it was fitted to.
    """

    weight: np.ndarray
    bias: np.ndarray
    rank: int


def linearity(X: ArrayLike, Y: ArrayLike) -> float:
    r"""Share of the variance of Y that an affine map of X explains.

    Parameters
    ----------
    X, Y : array_like or torch.Tensor, shape (n, d), (n, e)
        Vectors before and after a block, of any real dtype; computed in float64.

    Returns
    -------
    float
        In [0, 1]. Of noise, about r/(n-1) with the rank r of X. NaN if n - 1 <= r, as any Y is then an
        affine map of X, or if Y does not vary.

    Raises
    ------
    ValueError
        If X or Y is not two-dimensional, if their lengths differ, or if one holds NaN or infinity.

    Notes
    -----
    From second moments, in one pass over blocks of rows. Coordinates of X are scaled to unit variance, and
    directions below 1e-6 of the largest singular value do not count: float32 leaves them where vectors
    satisfy an exact constraint, as after a LayerNorm.

    A few vectors with huge norms decide the score: where 1 % of the rows are one vector, 100 times as long as
    the others, like the first token of every window, pure noise scores 0.99.

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> round(linearity(X, [[1.0], [3.0], [5.0], [7.0]]), 12)
    1.0
    """
    return _score(Pair(X, Y))


def linearity_increment(X: ArrayLike, Y: ArrayLike) -> float:
    """:func:`linearity` of X -> Y - X; NaN if the widths of X and Y differ."""
    return _score(Pair(X, Y), increment=True)


def linearity_adjusted(X: ArrayLike, Y: ArrayLike) -> float:
    r""":func:`linearity`, less what any noise scores: :math:`1 - (1 - s) (n - 1) / (n - 1 - r)`."""
    return _score(Pair(X, Y), adjusted=True)


def linearity_increment_adjusted(X: ArrayLike, Y: ArrayLike) -> float:
    """:func:`linearity_increment`, adjusted as :func:`linearity_adjusted`."""
    return _score(Pair(X, Y), increment=True, adjusted=True)


def linearity_held_out(X: ArrayLike, Y: ArrayLike, windows: ArrayLike) -> float:
    r""":func:`linearity` of vectors that the map was not fitted to.

    Parameters
    ----------
    X, Y : array_like or torch.Tensor, shape (n, d), (n, e)
        As in :func:`linearity`, errors likewise.
    windows : array_like of int, shape (n,)
        The window of text of each vector. In the order of their numbers, every second one is of the
        second fold.

    Returns
    -------
    float
        One less the sum of squared residuals, of each fold by the map that was fitted to the other, over
        the sum of squares about each fold's mean. Of noise, about -d/(n/2-d-1): it is not clipped. NaN if
        a fold has no more vectors than its rank and one.

    Raises
    ------
    ValueError
        Also if `windows` does not hold one whole number for each row.
    """
    return _held_out_score(Pair(X, Y, _given(windows)))


def linearity_increment_held_out(X: ArrayLike, Y: ArrayLike, windows: ArrayLike) -> float:
    """:func:`linearity_held_out` of X -> Y - X; NaN if the widths of X and Y differ."""
    return _held_out_score(Pair(X, Y, _given(windows)), increment=True)


def linear_map(X: ArrayLike, Y: ArrayLike) -> LinearMap:
    """Fit the affine map of least squares, Y ~ X @ weight + bias.

    Parameters
    ----------
    X, Y : array_like or torch.Tensor, shape (n, d), (n, e)
        As in :func:`linearity`, errors likewise.

    Returns
    -------
    LinearMap
        In directions in which X does not vary, it keeps x as it is if d = e, else it ignores x.
    """
    return map_of(Pair(X, Y))


def map_of(pair: Pair) -> LinearMap:
    """:func:`linear_map` of a pair whose moments may be known already."""
    fit = pair.fit
    weight = fit.coefficients()
    bias = (fit.mean_t - fit.mean_x @ weight) / pair.factor
    if pair.is_increment:
        weight[np.diag_indices(len(weight))] += 1
    return LinearMap(weight, bias, fit.axes.rank)


def _given(windows: Any) -> Any:
    if windows is None:
        raise ValueError("windows must hold one whole number for each row, not None")
    return windows


def _share(pair: Pair, squares: Squares, increment: bool, adjusted: bool = False) -> float:
    if increment and not pair.is_increment:
        return math.nan
    freedom = squares.n - 1 - squares.rank
    if freedom <= 0:
        return math.nan
    unexplained = max(squares.residual, 0.0) / (squares.tt if increment else squares.yy)
    return 1 - unexplained * ((squares.n - 1) / freedom if adjusted else 1)


def _score(pair: Pair, increment: bool = False, adjusted: bool = False) -> float:
    return _share(pair, pair.fit.squares, increment, adjusted)


def _can_hold_out(pair: Pair) -> bool:
    """Whether there are two folds, of two vectors each or more."""
    return len(pair.folds) == 2 and min(map(len, pair.folds)) >= 2


def _held_out_score(pair: Pair, increment: bool = False) -> float:
    if not _can_hold_out(pair):
        return math.nan
    squares = pair.shared("held out, all rows", [], lambda: held_out(pair.fold_fits))
    return _share(pair, squares, increment)


Without = Callable[[Pair, Sequence[np.ndarray]], tuple[float, np.ndarray]]


def _leaving_out(
    pair: Pair, parts: Sequence[np.ndarray], *, increment: bool, adjusted: bool = False
) -> tuple[float, np.ndarray]:
    left = pair.shared("in sample", parts, lambda: squares_without(pair, parts)) if parts else []
    value = _score(pair, increment, adjusted)
    return value, np.array([_share(pair, each, increment, adjusted) for each in left])


def _leaving_out_held_out(
    pair: Pair, parts: Sequence[np.ndarray], *, increment: bool
) -> tuple[float, np.ndarray]:
    if not _can_hold_out(pair):
        return math.nan, np.full(len(parts), math.nan)
    left = pair.shared("held out", parts, lambda: held_out_without(pair, parts)) if parts else []
    value = _held_out_score(pair, increment)
    return value, np.array([_share(pair, each, increment) for each in left])


# Each of a pair and parts of its rows: the value, and those without each part, shape (parts,).
linearity_without: Without = partial(_leaving_out, increment=False)
linearity_increment_without: Without = partial(_leaving_out, increment=True)
linearity_adjusted_without: Without = partial(_leaving_out, increment=False, adjusted=True)
linearity_increment_adjusted_without: Without = partial(_leaving_out, increment=True, adjusted=True)
linearity_held_out_without: Without = partial(_leaving_out_held_out, increment=False)
linearity_increment_held_out_without: Without = partial(_leaving_out_held_out, increment=True)
