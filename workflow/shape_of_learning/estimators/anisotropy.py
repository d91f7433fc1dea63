"""Anisotropy: the share of the largest singular value in the variance of a cloud of vectors.

Of all vectors by Lanczos iteration, and without each of some parts of them by one for all parts at once.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.estimators import arrays
from shape_of_learning.estimators.arrays import copy_to_host, namespace
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
# Of all parts at once: rows per step of X^T (X W) have so many bytes, and are in the cache when they are
# read the second time.
PARTS_BLOCK_BYTES, PARTS_LEAST_ROWS = 400_000, 16
# Passes over the data before a spectrum without gap is left to the rows of each part by themselves.
PARTS_PASSES = 60
# Lanczos iteration never leaves an eigenvector, as which it may start; a little of all others helps.
FREEDOM = 1e-3
# Errors that are allowed, beside the standard deviation of the shares, and beside the shares.
OF_DEVIATION, OF_SHARE = 1e-6, 1e-12
# Of the variance. What is less than that without a part has been lost to rounding.
LEAST_VARIANCE = 1e-6


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
    return anisotropy_jackknife(X, [], center)[0]


def anisotropy_jackknife(
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
    least = 2 if center else 1
    whole = arrays.read_vectors(X, least)
    rows = arrays.centre(whole) if center else whole
    variance = float(namespace(rows).einsum("ij,ij->i", rows, rows).sum())
    value, without = math.nan, np.full(len(parts), math.nan)
    # Without variance, the rows of a part may be all that differ in the last bits, or not at all.
    if variance > 0:
        value, direction = leading_direction(rows, variance)
        if parts:
            without = _leave_parts_out(rows, parts, direction, variance, center)
    return value, arrays.complete_values(
        without, whole, parts, lambda X: anisotropy(X, center), least
    )


def leading_direction(X: Any, variance: float) -> tuple[float, np.ndarray]:
    """Share of the leading direction in the sum of all squares, and this direction, (d,)."""
    from scipy.linalg import eigh
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

    xp, width = namespace(X), X.shape[1]

    def product(v: np.ndarray) -> np.ndarray:
        v = xp.asarray(v, device=X.device)
        # Of variance one: Lanczos iteration takes an eigenvalue of 1e-11 for zero.
        blocks = (X[some] for some in arrays.split_rows(X, ROWS_PER_BLOCK))
        return copy_to_host(sum((block @ v) @ block for block in blocks) / variance)

    if min(X.shape) > GRAM_SIDE:
        # A random start, unlike a vector of ones, is orthogonal to no direction that data could have.
        start = random_stream(0, "start of Lanczos iteration").standard_normal(width)
        matrix = LinearOperator((width, width), matvec=product, dtype=float)
        few = {"k": 1, "ncv": min(LANCZOS_VECTORS, width), "maxiter": LANCZOS_RESTARTS}
        try:
            # To machine precision: a residual is small beside *some* eigenvalue, and where the two largest
            # nearly agree, only a tiny one tells which.
            top, directions = eigsh(matrix, v0=start, tol=0, **few)
            return min(float(top[0]), 1.0), directions[:, 0]
        except ArpackError:  # the largest is too close to the next to be told apart soon
            pass
    is_tall = X.shape[0] >= width
    gram = copy_to_host(
        X.T @ X if is_tall else X @ X.T
    ).T  # in Fortran's order, which spares a copy
    last = [len(gram) - 1] * 2
    top, directions = eigh(
        gram, lower=False, subset_by_index=last, overwrite_a=True, check_finite=False
    )
    direction = directions[:, 0]
    if not is_tall:
        direction = copy_to_host(xp.asarray(direction, device=X.device) @ X)
    return min(float(top[0]) / variance, 1.0), direction


def _leave_parts_out(
    X: Any, parts: Sequence[np.ndarray], direction: np.ndarray, variance: float, center: bool
) -> np.ndarray:
    r"""Find :math:`\lambda_1 / \sum_i \lambda_i` of the rows that are left without each part.

    Parameters
    ----------
    X : ndarray or torch.Tensor of float64, shape (n, d)
        Rows, centred if `center`, in a range that can be squared.
    parts : sequence of ndarray of int
        Numbers of the rows that are left out each time. No row is in two of them.
    direction : ndarray of float64, shape (d,)
        The leading direction of all rows.
    variance : float
        Sum of all squares.
    center : bool
        Whether the rows that are left are centred anew.

    Returns
    -------
    ndarray of float64, shape (parts,)
        NaN where iteration does not converge soon, or next to nothing is left.

    Notes
    -----
    Lanczos iteration for all parts side by side, each from `direction`, with full orthogonalisation (Golub
    and Van Loan, Matrix Computations, 2013, section 10.3). It ends when
    :math:`r^2 / (\theta_1 - \theta_2)`, with the residual r and the two largest Ritz values, which bounds the
    error (Parlett, The Symmetric Eigenvalue Problem, 1998, section 11.7), is small.
    """
    xp, d = namespace(X), X.shape[1]
    left_there = arrays.mark_rows_left(X, parts)
    left = copy_to_host(left_there)
    counts = left.sum(axis=0)
    means = np.zeros((d, len(parts)))
    if center:
        means = copy_to_host(left_there.T @ X).T / np.maximum(counts, 1)
    squares = copy_to_host(xp.einsum("ij,ij->i", X, X))
    variances = squares @ left - counts * np.square(means).sum(axis=0)

    def products(vectors: np.ndarray) -> np.ndarray:
        """Covariance without each part, times its own vector, (d, parts)."""
        there = xp.asarray(vectors, device=X.device)
        total = 0.0
        for rows in arrays.split_rows(X, max(PARTS_LEAST_ROWS, PARTS_BLOCK_BYTES // (8 * d))):
            total = total + X[rows].T @ ((X[rows] @ there) * left_there[rows])
        return copy_to_host(total) - counts * means * (means * vectors).sum(axis=0)

    usable = variances > LEAST_VARIANCE * variance
    if not usable.any():
        return np.full(len(parts), np.nan)
    shares = _lanczos_of_parts(products, direction, variances, usable)
    return np.where(usable, np.minimum(shares, 1.0), np.nan)


def _lanczos_of_parts(
    products: Any, direction: np.ndarray, variances: np.ndarray, usable: np.ndarray
) -> np.ndarray:
    """Shares of the leading direction of each part, started near `direction`; NaN where it does not converge."""
    d, count = len(direction), len(variances)
    random = random_stream(0, "start without parts").standard_normal((d, 1))
    freedom = FREEDOM * random / np.linalg.norm(random)
    start = direction[:, None] / np.linalg.norm(direction) + freedom
    vectors = np.repeat(start / np.linalg.norm(start), count, axis=1)
    scales = np.where(usable, variances, 1)
    basis = np.empty((min(PARTS_PASSES, d), d, count))
    diagonal, beside = np.zeros((len(basis), count)), np.zeros((len(basis), count))
    for step in range(len(basis)):
        basis[step] = vectors
        image = products(vectors) / scales
        diagonal[step] = (image * vectors).sum(axis=0)
        for _ in range(2):
            known = basis[: step + 1]
            image -= np.einsum("sdg,sg->dg", known, np.einsum("sdg,dg->sg", known, image))
        beside[step] = np.linalg.norm(image, axis=0)
        ended = beside[step] <= 1e-14
        beside[step, ended] = 0
        vectors = np.where(ended, 0, image / np.where(ended, 1, beside[step]))
        shares, errors = _ritz(diagonal[: step + 1], beside[: step + 1])
        allowed = OF_DEVIATION * shares[usable].std() + OF_SHARE * shares
        if step > 1 and (errors <= allowed)[usable].all():
            return shares
    whole = len(basis) == d
    return np.where(whole | (errors <= allowed), shares, np.nan)


def _ritz(diagonal: np.ndarray, beside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Largest Ritz values of tridiagonal matrices, (steps, count), and bounds on their errors."""
    steps = len(diagonal)
    matrices = np.zeros((diagonal.shape[1], steps, steps))
    index = np.arange(steps)
    matrices[:, index, index] = diagonal.T
    matrices[:, index[1:], index[:-1]] = beside[:-1].T
    values, vectors = np.linalg.eigh(matrices)  # reads the lower triangle
    residuals = beside[-1] * np.abs(vectors[:, -1, -1])
    gaps = values[:, -1] - values[:, -2] if steps > 1 else np.zeros(len(values))
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.where(residuals == 0, 0, np.minimum(residuals, residuals**2 / gaps))
    return values[:, -1], errors
