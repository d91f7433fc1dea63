"""Clusters of vectors by k-means, from a seeded k-means++ start."""

import numpy as np

from shape_of_learning.estimators.arrays import as_count, row_blocks
from shape_of_learning.random_streams import random_stream

# Rounds of Lloyd's algorithm; some dozens are usual.
ROUNDS = 300
BLOCK_BYTES = 1 << 24


def k_means(X: np.ndarray, clusters: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    r"""Divide vectors into clusters about their means, so that :math:`\sum_i \|x_i - c(i)\|^2` is small.

    Parameters
    ----------
    X : ndarray of float64, shape (n, d)
        As :func:`.as_matrix` reads it.
    clusters : int
        At least 1.
    seed : int
        Decides the start.

    Returns
    -------
    centres : ndarray of float64, shape (clusters, d)
        The mean of each cluster.
    labels : ndarray of int64, shape (n,)
        The cluster of each vector, whose centre is the nearest. No cluster is empty.

    Raises
    ------
    ValueError
        If there are fewer distinct vectors than clusters.

    Notes
    -----
    Lloyd's algorithm: a local minimum, which depends on the start. A cluster that loses all its vectors is
    given the one that lies farthest from its centre.

    References
    ----------
    Arthur and Vassilvitskii, k-means++: the advantages of careful seeding, SODA 2007, section 2.2.
    """
    clusters = as_count(clusters, "clusters", 1)
    if clusters > len(X):
        raise ValueError(
            f"X has {len(X)} vectors, fewer than {clusters} clusters; lower the number of clusters"
        )
    origin = X.mean(axis=0)
    X = X - origin  # lest distances lose digits to a common offset
    centres = _start(X, clusters, seed)
    labels = np.full(len(X), -1)
    for _ in range(ROUNDS):
        before, labels = labels, nearest_centres(X, centres)
        _fill_empty(X, centres, labels)
        if np.array_equal(labels, before):
            break
        centres = np.array([X[labels == label].mean(axis=0) for label in range(clusters)])
    return centres + origin, labels


def nearest_centres(X: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Find the nearest of the centres (c, d) to each row (n, d), the first of equals; int64 (n,)."""
    if len(centres) == 1:
        return np.zeros(len(X), np.int64)
    middle = centres.mean(axis=0)
    centres = centres - middle
    lengths = np.einsum("cd,cd->c", centres, centres)
    labels = np.empty(len(X), np.int64)
    for rows in row_blocks(X, BLOCK_BYTES // (8 * X.shape[1])):
        # Squared distances less the row's own length.
        labels[rows] = np.argmin(lengths - 2 * ((X[rows] - middle) @ centres.T), axis=1)
    return labels


def _start(X: np.ndarray, clusters: int, seed: int) -> np.ndarray:
    """Rows by k-means++: each with a chance that grows as its squared distance from those before."""
    stream = random_stream(seed, "k-means++")
    chosen = [int(stream.integers(len(X)))]
    distances = _squared_distances(X, X[chosen[0]])
    while len(chosen) < clusters:
        total = distances.sum()
        if total == 0:
            raise ValueError(
                f"X has {len(chosen)} distinct vectors, fewer than {clusters} clusters; lower the number of "
                "clusters"
            )
        chosen.append(int(stream.choice(len(X), p=distances / total)))
        distances = np.minimum(distances, _squared_distances(X, X[chosen[-1]]))
    return X[chosen]


def _squared_distances(X: np.ndarray, point: np.ndarray) -> np.ndarray:
    difference = X - point
    return np.einsum("nd,nd->n", difference, difference)


def _fill_empty(X: np.ndarray, centres: np.ndarray, labels: np.ndarray) -> None:
    """Give each empty cluster the row that is farthest from its centre, in place."""
    for label in np.flatnonzero(np.bincount(labels, minlength=len(centres)) == 0).tolist():
        sizes = np.bincount(labels, minlength=len(centres))
        difference = X - centres[labels]
        distances = np.einsum("nd,nd->n", difference, difference)
        distances[sizes[labels] == 1] = -1  # lest another one is emptied
        labels[np.argmax(distances)] = label
