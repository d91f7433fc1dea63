"""Read arrays of any kind as float64 matrices, and check them.

A matrix is a NumPy array, or a tensor on a GPU. Formulas use the functions that NumPy and PyTorch share
(:func:`namespace`); this module handles the differences.
"""

import hashlib
import math
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

# Sums of fourth powers of smaller numbers are in the range of float64; float32 ends at 3.4e38.
LARGEST = 1e60
# Rows that are read several times come in blocks of this many bytes, half of the cache of a core.
CACHE_BYTES = 2**20
# Types of tensors that stay on a GPU. Float64 is slow on most GPUs, and no hidden states have it.
TYPES_ON_GPU = ("torch.float32", "torch.bfloat16", "torch.float16")


class NotFiniteError(ValueError):
    """The error for an array with NaN or infinity, such as the hidden states of a broken checkpoint."""


def is_on_gpu(X: Any) -> bool:
    """Tell whether `X` is a tensor on a GPU, with one of the :data:`TYPES_ON_GPU`."""
    device = getattr(X, "device", None)
    return getattr(device, "type", "cpu") == "cuda" and str(X.dtype) in TYPES_ON_GPU


def namespace(X: Any) -> ModuleType:
    """Return the module whose functions take `X`: numpy, or torch if it is a tensor."""
    return np if isinstance(X, np.ndarray) else sys.modules["torch"]


def copy_to_host(X: Any) -> np.ndarray:
    """Copy an array to host memory, unless it is there already."""
    return X if isinstance(X, np.ndarray) else X.cpu().numpy()


def read_matrix(X: Any, name: str = "X", *, finite: bool = True, stay: bool = False) -> Any:
    """Read a two-dimensional array of real numbers as float64.

    Parameters
    ----------
    X : array_like or torch.Tensor, shape (n, d)
        Any real dtype; float16, bfloat16, float32, integers and booleans are represented exactly
        (integers up to 2^53). A tensor may live on any device and require gradients.
    name : str
        The name of the caller's argument, for messages.
    finite : bool
        Whether to refuse NaN, infinity and numbers beyond 1e60.
    stay : bool
        Whether a tensor on a GPU with one of the :data:`TYPES_ON_GPU` stays there.

    Returns
    -------
    ndarray, or torch.Tensor if it stays, of float64, shape (n, d)
        If `X` is already of this kind, the result is `X` itself, so never write into it.

    Raises
    ------
    ValueError
        If `X` is not numeric, not plain (masked, sparse, quantised, or without memory), not two-dimensional, or empty,
        or if it holds numbers beyond 1e60. For NaN and infinity, :class:`NotFiniteError`.
    """
    require_plain_values(X, name)
    array = X.detach().double() if stay and is_on_gpu(X) else _convert_to_float64(X, name)
    _require_matrix(array, name)
    if finite:
        require_finite(array, name)
    return array


def read_blocks(X: Any, rows: int, name: str = "X") -> Iterator[Any]:
    """Read a matrix as :func:`read_matrix` with `stay`, block by block.

    Parameters
    ----------
    X : ndarray, torch.Tensor, h5py.Dataset or another object with a shape (n, d) and slices of rows
        Only one block at a time is copied to memory.
    rows : int
        Rows of a block; the last block may have fewer.
    name : str
        As in :func:`read_matrix`, with its errors.

    Yields
    ------
    ndarray or torch.Tensor of float64, shape (at most `rows`, d)
    """
    require_plain_values(X, name)
    _require_matrix(X, name)
    for start in range(0, len(X), rows):
        block = read_matrix(X[start : start + rows], name, finite=False, stay=True)
        require_finite(block, name, start)
        yield block


