"""Fit vectors after a block to the vectors before it by least squares, from sums over the vectors.

:class:`Moments` are these sums, which can be added and subtracted; :class:`Fit` follows from them.
"""

import copy
import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from shape_of_learning.estimators import blas

# Numbers below this multiple of the largest magnitude of a coordinate are rounding.
ROUNDING = 64 * np.finfo(float).eps
# Directions below this share of the largest singular value, for coordinates of unit variance, are rounding of float32:
# a LayerNorm leaves a direction of 3e-8.
CUT = 1e-6
# The estimate of a condition number may be wrong by a factor of a few.
SAFETY = 10


class Moments:
    r"""Number, means and centred second moments of inputs x and targets t; a new object has no vectors.

    The target is the increment y - x, or y itself if the widths of x and y differ. Least squares has the same
    residuals for both targets, and increments lose no digits where x and y are large and alike.

    Attributes
    ----------
    n : int
        Number of vectors.
    mean_x, mean_t : ndarray of float64, shape (d,), (q,)
        Means.
    tt, yy : float
        Traces of :math:`S_{tt}` and :math:`S_{yy}`.
    floor : ndarray of float64, shape (d,)
        Sums of squares of the rounding of each coordinate of x.
    floor_y : float
        The same sum for all coordinates of y together.
    increment : bool
        Whether the target is the increment.
    xx : ndarray of float64, shape (d, d)
        :math:`S_{xx} = \sum (x - \bar x)(x - \bar x)^T`, upper triangle, in Fortran's order.
    xt : ndarray of float64, shape (d, q)
        :math:`S_{xt}`, in Fortran's order.
    """

    def __init__(self, d: int, q: int, increment: bool):
        self.n, self.increment = 0, increment
        self.mean_x, self.mean_t, self.floor = np.zeros(d), np.zeros(q), np.zeros(d)
        self.tt = self.yy = self.floor_y = 0.0
        self.xx, self.xt = (np.zeros(shape, order="F") for shape in ((d, d), (d, q)))

    def add(self, x: np.ndarray, t: np.ndarray) -> None:
        r"""Add vectors and targets, float64, shapes (b, d) and (b, q).

        Notes
        -----
        A block is centred by its own mean. The difference of this mean and the mean so far is one more row,
        :math:`\sqrt{n b / (n + b)} (\bar x_b - \bar x)` (Chan, Golub and LeVeque, The American Statistician
        37, 1983), so that an offset costs no digits, whatever the size and the order of the blocks.
        """
        b, n = len(x), self.n
        magnitude, step_x, x = _centre_block(x, self.mean_x, n)
        magnitude_t, step_t, t = _centre_block(t, self.mean_t, n)
        self.floor = self.floor + b * (ROUNDING * magnitude) ** 2
        magnitude_y = magnitude_t + (magnitude if self.increment else 0)
        self.floor_y += b * ROUNDING**2 * float(magnitude_y @ magnitude_y)
        self.n = n + b
        self.mean_x = self.mean_x + step_x * (b / self.n)
        self.mean_t = self.mean_t + step_t * (b / self.n)
        blas.add_square(x, self.xx)
        blas.add_product(x, t, self.xt)
        self.tt += _sum_of_squares(t)
        self.yy += _sum_of_squares(np.add(t, x, out=t)) if self.increment else _sum_of_squares(t)

    def copy(self) -> "Moments":
        """Copy the moments with their matrices."""
        duplicate = copy.copy(self)
        duplicate.xx, duplicate.xt = self.xx.copy(order="F"), self.xt.copy(order="F")
        return duplicate

    @staticmethod
    def sum_sets(sets: "Iterable[Moments]") -> "Moments":
        """Add the moments of one or more sets of vectors, one at a time."""
        sets = iter(sets)
        total = next(sets).copy()
        for other in sets:
            if other.n:
                total._combine(other, 1.0, total.n + other.n)
                total.floor = total.floor + other.floor
                total.floor_y += other.floor_y
        return total

    def leave_out(self, part: "Moments") -> "Moments":
        """Subtract the moments of some of the vectors."""
        remainder = self.copy()
        if part.n:
            remainder._combine(part, -1.0, self.n - part.n)
            # If large squares leave a small remainder, it may be rounding.
            remainder.floor_y += ROUNDING * self.yy
            remainder.floor = remainder.floor + ROUNDING * self.xx.diagonal()
        return remainder

    def _combine(self, other: "Moments", sign: float, total: int) -> None:
        """Add or subtract sums, with the term for the distance between the two means."""
        from scipy.linalg import blas as scipy_blas

        shift_x, shift_t = other.mean_x - self.mean_x, other.mean_t - self.mean_t
        shift_y = shift_x + shift_t if self.increment else shift_t
        weight = sign * self.n * other.n / max(total, 1)
        self.tt += sign * other.tt + weight * float(shift_t @ shift_t)
        self.yy += sign * other.yy + weight * float(shift_y @ shift_y)
        self.xx += sign * other.xx
        self.xt += sign * other.xt
        self.xx = scipy_blas.dsyr(weight, shift_x, a=self.xx, overwrite_a=True)
        self.xt = scipy_blas.dger(weight, shift_x, shift_t, a=self.xt, overwrite_a=True)
        self.mean_x = self.mean_x + shift_x * (sign * other.n / max(total, 1))
        self.mean_t = self.mean_t + shift_t * (sign * other.n / max(total, 1))
        self.n = total


