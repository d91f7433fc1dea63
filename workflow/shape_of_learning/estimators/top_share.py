"""Share of a few leading principal directions in the variance of a cloud of vectors."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.estimators.arrays import as_count, as_matrix, as_numpy, centred, namespace
from shape_of_learning.random_streams import random_stream

# Up to this many rows or columns the eigenvalues of the Gram matrix are found soon.
GRAM_SIDE = 256
# Directions that iteration finds beyond those that are asked for, so that a gap lies between; and its steps
# before a spectrum without gap is left to the Gram matrix.
BEYOND = 6
STEPS = 20
# Of the share.
TOLERANCE = 1e-10


def top_share(X: ArrayLike, directions: int = 10) -> float:
    r"""Share of the k leading principal directions in the total variance.

    .. math:: \frac{\sum_{i \le k} \sigma_i^2}{\sum_i \sigma_i^2}

    with the singular values :math:`\sigma_1 \ge \sigma_2 \ge \dots` of the centred matrix.

    Parameters
    ----------
    X : array_like or torch.Tensor, shape (n, d)
        At least two vectors of any real dtype; computed in float64, those on a GPU there if they are float32,
        bfloat16 or float16.
    directions : int
        k, at least 1. With 1, it is :func:`~shape_of_learning.anisotropy`.

    Returns
    -------
    float
        In [k / min(n, d), 1], equal to that of a full singular value decomposition to 1e-9 relative. NaN if
        there is no variance.

    Raises
    ------
    ValueError
        If `X` is not two-dimensional, has fewer than two rows, or holds NaN or infinity; if `directions` is
        no whole number above zero.

    Notes
    -----
    Beyond 256 rows and columns by block Lanczos iteration with full orthogonalisation from a fixed start
    (Golub and Van Loan, Matrix Computations, 2013, section 10.3.6), a few passes over the data.

    Examples
    --------
    >>> top_share([[2, 0], [-2, 0], [0, 1], [0, -1]], directions=1)
    0.8
    """
    k = as_count(directions, "directions", 1)
    X = as_matrix(X, stay=True)
    if len(X) < 2:
        raise ValueError(f"X has {len(X)} row, but variance takes at least 2")
    X = centred(X)
    xp = namespace(X)
    variance = float(xp.einsum("ij,ij->i", X, X).sum())
    if variance == 0:
        return math.nan
    side = min(X.shape)
    if k >= side:
        return 1.0

    def product(vectors: np.ndarray) -> np.ndarray:
        return as_numpy(X.T @ (X @ xp.asarray(vectors, device=X.device)) / variance)

    share = None
    if side > max(GRAM_SIDE, 4 * (k + BEYOND)):
        share = _by_iteration(product, X.shape[1], k)
    if share is None:
        gram = X.T @ X if X.shape[0] >= X.shape[1] else X @ X.T
        share = _of_gram(as_numpy(gram), k) / variance
    return min(share, 1.0)


def _of_gram(gram: np.ndarray, k: int) -> float:
    from scipy.linalg import eigh

    last = len(gram) - 1
    top = eigh(gram, eigvals_only=True, subset_by_index=[last - k + 1, last], check_finite=False)
    return float(top.sum())


def _by_iteration(product: Callable[[np.ndarray], np.ndarray], width: int, k: int) -> float | None:
    """Sum of the k largest eigenvalues of a symmetric matrix; None if they are not told apart soon."""
    block = random_stream(0, "start of block Lanczos iteration").standard_normal(
        (width, k + BEYOND)
    )
    basis, images = np.empty((width, 0)), np.empty((width, 0))
    for _ in range(min(STEPS, width // block.shape[1])):
        for _ in range(2):
            block = np.linalg.qr(block - basis @ (basis.T @ block))[0]
        image = product(block)
        basis, images = np.hstack([basis, block]), np.hstack([images, image])
        projected = basis.T @ images
        values, vectors = np.linalg.eigh((projected + projected.T) / 2)
        values, vectors = values[::-1], vectors[:, ::-1]
        top = values[:k]
        residuals = np.linalg.norm(images @ vectors[:, :k] - basis @ (vectors[:, :k] * top), axis=0)
        if len(values) > k + BEYOND:
            # Parlett, The Symmetric Eigenvalue Problem, 1998, section 11.7; the gap is that to what is
            # beyond half of the spare directions, since who is who among near ones does not matter.
            gaps = np.maximum(top - values[k + BEYOND // 2], np.finfo(float).tiny)
            errors = np.minimum(residuals, residuals**2 / gaps)
            if errors.sum() <= TOLERANCE * top.sum():
                return float(top.sum())
        block = image
    return None
