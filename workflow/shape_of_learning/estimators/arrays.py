"""Arrays as they come, turned into float64 matrices that the estimators can trust."""

import hashlib
import math
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

# Magnitudes between 2^-400 and 2^400, which include all of float32, are squared and added as they are.
COMFORTABLE_EXPONENT = 400
# Rows that are looked at several times are taken so many bytes at a time.
CACHE_BYTES = 2**20
# Types of tensors whose squares, sums of them included, cannot leave the range of float64.
SMALL_TYPES = ("torch.float32", "torch.bfloat16", "torch.float16")


class NotFiniteError(ValueError):
    """NaN or infinity, such as the hidden states of a broken checkpoint hold."""


def is_on_gpu(X: Any) -> bool:
    """Whether `X` is a tensor on a GPU, of a type that is measured there."""
    device = getattr(X, "device", None)
    return getattr(device, "type", "cpu") == "cuda" and str(X.dtype) in SMALL_TYPES


def as_matrix(X: ArrayLike, name: str = "X", *, finite: bool = True) -> np.ndarray:
    """Read a two-dimensional array of real numbers as float64.

    Parameters
    ----------
    X : array_like or torch.Tensor, shape (n, d)
        Any real dtype; float16, bfloat16, float32, integers and booleans are represented exactly
        (integers up to 2^53). A tensor may live on any device and require gradients.
    name : str
        How the caller's argument is called, for the messages.
    finite : bool
        Whether to refuse NaN and infinity.

    Returns
    -------
    ndarray of float64, shape (n, d)
        `X` itself where it is such an array already: never write into it.

    Raises
    ------
    ValueError
        If `X` is not numeric, not two-dimensional or empty; if it holds NaN or infinity,
        :class:`NotFiniteError`.
    """
    array = _as_array(X, name)
    require_matrix(array, name)
    try:
        matrix = array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold real numbers, not {array.dtype}") from error
    if finite and not is_finite(matrix):
        row = int(np.argmin(np.isfinite(matrix).all(axis=1)))
        raise NotFiniteError(f"{name} holds NaN or infinity, first in row {row}")
    return matrix


def require_matrix(X: Any, name: str = "X") -> None:
    """Raise ValueError if an array or a tensor has no rows and columns."""
    if X.ndim != 2:
        raise ValueError(
            f"{name} must have two dimensions (n, d), but its shape is {tuple(X.shape)}"
        )
    if 0 in X.shape:
        raise ValueError(f"{name} is empty: its shape is {tuple(X.shape)}")


def is_finite(X: Any) -> bool:
    """Whether an array or a tensor of real numbers holds neither NaN nor infinity."""
    return all(math.isfinite(float(extreme)) for extreme in (X.min(), X.max()))


def as_count(value: Any, name: str, least: int) -> int:
    """Read a whole number that must be at least `least`.

    Raises
    ------
    ValueError
        If it is no whole number or too small.
    """
    try:
        count = operator.index(value)
    except TypeError as error:
        raise ValueError(f"{name} must be a whole number, not {value!r}") from error
    if count < least:
        raise ValueError(f"{name} must be at least {least}, not {count}")
    return count


def distinct_rows(X: ArrayLike) -> np.ndarray:
    """Find the first appearance of every distinct row.

    Parameters
    ----------
    X : array_like or torch.Tensor, shape (n, d)

    Returns
    -------
    ndarray of int, shape (m,)
        Ascending row numbers. Rows are the same only if they are equal bit by bit, except that -0.0
        equals 0.0; no tolerance is involved.

    Raises
    ------
    ValueError
        As :func:`as_matrix`.

    Examples
    --------
    >>> distinct_rows([[1.0, 0.0], [2.0, 0.0], [1.0, -0.0]])
    array([0, 1])
    """
    if not is_on_gpu(X):
        X = as_matrix(X)
    # Rows whose first number is nobody else's, as in float32 nearly all are, need no further look.
    first_column = as_matrix(X[:, :1])[:, 0]
    _, group, sizes = np.unique(first_column, return_inverse=True, return_counts=True)
    is_first = sizes[group] == 1
    shared, seen = np.flatnonzero(~is_first), set()
    for some in _rows_in_cache(len(shared), X.shape[1]):
        for row, digest in zip(shared[some], _digests(as_matrix(X[shared[some]])), strict=True):
            is_first[row] = digest not in seen
            seen.add(digest)
    return np.flatnonzero(is_first)


