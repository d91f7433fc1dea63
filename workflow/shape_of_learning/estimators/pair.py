"""Vectors before and after a block, and the fits that measures of the two share."""

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from shape_of_learning.estimators import arrays
from shape_of_learning.estimators.linear_fits import UNDEFINED, Fit, Moments, Squares

# Rows that are taken at a time: of 4096 numbers, 16 MiB.
ROWS = 512
FOLDS = 2
# Up to this width the moments of 16 parts of two folds are kept, half a gigabyte at most; of wider vectors
# they are summed anew where they are needed.
NARROW = 1024
# Beyond this width, held-out residuals without parts would take longer than all the rest.
WIDEST_HELD_OUT = 2048


class Pair:
    """Hidden states before and after a block, of the same tokens.

    Parameters
    ----------
    x, y : array_like or torch.Tensor, shape (n, d), (n, e)
        Of any real dtype. They are read in blocks of rows, as float64, and never copied as a whole.
    windows : array_like of int, shape (n,), optional
        The window of each vector. Held-out scores need them: every second window, in the order of their
        numbers, is of the second fold.
    parts : sequence of ndarray of int
        Numbers of the rows that are left out each time. No row is in two of them.

    Attributes
    ----------
    x, y : ndarray or torch.Tensor
    parts : sequence of ndarray of int
    is_increment, has_windows : bool
        Whether widths are equal, so that there is an increment y - x; whether the window of each is known.

    Raises
    ------
    ValueError
        If x or y is not two-dimensional or not of real numbers, or if lengths differ; if there is NaN or
        infinity, :class:`.NotFiniteError`.

    Notes
    -----
    Sums over a part are subtracted from those over all rows, and what is left is fitted anew. First-order
    influence instead of refits makes standard errors a sixth too small.
    """

    def __init__(self, x: Any, y: Any, windows: Any = None, parts: Sequence[np.ndarray] = ()):
        self.x, self.y, self.parts = _check_readable(x, "X"), _check_readable(y, "Y"), parts
        if len(self.x) != len(self.y):
            raise ValueError(
                f"X and Y must have the same rows, but have {len(self.x)} and {len(self.y)}"
            )
        self.is_increment = self.x.shape[1] == self.y.shape[1]
        self._width = max(self.x.shape[1], self.y.shape[1])
        self._fold_of = np.zeros(len(self.x), int)
        if windows is not None:
            names = arrays.read_windows(windows, len(self.x))
            self._fold_of = np.unique(names, return_inverse=True)[1] % FOLDS
        self.has_windows = windows is not None
        self._fold_numbers = range(FOLDS if self.has_windows else 1)
        self._part_of = arrays.number_parts(len(self.x), parts)
        self._kept: dict[tuple[int, int], Moments] = {}

    def __len__(self) -> int:
        return len(self.x)

    def read_rows(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and targets (see :class:`.Moments`) of some rows, float64."""
        x, t = _copy_as_float64(self.x[numbers]), _copy_as_float64(self.y[numbers])
        if self.is_increment:
            t -= x
        return x, t

    @cached_property
    def fit(self) -> Fit:
        """Least squares on all rows."""
        return Fit(Moments.sum_sets(self._folds))

    @cached_property
    def sample_squares(self) -> list[Squares]:
        """Sums of squares of the fit on all rows, and without each part."""
        found = [self.fit.squares]
        if not self.parts:
            return found
        whole = Moments.sum_sets(self._folds)
        for part in range(len(self.parts)):
            left = whole.leave_out(
                Moments.sum_sets(self._cell(fold, part) for fold in self._fold_numbers)
            )
            found.append(Fit(left).squares if left.n else UNDEFINED)
        return found

    @property
    def held_out(self) -> list[Squares]:
        """Those of each fold by the map of the other one, of all rows and without each part."""
        return [across for across, *_ in self._fold_squares]

    @property
    def halves(self) -> list[tuple[Squares, Squares]]:
        """Those of each fold by its own map, of all rows and without each part; undefined without windows."""
        return [(first, second) for _, first, second in self._fold_squares]

    @cached_property
    def _fold_squares(self) -> list[tuple[Squares, Squares, Squares]]:
        parts = len(self.parts)
        if len(self._folds) != FOLDS:
            return [(UNDEFINED,) * 3] * (1 + parts)
        found = [_fit_to_folds((fold.copy() for fold in self._folds), across=True)]
        for part in range(parts):
            left = (fold.leave_out(self._cell(i, part)) for i, fold in enumerate(self._folds))
            found.append(_fit_to_folds(left, across=self._width <= WIDEST_HELD_OUT))
        return found

    @cached_property
    def _folds(self) -> list[Moments]:
        """Moments of each fold."""
        parts = range(len(self.parts) + 1)  # the last is of the rows in no part
        return [
            Moments.sum_sets(self._cell(fold, part) for part in parts)
            for fold in self._fold_numbers
        ]

    def _cell(self, fold: int, part: int) -> Moments:
        """Moments of the rows of a part in a fold."""
        if (fold, part) in self._kept:
            return self._kept[fold, part]
        found = Moments(self.x.shape[1], self.y.shape[1], self.is_increment)
        for some in split_numbers(
            np.flatnonzero((self._fold_of == fold) & (self._part_of == part))
        ):
            found.add(*self.read_rows(some))
        if self._width <= NARROW:
            self._kept[fold, part] = found
        return found

    @cached_property
    def ratios_and_cosines(self) -> tuple[np.ndarray, np.ndarray]:
        """Of each vector, length of the increment over that of y, and cosine of x and y; NaN if undefined."""
        ratios, cosines = np.full((2, len(self)), math.nan)
        if self.is_increment:
            for some in split_numbers(np.arange(len(self))):
                x, added = self.read_rows(some)
                y = x + added
                before, after, change = (
                    np.sqrt(np.einsum("ij,ij->i", z, z)) for z in (x, y, added)
                )
                with np.errstate(divide="ignore", invalid="ignore"):
                    ratios[some] = np.where(after > 0, change / after, math.nan)
                    products = np.einsum("ij,ij->i", x, y) / before / after
                cosines[some] = np.clip(products, -1, 1)
        return ratios, cosines


def _fit_to_folds(folds: Iterable[Moments], *, across: bool) -> tuple[Squares, Squares, Squares]:
    """Sums of squares of both folds by the map of the other one, about the means of each, and by their own.

    The moments are used up.
    """
    first, second = folds
    if min(first.n, second.n) < 2:
        return (UNDEFINED,) * 3
    one, other = Fit(first), Fit(second)
    a, b = one.squares, other.squares
    if not (across and one.is_defined and other.is_defined):
        return UNDEFINED, a, b
    residual = one.residual_on(other) + other.residual_on(one)
    return Squares(a.n + b.n, 0, residual, a.tt + b.tt, a.yy + b.yy), a, b


def split_numbers(numbers: np.ndarray) -> Iterator[np.ndarray]:
    """Divide row numbers into blocks."""
    for start in range(0, len(numbers), ROWS):
        yield numbers[start : start + ROWS]


def _check_readable(X: Any, name: str) -> Any:
    """An array or tensor of two dimensions and finite real numbers, as it is."""
    arrays.require_plain_values(X, name)
    array = X.detach() if hasattr(X, "detach") else np.asanyarray(X)
    arrays.read_matrix(array[:1] if array.ndim == 2 else array, name, finite=False)
    arrays.require_finite(array, name)
    return array


def _copy_as_float64(rows: Any) -> np.ndarray:
    """Copy rows, which indexing has copied already if they are of float64."""
    if isinstance(rows, np.ndarray):
        return rows.astype(np.float64, copy=False)
    return rows.cpu().double().numpy()
