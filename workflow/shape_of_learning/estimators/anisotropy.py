"""Anisotropy: the share of the largest singular value in the variance of a cloud of vectors.

Lanczos iteration finds the value of all vectors; a second iteration finds the values without each of several sets of
rows at once.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.estimators import arrays
from shape_of_learning.estimators.arrays import copy_to_host, namespace
from shape_of_learning.random_streams import random_stream

# Up to this many rows or columns the Gram matrix and its top eigenvalue take a few milliseconds. With more, they take
# longer than an iteration with its one or two dozen passes over the data.
GRAM_SIDE = 128
# Rows per step of X^T (X v): 128 rows of 4096 numbers are 4 MiB, and are still in the cache at the second reading.
ROWS_PER_BLOCK = 128
# Vectors that Lanczos iteration keeps: a single leading direction shows in a dozen products.
LANCZOS_VECTORS = 10
# Restarts of Lanczos iteration, about five products each, before the Gram matrix takes over, as without a gap.
LANCZOS_RESTARTS = 30
# For all parts at once: so many bytes per step of X^T (X W) are still in the cache at the second reading.
PARTS_BLOCK_BYTES = 400_000
PARTS_LEAST_ROWS = 16
# Passes over the data before the remaining rows of each part are measured alone, as for a spectrum without a gap.
PARTS_PASSES = 60
# Lanczos iteration cannot leave an eigenvector if it starts there, so the start has a random share.
RANDOM_SHARE_OF_START = 1e-3
# Largest errors, relative to the standard deviation of the shares, and to the shares.
DEVIATION_TOLERANCE = 1e-6
SHARE_TOLERANCE = 1e-12
# Share of the variance; a smaller variance without a part is rounding.
LEAST_VARIANCE = 1e-6


def anisotropy(X: ArrayLike, center: bool = True) -> float:
    r"""Share of the first principal direction in the total variance.

    .. math:: \text{anisotropy}(X) = \frac{\sigma_1^2}{\sum_i \sigma_i^2}

    with the singular values :math:`\sigma_1 \ge \sigma_2 \ge \dots` of the centred matrix.

    Parameters
    ----------
    X : array_like or torch.Tensor, shape (n, d)
        Vectors, at least two if they are centred, of any real dtype; computed in float64. A tensor of float32, bfloat16
        or float16 on a GPU is computed there.
    center : bool
        Whether to subtract the mean vector first, as the paper does. Otherwise a common offset counts as a direction.

    Returns
    -------
    float
        In [1/min(n, d), 1], equal to the value of a full singular value decomposition to 1e-9 relative. NaN if there is
        no variance: all rows are equal to the rounding of float64, or zero without centring.

    Raises
    ------
    ValueError
        If `X` is not two-dimensional, has too few rows, or holds NaN or infinity.

    Notes
    -----
    No decomposition is needed: the denominator is the sum of squares, and the numerator the largest eigenvalue of the
    smaller Gram matrix. If that is larger than 128 x 128, Lanczos iteration from a fixed start finds the eigenvalue of
    ``X.T @ X`` to machine precision.

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
    """Return :func:`anisotropy` of all rows, and its values without each part of the rows.

    Parameters
    ----------
    X, center
        As in :func:`anisotropy`, with its errors.
    parts : sequence of ndarray of int
        Row numbers of each part. No row is in two parts.

    Returns
    -------
    value : float
    jackknife_values : ndarray of float64, shape (parts,)
        NaN where undefined. Their errors are at most a millionth of their standard deviation, or 1e-12.

    Notes
    -----
    The leading direction without a part is near the leading direction of all rows, where Lanczos iteration starts for
    all parts at the same time, so that each pass over the data serves all parts. A value that does not converge soon is
    computed from the remaining rows.
    """
    minimum = 2 if center else 1
    whole = arrays.read_vectors(X, minimum)
    rows = arrays.centre(whole) if center else whole
    variance = float(namespace(rows).einsum("ij,ij->i", rows, rows).sum())
    value, jackknife_values = math.nan, np.full(len(parts), math.nan)
    # Without variance, rows differ at most in their last bits.
    if variance > 0:
        value, direction = leading_direction(rows, variance)
        if parts:
            jackknife_values = _leave_parts_out(rows, parts, direction, variance, center)
    return value, arrays.complete_values(
        jackknife_values, whole, parts, lambda X: anisotropy(X, center), minimum
    )


