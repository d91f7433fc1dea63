"""Anisotropy: the share of the largest singular value in the variance of a cloud of vectors."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.estimators.arrays import (
    as_matrix,
    as_numpy,
    centred,
    namespace,
    row_blocks,
    squarable,
)
from shape_of_learning.estimators.leading_without_parts import without_parts
from shape_of_learning.random_streams import random_stream

# Up to this many rows or columns the Gram matrix and its top eigenvalue take a few milliseconds; beyond,
# their cost, one power higher, overtakes that of the one or two dozen passes over the data that a leading
# direction takes.
GRAM_SIDE = 128
# Rows per step of X^T (X v): 128 rows of 4096 numbers are 4 MiB and are still in the cache when
# they are read the second time.
ROWS_PER_BLOCK = 128
# Vectors that Lanczos iteration keeps: one leading direction shows in a dozen products.
LANCZOS_VECTORS = 10
# Its restarts, about five products each, before a spectrum without gap is left to the Gram matrix.
LANCZOS_RESTARTS = 30


def anisotropy(X: ArrayLike, center: bool = True) -> float:
    r"""Share of the first principal direction in the total variance.

    .. math:: \text{anisotropy}(X) = \frac{\sigma_1^2}{\sum_i \sigma_i^2}

    with the singular values :math:`\sigma_1 \ge \sigma_2 \ge \dots` of the centred matrix.

    Parameters
    ----------
    X : array_like or torch.Tensor, shape (n, d)
        Vectors, at least two if they are centred, of any real dtype; computed in float64, those on a
        GPU there if they are float32, bfloat16 or float16.
    center : bool
        Whether to subtract the mean vector first, as the paper does. Without it, a common offset
        counts as a direction.

    Returns
    -------
    float
        In [1/min(n, d), 1], equal to that of a full singular value decomposition to 1e-9 relative.
        NaN if there is no variance: all rows are the same to the rounding of float64, or all zero
        without centring.

    Raises
    ------
    ValueError
        If `X` is not two-dimensional, has too few rows, or holds NaN or infinity.

    Notes
    -----
    No decomposition is needed: the denominator is the sum of squares, the numerator the largest
    eigenvalue of the smaller Gram matrix, or, where that is larger than 128 x 128, of
    ``X.T @ X`` by Lanczos iteration from a fixed start to machine precision.

    References
    ----------
    Razzhigaev et al., The Shape of Learning, Findings of EACL 2024, section on anisotropy.

    Examples
    --------
    >>> anisotropy([[2, 0], [-2, 0], [0, 1], [0, -1]])
    0.8
    """
    return leaving_out(X, [], center)[0]


def leaving_out(
    X: ArrayLike, parts: Sequence[np.ndarray], center: bool = True
) -> tuple[float, np.ndarray]:
    """:func:`anisotropy` of all rows, and of those that are left without each of some parts.

    Parameters
    ----------
    X, center
        As in :func:`anisotropy`, errors likewise.
    parts : sequence of ndarray of int
        Numbers of the rows that are left out each time. No row is in two of them.

    Returns
    -------
    value : float
    without : ndarray of float64, shape (parts,)
        NaN where undefined. Right to a millionth of their standard deviation, or to 1e-12.

    Notes
    -----
    The leading directions without a part are near that of all rows, from which Lanczos iteration finds all of
    them at the same time: each pass over the data serves all parts. What it cannot tell soon is computed from
    the rows that are left.
    """
    whole = as_matrix(X, stay=True)
    if center and len(whole) < 2:
        raise ValueError(f"X has {len(whole)} row, but variance takes at least 2")
    rows = centred(whole) if center else squarable(whole)
    xp = namespace(rows)
    variance = float(xp.einsum("ij,ij->i", rows, rows).sum())
    if variance == 0:
        # The rows of a part may be all that differ in the last bits, or not at all.
        return math.nan, np.array([_alone(whole, part, center) for part in parts])

    def product(v: np.ndarray) -> np.ndarray:
        v = xp.asarray(v, device=rows.device)
        # Of variance one: Lanczos iteration takes an eigenvalue of 1e-11 for zero.
        blocks = (rows[some] for some in row_blocks(rows, ROWS_PER_BLOCK))
        return as_numpy(sum((block @ v) @ block for block in blocks) / variance)

    leading = leading_by_lanczos(product, rows.shape[1]) if min(rows.shape) > GRAM_SIDE else None
    if leading is None:
        tall = rows.shape[0] >= rows.shape[1]
        gram = rows.T @ rows if tall else rows @ rows.T
        # In Fortran's order, which spares a copy.
        largest, direction = leading_of_gram(as_numpy(gram).T)
        if not tall:
            direction = as_numpy(xp.asarray(direction, device=rows.device) @ rows)
        leading = largest / variance, direction
    value = min(leading[0], 1.0)
    without = without_parts(rows, parts, leading[1], variance, center)
    for number in np.flatnonzero(np.isnan(without)).tolist():
        without[number] = _alone(whole, parts[number], center)
    return value, without


def _alone(X: Any, part: np.ndarray, center: bool) -> float:
    """Anisotropy of the rows that are left without a part; NaN if they are too few."""
    left = np.delete(np.arange(len(X)), part)
    return leaving_out(X[left], [], center)[0] if len(left) > center else math.nan


def leading_of_gram(gram: np.ndarray) -> tuple[float, np.ndarray]:
    """Leading eigenvalue and eigenvector of a symmetric matrix, given by its upper triangle.

    It is overwritten.
    """
    from scipy.linalg import eigh

    last = len(gram) - 1
    top, directions = eigh(
        gram,
        lower=False,
        subset_by_index=[last, last],
        overwrite_a=True,
        check_finite=False,
    )
    return float(top[0]), directions[:, 0]


def leading_by_lanczos(
    product: Callable[[np.ndarray], np.ndarray], width: int
) -> tuple[float, np.ndarray] | None:
    """Leading eigenvalue and eigenvector of a symmetric matrix, given by its product with a vector.

    None if it is too close to the next to be told apart soon.
    """
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

    matrix = LinearOperator((width, width), matvec=product, dtype=float)
    # A random start, unlike a vector of ones, is orthogonal to no direction that data could have.
    start = random_stream(0, "start of Lanczos iteration").standard_normal(width)
    try:
        top, directions = eigsh(
            matrix,
            k=1,
            v0=start,
            ncv=min(LANCZOS_VECTORS, width),
            maxiter=LANCZOS_RESTARTS,
            # To machine precision: a residual is small beside *some* eigenvalue, and where the two largest
            # nearly agree, only a tiny one tells which.
            tol=0,
        )
    except ArpackError:
        return None
    return float(top[0]), directions[:, 0]
