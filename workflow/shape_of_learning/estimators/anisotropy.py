"""Anisotropy: the share of the largest singular value in the variance of a cloud of vectors."""

import math
from collections.abc import Callable

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
    X = as_matrix(X, stay=True)
    if center and len(X) < 2:
        raise ValueError(f"X has {len(X)} row, but variance takes at least 2")
    X = centred(X) if center else squarable(X)
    xp = namespace(X)
    variance = float(xp.einsum("ij,ij->i", X, X).sum())
    if variance == 0:
        return math.nan

    def product(v: np.ndarray) -> np.ndarray:
        v = xp.asarray(v, device=X.device)
        # Of variance one: Lanczos iteration takes an eigenvalue of 1e-11 for zero.
        blocks = (X[rows] for rows in row_blocks(X, ROWS_PER_BLOCK))
        return as_numpy(sum((block @ v) @ block for block in blocks) / variance)

    largest = largest_by_lanczos(product, X.shape[1]) if min(X.shape) > GRAM_SIDE else None
    if largest is None:
        gram = X.T @ X if X.shape[0] >= X.shape[1] else X @ X.T
        # In Fortran's order, which spares a copy.
        largest = largest_of_gram(as_numpy(gram).T) / variance
    return min(largest, 1.0)


def largest_of_gram(gram: np.ndarray) -> float:
    """Largest eigenvalue of a symmetric matrix, given by its upper triangle, which is overwritten."""
    from scipy.linalg import eigh

    last = len(gram) - 1
    top = eigh(
        gram,
        lower=False,
        eigvals_only=True,
        subset_by_index=[last, last],
        overwrite_a=True,
        check_finite=False,
    )
    return float(top[0])


def largest_by_lanczos(product: Callable[[np.ndarray], np.ndarray], width: int) -> float | None:
    """Largest eigenvalue of a symmetric matrix, given by its product with a vector.

    None if it is too close to the next to be told apart soon.
    """
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

    matrix = LinearOperator((width, width), matvec=product, dtype=float)
    # A random start, unlike a vector of ones, is orthogonal to no direction that data could have.
    start = random_stream(0, "start of Lanczos iteration").standard_normal(width)
    try:
        top = eigsh(
            matrix,
            k=1,
            v0=start,
            ncv=min(LANCZOS_VECTORS, width),
            maxiter=LANCZOS_RESTARTS,
            # To machine precision: a residual is small beside *some* eigenvalue, and where the two largest
            # nearly agree, only a tiny one tells which.
            tol=0,
            return_eigenvectors=False,
        )
    except ArpackError:
        return None
    return float(top[0])
