r"""Measures of a block, of the hidden states before it (X) and after it (Y), both (n, d).

.. math:: \text{linearity}(X, Y) = 1 - \min_A \frac{\|\tilde X A - \tilde Y\|_F^2}{\|\tilde Y\|_F^2}

with the centred matrices. It is the share of the variance of Y that least squares explains. The increment Y - X is what
the block adds to its input, and its linearity is that of X -> Y - X. Further measures are the length of the
increment, and the error of the linear fit for each token.

Functions of X and Y raise ValueError if a matrix is not two-dimensional or holds NaN or infinity, or if their lengths
differ. Functions whose name ends in ``_jackknife`` take a :class:`Pair`, which shares fits between the measures of a
block. They return the value, and the values without each of the pair's parts, shape (parts,).

References
----------
Razzhigaev et al., Your Transformer is Secretly Linear, ACL 2024, section 3 (the score), and its released code (the
score of the increment).
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.estimators.arrays import read_windows
from shape_of_learning.estimators.linear_fits import Squares
from shape_of_learning.estimators.pair import Pair, split_numbers

QUANTILES = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
WORST = 0.01


class LinearMap(NamedTuple):
    """An affine map: ``x @ weight + bias``.

    Attributes
    ----------
    weight : ndarray of float64, shape (d_in, d_out)
    bias : ndarray of float64, shape (d_out,)
    rank : int
        The rank of the vectors to which it was fitted.
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
        In [0, 1]. Noise has about r/(n-1), with the rank r of X. NaN if Y does not vary, or if n - 1 <= r, since any Y
        is then an affine map of X.

    Notes
    -----
    The fit uses second moments, from one pass over blocks of rows. Coordinates of X are scaled to unit variance, and
    directions below 1e-6 of the largest singular value do not count, since float32 leaves such directions where vectors
    satisfy an exact constraint, as after a LayerNorm.

    A few vectors with huge norms decide the score: if 1 % of the rows are one vector that is 100 times as long as the
    others, like the first token of every window, pure noise scores 0.99.

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> round(linearity(X, [[1.0], [3.0], [5.0], [7.0]]), 12)
    1.0
    """
    return linearity_jackknife(Pair(X, Y))[0]


def linearity_increment(X: ArrayLike, Y: ArrayLike) -> float:
    """:func:`linearity` of X -> Y - X; NaN if the widths of X and Y differ."""
    return linearity_increment_jackknife(Pair(X, Y))[0]


def linearity_adjusted(X: ArrayLike, Y: ArrayLike, windows: ArrayLike | None = None) -> float:
    r""":func:`linearity`, less its gain from fitting as many coefficients as X has coordinates.

    Parameters
    ----------
    X, Y : array_like or torch.Tensor, shape (n, d), (n, e)
        As in :func:`linearity`.
    windows : array_like of int, shape (n,), optional
        The window of text of each vector. Without windows, vectors count as independent.

    Returns
    -------
    float
        At most 1, up to noise. NaN if the number of vectors, or with windows the number in a half of them, is not above
        the rank of X plus one.

    Raises
    ------
    ValueError
        Also if `windows` does not hold one whole number for each row.

    Notes
    -----
    For independent vectors, :math:`a = 1 - (1 - s) (n - 1) / (n - 1 - r)` has no bias, with the score s and the rank r
    of X. Tokens of a window are alike, so that n counts for less, and a keeps a bias of about 1/n. With windows, the
    value is :math:`2 a_n - a_{n/2}`, without this bias (Quenouille, Biometrika 43, 1956). Here :math:`a_{n/2}`
    is the mean of two values of a: of every second window, and of the other windows.
    """
    pair = Pair(X, Y, None if windows is None else read_windows(windows, np.shape(X)[0]))
    return linearity_adjusted_jackknife(pair)[0]


def linearity_increment_adjusted(
    X: ArrayLike, Y: ArrayLike, windows: ArrayLike | None = None
) -> float:
    """:func:`linearity_increment`, adjusted as :func:`linearity_adjusted`."""
    pair = Pair(X, Y, None if windows is None else read_windows(windows, np.shape(X)[0]))
    return linearity_increment_adjusted_jackknife(pair)[0]


def linearity_held_out(X: ArrayLike, Y: ArrayLike, windows: ArrayLike) -> float:
    r""":func:`linearity` of vectors to which the map was not fitted.

    Parameters
    ----------
    X, Y : array_like or torch.Tensor, shape (n, d), (n, e)
        As in :func:`linearity`.
    windows : array_like of int, shape (n,)
        The window of text of each vector. In the order of their numbers, every second window is in the second fold.

    Returns
    -------
    float
        One less the sum of squared residuals, of each fold by the map that was fitted to the other fold, over the sum
        of squares about each fold's mean. It is not clipped: for noise it is about -d/(n/2-d-1). NaN if a fold has no
        more vectors than its rank plus one.

    Raises
    ------
    ValueError
        Also if `windows` does not hold one whole number for each row.
    """
    return linearity_held_out_jackknife(Pair(X, Y, read_windows(windows, np.shape(X)[0])))[0]


def linearity_increment_held_out(X: ArrayLike, Y: ArrayLike, windows: ArrayLike) -> float:
    """:func:`linearity_held_out` of X -> Y - X; NaN if the widths of X and Y differ."""
    return linearity_increment_held_out_jackknife(
        Pair(X, Y, read_windows(windows, np.shape(X)[0]))
    )[0]


def _scores(pair: Pair, *, increment: bool, held_out: bool = False) -> tuple[float, np.ndarray]:
    squares = pair.held_out if held_out else pair.sample_squares
    value, *jackknife_values = (_share(pair, square, increment) for square in squares)
    return value, np.array(jackknife_values)


def _adjusted_scores(pair: Pair, *, increment: bool) -> tuple[float, np.ndarray]:
    share = partial(_share, pair, increment=increment, is_adjusted=True)
    values = [share(square) for square in pair.sample_squares]
    if pair.has_windows:
        halves = [(share(first) + share(second)) / 2 for first, second in pair.halves]
        values = [2 * whole - half for whole, half in zip(values, halves, strict=True)]
    return values[0], np.array(values[1:])


def _share(pair: Pair, squares: Squares, increment: bool, is_adjusted: bool = False) -> float:
    freedom = squares.n - 1 - squares.rank
    if freedom <= 0 or (increment and not pair.is_increment):
        return math.nan
    unexplained_share = max(squares.residual, 0.0) / (squares.tt if increment else squares.yy)
    return 1 - unexplained_share * ((squares.n - 1) / freedom if is_adjusted else 1)


linearity_jackknife = partial(_scores, increment=False)
linearity_increment_jackknife = partial(_scores, increment=True)
linearity_adjusted_jackknife = partial(_adjusted_scores, increment=False)
linearity_increment_adjusted_jackknife = partial(_adjusted_scores, increment=True)
linearity_held_out_jackknife = partial(_scores, increment=False, held_out=True)
linearity_increment_held_out_jackknife = partial(_scores, increment=True, held_out=True)


def linear_map(X: ArrayLike, Y: ArrayLike) -> LinearMap:
    """Fit the affine map of least squares, Y ~ X @ weight + bias.

    Parameters
    ----------
    X, Y : array_like or torch.Tensor, shape (n, d), (n, e)
        As in :func:`linearity`.

    Returns
    -------
    LinearMap
        In directions in which X does not vary, the map keeps x if d = e, and ignores x otherwise.
    """
    return fit_pair(Pair(X, Y))


def fit_pair(pair: Pair) -> LinearMap:
    """Fit the :func:`linear_map` of a pair."""
    fit = pair.fit
    weight = fit.compute_coefficients()
    bias = fit.mean_t - fit.mean_x @ weight
    if pair.is_increment:
        weight[np.diag_indices(len(weight))] += 1
    return LinearMap(weight, bias, fit.rank)


def block_norm_ratio(X: ArrayLike, Y: ArrayLike) -> float:
    r"""Median of :math:`\|y - x\| / \|y\|` over the vectors.

    Parameters
    ----------
    X, Y : array_like or torch.Tensor, shape (n, d)
        Vectors before and after a block, of any real dtype; computed in float64.

    Returns
    -------
    float
        At least 0. Vectors y of norm zero are left out; NaN if no vector remains, or if the widths of X and Y differ.

    References
    ----------
    Razzhigaev et al., Your Transformer is Secretly Linear, ACL 2024, figure 3 (the ratio of a block's output
    to the stream after it).

    Examples
    --------
    >>> block_norm_ratio([[1.0, 0.0], [0.0, 2.0]], [[2.0, 0.0], [0.0, 4.0]])
    0.5
    """
    return block_norm_ratio_jackknife(Pair(X, Y))[0]


def block_cosine(X: ArrayLike, Y: ArrayLike) -> float:
    r"""Mean of the cosine of the angle between x and y.

    Parameters
    ----------
    X, Y
        As in :func:`block_norm_ratio`.

    Returns
    -------
    float
        In [-1, 1]. Pairs with a vector of norm zero are left out; NaN if no pair remains, or if the widths of X and Y
        differ.

    Examples
    --------
    >>> block_cosine([[1.0, 0.0], [0.0, 2.0]], [[2.0, 0.0], [1.0, 0.0]])
    0.5
    """
    return block_cosine_jackknife(Pair(X, Y))[0]


def block_norm_ratio_jackknife(pair: Pair) -> tuple[float, np.ndarray]:
    """Return :func:`block_norm_ratio` of a pair, and its values without each part of the rows, (parts,)."""
    return _average_with_jackknife(pair.ratios_and_cosines[0], np.median, pair.parts)


def block_cosine_jackknife(pair: Pair) -> tuple[float, np.ndarray]:
    """Return :func:`block_cosine` of a pair, and its values without each part of the rows, (parts,)."""
    return _average_with_jackknife(pair.ratios_and_cosines[1], np.mean, pair.parts)


def _average_with_jackknife(
    values: np.ndarray, average: Callable[[np.ndarray], Any], parts: Sequence[np.ndarray]
) -> tuple[float, np.ndarray]:
    def average_rows(values: np.ndarray) -> float:
        defined_values = values[~np.isnan(values)]
        return float(average(defined_values)) if len(defined_values) else math.nan

    jackknife_values = [average_rows(np.delete(values, part)) for part in parts]
    return average_rows(values), np.array(jackknife_values)


def fit_errors(pair: Pair) -> np.ndarray:
    r"""Length of each token's residual of the linear fit between normalised vectors.

    .. math:: e_i = \frac{\|y_i - \hat y_i\|}{\|Y - \bar y\|_F}

    with the least-squares prediction. The squares of all lengths sum to one less the linearity.

    Parameters
    ----------
    pair : Pair

    Returns
    -------
    ndarray of float64, shape (n,)
        All are NaN if the number of vectors is not above the rank of x plus one, or if y does not vary.

    References
    ----------
    Razzhigaev et al., Your Transformer is Secretly Linear, ACL 2024, appendix A, figure 9.
    """
    fit = pair.fit
    errors = np.full(len(pair), math.nan)
    if fit.is_defined:
        coefficients = fit.compute_coefficients()
        for block in split_numbers(np.arange(len(pair))):
            x, residuals = pair.read_rows(block)
            residuals -= fit.mean_t + (x - fit.mean_x) @ coefficients
            errors[block] = np.sqrt(np.einsum("ij,ij->i", residuals, residuals) / fit.squares.yy)
    return errors


def summarise_errors(errors: np.ndarray) -> tuple[np.ndarray, float]:
    """Summarise the errors of :func:`fit_errors`, shape (n,).

    Returns
    -------
    quantiles : ndarray of float64, shape (8,)
        The quantiles :data:`QUANTILES` of the errors.
    worst_share : float
        The share of the worst 1 % of tokens, at least one token, in the total squared error.

    Examples
    --------
    >>> round(summarise_errors(np.array([0.1] * 99 + [1.0]))[1], 4)
    0.5025
    """
    if np.isnan(errors).any():
        return np.full(len(QUANTILES), math.nan), math.nan
    squares = np.sort(np.square(errors))
    worst = squares[-max(1, round(WORST * len(squares))) :].sum()
    total = squares.sum()
    share = float(worst / total) if total else math.nan
    return np.quantile(errors, QUANTILES), share
