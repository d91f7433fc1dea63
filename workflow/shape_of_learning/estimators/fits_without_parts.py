r"""Least squares without each of some parts of the rows: what is left of the sums of squares.

Up to a width of 1024 the moments of the parts are subtracted and the rest is fitted anew. Wider ones follow
from the fit on all rows: with residuals :math:`e_G` of a part G and its block :math:`H_{GG}` of the hat
matrix, intercept included, the sum of squared residuals without it is

.. math:: \text{RSS} - \text{tr}\, e_G^T (I - H_{GG})^{-1} e_G

and the coefficients change by :math:`-(X^T X)^{-1} X_G^T (I - H_{GG})^{-1} e_G` (Cook and Weisberg, Residuals
and Influence in Regression, 1982).
"""

from collections.abc import Sequence

import numpy as np

from shape_of_learning.estimators.least_squares import Fit, Squares
from shape_of_learning.estimators.moments import Moments, squared, together
from shape_of_learning.estimators.pair import Pair

# A direction of which no more than this share is left without a part is taken for lost.
LOST = 1e-8
# Beyond this width, held-out residuals without parts would take longer than all the rest.
WIDEST_HELD_OUT = 2048
UNDEFINED = Squares(0, 0, np.nan, np.nan, np.nan)


def held_out(fits: Sequence[Fit]) -> Squares:
    """Sums of squares of two folds, residuals by the map of the other fold, about the means of each."""
    if not all(fit.is_defined for fit in fits):
        return UNDEFINED
    first, second = fits
    residual = sum(
        one.residual_on(other, one.coefficients())
        for one, other in ((first, second), (second, first))
    )
    n, tt, yy = (
        getattr(first.squares, name) + getattr(second.squares, name) for name in ("n", "tt", "yy")
    )
    return Squares(n, 0, residual, tt, yy)


def squares_without(pair: Pair, parts: Sequence[np.ndarray]) -> list[Squares]:
    """Sums of squares of the fit on the rows that are left without each part."""
    _, of_folds = pair.cells(parts)
    cells = [together(of_part) for of_part in zip(*of_folds, strict=True)]
    whole = together(pair.fold_moments if pair.is_narrow else cells)
    left = [whole.without(cell) for cell in cells[:-1]]
    if pair.is_narrow:
        return [Fit(each).squares if each.n else UNDEFINED for each in left]
    return [_downdated(pair, part, each) for part, each in zip(parts, left, strict=True)]


def _downdated(pair: Pair, part: np.ndarray, left: Moments) -> Squares:
    fit = pair.fit
    if not len(part):
        return fit.squares
    dropped = _Dropped(pair, fit, part)
    residual = fit.squares.residual - squared(dropped.half())
    return Squares(left.n, fit.axes.rank - dropped.lost, residual, *left.totals())


class _Dropped:
    """Rows of a fit that are left out.

    Attributes
    ----------
    white : ndarray of float64, shape (k, g)
        Their white coordinates, as columns.
    residuals : ndarray of float64, shape (g, q)
    lost : int
        Directions that no other row of the fit has.
    """

    def __init__(self, pair: Pair, fit: Fit, numbers: np.ndarray):
        from scipy.linalg import blas, cho_factor, eigh

        x, residuals = pair.rows(numbers)
        x -= fit.mean_x
        residuals -= fit.mean_t
        self.white = fit.axes.whiten(x.T)
        residuals -= self.white.T @ fit.white
        self.residuals, self.lost = residuals, 0
        # Its lower triangle, which is all that is read.
        rest = blas.dsyrk(-1.0, self.white, trans=True, lower=True)
        rest -= 1 / fit.n
        rest[np.diag_indices(len(rest))] += 1
        try:
            self.factor, _ = cho_factor(rest, lower=True, check_finite=False)
            self.directions = None
            if np.square(self.factor.diagonal()).min() > LOST:
                return
        except np.linalg.LinAlgError:
            pass
        shares, directions = eigh(rest, check_finite=False)
        kept = shares > LOST
        self.lost = int((~kept).sum())
        self.directions = directions[:, kept] / np.sqrt(shares[kept])

    def half(self) -> np.ndarray:
        """Of :math:`e^T (I - H)^{-1} e`, the half of which it is the square."""
        from scipy.linalg import solve_triangular

        if self.directions is not None:
            return self.directions.T @ self.residuals
        return solve_triangular(self.factor, self.residuals, lower=True, check_finite=False)

    def weighed(self) -> np.ndarray:
        """:math:`(I - H)^{-1} e`."""
        from scipy.linalg import solve_triangular

        if self.directions is not None:
            return self.directions @ self.half()
        return solve_triangular(self.factor, self.half(), lower=True, trans=1, check_finite=False)


def held_out_without(pair: Pair, parts: Sequence[np.ndarray]) -> list[Squares]:
    """Sums of squares of :func:`held_out` without each part; undefined beyond a width of 2048."""
    if max(pair.x.shape[1], pair.y.shape[1]) > WIDEST_HELD_OUT:
        return [UNDEFINED] * len(parts)
    rows, cells = pair.cells(parts)
    folds = [together(of_fold) for of_fold in cells]
    residuals = None if pair.is_narrow else _residuals_downdated(pair, rows)
    found = []
    for number in range(len(parts)):
        left = [fold.without(of_fold[number]) for fold, of_fold in zip(folds, cells, strict=True)]
        if min(each.n for each in left) < 2:
            found.append(UNDEFINED)
        elif residuals is None:
            found.append(held_out([Fit(each) for each in left]))
        else:
            tt, yy = np.sum([each.totals() for each in left], axis=0)
            found.append(Squares(left[0].n + left[1].n, 0, residuals[number], tt, yy))
    return found


def _residuals_downdated(pair: Pair, rows: Sequence[Sequence[np.ndarray]]) -> np.ndarray:
    """Held-out residuals, of both folds, without each part; `rows` are those of fold and part."""
    folds = [*zip(pair.fold_fits, rows, strict=True)]
    found = np.zeros(len(rows[0]) - 1)
    for (fit, dropped), (other, unscored) in (folds, reversed(folds)):
        found += _residuals_on(pair, fit, other, [*zip(dropped, unscored, strict=True)][:-1])
    return found


def _residuals_on(
    pair: Pair, fit: Fit, other: Fit, parts: Sequence[tuple[np.ndarray, np.ndarray]]
) -> np.ndarray:
    """Residuals of a fit without some of its rows, on those of the other without some of these."""
    if not fit.is_defined:
        return np.full(len(parts), np.nan)
    coefficients = fit.coefficients()
    apart = fit.apart_from(other, coefficients)
    all_of_them = other.squares.residual + squared(apart)
    found = np.full(len(parts), all_of_them)
    for number, (dropped, unscored) in enumerate(parts):
        x, residuals = pair.rows(unscored)
        x -= fit.mean_x
        residuals -= fit.mean_t
        residuals -= x @ coefficients
        if len(dropped):
            without = _Dropped(pair, fit, dropped)
            if fit.n - len(dropped) - 1 <= fit.axes.rank - without.lost:
                found[number] = np.nan
                continue
            weighed = without.weighed()
            # What a unit of each row's weighed residual takes from the map and from its value at the mean.
            taken = fit.axes.coefficients(without.white)
            change = fit.apart_by(other, taken, np.full(len(dropped), 1 / fit.n))
            found[number] += float(
                np.einsum(
                    "ij,ij->", (change.T @ change) @ weighed - 2 * (change.T @ apart), weighed
                )
            )
            residuals += (x @ taken + 1 / fit.n) @ weighed
        found[number] -= squared(residuals)
    return found
