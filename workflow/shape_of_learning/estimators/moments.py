"""Sums over the vectors before and after a block, which least squares and its scores follow from."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

# Beside the largest magnitudes of a coordinate: what is no larger is rounding.
ROUNDING = 64 * np.finfo(float).eps


@dataclass
class Moments:
    r"""Numbers, means and centred second moments of inputs x and targets t.

    The target is the increment y - x, or y itself where the widths of x and y differ. Residuals of least
    squares are the same for both, and with increments what is large in x and y alike is not subtracted late.

    Attributes
    ----------
    n : int
        Vectors.
    mean_x, mean_t : ndarray of float64, shape (d,), (q,)
        Their means.
    tt, yy : float
        Traces of :math:`S_{tt}` and :math:`S_{yy}`.
    floor : ndarray of float64, shape (d,)
        Sum of squares of a coordinate of x that is nothing but rounding.
    floor_y : float
        That of all coordinates of y.
    increment : bool
        Whether the target is the increment.
    xx : ndarray of float64, shape (d, d)
        :math:`S_{xx} = \sum (x - \bar x)(x - \bar x)^T`, upper triangle, in Fortran's order.
    xt : ndarray of float64, shape (d, q)
        :math:`S_{xt}`, in Fortran's order. Both matrices are of shape (0, 0) where only sums are asked for.
    """

    n: int
    mean_x: np.ndarray
    mean_t: np.ndarray
    tt: float
    yy: float
    floor: np.ndarray
    floor_y: float
    increment: bool
    xx: np.ndarray
    xt: np.ndarray

    @classmethod
    def none(cls, d: int, q: int, increment: bool, *, matrices: bool = True) -> "Moments":
        """Of no vectors."""
        shapes = ((d, d), (d, q)) if matrices else ((0, 0), (0, 0))
        xx, xt = (np.zeros(shape, order="F") for shape in shapes)
        return cls(0, np.zeros(d), np.zeros(q), 0.0, 0.0, np.zeros(d), 0.0, increment, xx, xt)

    def add(self, x: np.ndarray, t: np.ndarray) -> None:
        r"""Add vectors and targets, float64, shapes (b, d) and (b, q).

        Notes
        -----
        They are centred by their own mean. What their mean differs from the mean so far is one more row,
        :math:`\sqrt{n b / (n + b)} (\bar x_b - \bar x)` (Chan, Golub and LeVeque, The American Statistician
        37, 1983), so that an offset costs no digits, whatever the size and the order of the blocks.
        """
        from scipy.linalg import blas

        b, n = len(x), self.n
        magnitude, step_x, x = _centred(x, self.mean_x, n)
        magnitude_t, step_t, t = _centred(t, self.mean_t, n)
        self.floor = self.floor + b * (ROUNDING * magnitude) ** 2
        of_y = magnitude_t + (magnitude if self.increment else 0)
        self.floor_y += b * ROUNDING**2 * float(of_y @ of_y)
        self.n = n + b
        self.mean_x = self.mean_x + step_x * (b / self.n)
        self.mean_t = self.mean_t + step_t * (b / self.n)
        if self.xx.size:
            self.xx = blas.dsyrk(1.0, x.T, beta=1.0, c=self.xx, overwrite_c=True)
            self.xt = blas.dgemm(1.0, x.T, t.T, beta=1.0, c=self.xt, trans_b=True, overwrite_c=True)
        self.tt += squared(t)
        self.yy += squared(np.add(t, x, out=t)) if self.increment else squared(t)

    def totals(self) -> tuple[float, float]:
        """`tt` and `yy`, NaN where they are nothing but rounding."""
        tt, yy = (each if each > self.floor_y else math.nan for each in (self.tt, self.yy))
        return tt, yy

    def copy(self) -> "Moments":
        """Make one of which the matrices may be overwritten."""
        return replace(self, xx=self.xx.copy(order="F"), xt=self.xt.copy(order="F"))

    def join(self, other: "Moments") -> None:
        """Add the vectors of other moments."""
        if not other.n:
            return
        total = self.n + other.n
        self._combine(other, 1.0, total)
        self.floor = self.floor + other.floor
        self.floor_y += other.floor_y

    def without(self, part: "Moments") -> "Moments":
        """Those of the vectors that are left without some of them."""
        left = self.copy()
        if part.n:
            left._combine(part, -1.0, self.n - part.n)
            # What is left of large squares may be rounding.
            left.floor_y += ROUNDING * self.yy
            if self.xx.size:
                left.floor = left.floor + ROUNDING * self.xx.diagonal()
        return left

    def _combine(self, other: "Moments", sign: float, total: int) -> None:
        """Add or subtract sums, and what the distance of the two means makes of them."""
        from scipy.linalg import blas

        by_x, by_t = other.mean_x - self.mean_x, other.mean_t - self.mean_t
        by_y = by_x + by_t if self.increment else by_t
        weight = sign * self.n * other.n / max(total, 1)
        self.tt += sign * other.tt + weight * float(by_t @ by_t)
        self.yy += sign * other.yy + weight * float(by_y @ by_y)
        if self.xx.size:
            self.xx += sign * other.xx
            self.xt += sign * other.xt
            self.xx = blas.dsyr(weight, by_x, a=self.xx, overwrite_a=True)
            self.xt = blas.dger(weight, by_x, by_t, a=self.xt, overwrite_a=True)
        self.mean_x = self.mean_x + by_x * (sign * other.n / max(total, 1))
        self.mean_t = self.mean_t + by_t * (sign * other.n / max(total, 1))
        self.n = total


def together(sets: Sequence[Moments]) -> Moments:
    """Moments of the vectors of all sets."""
    total = sets[0].copy()
    for other in sets[1:]:
        total.join(other)
    return total


def _centred(x: np.ndarray, mean: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Look at a block beside the mean of n rows before it.

    Returns the largest magnitudes, how far its mean is from that, and the rows about their mean with one more
    for this distance.
    """
    low, high = x.min(axis=0), x.max(axis=0)
    own = np.where(low == high, low, x.mean(axis=0))  # what is constant becomes zero
    step = own - mean
    rows = np.empty((len(x) + (n > 0), x.shape[1]))
    np.subtract(x, own, out=rows[: len(x)])
    if n:
        rows[-1] = (n * len(x) / (n + len(x))) ** 0.5 * step
    return np.maximum(high, -low), step, rows


def squared(matrix: np.ndarray) -> float:
    """Sum of squares."""
    flat = matrix.ravel(order="K")
    return float(flat @ flat)
