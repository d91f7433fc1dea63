"""Vectors before and after a block, and what measures of the two share."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from shape_of_learning.estimators.arrays import COMFORTABLE_EXPONENT, as_matrix
from shape_of_learning.estimators.least_squares import Fit
from shape_of_learning.estimators.moments import Moments, together

# Rows that are taken at a time: of 4096 numbers, 16 MiB.
ROWS = 512
FOLDS = 2
# Up to this width the moments of 16 parts of two folds take half a gigabyte at most.
NARROW = 1024


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
    windows : ndarray of int64, shape (n,), or None
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
        self.windows = None if windows is None else _windows(windows, len(self.x))
        largest = max(_largest(self.x, "X"), _largest(self.y, "Y"))
        # One power of two for both, by which squares stay in the range of float64; scores do not change.
        _, exponent = math.frexp(largest)
        is_extreme = abs(exponent) > COMFORTABLE_EXPONENT
        self.factor = math.ldexp(1.0, min(-exponent, 1000)) if is_extreme else 1.0
        every = np.arange(len(self.x))
        self.folds = [every]
        if self.windows is not None:
            second = np.unique(self.windows, return_inverse=True)[1] % FOLDS
            self.folds = [every[second == fold] for fold in range(FOLDS)]
        self._cells: Any = None
        self._shared: dict[Any, Any] = {}

    def __len__(self) -> int:
        return len(self.x)

    def rows(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and targets (see :class:`.Moments`) of some rows, float64, that can be squared."""
        x, t = _doubles(self.x[numbers]), _doubles(self.y[numbers])
        if self.factor != 1:
            x, t = x * self.factor, t * self.factor
        if self.is_increment:
            t -= x
        return x, t

    def moments(self, numbers: np.ndarray, *, matrices: bool = True) -> Moments:
        """Accumulate the moments of some rows, in blocks."""
        shape = self.x.shape[1], self.y.shape[1]
        found = Moments.none(*shape, self.is_increment, matrices=matrices)
        for some in blocks(numbers):
            found.add(*self.rows(some))
        return found

    @property
    def is_narrow(self) -> bool:
        """Whether moments are so small that those of many sets of rows are kept."""
        return max(self.x.shape[1], self.y.shape[1]) <= NARROW

    def cells(
        self, parts: Sequence[np.ndarray]
    ) -> tuple[list[list[np.ndarray]], list[list[Moments]]]:
        """Rows of each part in each fold, and last those in no part, [fold][part]; and their moments.

        They have matrices if the pair is narrow. The latest are kept.
        """
        key = _key(parts)
        if self._cells is None or self._cells[0] != key:
            part_of = np.full(len(self), len(parts))
            for number, part in enumerate(parts):
                part_of[part] = number
            every = range(len(parts) + 1)
            rows = [[fold[part_of[fold] == part] for part in every] for fold in self.folds]
            moments = [
                [self.moments(cell, matrices=self.is_narrow) for cell in of_fold]
                for of_fold in rows
            ]
            self._cells = key, rows, moments
        return self._cells[1:]

    @cached_property
    def fold_moments(self) -> list[Moments]:
        """Moments of each fold."""
        if self.is_narrow and self._cells is not None:
            return [together(cells) for cells in self._cells[2]]
        return [self.moments(fold) for fold in self.folds]

    @cached_property
    def fit(self) -> Fit:
        """Least squares on all rows."""
        return Fit(together(self.fold_moments))

    @cached_property
    def fold_fits(self) -> list[Fit]:
        """Least squares on each fold."""
        if self.is_narrow:
            return [Fit(moments.copy()) for moments in self.fold_moments]
        self.fit  # noqa: B018, after which the moments may be used up
        moments = self.fold_moments
        del self.fold_moments
        return [Fit(moments.pop(0)) for _ in self.folds]

    def shared(self, name: str, parts: Sequence[np.ndarray], make: Callable[[], Any]) -> Any:
        """What `make` returns, made once for these parts."""
        key = name, _key(parts)
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]


def _key(parts: Sequence[np.ndarray]) -> tuple[bytes, ...]:
    return tuple(np.asarray(part).tobytes() for part in parts)


def blocks(numbers: np.ndarray) -> Iterator[np.ndarray]:
    """Divide row numbers into blocks."""
    for start in range(0, len(numbers), ROWS):
        yield numbers[start : start + ROWS]


def _readable(X: Any, name: str) -> Any:
    """An array or tensor of two dimensions and real numbers, as it is."""
    array = X
    if hasattr(X, "detach"):
        array = X.detach()
    elif not isinstance(X, np.ndarray):
        array = as_matrix(X, name, finite=False)
    as_matrix(array[:1] if array.ndim == 2 else array, name, finite=False)
    return array


def _doubles(rows: Any) -> np.ndarray:
    """Copy rows, which indexing has copied already if they are of float64."""
    return (
        rows.astype(np.float64, copy=False)
        if isinstance(rows, np.ndarray)
        else rows.cpu().double().numpy()
    )


def _largest(X: Any, name: str) -> float:
    low, high = float(X.min()), float(X.max())
    if not (math.isfinite(low) and math.isfinite(high)):
        as_matrix(X, name)  # which says where
    return max(high, -low)


def _windows(windows: Any, count: int) -> np.ndarray:
    array = np.asarray(windows.detach().cpu() if hasattr(windows, "detach") else windows)
    if array.shape != (count,) or array.dtype.kind not in "iu":
        raise ValueError(
            f"windows must hold one whole number for each of the {count} rows, but has the shape "
            f"{array.shape} and holds {array.dtype}"
        )
    return array
