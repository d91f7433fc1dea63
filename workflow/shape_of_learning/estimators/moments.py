"""First and second moments of a cloud from one pass over its rows, for clouds larger than memory."""

from collections.abc import Collection, Iterator

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.estimators.arrays import COMFORTABLE_EXPONENT, NotFiniteError, as_matrix
from shape_of_learning.estimators.directions import DirectionSum

# Rows are taken in so many bytes of float64 at a time: 512 rows of 4096 numbers. Fewer, and the matrix
# product waits for the d x d sums that it adds to; more are no faster.
BLOCK_BYTES = 1 << 24


class Moments:
    r"""What estimators of isotropy need to know of n rows, taken in by blocks in any order.

    Kept are n, the mean, the extremes of each coordinate, the sum of unit vectors and the scatter
    matrix about the mean,

    .. math:: C = \sum_i (x_i - \bar x)(x_i - \bar x)^T, \qquad
              X^T X = C + n \, \bar x \bar x^T .

    Parameters
    ----------
    width : int
        Number of coordinates, d.
    parts : collection of str
        Which costly parts to keep: ``"scatter"`` (n d^2 operations, 8 d^2 bytes), ``"directions"``
        (unit vectors about the origin) and ``"centred_directions"`` (about the mean, which takes a
        second pass, see :meth:`add_directions`).

    Attributes
    ----------
    n : int
        Rows so far.
    low, high : ndarray of float64, shape (d,)
        Least and greatest value of each coordinate.
    scatter : ndarray of float64, shape (d, d), or None
        Upper triangle of C, in units of ``4 ** exponent``.
    directions, centred_directions : DirectionSum or None

    Notes
    -----
    Two sets of rows A and B are merged by Chan, Golub and LeVeque's formula

    .. math:: C = C_A + C_B + \frac{n_A n_B}{n_A + n_B} \, \delta \delta^T,
              \qquad \delta = \bar x_B - \bar x_A ,

    all of whose terms are positive: nothing cancels, whatever the offset and the order of rows. A block
    is taken in as such a merger whose last term is one more row of its matrix product. The first row
    is subtracted from all others first, so that an offset costs no digits of the mean either.
    Coordinates are scaled by a power of two where their squares would leave the range of float64.

    References
    ----------
    Chan, Golub, LeVeque, Algorithms for computing the sample variance, The American Statistician
    37 (1983) 242-247; for matrices, Ross et al., Incremental learning for robust visual tracking,
    International Journal of Computer Vision 77 (2008) 125-141, lemma 1.
    """

    def __init__(self, width: int, parts: Collection[str] = ("scatter", "directions")):
        self.width = width
        self.n = 0
        self.low = np.full(width, np.inf)
        self.high = np.full(width, -np.inf)
        # In Fortran's order, in which BLAS adds to the matrix where it lies.
        self.scatter = np.zeros((width, width), order="F") if "scatter" in parts else None
        self.directions = DirectionSum(width) if "directions" in parts else None
        self.centred_directions: DirectionSum | None = None
        self._exponent: int | None = None  # unknown until a number is not zero
        self._origin = np.zeros(width)
        # Sum of the rows less the origin, and what rounding has taken from it.
        self._sum, self._lost = np.zeros(width), np.zeros(width)

    @property
    def exponent(self) -> int:
        """Power of two that deviations are measured in; 0 for all but extreme values."""
        return self._exponent or 0

    @property
    def mean(self) -> np.ndarray:
        """Mean row."""
        return self._origin + np.ldexp(self._offset, self.exponent)

    @property
    def is_constant(self) -> bool:
        """Whether every coordinate is constant to four units in the last place of float64."""
        magnitude = np.maximum(self.high, -self.low)
        with np.errstate(over="ignore"):
            width = self.high - self.low
        return bool((width <= 4 * np.finfo(float).eps * magnitude).all())

    def about_origin(self) -> tuple[float, np.ndarray]:
        """Return a factor a and a vector v, with which ``X.T @ X`` is ``a * scatter + outer(v, v)``.

        Both are scaled, the product by some power of four: neither a large mean nor a large scatter
        leaves the range of float64.
        """
        largest = _exponent(max(float(self.high.max()), -float(self.low.min())))
        if self._exponent is None:  # All rows are the same, and the scatter is zero.
            return 1.0, np.sqrt(self.n) * np.ldexp(self._origin, -(largest or 0))
        unit = self.exponent if largest is None else max(self.exponent, largest)
        down = self.exponent - unit
        mean = np.ldexp(self._origin, -unit) + np.ldexp(self._offset, down)
        return float(np.ldexp(1.0, 2 * down)), np.sqrt(self.n) * mean

    def add(self, X: ArrayLike) -> None:
        """Take in more rows.

        Parameters
        ----------
        X : array_like or torch.Tensor, shape (n, d)
            Any real dtype; computed in float64, a block at a time.

        Raises
        ------
        ValueError
            If `X` is not two-dimensional or not `width` wide; if it holds NaN or infinity,
            :class:`~shape_of_learning.estimators.arrays.NotFiniteError`. Rows before those may have been taken in.
        """
        for block in row_blocks(X):
            self._add_block(block)

    def _add_block(self, rows: np.ndarray) -> None:
        if rows.shape[1] != self.width:
            raise ValueError(f"X is {rows.shape[1]} wide, not {self.width}")
        low, high = rows.min(axis=0), rows.max(axis=0)
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise NotFiniteError("X holds NaN or infinity")
        np.minimum(self.low, low, out=self.low)
        np.maximum(self.high, high, out=self.high)
        if self.directions is not None:
            self.directions.add(rows)
        if self.n == 0:
            self._origin = rows[0].copy()
        self._make_room(np.stack([low, high]))

        count = len(rows)
        # One row more than there are, for the distance between the means.
        shifted = np.empty((count + 1, self.width))
        self._deviations(rows, out=shifted[:count])
        total = _column_sums(shifted[:count])
        if self.scatter is not None:
            mean = total / count
            shifted[:count] -= mean
            shifted[count] = np.sqrt(self.n * count / (self.n + count)) * (mean - self._offset)
            self.scatter = _with_products(self.scatter, shifted)
        self._add_sum(count, total)

    def merge(self, other: "Moments") -> None:
        """Take in all rows that `other` has seen, which keeps the same parts and stays as it is."""
        if other.n == 0:
            return
        if self.n == 0:
            self._origin = other._origin.copy()
        self._make_room(other._origin[None], other._exponent)
        down = other.exponent - self.exponent  # from the units of `other` to those of `self`
        mean = self._deviations(other._origin) + np.ldexp(other._offset, down)
        if self.scatter is not None:
            self.scatter += np.ldexp(other.scatter, 2 * down) if down else other.scatter
            weight = np.sqrt(self.n * other.n / (self.n + other.n))
            self.scatter = _with_products(self.scatter, weight * (mean - self._offset)[None])
        self._add_sum(other.n, other.n * mean)
        np.minimum(self.low, other.low, out=self.low)
        np.maximum(self.high, other.high, out=self.high)
        if self.directions is not None:
            self.directions.merge(other.directions)

    def add_directions(self, X: ArrayLike) -> None:
        """Take in the direction of rows from the mean, once :meth:`add` has seen all rows.

        One pass cannot: the length of ``x - mean`` is known only with the mean.
        """
        if self.centred_directions is None:
            # A row equal to the mean keeps the rounding of the mean, whose direction says nothing.
            extremes = self._deviations(np.stack([self.low, self.high])) - self._offset
            reach = np.abs(extremes).max(axis=0)
            noise = 8 * np.finfo(float).eps * float(np.linalg.norm(reach))
            self.centred_directions = DirectionSum(self.width, noise)
        for rows in row_blocks(X):
            self.centred_directions.add(self._deviations(rows) - self._offset)

    def _add_sum(self, count: int, total: np.ndarray) -> None:
        # Knuth's exact sum of two: `_lost` is what the rounding of `_sum` leaves over.
        old, self._sum = self._sum, self._sum + total
        added = self._sum - old
        self._lost += (old - (self._sum - added)) + (total - added)
        self.n += count

    @property
    def _offset(self) -> np.ndarray:
        # Mean row less the origin, in units of 2 ** exponent.
        return (self._sum + self._lost) / max(self.n, 1)

    def _deviations(self, rows: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Subtract the origin, in units of ``2 ** exponent``."""
        if self.exponent > 0:  # The difference itself might overflow.
            rows = np.ldexp(rows, -self.exponent)
            return np.subtract(rows, np.ldexp(self._origin, -self.exponent), out=out)
        deviations = np.subtract(rows, self._origin, out=out)
        if self.exponent < 0:
            np.ldexp(deviations, -self.exponent, out=deviations)
        return deviations

    def _make_room(self, rows: np.ndarray, exponent: int | None = None) -> None:
        """Raise the exponent to what the deviations of `rows` need, and to `exponent`."""
        with np.errstate(over="ignore"):
            needed = _exponent(float(np.abs(rows - self._origin).max()))
        if exponent is not None:
            needed = exponent if needed is None else max(needed, exponent)
        if needed is None or (self._exponent is not None and needed <= self._exponent):
            return
        if self._exponent is not None:
            down = self._exponent - needed
            for vector in (self._sum, self._lost):
                np.ldexp(vector, down, out=vector)
            if self.scatter is not None:
                np.ldexp(self.scatter, 2 * down, out=self.scatter)
        self._exponent = needed


def row_blocks(X: ArrayLike) -> Iterator[np.ndarray]:
    """Divide rows into float64 blocks of `BLOCK_BYTES`; NaN and infinity are let through."""
    if not hasattr(X, "shape") or len(X.shape) != 2:
        X = as_matrix(X, finite=False)
    step = rows_per_block(X.shape[1])
    for start in range(0, max(len(X), 1), step):
        yield as_matrix(X[start : start + step], finite=False)


def rows_per_block(width: int) -> int:
    """Return how many rows of so many numbers are taken in at a time."""
    return max(1, BLOCK_BYTES // (8 * max(width, 1)))


def _exponent(largest: float) -> int | None:
    if largest == 0:
        return None
    exponent = int(np.frexp(largest)[1]) if np.isfinite(largest) else np.finfo(float).maxexp + 1
    return 0 if abs(exponent) <= COMFORTABLE_EXPONENT else exponent


def _column_sums(X: np.ndarray) -> np.ndarray:
    # In two steps, by 32 rows and then over these: rounding grows with 32 + n/32 rows, not with n.
    whole = len(X) // 32 * 32
    parts = X[:whole].reshape(-1, 32, X.shape[1]).sum(axis=1)
    return parts.sum(axis=0) + X[whole:].sum(axis=0)


def _with_products(scatter: np.ndarray, rows: np.ndarray) -> np.ndarray:
    # Where the work is: scatter + rows.T @ rows, upper triangle only, in place.
    from scipy.linalg.blas import dsyrk

    return dsyrk(1.0, rows.T, beta=1.0, c=scatter, overwrite_c=True)
