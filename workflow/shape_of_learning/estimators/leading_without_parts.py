"""Share of the leading direction in the variance, without some of the rows: for many choices at once."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from shape_of_learning.estimators.arrays import as_numpy, namespace, row_blocks
from shape_of_learning.random_streams import random_stream

# Rows per step of X^T (X W) have so many bytes, and are in the cache when they are read the second time.
BLOCK_BYTES = 400_000
LEAST_ROWS = 16
# Passes over the data before a spectrum without gap is left to others.
PASSES = 60
# Lanczos iteration never leaves an eigenvector, as which it may start; a little of all others helps.
FREEDOM = 1e-3
# Errors that are allowed, beside the standard deviation of the shares, and beside the shares.
OF_DEVIATION, OF_SHARE = 1e-6, 1e-12
# Of the variance. What is less than that without a part has been lost to rounding.
LEAST_VARIANCE = 1e-6


def without_parts(
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
    if not parts:
        return np.empty(0)
    xp = namespace(X)
    n, d = X.shape
    left = np.ones((n, len(parts)))
    for number, part in enumerate(parts):
        left[part, number] = 0
    left_there = xp.asarray(left, device=X.device)
    counts = left.sum(axis=0)
    means = np.zeros((d, len(parts)))
    if center:
        means = as_numpy(left_there.T @ X).T / np.maximum(counts, 1)
    squares = as_numpy(xp.einsum("ij,ij->i", X, X))
    variances = squares @ left - counts * np.square(means).sum(axis=0)

    def products(vectors: np.ndarray) -> np.ndarray:
        """Covariance without each part, times its own vector, (d, parts)."""
        there = xp.asarray(vectors, device=X.device)
        total = 0.0
        for rows in row_blocks(X, max(LEAST_ROWS, BLOCK_BYTES // (8 * d))):
            total = total + X[rows].T @ ((X[rows] @ there) * left_there[rows])
        return as_numpy(total) - counts * means * (means * vectors).sum(axis=0)

    usable = variances > LEAST_VARIANCE * variance
    shares = np.full(len(parts), np.nan)
    if usable.any():
        found = _leading(products, direction, variances, usable)
        shares[usable] = found[usable]
    return np.minimum(shares, 1.0)


def _leading(
    products: Any, direction: np.ndarray, variances: np.ndarray, usable: np.ndarray
) -> np.ndarray:
    d, count = len(direction), len(variances)
    random = random_stream(0, "start without parts").standard_normal((d, 1))
    start = direction[:, None] / np.linalg.norm(direction) + FREEDOM * random / np.linalg.norm(
        random
    )
    vectors = np.repeat(start / np.linalg.norm(start), count, axis=1)
    scales = np.where(usable, variances, 1)
    basis = np.empty((min(PASSES, d), d, count))
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
