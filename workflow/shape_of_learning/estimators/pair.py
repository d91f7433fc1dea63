"""Vectors before and after a block, and the fits that their measures share."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from shape_of_learning.estimators import arrays
from shape_of_learning.estimators.linear_fits import UNDEFINED, Fit, Moments, Squares

# Rows of a block: 16 MiB for 4096 numbers a row.
ROWS = 512
FOLDS = 2
# Up to this width the moments of 16 parts of two folds are kept, half a gigabyte at most; those of wider vectors are
# computed again for each use.
NARROW = 1024
# Beyond this width, held-out residuals without parts would take longer than all the rest.
WIDEST_HELD_OUT = 2048


Value = TypeVar("Value")


class lazy_property(Generic[Value]):
    """A property that is computed once; in `functools.cached_property` of Python 3.11 threads wait for each other."""

    def __init__(self, function: Callable[[Any], Value]):
        self._function, self.__doc__ = function, function.__doc__

    def __get__(self, owner: Any, _: type) -> Value:
        value = self._function(owner)
        vars(owner)[self._function.__name__] = value  # which Python looks up first
        return value


class Pair:
    """Hidden states before and after a block, of the same tokens.

    Parameters
    ----------
    x, y : array_like or torch.Tensor, shape (n, d), (n, e)
        Vectors of any real dtype, which are read in blocks of rows as float64 and never copied as a whole.
    windows : array_like of int, shape (n,), optional
        The window of each vector, for held-out scores: every second window, in the order of their numbers, is in
        the second fold.
    parts : sequence of ndarray of int
        Row numbers of each part, for jackknife values. No row is in two parts.

    Attributes
    ----------
    x, y : ndarray or torch.Tensor
    parts : sequence of ndarray of int
    is_increment, has_windows : bool
        Whether widths are equal, so that there is an increment y - x; whether windows are given.

    Raises
    ------
    ValueError
        If x or y is not two-dimensional or not of real numbers, or if lengths differ; if there is NaN or
        infinity, :class:`.NotFiniteError`.

    Notes
    -----
    Sums over a part are subtracted from those over all rows, and the fit is computed again. First-order influence
    instead of new fits makes standard errors a sixth too small.
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
        """Read inputs and targets (see :class:`.Moments`) of rows, float64."""
        x, t = _copy_as_float64(self.x[numbers]), _copy_as_float64(self.y[numbers])
        if self.is_increment:
            t -= x
        return x, t

    @lazy_property
    def fit(self) -> Fit:
        """The least-squares fit on all rows."""
        return Fit(Moments.sum_sets(self._folds))

    @lazy_property
    def sample_squares(self) -> list[Squares]:
        """Sums of squares of the fit on all rows, and without each part."""
        squares = [self.fit.squares]
        if not self.parts:
            return squares
        whole = Moments.sum_sets(self._folds)
        for part in range(len(self.parts)):
            left = whole.leave_out(
                Moments.sum_sets(self._cell(fold, part) for fold in self._fold_numbers)
            )
            squares.append(Fit(left).squares if left.n else UNDEFINED)
        return squares

    @property
    def held_out(self) -> list[Squares]:
        """Sums of squares of each fold by the map of the other one, on all rows, and without each part."""
        return [across for across, *_ in self._fold_squares]

    @property
    def halves(self) -> list[tuple[Squares, Squares]]:
        """Sums of squares of each fold by its own map, on all rows and without each part; undefined without windows."""
        return [(first, second) for _, first, second in self._fold_squares]

    @lazy_property
    def _fold_squares(self) -> list[tuple[Squares, Squares, Squares]]:
        parts = len(self.parts)
        if len(self._folds) != FOLDS:
            return [(UNDEFINED,) * 3] * (1 + parts)
        squares = [_fit_to_folds((fold.copy() for fold in self._folds), across=True)]
        for part in range(parts):
            left = (fold.leave_out(self._cell(i, part)) for i, fold in enumerate(self._folds))
            squares.append(_fit_to_folds(left, across=self._width <= WIDEST_HELD_OUT))
        return squares

    @lazy_property
    def _folds(self) -> list[Moments]:
        """Moments of each fold."""
        parts = range(len(self.parts) + 1)  # the last part has the rows in no other
        return [
            Moments.sum_sets(self._cell(fold, part) for part in parts)
            for fold in self._fold_numbers
        ]

    def _cell(self, fold: int, part: int) -> Moments:
        """Moments of the rows of a part in a fold."""
        if (fold, part) in self._kept:
            return self._kept[fold, part]
        moments = Moments(self.x.shape[1], self.y.shape[1], self.is_increment)
        numbers = np.flatnonzero((self._fold_of == fold) & (self._part_of == part))
        for block in split_numbers(numbers):
            moments.add(*self.read_rows(block))
        if self._width <= NARROW:
            self._kept[fold, part] = moments
        return moments

    @lazy_property
    def ratios_and_cosines(self) -> tuple[np.ndarray, np.ndarray]:
        """For each vector, the length of the increment over that of y, and the cosine of x and y; NaN if undefined."""
        ratios, cosines = np.full((2, len(self)), math.nan)
        if self.is_increment:
            for block in split_numbers(np.arange(len(self))):
                x, increment = self.read_rows(block)
                y = x + increment
                before, after, change = (
                    np.sqrt(np.einsum("ij,ij->i", z, z)) for z in (x, y, increment)
                )
                with np.errstate(divide="ignore", invalid="ignore"):
                    ratios[block] = np.where(after > 0, change / after, math.nan)
                    products = np.einsum("ij,ij->i", x, y) / before / after
                cosines[block] = np.clip(products, -1, 1)
        return ratios, cosines


def _fit_to_folds(folds: Iterable[Moments], *, across: bool) -> tuple[Squares, Squares, Squares]:
    """Return sums of squares of both folds by the map of the other one, and of each fold by its own.

    The matrices of the moments are overwritten.
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
    """Return an array or tensor of two dimensions and finite real numbers unchanged."""
    arrays.require_plain_values(X, name)
    array = X.detach() if hasattr(X, "detach") else np.asanyarray(X)
    arrays.read_matrix(array[:1] if array.ndim == 2 else array, name, finite=False)
    arrays.require_finite(array, name)
    return array


def _copy_as_float64(rows: Any) -> np.ndarray:
    """Convert rows to float64."""
    if isinstance(rows, np.ndarray):
        return rows.astype(np.float64, copy=False)
    return rows.cpu().double().numpy()
