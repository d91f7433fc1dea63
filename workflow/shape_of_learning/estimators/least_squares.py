"""Least squares from moments: coordinates of unit variance, directions without variance dropped."""

from typing import NamedTuple

import numpy as np

from shape_of_learning.estimators.moments import Moments, squared

# Directions below this share of the largest singular value, of coordinates that have unit variance, are
# rounding of float32: a LayerNorm leaves one of 3e-8.
CUT = 1e-6
# A condition number is estimated to a factor of a few.
SAFETY = 10


class Whitening:
    r"""Coordinates in which the second moments of x are the identity: :math:`W^T S_{xx} W = I`.

    Parameters
    ----------
    xx : ndarray of float64, shape (d, d)
        :math:`S_{xx}`, upper triangle, in Fortran's order. It is overwritten.
    floor : ndarray of float64, shape (d,)
        Sum of squares of a coordinate that is nothing but rounding.

    Attributes
    ----------
    rank : int
        Number r of directions whose singular value is at least 1e-6 of the largest, after coordinates
        are scaled to unit variance; those that are constant have none.

    Notes
    -----
    By Cholesky's decomposition where a bound on the condition number says that all directions are kept, which
    is about ten times as fast; else by eigenvectors.
    """

    def __init__(self, xx: np.ndarray, floor: np.ndarray):
        from scipy.linalg import eigh, lapack

        squares = np.maximum(xx.diagonal(), 0)
        varies = squares > floor
        self.scale = np.where(varies, np.sqrt(squares), 0.0)
        self.inverse = np.divide(1.0, self.scale, out=np.zeros_like(squares), where=varies)
        xx *= self.inverse
        xx *= self.inverse[:, None]
        np.fill_diagonal(xx, 1.0)
        mirror(xx)  # the lower triangle keeps what the upper one loses
        norm = lapack.dlange("1", xx)
        self.upper, fails = lapack.dpotrf(xx, clean=False, overwrite_a=True)
        self.values = self.vectors = None
        self.rank = int(varies.sum())
        if not fails and lapack.dpocon(self.upper, norm, uplo="U")[0] > SAFETY * CUT**2:
            return
        np.fill_diagonal(self.upper, 1.0)
        values, vectors = eigh(self.upper, overwrite_a=True, check_finite=False, driver="evd")
        kept = values > CUT**2 * values[-1]
        self.values, self.vectors = np.sqrt(values[kept])[:, None], vectors[:, kept]
        self.rank -= int((~kept).sum())  # what is constant stands for directions of its own, kept

    def whiten(self, products: np.ndarray) -> np.ndarray:
        """:math:`W^T M`, shape (k, q), of M with shape (d, q), such as rows of x as columns; k >= r."""
        from scipy.linalg import blas

        scaled = self.inverse[:, None] * products
        if self.vectors is None:
            return blas.dtrsm(1.0, self.upper, scaled, trans_a=True, overwrite_b=True)
        return (self.vectors.T @ scaled) / self.values

    def coefficients(self, white: np.ndarray) -> np.ndarray:
        """:math:`W C`, shape (d, q): coefficients for x of those for white coordinates, (k, q)."""
        from scipy.linalg import blas

        if self.vectors is None:
            found = blas.dtrsm(1.0, self.upper, white)
        else:
            found = self.vectors @ (white / self.values)
        found *= self.inverse[:, None]
        return found

    def predicted(self, coefficients: np.ndarray) -> np.ndarray:
        r""":math:`V`, shape (k, q), with :math:`V^T V = B^T S_{xx} B` for coefficients B, (d, q)."""
        from scipy.linalg import blas

        scaled = self.scale[:, None] * coefficients
        if self.vectors is None:
            return blas.dtrmm(1.0, self.upper, scaled, overwrite_b=True)
        return (self.vectors.T @ scaled) * self.values


class Squares(NamedTuple):
    """What scores are made of: vectors, rank, and sums of squares about the mean.

    They are of residuals, of targets and of vectors after the block. NaN where undefined.
    """

    n: int
    rank: int
    residual: float
    tt: float
    yy: float


class Fit:
    r"""Least squares with an intercept, of targets t on x.

    Parameters
    ----------
    moments : Moments
        They are used up.

    Attributes
    ----------
    white : ndarray of float64, shape (k, q)
        Coefficients in white coordinates; their squares sum to the explained ones.
    squares : Squares
        The residual's are not clipped: rounding may leave them below zero.
    """

    def __init__(self, moments: Moments):
        self.n, self.mean_x, self.mean_t = moments.n, moments.mean_x, moments.mean_t
        self.axes = Whitening(moments.xx, moments.floor)
        self.white = self.axes.whiten(moments.xt)
        residual = moments.tt - squared(self.white)
        self.squares = Squares(self.n, self.axes.rank, residual, *moments.totals())

    @property
    def is_defined(self) -> bool:
        """Whether there are more vectors than what is fitted to each coordinate."""
        return self.n - 1 > self.axes.rank

    def coefficients(self) -> np.ndarray:
        """Of x, shape (d, q)."""
        return self.axes.coefficients(self.white)

    def residual_on(self, other: "Fit", coefficients: np.ndarray) -> float:
        """Sum of squared residuals that this fit's map leaves on the vectors of another fit."""
        # The other's own residuals are the least; what the map predicts otherwise comes on top.
        return other.squares.residual + squared(self.apart_from(other, coefficients))

    def apart_from(self, other: "Fit", coefficients: np.ndarray) -> np.ndarray:
        """What this fit's map predicts otherwise than the other's, as few rows with the same squares.

        Shape (k + 1, q), the last row for the means.
        """
        apart = self.apart_by(other, coefficients, self.mean_t - other.mean_t)
        apart[:-1] -= other.white
        return apart

    def apart_by(self, other: "Fit", coefficients: np.ndarray, mean_t: np.ndarray) -> np.ndarray:
        """The same of a map with these coefficients, and `mean_t` at this fit's mean, beside none."""
        at_mean = mean_t + (other.mean_x - self.mean_x) @ coefficients
        predicted = other.axes.predicted(coefficients)
        return np.vstack([predicted, np.sqrt(other.n) * at_mean])


def mirror(upper: np.ndarray, rows: int = 256) -> None:
    """Write the upper triangle of a matrix into its lower one."""
    for start in range(0, len(upper), rows):
        some, stop = slice(start, start + rows), start + rows
        block = upper[some, some]
        upper[some, some] = np.triu(block) + np.triu(block, 1).T
        upper[stop:, some] = upper[some, stop:].T
