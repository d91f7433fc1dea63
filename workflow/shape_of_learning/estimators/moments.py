"""Sums over the vectors before and after a block, which least squares and its scores follow from."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

# Beside the largest magnitudes of a coordinate: what is no larger is rounding.
ROUNDING = 16 * np.finfo(float).eps


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
    xx : ndarray of float64, shape (d, d), or None
        :math:`S_{xx} = \sum (x - \bar x)(x - \bar x)^T`, upper triangle, in Fortran's order.
    xt : ndarray of float64, shape (d, q), or None
        :math:`S_{xt}`, in Fortran's order.
    """

    n: int
    mean_x: np.ndarray
    mean_t: np.ndarray
    tt: float
    yy: float
    floor: np.ndarray
    floor_y: float
    increment: bool
    xx: np.ndarray | None = None
    xt: np.ndarray | None = None

    @classmethod
    def none(cls, d: int, q: int, increment: bool, *, matrices: bool = True) -> "Moments":
        """Of no vectors."""
        sums = cls(0, np.zeros(d), np.zeros(q), 0.0, 0.0, np.zeros(d), 0.0, increment)
        if matrices:
            sums.xx, sums.xt = np.zeros((d, d), order="F"), np.zeros((d, q), order="F")
        return sums

    def add(self, x: np.ndarray, t: np.ndarray) -> None:
        r"""Add vectors and targets, float64, shapes (b, d) and (b, q); both are overwritten.

        Notes
        -----
        They are centred by their own mean. What their mean differs from the mean so far is one more row,
        :math:`\sqrt{n b / (n + b)} (\bar x_b - \bar x)` (Chan, Golub and LeVeque, The American Statistician
        37, 1983), so that an offset costs no digits, whatever the size and the order of the blocks.
        """
        from scipy.linalg import blas

        b, n = len(x), self.n
        rounding = ROUNDING * np.abs(x).max(axis=0)
        rounding_y = ROUNDING * np.abs(t).max(axis=0) + (rounding if self.increment else 0)
        self.floor = self.floor + b * rounding**2
        self.floor_y += b * float(rounding_y @ rounding_y)
        step_x, x = _centred(x, self.mean_x, n)
        step_t, t = _centred(t, self.mean_t, n)
        self.n = n + b
        self.mean_x = self.mean_x + step_x * (b / self.n)
        self.mean_t = self.mean_t + step_t * (b / self.n)
        if self.xx is not None:
            self.xx = blas.dsyrk(1.0, x.T, beta=1.0, c=self.xx, overwrite_c=True)
            self.xt = blas.dgemm(1.0, x.T, t.T, beta=1.0, c=self.xt, trans_b=True, overwrite_c=True)
        self.tt += squared(t)
        self.yy += squared(np.add(t, x, out=t)) if self.increment else squared(t)

    def totals(self) -> tuple[float, float]:
        """`tt` and `yy`, NaN where they are nothing but rounding."""
        return tuple(each if each > self.floor_y else math.nan for each in (self.tt, self.yy))

    def copy(self) -> "Moments":
        """Make one of which the matrices may be overwritten."""
        if self.xx is None:
            return replace(self)
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
            if self.xx is not None:
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
        if self.xx is not None:
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


def _centred(x: np.ndarray, mean: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """How far the mean of some rows is from `mean`; the rows about their own, and the row for the distance."""
    own = x.mean(axis=0)
    x -= own
    rest = x.mean(axis=0)  # of the rounding of the first mean, as where there is an offset
    x -= rest
    step = own - mean + rest
    if not n:
        return step, x
    return step, np.vstack([x, np.sqrt(n * len(x) / (n + len(x))) * step])


def squared(matrix: np.ndarray) -> float:
    """Sum of squares."""
    flat = matrix.ravel(order="K")
    return float(flat @ flat)