def leading_direction(X: Any, variance: float) -> tuple[float, np.ndarray]:
    """Return the share of the leading direction in the sum of all squares, and the direction, (d,)."""
    from scipy.linalg import eigh
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

    xp, width = namespace(X), X.shape[1]

    def product(v: np.ndarray) -> np.ndarray:
        v = xp.asarray(v, device=X.device)
        # Scaled to variance one, since Lanczos iteration takes an eigenvalue of 1e-11 for zero.
        blocks = (X[rows] for rows in arrays.split_rows(X, ROWS_PER_BLOCK))
        return copy_to_host(sum((block @ v) @ block for block in blocks) / variance)

    if min(X.shape) > GRAM_SIDE:
        # Unlike a vector of ones, a random start is not orthogonal to a direction of real data.
        start = random_stream(0, "start of Lanczos iteration").standard_normal(width)
        matrix = LinearOperator((width, width), matvec=product, dtype=float)
        options = {"k": 1, "ncv": min(LANCZOS_VECTORS, width), "maxiter": LANCZOS_RESTARTS}
        try:
            # To machine precision, since a small residual only shows that *some* eigenvalue is near: if the two
            # largest nearly agree, only a tiny residual tells which one it is.
            top, directions = eigsh(matrix, v0=start, tol=0, **options)
            return min(float(top[0]), 1.0), directions[:, 0]
        except ArpackError:  # the two largest eigenvalues are too close to converge soon
            pass
    is_tall = X.shape[0] >= width
    gram = copy_to_host(X.T @ X if is_tall else X @ X.T).T  # Fortran's order spares a copy
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
    r"""Find :math:`\lambda_1 / \sum_i \lambda_i` of the rows without each part.

    Parameters
    ----------
    X : ndarray or torch.Tensor of float64, shape (n, d)
        Rows, centred if `center`, in a range that can be squared.
    parts : sequence of ndarray of int
        Row numbers of each part. No row is in two parts.
    direction : ndarray of float64, shape (d,)
        The leading direction of all rows.
    variance : float
        Sum of all squares.
    center : bool
        Whether the remaining rows are centred again.

    Returns
    -------
    ndarray of float64, shape (parts,)
        NaN if iteration does not converge soon, or if almost no variance remains.

    Notes
    -----
    Lanczos iteration runs for all parts side by side, from `direction`, with full orthogonalisation (Golub and Van
    Loan, Matrix Computations, 2013, section 10.3). It ends when the bound of the error,
    :math:`r^2 / (\theta_1 - \theta_2)` with the residual r and the two largest Ritz values (Parlett, The Symmetric
    Eigenvalue Problem, 1998, section 11.7), is small.
    """
    xp, d = namespace(X), X.shape[1]
    mask = arrays.mark_remaining_rows(X, parts)
    host_mask = copy_to_host(mask)
    counts = host_mask.sum(axis=0)
    means = np.zeros((d, len(parts)))
    if center:
        means = copy_to_host(mask.T @ X).T / np.maximum(counts, 1)
    squares = copy_to_host(xp.einsum("ij,ij->i", X, X))
    variances = squares @ host_mask - counts * np.square(means).sum(axis=0)

    def products(vectors: np.ndarray) -> np.ndarray:
        """Multiply the covariance without each part by the vector of this part, (d, parts)."""
        columns = xp.asarray(vectors, device=X.device)
        total = 0.0
        for rows in arrays.split_rows(X, max(PARTS_LEAST_ROWS, PARTS_BLOCK_BYTES // (8 * d))):
            total = total + X[rows].T @ ((X[rows] @ columns) * mask[rows])
        return copy_to_host(total) - counts * means * (means * vectors).sum(axis=0)

    usable = variances > LEAST_VARIANCE * variance
    if not usable.any():
        return np.full(len(parts), np.nan)
    shares = _iterate_parts(products, direction, variances, usable)
    return np.where(usable, np.minimum(shares, 1.0), np.nan)


def _iterate_parts(
    products: Any, direction: np.ndarray, variances: np.ndarray, usable: np.ndarray
) -> np.ndarray:
    """Find the leading share without each part, from a start near `direction`; NaN if it does not converge."""
    d, count = len(direction), len(variances)
    random = random_stream(0, "start without parts").standard_normal((d, 1))
    random_part = RANDOM_SHARE_OF_START * random / np.linalg.norm(random)
    start = direction[:, None] / np.linalg.norm(direction) + random_part
    vectors = np.repeat(start / np.linalg.norm(start), count, axis=1)
    scales = np.where(usable, variances, 1)
    basis = np.empty((min(PARTS_PASSES, d), d, count))
    diagonal, off_diagonal = np.zeros((len(basis), count)), np.zeros((len(basis), count))
    for step in range(len(basis)):
        basis[step] = vectors
        image = products(vectors) / scales
        diagonal[step] = (image * vectors).sum(axis=0)
        for _ in range(2):
            previous = basis[: step + 1]
            image -= np.einsum("sdg,sg->dg", previous, np.einsum("sdg,dg->sg", previous, image))
        off_diagonal[step] = np.linalg.norm(image, axis=0)
        is_complete = off_diagonal[step] <= 1e-14
        off_diagonal[step, is_complete] = 0
        vectors = np.where(is_complete, 0, image / np.where(is_complete, 1, off_diagonal[step]))
        shares, errors = _find_ritz_values(diagonal[: step + 1], off_diagonal[: step + 1])
        tolerances = DEVIATION_TOLERANCE * shares[usable].std() + SHARE_TOLERANCE * shares
        if step > 1 and (errors <= tolerances)[usable].all():
            return shares
    is_complete_basis = len(basis) == d
    return np.where(is_complete_basis | (errors <= tolerances), shares, np.nan)


def _find_ritz_values(
    diagonal: np.ndarray, off_diagonal: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Find the largest Ritz values of tridiagonal matrices, (steps, count), and bounds on their errors."""
    steps = len(diagonal)
    matrices = np.zeros((diagonal.shape[1], steps, steps))
    index = np.arange(steps)
    matrices[:, index, index] = diagonal.T
    matrices[:, index[1:], index[:-1]] = off_diagonal[:-1].T
    values, vectors = np.linalg.eigh(matrices)  # reads the lower triangle
    residuals = off_diagonal[-1] * np.abs(vectors[:, -1, -1])
    gaps = values[:, -1] - values[:, -2] if steps > 1 else np.zeros(len(values))
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.where(residuals == 0, 0, np.minimum(residuals, residuals**2 / gaps))
    return values[:, -1], errors
