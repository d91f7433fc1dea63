"""Columns of numbers as text that a page can hold: typed, their bytes sorted by place, compressed.

Neighbours in a column have the same high bytes, which compress to little once they stand together; so do
the low bytes of numbers that were rounded. `page/data.js` reads it.
"""

import base64
import zlib
from collections.abc import Mapping

import numpy as np

ROUNDED_BITS = 8


def pack(columns: Mapping[str, np.ndarray]) -> str:
    """Write columns one after another.

    Parameters
    ----------
    columns : mapping of str to ndarray, shape (n,)
        Of uint8, uint16, uint32 or float32.

    Returns
    -------
    str
        In base64 a zlib stream: of each column its bytes, first the lowest one of all numbers.
    """
    planes = []
    for values in columns.values():
        little = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
        planes.append(little.view(np.uint8).reshape(-1, little.itemsize).T.tobytes())
    return base64.b64encode(zlib.compress(b"".join(planes), 9)).decode("ascii")


def layout(columns: Mapping[str, np.ndarray]) -> list[list[str]]:
    """Name the columns in order, each with its type as NumPy abbreviates it, such as ``"f4"``."""
    return [[name, values.dtype.str[1:]] for name, values in columns.items()]


def rounded(values: np.ndarray) -> np.ndarray:
    """Round to float32 with a mantissa of 15 bits, to within 1/65536; what is no number stays as it is.

    Parameters
    ----------
    values : ndarray of float, shape (n,)

    Returns
    -------
    ndarray of float32, shape (n,)

    Examples
    --------
    >>> rounded(np.array([1.0, 1.00001, np.nan]))
    array([ 1.,  1., nan], dtype=float32)
    """
    bits = np.asarray(values, dtype=np.float32).view(np.uint32)
    kept = (bits + np.uint32(1 << (ROUNDED_BITS - 1))) & np.uint32(2**32 - (1 << ROUNDED_BITS))
    return np.where(np.isfinite(values), kept, bits).astype(np.uint32).view(np.float32)