def require_plain_values(X: Any, name: str) -> None:
    """Raise ValueError if an array has masked entries, or a tensor is sparse, quantised or on `meta`."""
    is_plain = not isinstance(X, np.ma.MaskedArray)
    if hasattr(X, "detach"):
        is_plain = str(X.layout) == "torch.strided" and not (X.is_quantized or X.is_meta)
    if not is_plain:
        raise ValueError(
            f"{name} has no plain values, since it is masked, sparse, quantised or without memory; make it a "
            "dense array of numbers"
        )


def require_finite(X: Any, name: str, first: int = 0) -> None:
    """Raise ValueError for NaN, infinity or too large numbers; `first` is the number of the first row."""
    if not is_finite(X):
        row = first + int(np.argmin(copy_to_host(namespace(X).isfinite(X).all(axis=1))))
        raise NotFiniteError(f"{name} holds NaN or infinity, first in row {row}")
    if max(float(X.max()), -float(X.min())) > LARGEST:
        raise ValueError(
            f"{name} holds numbers beyond {LARGEST:g}, whose powers could overflow; scale it down"
        )


def _require_matrix(X: Any, name: str) -> None:
    """Raise ValueError if an array or a tensor has no rows and columns."""
    if X.ndim != 2:
        raise ValueError(
            f"{name} must have two dimensions (n, d), but its shape is {tuple(X.shape)}"
        )
    if 0 in X.shape:
        raise ValueError(f"{name} is empty: its shape is {tuple(X.shape)}")


def _convert_to_float64(X: Any, name: str) -> np.ndarray:
    # The methods tell a tensor, so that torch need not be imported.
    if hasattr(X, "detach") and not X.is_complex():
        return X.detach().cpu().double().numpy()  # NumPy has no bfloat16
    try:
        array = np.asarray(X)
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"{name} must have two dimensions (n, d): {error}") from error
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, not {array.dtype}")
    return array.astype(np.float64, copy=False)


def read_vectors(X: Any, minimum: int = 2) -> Any:
    """Read at least `minimum` rows as :func:`read_matrix` with `stay`."""
    X = read_matrix(X, stay=True)
    if len(X) < minimum:
        raise ValueError(f"X has {len(X)} row, but at least {minimum} are needed")
    return X


def read_windows(windows: Any, count: int) -> np.ndarray:
    """Read the window numbers of all rows; ValueError if there is not one whole number per row."""
    array = np.asarray(windows.detach().cpu() if hasattr(windows, "detach") else windows)
    if array.shape != (count,) or array.dtype.kind not in "iu":
        raise ValueError(
            f"windows must hold one whole number for each of the {count} rows, but has the shape "
            f"{array.shape} and holds {array.dtype}"
        )
    return array.astype(np.int64, copy=False)


def mark_remaining_rows(X: Any, parts: Sequence[np.ndarray]) -> Any:
    """Return 1 for rows outside a part and 0 for rows in it, (n, parts), on the device of X."""
    mask = np.ones((len(X), len(parts)))
    for number, part in enumerate(parts):
        mask[part, number] = 0
    return namespace(X).asarray(mask, device=X.device)


