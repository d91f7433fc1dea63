"""Hold vectors before and after a block, and compute the fits that their measures share."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from shape_of_learning.estimators import arrays
from shape_of_learning.estimators.linear_fits import UNDEFINED, Fit, Moments, Squares

# Rows that are read at a time: 16 MiB for 4096 numbers per row.
ROWS = 512
FOLDS = 2
# Up to this width the moments of 16 parts of two folds are kept, at most half a gigabyte; moments of wider vectors are
# computed again for each use.
NARROW = 1024
# For wider vectors, held-out residuals without each part would take longer than everything else.
WIDEST_HELD_OUT = 2048


Value = TypeVar("Value")


class lazy_property(Generic[Value]):
    """A property that is computed once.

    In `functools.cached_property` of Python 3.11, threads wait for each other.
    """

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
        Whether widths are equal, so that there is an increment y - x, and whether there are windows.

    Raises
    ------
    ValueError
        If x or y is not two-dimensional or not of real numbers, or if lengths differ. For NaN and infinity,
        :class:`.NotFiniteError`.

    Notes
    -----
    For a jackknife value, the sums over a part are subtracted from the sums over all rows, and the fit is computed
    again. First-order influence instead of new fits would make standard errors a sixth too small.
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
        """Sums of squares of the fit to all rows, then of the fits without each part."""
        squares = [self.fit.squares]
        if not self.parts:
            return squares
        whole = Moments.sum_sets(self._folds)
        for part in range(len(self.parts)):
            remainder = whole.leave_out(
                Moments.sum_sets(self._sum_cell(fold, part) for fold in self._fold_numbers)
            )
            squares.append(Fit(remainder).squares if remainder.n else UNDEFINED)
        return squares

    @property
    def held_out(self) -> list[Squares]:
        """Sums of squares of each fold by the map of the other fold, for all rows, then without each part."""
        return [cross_squares for cross_squares, *_ in self._fold_squares]

    @property
    def halves(self) -> list[tuple[Squares, Squares]]:
        """Sums of squares of each fold by its own map, for all rows, then without each part; NaN without windows."""
        return [(first, second) for _, first, second in self._fold_squares]

    @lazy_property
    def _fold_squares(self) -> list[tuple[Squares, Squares, Squares]]:
        parts = len(self.parts)
        if len(self._folds) != FOLDS:
            return [(UNDEFINED,) * 3] * (1 + parts)
        squares = [_fit_to_folds((fold.copy() for fold in self._folds), is_crossed=True)]
        for part in range(parts):
            remainders = (
                fold.leave_out(self._sum_cell(i, part)) for i, fold in enumerate(self._folds)
            )
            squares.append(_fit_to_folds(remainders, is_crossed=self._width <= WIDEST_HELD_OUT))
        return squares

    @lazy_property
    def _folds(self) -> list[Moments]:
        """The moments of each fold."""
        parts = range(len(self.parts) + 1)  # the last part has the rows that are in no part
        return [
            Moments.sum_sets(self._sum_cell(fold, part) for part in parts)
            for fold in self._fold_numbers
        ]

    def _sum_cell(self, fold: int, part: int) -> Moments:
        """Compute the moments of the rows of a part in a fold."""
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
        """The length of the increment over the length of y, and the cosine of x and y, per vector; NaN if undefined."""
        ratios, cosines = np.full((2, len(self)), math.nan)
        if self.is_increment:
            for block in split_numbers(np.arange(len(self))):
                x, increment = self.read_rows(block)
                y = x + increment
                x_norms, y_norms, increment_norms = (
                    np.sqrt(np.einsum("ij,ij->i", z, z)) for z in (x, y, increment)
                )
                with np.errstate(divide="ignore", invalid="ignore"):
                    ratios[block] = np.where(y_norms > 0, increment_norms / y_norms, math.nan)
                    products = np.einsum("ij,ij->i", x, y) / x_norms / y_norms
                cosines[block] = np.clip(products, -1, 1)
        return ratios, cosines


def _fit_to_folds(
    folds: Iterable[Moments], *, is_crossed: bool
) -> tuple[Squares, Squares, Squares]:
    """Return sums of squares of both folds by the map of the other fold, and of each fold by its own map.

    This overwrites the matrices of the moments.
    """
    first, second = folds
    if min(first.n, second.n) < 2:
        return (UNDEFINED,) * 3
    first_fit, second_fit = Fit(first), Fit(second)
    first_squares, second_squares = first_fit.squares, second_fit.squares
    if not (is_crossed and first_fit.is_defined and second_fit.is_defined):
        return UNDEFINED, first_squares, second_squares
    residual = first_fit.sum_squares_on(second_fit) + second_fit.sum_squares_on(first_fit)
    return (
        Squares(
            first_squares.n + second_squares.n,
            0,
            residual,
            first_squares.tt + second_squares.tt,
            first_squares.yy + second_squares.yy,
        ),
        first_squares,
        second_squares,
    )


def split_numbers(numbers: np.ndarray) -> Iterator[np.ndarray]:
    """Divide row numbers into blocks."""
    for start in range(0, len(numbers), ROWS):
        yield numbers[start : start + ROWS]


def _check_readable(X: Any, name: str) -> Any:
    """Return an array or tensor unchanged; ValueError unless it holds finite real numbers in two dimensions."""
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
