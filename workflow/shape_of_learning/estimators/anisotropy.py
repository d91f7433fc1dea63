"""Anisotropy: the share of the largest singular value in the variance of a cloud of vectors."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.estimators.arrays import as_matrix, centred, is_on_gpu, squarable
from shape_of_learning.estimators.moments import Moments
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


def anisotropy(X: ArrayLike | Moments, center: bool = True) -> float:
    r"""Share of the first principal direction in the total variance.

    .. math:: \text{anisotropy}(X) = \frac{\sigma_1^2}{\sum_i \sigma_i^2}

    with the singular values :math:`\sigma_1 \ge \sigma_2 \ge \dots` of the centred matrix.

    Parameters
    ----------
    X : array_like or torch.Tensor, shape (n, d), or Moments
        Vectors, at least two if they are centred, of any real dtype; computed in float64. Or what a
        pass over them left, with the part ``"scatter"``.
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
        If `X` is not two-dimensional, has too few rows, or holds NaN or infinity; if moments lack
        the part.

    Notes
    -----
    No decomposition is needed: the denominator is the sum of squares, the numerator the largest
    eigenvalue of the smaller Gram matrix, or, where that is larger than 128 x 128, of
    ``X.T @ X`` by Lanczos iteration from a fixed start to machine precision. For one matrix in memory
    that takes a fraction of the n d^2 operations of `Moments`, which in turn serve both kinds of
    anisotropy and matrices of any length.

    References
    ----------
    Razzhigaev et al., The Shape of Learning, Findings of EACL 2024, section on anisotropy.

    Examples
    --------
    >>> anisotropy([[2, 0], [-2, 0], [0, 1], [0, -1]])
    0.8
    """
    if is_on_gpu(X):
        from shape_of_learning.estimators.on_gpu import anisotropy as on_gpu

        return on_gpu.anisotropy(X, center)
    if not isinstance(X, Moments):
        X = as_matrix(X)
    rows = X.n if isinstance(X, Moments) else len(X)
    if center and rows < 2:
        raise ValueError(f"X has {rows} row, but variance takes at least 2")
    if rows == 0:
        raise ValueError("X are moments of no rows")
    return _of_moments(X, center) if isinstance(X, Moments) else _of_matrix(X, center)


def _of_matrix(X: np.ndarray, center: bool) -> float:
    X = centred(X) if center else squarable(X)
    variance = float(np.einsum("ij,ij->i", X, X).sum())
    if variance == 0:
        return math.nan

    def product(v: np.ndarray) -> np.ndarray:
        result = np.zeros(X.shape[1])
        for start in range(0, len(X), ROWS_PER_BLOCK):
            block = X[start : start + ROWS_PER_BLOCK]
            result += (block @ v) @ block
        # Of variance one: Lanczos iteration takes an eigenvalue of 1e-11 for zero.
        return result / variance

    largest = largest_by_lanczos(product, X.shape[1]) if min(X.shape) > GRAM_SIDE else None
    if largest is None:
        gram = X.T @ X if X.shape[0] >= X.shape[1] else X @ X.T
        largest = largest_of_gram(gram.T) / variance  # in Fortran's order, which spares a copy
    return min(largest, 1.0)


def _of_moments(moments: Moments, center: bool) -> float:
    from scipy.linalg.blas import dsymv, dsyr

    scatter = moments.scatter
    if scatter is None:
        raise ValueError("X are moments without the scatter matrix that anisotropy takes")
    # X^T X = C + n mean mean^T: both terms are positive, nothing cancels.
    factor, shift = (1.0, np.zeros(moments.width)) if center else moments.about_origin()
    variance = factor * float(np.trace(scatter)) + float(shift @ shift)
    if variance == 0 or (center and moments.is_constant):
        return math.nan
    # Of variance one, for the same reason.
    factor, shift = factor / variance, shift / math.sqrt(variance)

    def product(v: np.ndarray) -> np.ndarray:
        return dsymv(factor, scatter, v) + (shift @ v) * shift

    largest = largest_by_lanczos(product, moments.width) if moments.width > GRAM_SIDE else None
    if largest is None:
        largest = largest_of_gram(dsyr(1.0, shift, a=factor * scatter, overwrite_a=True))
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
