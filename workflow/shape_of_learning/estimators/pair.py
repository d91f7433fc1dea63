"""Vectors before and after a block, and the fits that measures of the two share."""

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from shape_of_learning.estimators.arrays import (
    as_matrix,
    as_windows,
    require_finite,
    require_plain_values,
)
from shape_of_learning.estimators.linear_fits import (
    UNDEFINED,
    Fit,
    Moments,
    Squares,
    held_out,
    together,
)

# Rows that are taken at a time: of 4096 numbers, 16 MiB.
ROWS = 512
FOLDS = 2
# Up to this width the moments of 16 parts of two folds are kept, half a gigabyte at most; of wider vectors
# they are summed anew where they are needed.
NARROW = 1024
# Beyond this width, held-out residuals without parts would take longer than all the rest.
WIDEST_HELD_OUT = 2048

Parts = Sequence[np.ndarray]


class Pair:
    """Hidden states before and after a block, of the same tokens.

    Parameters
    ----------
    x, y : array_like or torch.Tensor, shape (n, d), (n, e)
        Of any real dtype. They are read in blocks of rows, as float64, and never copied as a whole.
    windows : array_like of int, shape (n,), optional
        The window of each vector. Held-out scores need them.

    Attributes
    ----------
    x, y : ndarray or torch.Tensor
    is_increment : bool
        Whether widths are equal, so that there is an increment y - x.
    folds : list of ndarray of int
        Rows of the folds: every second window, in the order of their numbers. One fold without windows.

    Raises
    ------
    ValueError
        If x or y is not two-dimensional or not of real numbers, or if lengths differ; if there is NaN or
        infinity, :class:`.NotFiniteError`.
    """

    def __init__(self, x: Any, y: Any, windows: Any = None):
        self.x, self.y = _readable(x, "X"), _readable(y, "Y")
        if len(self.x) != len(self.y):
            raise ValueError(
                f"X and Y must have the same rows, but have {len(self.x)} and {len(self.y)}"
            )
        self.is_increment = self.x.shape[1] == self.y.shape[1]
        every = np.arange(len(self.x))
        self.folds = [every]
        if windows is not None:
            names = as_windows(windows, len(self.x))
            fold_of = np.unique(names, return_inverse=True)[1] % FOLDS
            self.folds = [every[fold_of == fold] for fold in range(FOLDS)]
        self._fits: tuple[tuple[bytes, ...], _FitsWithoutParts] | None = None

    def __len__(self) -> int:
        return len(self.x)

    @property
    def width(self) -> int:
        """That of x or of y, the larger one."""
        return max(self.x.shape[1], self.y.shape[1])

    def rows(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and targets (see :class:`.Moments`) of some rows, float64."""
        x, t = _doubles(self.x[numbers]), _doubles(self.y[numbers])
        if self.is_increment:
            t -= x
        return x, t

    def moments(self, numbers: np.ndarray) -> Moments:
        """Accumulate the moments of some rows, in blocks."""
        found = Moments.none(self.x.shape[1], self.y.shape[1], self.is_increment)
        for some in blocks(numbers):
            found.add(*self.rows(some))
        return found

    def fits_without(self, parts: Parts) -> "_FitsWithoutParts":
        """Fits on all rows and without each part; the latest are kept for the other measures."""
        key = tuple(np.asarray(part).tobytes() for part in parts)
        if self._fits is None or self._fits[0] != key:
            self._fits = key, _FitsWithoutParts(self, parts)
        return self._fits[1]

    @cached_property
    def ratios_and_cosines(self) -> tuple[np.ndarray, np.ndarray]:
        """Of each vector, length of the increment over that of y, and cosine of x and y; NaN if undefined."""
        ratios, cosines = np.full((2, len(self)), math.nan)
        if self.is_increment:
            for some in blocks(np.arange(len(self))):
                x, added = self.rows(some)
                y = x + added
                before, after, change = (
                    np.sqrt(np.einsum("ij,ij->i", z, z)) for z in (x, y, added)
                )
                with np.errstate(divide="ignore", invalid="ignore"):
                    ratios[some] = np.where(after > 0, change / after, math.nan)
                    products = np.einsum("ij,ij->i", x, y) / before / after
                cosines[some] = np.clip(products, -1, 1)
        return ratios, cosines


class _FitsWithoutParts:
    """Least squares on all rows of a pair, and on those that are left without each of some parts.

    Sums over a part are subtracted from those over all rows, and what is left is fitted anew. First-order
    influence instead of refits makes standard errors a sixth too small.
    """

    def __init__(self, pair: Pair, parts: Parts):
        self.pair, self.count = pair, len(parts)
        part_of = np.full(len(pair), len(parts))
        for number, part in enumerate(parts):
            part_of[part] = number
        # Of each fold the rows of each part, and last those in no part.
        every = range(len(parts) + 1)
        self.rows = [[fold[part_of[fold] == part] for part in every] for fold in pair.folds]
        self._kept: dict[tuple[int, int], Moments] = {}

    def cell(self, fold: int, part: int) -> Moments:
        """Moments of the rows of a part in a fold."""
        if (fold, part) in self._kept:
            return self._kept[fold, part]
        found = self.pair.moments(self.rows[fold][part])
        if self.pair.width <= NARROW:
            self._kept[fold, part] = found
        return found

    @cached_property
    def folds(self) -> list[Moments]:
        """Moments of each fold."""
        return [
            together(self.cell(fold, part) for part in range(self.count + 1))
            for fold in range(len(self.rows))
        ]

    @cached_property
    def fit(self) -> Fit:
        """Least squares on all rows."""
        return Fit(together(self.folds))

    @cached_property
    def in_sample(self) -> list[Squares]:
        """Sums of squares of the fit on all rows, and without each part."""
        found = [self.fit.squares]
        if not self.count:
            return found
        whole = together(self.folds)
        for part in range(self.count):
            left = whole.without(together(self.cell(i, part) for i in range(len(self.folds))))
            found.append(Fit(left).squares if left.n else UNDEFINED)
        return found

    @cached_property
    def held_out(self) -> list[Squares]:
        """Those of each fold by the map of the other one, of all rows and without each part."""
        if len(self.folds) != FOLDS:
            return [UNDEFINED] * (1 + self.count)
        found = [_held_out([fold.copy() for fold in self.folds])]
        if self.pair.width > WIDEST_HELD_OUT:
            return found + [UNDEFINED] * self.count
        for part in range(self.count):
            left = [fold.without(self.cell(i, part)) for i, fold in enumerate(self.folds)]
            found.append(_held_out(left))
        return found


def _held_out(folds: list[Moments]) -> Squares:
    if min(fold.n for fold in folds) < 2:
        return UNDEFINED
    return held_out(*(Fit(fold) for fold in folds))


def blocks(numbers: np.ndarray) -> Iterator[np.ndarray]:
    """Divide row numbers into blocks."""
    for start in range(0, len(numbers), ROWS):
        yield numbers[start : start + ROWS]


def _readable(X: Any, name: str) -> Any:
    """An array or tensor of two dimensions and finite real numbers, as it is."""
    require_plain_values(X, name)
    array = X
    if hasattr(X, "detach"):
        array = X.detach()
    elif not isinstance(X, np.ndarray):
        array = as_matrix(X, name, finite=False)
    as_matrix(array[:1] if array.ndim == 2 else array, name, finite=False)
    require_finite(array, name)
    return array


def _doubles(rows: Any) -> np.ndarray:
    """Copy rows, which indexing has copied already if they are of float64."""
    if isinstance(rows, np.ndarray):
        return rows.astype(np.float64, copy=False)
    return rows.cpu().double().numpy()