def _centre_block(
    x: np.ndarray, mean: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Centre a block that follows n rows with mean `mean`.

    Return the largest magnitudes, the distance of the two means, and the centred rows with one more row for this
    distance.
    """
    low, high = x.min(axis=0), x.max(axis=0)
    block_mean = np.where(low == high, low, x.mean(axis=0))  # constant coordinates become zero
    step = block_mean - mean
    rows = np.empty((len(x) + (n > 0), x.shape[1]))
    np.subtract(x, block_mean, out=rows[: len(x)])
    if n:
        rows[-1] = (n * len(x) / (n + len(x))) ** 0.5 * step
    return np.maximum(high, -low), step, rows


class Squares(NamedTuple):
    """The number of vectors, the rank of a fit, and three sums of squares about the mean.

    The sums are those of residuals, of targets, and of vectors after the block; NaN if undefined.
    """

    n: int
    rank: int
    residual: float
    tt: float
    yy: float


UNDEFINED = Squares(0, 0, math.nan, math.nan, math.nan)


class Fit:
    r"""Least squares with an intercept, of targets t on x.

    The fit uses coordinates in which the second moments of x are the identity: :math:`W^T S_{xx} W = I`.

    Parameters
    ----------
    moments : Moments
        The fit overwrites their matrices.

    Attributes
    ----------
    rank : int
        Number r of directions whose singular value is at least 1e-6 of the largest, after coordinates are scaled to
        unit variance; constant coordinates have no direction.
    white : ndarray of float64, shape (k, q)
        Coefficients in white coordinates, k >= r; their squares sum to the explained sum of squares.
    squares : Squares
        Sums of squares; the sum of residuals is not clipped, so rounding may leave it below zero.

    Notes
    -----
    If a bound on the condition number shows that all directions are kept, Cholesky's decomposition finds W, which is
    about ten times as fast; otherwise eigenvectors do.
    """

    def __init__(self, moments: Moments):
        self.n, self.mean_x, self.mean_t = moments.n, moments.mean_x, moments.mean_t
        self._decompose(moments.xx, moments.floor)
        products = self._inverse[:, None] * moments.xt
        if self._vectors is None:
            self.white = blas.solve_upper(self._upper, products, transpose=True)
        else:
            self.white = (self._vectors.T @ products) / self._values
        residual = moments.tt - _sum_of_squares(self.white)
        # Sums that are rounding alone are undefined.
        tt, yy = (x if x > moments.floor_y else math.nan for x in (moments.tt, moments.yy))
        self.squares = Squares(self.n, self.rank, residual, tt, yy)

    def _decompose(self, xx: np.ndarray, floor: np.ndarray) -> None:
        """Find W of the second moments, and the scale of each coordinate; overwrite `xx`."""
        from scipy.linalg import eigh, lapack

        squares = np.maximum(xx.diagonal(), 0)
        varies = squares > floor
        self._scale = np.where(varies, np.sqrt(squares), 0.0)
        self._inverse = np.divide(1.0, self._scale, out=np.zeros_like(squares), where=varies)
        xx *= self._inverse
        xx *= self._inverse[:, None]
        np.fill_diagonal(xx, 1.0)
        _mirror_triangle(xx)  # the lower triangle keeps what the upper one loses
        norm = lapack.dlange("1", xx)
        self._upper, exists = xx, blas.decompose_cholesky(xx)
        self._values = self._vectors = None
        self.rank = int(varies.sum())
        if exists and lapack.dpocon(self._upper, norm, uplo="U")[0] > SAFETY * CUT**2:
            return
        np.fill_diagonal(self._upper, 1.0)
        values, vectors = eigh(self._upper, overwrite_a=True, check_finite=False, driver="evd")
        is_kept = values > CUT**2 * values[-1]
        self._values, self._vectors = np.sqrt(values[is_kept])[:, None], vectors[:, is_kept]
        # Constant coordinates are kept directions, but the rank does not count them.
        self.rank -= int((~is_kept).sum())

    @property
    def is_defined(self) -> bool:
        """Whether there are more vectors than fitted coefficients of a coordinate."""
        return self.n - 1 > self.rank

    def compute_coefficients(self) -> np.ndarray:
        """Compute the coefficients of x, shape (d, q)."""
        if self._vectors is None:
            values = blas.solve_upper(self._upper, self.white.copy(order="F"))
        else:
            values = self._vectors @ (self.white / self._values)
        values *= self._inverse[:, None]
        return values

    def sum_squares_on(self, other: "Fit") -> float:
        """Sum the squared residuals of this fit's map on the vectors of another fit."""
        # The residuals of the other fit are the smallest; differences between the predictions add to them.
        coefficients = self.compute_coefficients()
        mean_error = self.mean_t - other.mean_t + (other.mean_x - self.mean_x) @ coefficients
        differences = np.vstack([other._whiten(coefficients), np.sqrt(other.n) * mean_error])
        differences[:-1] -= other.white
        return other.squares.residual + _sum_of_squares(differences)

    def _whiten(self, coefficients: np.ndarray) -> np.ndarray:
        r"""Return :math:`V`, shape (k, q), with :math:`V^T V = B^T S_{xx} B` for coefficients B, (d, q)."""
        scaled_coefficients = self._scale[:, None] * coefficients
        if self._vectors is None:
            return blas.multiply_upper(self._upper, scaled_coefficients)
        return (self._vectors.T @ scaled_coefficients) * self._values


def _sum_of_squares(matrix: np.ndarray) -> float:
    """Sum of squares."""
    flat = matrix.ravel(order="K")
    return float(flat @ flat)


def _mirror_triangle(upper: np.ndarray, rows: int = 256) -> None:
    """Copy the upper triangle of a matrix into its lower triangle."""
    for start in range(0, len(upper), rows):
        block_rows, stop = slice(start, start + rows), start + rows
        block = upper[block_rows, block_rows]
        upper[block_rows, block_rows] = np.triu(block) + np.triu(block, 1).T
        upper[stop:, block_rows] = upper[block_rows, stop:].T
