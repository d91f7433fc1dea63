"""Find massive tokens, whose vectors are much longer than others, and shares of single vectors in the variance."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from shape_of_learning.estimators.arrays import (
    CACHE_BYTES,
    copy_to_host,
    is_finite,
    namespace,
    read_matrix,
    split_rows,
)

# Multiple of the median norm. In a sum of squares such a vector counts like 25 ordinary vectors, so if one in a hundred
# vectors is massive, like first tokens of windows, they hold a fifth of the sum. In SmolLM2-135M first tokens are 22 to
# 212 times as long as the median from block 12 to 28, and all other tokens up to 1.6 times; from block 3 to 9 first
# tokens and many tokens ` the` are up to 14 times as long. In MiniLM the longest tokens are 3.5 times as long.
MASSIVE = 5.0


def find_massive(X: Any) -> np.ndarray:
    r"""Find the vectors that are longer than :data:`MASSIVE` times the median.

    Parameters
    ----------
    X : ndarray or torch.Tensor, shape (n, d)
        Real numbers; norms are computed in float64.

    Returns
    -------
    ndarray of bool, shape (n,)
        True for at most half of the vectors. Vectors that are not finite are False, and do not enter the median.

    Notes
    -----
    Sun et al. 2024, "Massive Activations in Large Language Models" (arXiv 2402.17762), call a coordinate massive if its
    magnitude is above 100 and about 1,000 times the median magnitude of its layer. If the other coordinates are
    Gaussian, its vector is :math:`674 / \sqrt{d}` times as long as others: 28 times with d = 576, 10 times with
    d = 4,096. A norm also finds vectors that are long in many coordinates, and the factor 5 also finds vectors that are
    shorter but more numerous. One in 1,600 vectors of a multivariate Student's t with five degrees of freedom is so
    long, but no Gaussian vector.

    Examples
    --------
    >>> find_massive(np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, 0.0], [0.0, 30.0]]))
    array([False, False, False,  True])
    """
    blocks = []
    for rows in split_rows(X, CACHE_BYTES // (8 * X.shape[1])):
        block = read_matrix(X[rows], finite=False, stay=True)
        blocks.append(copy_to_host(namespace(block).linalg.norm(block, None, 1)))
    norms = np.concatenate(blocks)
    finite = np.isfinite(norms)
    return finite & (norms > MASSIVE * (np.median(norms[finite]) if finite.any() else np.inf))


def find_massive_in_any_state(states: Iterable[Any]) -> np.ndarray:
    """Find the tokens whose vectors are massive in any of several hidden states.

    Measures without massive tokens leave out the same tokens in all layers. If each layer left out its own massive
    tokens, a profile over layers would jump where the norms of some tokens pass :data:`MASSIVE` times the median.

    Parameters
    ----------
    states : iterable of ndarray or torch.Tensor, each of shape (n, d)
        Hidden states of the same n tokens; widths may differ.

    Returns
    -------
    ndarray of bool, shape (n,)

    Examples
    --------
    >>> layers = [np.array([[1.0], [9.0], [1.0], [2.0]]), np.array([[1.0], [1.0], [1.0], [8.0]])]
    >>> find_massive_in_any_state(layers)
    array([False,  True, False,  True])
    """
    return np.any([find_massive(state) for state in states], axis=0)


class Concentration(NamedTuple):
    """Shares of the variance, the sum of squares about the mean; NaN if there is no variance.

    Attributes
    ----------
    largest_token_share : float
        The share of the vector that is farthest from the mean.
    largest_coordinate : int or None
        The coordinate with the largest variance, from 0.
    largest_coordinate_share : float
        The share of this coordinate.
    norm_ratio : float
        The largest norm over the median norm.
    massive_share : float
        The share of all massive vectors together.
    """

    largest_token_share: float
    largest_coordinate: int | None
    largest_coordinate_share: float
    norm_ratio: float
    massive_share: float


def measure_concentration(X: Any) -> Concentration:
    """Find the vectors and the coordinate that hold most of the variance.

    Parameters
    ----------
    X : ndarray or torch.Tensor, shape (n, d)
        Real numbers; computed in float64.

    Returns
    -------
    Concentration
        NaN and None if a number is not finite.
    """
    if not is_finite(X):
        return Concentration(np.nan, None, np.nan, np.nan, np.nan)
    X = copy_to_host(X)
    mean = X.mean(axis=0, dtype=np.float64)
    token_squares, coordinate_squares = np.empty(len(X)), np.zeros(X.shape[1])
    for rows in split_rows(X, CACHE_BYTES // (8 * X.shape[1])):
        squares = (X[rows] - mean) ** 2
        token_squares[rows] = squares.sum(axis=1)
        coordinate_squares += squares.sum(axis=0)
    largest, norms = int(coordinate_squares.argmax()), np.linalg.norm(X, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = token_squares / token_squares.sum()
        coordinates = coordinate_squares / coordinate_squares.sum()
        return Concentration(
            float(shares.max()),
            largest,
            float(coordinates[largest]),
            float(norms.max() / np.median(norms)),
            float(shares[find_massive(X)].sum()),
        )
