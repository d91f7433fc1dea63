"""Arrays as they come, turned into float64 matrices that the estimators can trust.

A matrix is a NumPy array, or a tensor on a GPU: formulas are written with the functions that NumPy and
PyTorch both have (:func:`namespace`), and where the two differ, it is here.
"""

import hashlib
import math
import operator
import sys
from collections.abc import Iterator
from types import ModuleType
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


def namespace(X: Any) -> ModuleType:
    """Return the module whose functions take `X`: numpy, or torch if it is a tensor."""
    return np if isinstance(X, np.ndarray) else sys.modules["torch"]


def as_numpy(X: Any) -> np.ndarray:
    """Copy an array to host memory, unless it is there."""
    return X if isinstance(X, np.ndarray) else X.cpu().numpy()


def as_matrix(X: Any, name: str = "X", *, finite: bool = True, stay: bool = False) -> Any:
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
    stay : bool
        Whether a tensor on a GPU stays there, if it is of one of the :data:`SMALL_TYPES`.

    Returns
    -------
    ndarray, or torch.Tensor if it stays, of float64, shape (n, d)
        `X` itself where it is such an array already: never write into it.

    Raises
    ------
    ValueError
        If `X` is not numeric, not two-dimensional or empty; if it holds NaN or infinity,
        :class:`NotFiniteError`.
    """
    array = X.detach().double() if stay and is_on_gpu(X) else _as_array(X, name)
    _require_matrix(array, name)
    if isinstance(array, np.ndarray):
        try:
            array = array.astype(np.float64, copy=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must hold real numbers, not {array.dtype}") from error
    if finite:
        _require_finite(array, name)
    return array


def matrix_blocks(X: Any, rows: int, name: str = "X") -> Iterator[Any]:
    """Read a matrix as :func:`as_matrix`, `stay` included, so many rows at a time.

    Parameters
    ----------
    X : ndarray, torch.Tensor, h5py.Dataset or whatever else has a shape (n, d) and gives rows by slices
        No more of it than one block is in memory at once, beyond what is there already.
    rows : int
        Of a block; the last may have fewer.
    name : str
        As in :func:`as_matrix`; errors likewise.

    Yields
    ------
    ndarray or torch.Tensor of float64, shape (at most `rows`, d)
    """
    _require_matrix(X, name)
    for start in range(0, len(X), rows):
        block = as_matrix(X[start : start + rows], name, finite=False, stay=True)
        _require_finite(block, name, start)
        yield block


def _require_finite(array: Any, name: str, first: int = 0) -> None:
    """Raise NotFiniteError if rows, which are counted from `first`, hold NaN or infinity."""
    if not is_finite(array):
        row = first + int(np.argmin(as_numpy(namespace(array).isfinite(array).all(axis=1))))
        raise NotFiniteError(f"{name} holds NaN or infinity, first in row {row}")


def _require_matrix(X: Any, name: str) -> None:
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
    return first_appearances(as_matrix(X, stay=True))


def first_appearances(X: Any) -> np.ndarray:
    """Find distinct rows, as :func:`distinct_rows`, of what :func:`as_matrix` has read."""
    first = first_equals(X)
    return np.flatnonzero(first == np.arange(len(first)))


def first_equals(X: Any) -> np.ndarray:
    """Find for each row of what :func:`as_matrix` has read the first row that equals it, shape (n,)."""
    # Rows whose first number is nobody else's, as in float32 nearly all are, need no further look.
    _, group, sizes = np.unique(as_numpy(X[:, 0]), return_inverse=True, return_counts=True)
    first = np.arange(len(X))
    seen: dict[bytes, int] = {}
    shared = np.flatnonzero(sizes[group] > 1)
    for some in row_blocks(shared, CACHE_BYTES // (8 * X.shape[1])):
        for row, digest in zip(
            shared[some].tolist(), _digests(as_numpy(X[shared[some]])), strict=True
        ):
            first[row] = seen.setdefault(digest, row)
    return first


def _digests(X: np.ndarray) -> Iterator[bytes]:
    """SHA-256 of each row; of rows that are equal, the same."""
    # Adding zero turns -0.0 into 0.0 and leaves the dtype.
    for row in np.ascontiguousarray(X + X.dtype.type(0)):
        yield hashlib.sha256(row).digest()


def squarable(X: Any) -> Any:
    """Divide by a power of two where squares, or sums of them, would leave the range of float64.

    The largest magnitude is then in [1/2, 1). All but extreme matrices are returned as they are: never write
    into the result.
    """
    return _scaled(X, max(X.max(), -X.min()))


def centred(X: Any) -> Any:
    """Subtract the mean row; of extreme matrices, :func:`squarable`.

    Parameters
    ----------
    X : ndarray or torch.Tensor of float64, shape (n, d)

    Returns
    -------
    ndarray or torch.Tensor of float64, shape (n, d)
        Zero throughout if every column is constant to rounding: its largest and smallest entries
        are within four units in the last place of float64.

    Notes
    -----
    The mean is subtracted twice. The rounding error of the first mean is proportional to the common
    offset, which in hidden states can be a thousand times the signal; that of the second to the
    signal only. A constant column becomes exactly zero.
    """
    xp = namespace(X)
    low, high, mean = _extremes_and_mean(X)
    scaled = _scaled(X, xp.maximum(high, -low).max())
    if scaled is not X:
        return centred(scaled)
    if is_constant(low, high):
        return xp.zeros_like(X)
    X, rest = xp.empty_like(X), 0.0
    for rows in _blocks_in_cache(X):
        rest = rest + xp.subtract(scaled[rows], mean, out=X[rows]).sum(axis=0)
    X -= rest / len(X)
    return _scaled(X, (high - low).max())  # what is left may be small beside the offset


def is_constant(low: Any, high: Any) -> bool:
    """Whether every column, from `low` to `high`, is constant to four units in the last place of float64."""
    magnitude = namespace(low).maximum(high, -low)
    return bool((high - low <= 4 * np.finfo(float).eps * magnitude).all())


def row_blocks(X: Any, rows: int) -> Iterator[slice]:
    """Divide an array into blocks of so many rows, for the sake of a cache; on a GPU, one block is all."""
    size = max(1, rows if isinstance(X, np.ndarray) else len(X))
    for start in range(0, len(X), size):
        yield slice(start, start + size)


def _scaled(X: Any, largest: float) -> Any:
    """Divide by the power of two next to the largest magnitude, or about as much, if that is extreme."""
    _, exponent = math.frexp(largest)
    # Tensors that stay on a GPU are of types that are never so extreme.
    return X if abs(exponent) <= COMFORTABLE_EXPONENT else np.ldexp(X, -exponent)


def _extremes_and_mean(X: Any) -> tuple[Any, Any, Any]:
    """Least, greatest and mean value of each column; the rows come from memory once."""
    xp, low, high, total = namespace(X), X[0], X[0], 0.0
    # The sums of extreme matrices may overflow; their extremes are enough.
    with np.errstate(over="ignore", invalid="ignore"):
        for rows in _blocks_in_cache(X):
            block = X[rows]
            low = xp.minimum(low, xp.amin(block, axis=0))
            high = xp.maximum(high, xp.amax(block, axis=0))
            total = total + block.sum(axis=0)
        return low, high, total / len(X)


def _blocks_in_cache(X: Any) -> Iterator[slice]:
    return row_blocks(X, CACHE_BYTES // (8 * X.shape[1]))


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