class DistinctRowCount:
    """Count distinct rows, as :func:`distinct_rows` tells them apart, of a cloud that comes in blocks.

    Of each row its SHA-256 digest is kept, not the row. All blocks must have one dtype.
    """

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def __len__(self) -> int:
        return len(self._seen)

    def add(self, X: np.ndarray) -> None:
        """Take in rows, shape (n, d), of a real dtype."""
        self._seen.update(_digests(X))


def _digests(X: np.ndarray) -> Iterator[bytes]:
    """SHA-256 of each row; of rows that are equal, the same."""
    # Adding zero turns -0.0 into 0.0 and leaves the dtype.
    for row in np.ascontiguousarray(X + X.dtype.type(0)):
        yield hashlib.sha256(row).digest()


def squarable(X: np.ndarray) -> np.ndarray:
    """Divide by a power of two where squares, or sums of them, would leave the range of float64.

    The largest magnitude is then in [1/2, 1). All but extreme matrices are returned as they are: never write
    into the result.
    """
    return _scaled(X, max(X.max(), -X.min()))


def centred(X: np.ndarray) -> np.ndarray:
    """Subtract the mean row; of extreme matrices, :func:`squarable`.

    Parameters
    ----------
    X : ndarray of float64, shape (n, d)

    Returns
    -------
    ndarray of float64, shape (n, d)
        Zero throughout if every column is constant to rounding: its largest and smallest entries
        are within four units in the last place of float64.

    Notes
    -----
    The mean is subtracted twice. The rounding error of the first mean is proportional to the common
    offset, which in hidden states can be a thousand times the signal; that of the second to the
    signal only. A constant column becomes exactly zero.
    """
    low, high, mean = _extremes_and_mean(X)
    magnitude = np.maximum(high, -low)
    scaled = _scaled(X, magnitude.max())
    if scaled is not X:
        return centred(scaled)
    if (high - low <= 4 * np.finfo(float).eps * magnitude).all():
        return np.zeros_like(X)
    X, rest = np.empty_like(X), 0.0
    for rows in _rows_in_cache(*X.shape):
        rest = rest + np.subtract(scaled[rows], mean, out=X[rows]).sum(axis=0)
    X -= rest / len(X)
    return _scaled(X, (high - low).max())  # what is left may be small beside the offset


def _scaled(X: np.ndarray, largest: float) -> np.ndarray:
    """Divide by the power of two next to the largest magnitude, or about as much, if that is extreme."""
    _, exponent = np.frexp(largest)
    return X if abs(exponent) <= COMFORTABLE_EXPONENT else np.ldexp(X, -exponent)


def _extremes_and_mean(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Least, greatest and mean value of each column; the rows come from memory once."""
    low, high, total = X[0], X[0], 0.0
    # The sums of extreme matrices may overflow; their extremes are enough.
    with np.errstate(over="ignore", invalid="ignore"):
        for rows in _rows_in_cache(*X.shape):
            block = X[rows]
            low = np.minimum(low, block.min(axis=0))
            high = np.maximum(high, block.max(axis=0))
            total = total + block.sum(axis=0)
        return low, high, total / len(X)


def _rows_in_cache(n: int, d: int) -> Iterator[slice]:
    """Divide n rows of d float64 numbers."""
    size = max(1, CACHE_BYTES // (8 * d))
    for start in range(0, n, size):
        yield slice(start, start + size)


def _as_array(X: ArrayLike, name: str) -> np.ndarray:
    # A tensor is known by what it can do, so that torch need not be imported to recognise one.
    if hasattr(X, "detach") and hasattr(X, "cpu"):
        tensor = X.detach().cpu()
        if tensor.is_complex():
            raise ValueError(f"{name} must hold real numbers, not {tensor.dtype}")
        return tensor.double().numpy()  # NumPy knows no bfloat16
    try:
        array = np.asarray(X)
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"{name} must have two dimensions (n, d): {error}") from error
    if array.dtype.kind in "cOSUMm":
        raise ValueError(f"{name} must hold real numbers, not {array.dtype}")
    return array
