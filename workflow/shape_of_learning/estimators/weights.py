"""Measure a model's own matrices: final norm, plane of the embeddings, and isotropy of the partition function."""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.estimators.arrays import copy_to_host, namespace, read_blocks, read_matrix

# Bytes of a block of rows as float64.
BLOCK_BYTES = 2**26  # for a plane
PARTITION_BYTES = 2**25  # for the partition function: 1024 rows of 4096 numbers
# If a projection of the mean is below this share of the root mean square projection, its sign is rounding.
NO_PROJECTION = 1e-9


def gain_length(gain: ArrayLike, bias: ArrayLike | None = None) -> float:
    r"""Euclidean length of the gain g of a normalisation :math:`y = g \odot \hat x + b`.

    Parameters
    ----------
    gain : array_like or torch.Tensor, shape (d,)
        The factors of the normalised vector.
    bias : array_like or torch.Tensor, shape (d,), optional
        The added vector; a normalisation by the root mean square has no bias.

    Raises
    ------
    ValueError
        If an argument holds NaN or infinity.

    References
    ----------
    Machina and Mercer, Anisotropy is not inherent to transformers, NAACL 2024.

    Examples
    --------
    >>> gain_length([3, 4])
    5.0
    """
    return _length(gain)


def bias_length(gain: ArrayLike, bias: ArrayLike | None = None) -> float:
    """Euclidean length of the bias; NaN without a bias. Otherwise as :func:`gain_length`."""
    return math.nan if bias is None else _length(bias)


def bias_gain_ratio(gain: ArrayLike, bias: ArrayLike | None = None) -> float:
    r"""Length of the bias over the length of the gain, :math:`\|b\| / \|g\|`.

    NaN without a bias, or with a gain of zeros. Otherwise as :func:`gain_length`.

    Examples
    --------
    >>> bias_gain_ratio([3, 4], [0, 1])
    0.2
    """
    length = _length(gain)
    return bias_length(gain, bias) / length if length else math.nan


def _length(vector: ArrayLike) -> float:
    return float(np.linalg.norm(read_matrix(np.asarray(vector)[None])))