def number_parts(count: int, parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return the part number of each row, (count,); ``len(parts)`` for rows in no part."""
    part_of = np.full(count, len(parts))
    for number, part in enumerate(parts):
        part_of[part] = number
    return part_of


def complete_values(
    values: np.ndarray,
    X: Any,
    parts: Sequence[np.ndarray],
    measure: Callable[[Any], float],
    minimum: int,
) -> np.ndarray:
    """Replace NaN by the measure of the rows without the part, if at least `minimum` rows remain."""
    for number in np.flatnonzero(np.isnan(values)).tolist():
        remaining_rows = np.delete(np.arange(len(X)), parts[number])
        if len(remaining_rows) >= minimum:
            values[number] = measure(X[remaining_rows])
    return values


def is_finite(X: Any) -> bool:
    """Tell whether an array or a tensor of real numbers holds neither NaN nor infinity."""
    return all(math.isfinite(float(extreme)) for extreme in (X.min(), X.max()))


def read_count(value: Any, name: str, minimum: int) -> int:
    """Read a whole number; ValueError if it is not whole, or below `minimum`."""
    try:
        count = operator.index(value)
    except TypeError as error:
        raise ValueError(f"{name} must be a whole number, not {value!r}") from error
    if count < minimum:
        raise ValueError(f"{name} must be at least {minimum}, not {count}")
    return count


def distinct_rows(X: ArrayLike) -> np.ndarray:
    """Find the first appearance of every distinct row.

    Parameters
    ----------
    X : array_like or torch.Tensor, shape (n, d)

    Returns
    -------
    ndarray of int, shape (m,)
        Ascending row numbers. Rows are equal if all bits are equal, without any tolerance, except that -0.0 equals 0.0.

    Raises
    ------
    ValueError
        As :func:`read_matrix`.

    Examples
    --------
    >>> distinct_rows([[1.0, 0.0], [2.0, 0.0], [1.0, -0.0]])
    array([0, 1])
    """
    first = find_first_equals(read_matrix(X, stay=True))
    return np.flatnonzero(first == np.arange(len(first)))


def find_first_equals(X: Any) -> np.ndarray:
    """Find for each row of a matrix the first row that equals it, shape (n,)."""
    # A row with a unique first number, as nearly all rows have in float32, equals no other row.
    _, group, sizes = np.unique(copy_to_host(X[:, 0]), return_inverse=True, return_counts=True)
    first = np.arange(len(X))
    first_by_digest: dict[bytes, int] = {}
    candidates = np.flatnonzero(sizes[group] > 1)
    for block in split_rows(candidates, CACHE_BYTES // (8 * X.shape[1])):
        # Adding zero turns -0.0 into 0.0. Digests of rows take less memory than the rows.
        values = np.ascontiguousarray(copy_to_host(X[candidates[block]]) + 0.0)
        for row, numbers in zip(candidates[block].tolist(), values, strict=True):
            first[row] = first_by_digest.setdefault(hashlib.sha256(numbers).digest(), row)
    return first


def centre(X: Any) -> Any:
    """Subtract the mean row.

    Parameters
    ----------
    X : ndarray or torch.Tensor of float64, shape (n, d)

    Returns
    -------
    ndarray or torch.Tensor of float64, shape (n, d)
        Zeros if every column is constant to rounding: its largest and smallest entries are within four units in the
        last place of float64.

    Notes
    -----
    The mean is subtracted twice. The rounding error of the first mean is proportional to the common offset, which in
    hidden states can be a thousand times the signal; the error of the second mean is proportional to the signal. A
    constant column becomes exactly zero.
    """
    xp = namespace(X)
    row_blocks = list(split_rows(X, CACHE_BYTES // (8 * X.shape[1])))
    low, high, total = X[0], X[0], 0.0
    for rows in row_blocks:  # a single reading from memory
        block = X[rows]
        low = xp.minimum(low, xp.amin(block, axis=0))
        high = xp.maximum(high, xp.amax(block, axis=0))
        total = total + block.sum(axis=0)
    if is_constant(low, high):
        return xp.zeros_like(X)
    mean, residuals, rest = total / len(X), xp.empty_like(X), 0.0
    for rows in row_blocks:
        rest = rest + xp.subtract(X[rows], mean, out=residuals[rows]).sum(axis=0)
    residuals -= rest / len(X)
    return residuals


def is_constant(low: Any, high: Any) -> bool:
    """Tell whether all columns, from `low` to `high`, are constant to four units in the last place of float64."""
    magnitude = namespace(low).maximum(high, -low)
    return bool((high - low <= 4 * np.finfo(float).eps * magnitude).all())


def split_rows(X: Any, rows: int) -> Iterator[slice]:
    """Divide an array into blocks of `rows` rows that fit into the cache; on a GPU all rows are one block."""
    size = max(1, rows if isinstance(X, np.ndarray) else len(X))
    for start in range(0, len(X), size):
        yield slice(start, start + size)
