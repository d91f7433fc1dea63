"""Squared distances by a matrix product, |x|^2 + |y|^2 - 2 x.y: from which origin, and how wrong they are."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from shape_of_learning.estimators.arrays import as_matrix

# How far squared distances may be off, relative to themselves: 0.95e-9 in a distance, which leaves
# of the 1e-9 that is promised some for differences and square roots.
ACCURACY = 1.9e-9
# Rows whose median stands for that of all: enough not to meet massive ones in the middle.
MEDIAN_ROWS = 256
# Multiples of it, modulo one, are as far from each other as can be, and have no period.
GOLDEN_RATIO = (5**0.5 - 1) / 2
# Squares underflow below the least number of their type, eight of them per coordinate at most.
UNDERFLOWS = 8


def median_point(X: Any) -> np.ndarray:
    """Return a point near most of the vectors, from which their norms are small; shape (d,).

    The median, unlike the mean, stays with most rows when a few have a massive coordinate. Any point
    near them serves as well: that of some of the rows, and of an even number the lower middle.
    These rows have no period, which windows of text may have.
    """
    count = min(len(X), MEDIAN_ROWS)
    some = as_matrix(X[(np.arange(count) * GOLDEN_RATIO % 1 * len(X)).astype(int)])
    middle = (len(some) - 1) // 2
    return np.partition(some, middle, axis=0)[middle]


def relative_error(d: int, dtype: DTypeLike) -> float:
    r"""Bound what rounding does to squared distances by products.

    Parameters
    ----------
    d : int
        Coordinates.
    dtype : float32 or float64
        In which all is computed, from vectors that are near the origin.

    Returns
    -------
    float
        :math:`\varepsilon`, such that a squared distance s of x and y is wrong by no more than
        :math:`\varepsilon \max(|x|^2, s)`, but for underflow. Infinite where nothing is known.

    Notes
    -----
    With unit roundoff u, the error is at most

    .. math:: e = \gamma (|x| + |y|)^2, \qquad \gamma = \frac{(d + 16) u}{1 - (d + 16) u},

    d u for a sum of d products in any order (Higham, Accuracy and Stability of Numerical
    Algorithms, 2002, section 3.1), and at most 16 u for shift, norms and the last sums. If
    :math:`|y| > 2 |x|`, then :math:`s \ge (|y| / 2)^2` and :math:`e \le 9 \gamma s`. Else
    :math:`e \le 9 \gamma |x|^2`. So :math:`\varepsilon = 9 \gamma`.
    """
    steps = (d + 16) * float(np.finfo(dtype).eps) / 2
    return 9 * steps / (1 - steps) if steps < 1 else np.inf


def underflow(d: int, dtype: DTypeLike) -> float:
    """Bound what underflow takes away from half a squared distance of vectors with d coordinates."""
    return UNDERFLOWS * d * float(np.finfo(dtype).tiny)


def too_close(halves: np.ndarray, d: int) -> np.ndarray:
    r"""Tell up to which value products in float64 are too coarse, so that differences are needed.

    Parameters
    ----------
    halves : ndarray of float64, shape (m,)
        :math:`|x|^2 / 2` of each vector x.
    d : int
        Coordinates.

    Returns
    -------
    ndarray of float64, shape (m,)
        For each x a value of :math:`|y|^2 / 2 - x \cdot y`. Any y beyond has a squared distance by
        products that is right to `ACCURACY`, relative to itself.

    Notes
    -----
    By :func:`relative_error`, :math:`s \ge \varepsilon |x|^2 / \mathrm{ACCURACY}` is enough. The j-th
    smallest of numbers that are each right to a relative error is the true j-th smallest to the same
    error, so that nothing need be known about which vector it belongs to.
    """
    error = relative_error(d, np.float64)
    if error >= ACCURACY:
        return np.full(len(halves), np.finfo(np.float64).max)
    with np.errstate(invalid="ignore"):
        enough = (1.01 * error * halves + underflow(d, np.float64)) / ACCURACY
        return enough - halves