def principal_coordinates(X: Any, center: bool = False) -> np.ndarray:
    r"""Find the coordinates of the rows along the two leading right singular vectors.

    With :math:`X = U \Sigma V^T` for the rows, or for the rows less their mean, the coordinates are the first two
    columns of :math:`U \Sigma = X V`, where :math:`V` has the eigenvectors of :math:`X^T X`. A decomposition leaves the
    sign of a column open. Here it makes the sum of cubes positive, so that the column points to rows that lie far out,
    and along the mean of the rows if that is far from the origin.

    Parameters
    ----------
    X : array, shape (n, d)
        Real numbers. An object with a shape whose slices are arrays, such as a dataset of HDF5, is read by rows.
    center : bool
        Whether to subtract the mean row.

    Returns
    -------
    ndarray of float64, shape (n, 2)
        In the unit of `X`; the column of the larger singular value comes first.

    Raises
    ------
    ValueError
        If `X` is not two-dimensional or has fewer than two rows or columns. For NaN and infinity,
        :class:`.NotFiniteError`.

    Examples
    --------
    >>> principal_coordinates(np.array([[0.0, 3.0], [1.0, 0.0], [0.0, -1.0]])).round(9) + 0.0
    array([[ 3.,  0.],
           [ 0.,  1.],
           [-1.,  0.]])
    """
    if len(X.shape) != 2 or min(X.shape) < 2:
        raise ValueError(f"X must have two rows and columns or more, but its shape is {X.shape}")
    from scipy.linalg import eigh

    n, d = X.shape
    rows = max(1, BLOCK_BYTES // (8 * d))
    total, products = np.zeros(d), np.zeros((d, d))
    for block in read_blocks(X, rows):
        total += block.sum(axis=0)
        products += block.T @ block
    mean = total / n if center else np.zeros(d)
    products -= n * np.outer(mean, mean)
    _, axes = eigh(products, subset_by_index=[d - 2, d - 1], overwrite_a=True)
    plane = axes[:, ::-1]
    coordinates = np.concatenate([block @ plane for block in read_blocks(X, rows)]) - mean @ plane
    return np.where((coordinates**3).sum(axis=0) < 0, -1.0, 1.0) * coordinates


def log_partition_isotropy(X: ArrayLike, center: bool = False, signs: str = "one") -> float:
    r"""Smallest over largest value of the partition function, as a natural logarithm.

    .. math:: \ln I(X) = \ln \frac{\min_c F(c)}{\max_c F(c)}, \qquad F(c) = \sum_i e^{c \cdot x_i},

    over the unit eigenvectors c of :math:`X^T X`.

    Parameters
    ----------
    X : array_like, torch.Tensor, or anything with a shape (n, d) that gives rows by slices
        Vectors of any real dtype, such as an embedding matrix. They are read several times in blocks of rows, and
        computed in float64. A tensor of float32, bfloat16 or float16 on a GPU is computed there.
    center : bool
        Whether to subtract the mean vector first.
    signs : {"one", "both"}
        An eigenvector's sign is arbitrary, but F(c) differs from F(-c). "one": the sign makes the projection on the
        mean vector positive. If the projection is zero, as always after centring, the sign gives the larger F. "both":
        c and -c both count. With a common offset "both" gives about twice the value of "one", so never compare the two.

    Returns
    -------
    float
        At most 0, for perfect isotropy. It depends on the scale of the vectors. If eigenvalues are equal, eigenvectors
        are not unique, and it depends on their choice.

    Raises
    ------
    ValueError
        If `X` is not two-dimensional, is empty, or holds NaN or infinity, or if `signs` is another word.

    Notes
    -----
    Sums of exponentials are scaled by their largest term, since they can overflow and underflow. The computation takes
    3 n d\ :sup:`2` operations and the eigenvectors of a d x d matrix, and memory for four such matrices besides the
    vectors.

    References
    ----------
    Arora et al., A latent variable model approach to PMI-based word embeddings, TACL 4 (2016), section 2
    (F). Mu and Viswanath, All-but-the-top, ICLR 2018, section 2 (I over eigenvectors). Machina and Mercer,
    Anisotropy is not inherent to transformers, NAACL 2024 (of embedding matrices, raw and centred).

    Examples
    --------
    >>> round(log_partition_isotropy([[2, 0], [0, 1]]), 4)  # ln (1 + e) / (1 + e^2)
    -0.8137
    """
    if signs not in ("one", "both"):
        raise ValueError(f"signs must be 'one' or 'both', not {signs!r}")
    rows: Any = X if hasattr(X, "shape") else read_matrix(X)
    block_rows = max(1, PARTITION_BYTES // (8 * max(1, rows.shape[-1])))
    mean = sum(block.sum(axis=0) for block in read_blocks(rows, block_rows)) / len(rows)

    def blocks() -> Iterator[Any]:
        for block in read_blocks(rows, block_rows):
            yield block - mean if center else block

    eigenvalues, directions = _decompose_gram(blocks())
    forward, backward = _log_sums(blocks(), directions)
    if signs == "both":
        forward = np.concatenate([forward, backward])
    else:
        projections = copy_to_host(mean @ directions) * (not center)
        root_mean_squares = np.sqrt(np.maximum(eigenvalues, 0) / len(rows))
        is_undecided = abs(projections) <= NO_PROJECTION * root_mean_squares
        larger = np.maximum(forward, backward)
        forward = np.where(is_undecided, larger, np.where(projections > 0, forward, backward))
    return float(forward.min() - forward.max())


def _decompose_gram(blocks: Iterable[Any]) -> tuple[np.ndarray, Any]:
    """Find the eigenvalues, (d,), and eigenvectors, (d, d), of :math:`X^T X` for the rows of all blocks."""
    gram: Any = 0.0
    for block in blocks:
        product = block.T @ block
        product += gram
        gram = product
    if not isinstance(gram, np.ndarray):
        eigenvalues, directions = namespace(gram).linalg.eigh(gram)
        return copy_to_host(eigenvalues), directions
    from scipy.linalg import eigh

    # Fortran's order spares a copy.
    return eigh(gram.T, driver="evr", overwrite_a=True, check_finite=False)


def _log_sums(blocks: Iterable[Any], directions: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the logarithms of F(c) and of F(-c) for all columns c, (d,)."""
    xp = namespace(directions)
    # The largest exponent so far, and the sum of exponentials as multiples of the largest.
    largest = [xp.full_like(directions[0], -np.inf) for _ in "+-"]
    sums = [xp.zeros_like(directions[0]) for _ in "+-"]
    for block in blocks:
        exponents = block @ directions
        for sign in (0, 1):
            top = xp.maximum(largest[sign], xp.amax(exponents, axis=0))
            sums[sign] = sums[sign] * xp.exp(largest[sign] - top)
            sums[sign] += xp.exp(exponents - top).sum(axis=0)
            largest[sign] = top
            exponents *= -1
    return copy_to_host(largest[0] + xp.log(sums[0])), copy_to_host(largest[1] + xp.log(sums[1]))
