"""Groups of vectors, and adjustments of a space: of each cluster mean or directions are removed.

Adjustments are fitted on some vectors and applied to others.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from sklearn.cluster import KMeans

from shape_of_learning.estimators.arrays import centre, read_matrix

# Shares of a length that are rounding: what is left of a vector of which all has been removed, and of the
# variance in a direction that has none.
ROUNDING = 1e-12


@dataclass(frozen=True)
class ClusterBased:
    """Removal of mean and leading principal directions of each cluster of vectors.

    Attributes
    ----------
    clusters : int
        Of k-means; with 1, mean and directions of all vectors are removed.
    k : int
        Directions of each; a cluster whose m vectors span fewer, m - 1 at most, gives up these.
    seed : int
        Of the k-means++ start.

    References
    ----------
    Mu and Viswanath, All-but-the-top, ICLR 2018, algorithm 1, of one cluster.
    Rajaee and Pilehvar, A cluster-based approach for improving isotropy in contextual embedding space, ACL
    2021, section 3.
    """

    clusters: int = 27
    k: int = 12
    seed: int = 0

    def fit(self, X: ArrayLike) -> "Adjustment":
        """Find the clusters of vectors, and their means and directions.

        Parameters
        ----------
        X : array_like or torch.Tensor, shape (n, d)
            Of the training tokens; any real dtype, computed in float64.

        Raises
        ------
        ValueError
            If `X` is not two-dimensional, is empty, holds NaN or infinity, or has fewer rows than there are
            clusters.
        """
        X = read_matrix(X)
        origin = X.mean(axis=0)
        rows = X - origin  # lest distances lose digits to a common offset
        labels = np.zeros(len(X), np.int64)
        if self.clusters > 1:
            labels = KMeans(self.clusters, n_init=1, tol=0, random_state=self.seed).fit_predict(
                rows
            )
        means = [rows[labels == label].mean(axis=0) for label in np.unique(labels)]
        centres = np.array(means) + origin
        labels = find_nearest_centres(X, centres)
        own = [
            _find_principal_directions(X[labels == label], self.k) for label in range(len(centres))
        ]
        return Adjustment(centres, own)


@dataclass(frozen=True)
class Adjustment:
    """What was fitted, ready to be applied to any vectors of that space.

    Attributes
    ----------
    centres : ndarray of float64, shape (clusters, d)
        Means; a vector belongs to the nearest.
    directions : sequence of ndarray of float64, shape (k, d)
        Of each cluster: unit vectors at right angles, that of the largest variance first.
    """

    centres: np.ndarray
    directions: Sequence[np.ndarray]

    def select_leading(self, k: int) -> "Adjustment":
        """The same with the first k directions of each cluster, or as many as it has."""
        return replace(self, directions=[direction[:k] for direction in self.directions])

    def apply(self, X: ArrayLike) -> np.ndarray:
        """Remove mean and directions.

        Parameters
        ----------
        X : array_like or torch.Tensor, shape (n, d)

        Returns
        -------
        ndarray of float64, shape (n, d)
            A vector of which nothing but rounding is left is exactly zero.

        Raises
        ------
        ValueError
            If `X` is not such a matrix.
        """
        return self._split_parts(X)[0]

    def keep_removed(self, X: ArrayLike) -> np.ndarray:
        """Keep of vectors, less their mean, what lies along the removed directions, and nothing else.

        Parameters, results and errors as of :meth:`apply`; the two add up to the vectors less their means.
        """
        return self._split_parts(X)[1]

    def _split_parts(self, X: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        X = read_matrix(X)
        labels = find_nearest_centres(X, self.centres)
        left = X - self.centres[labels]
        removed = np.zeros_like(left)
        for label, directions in enumerate(self.directions):
            some = labels == label
            if len(directions) and some.any():
                removed[some] = left[some] @ directions.T @ directions
        left -= removed
        # The rounding of both subtractions.
        for part in (left, removed):
            part[np.linalg.norm(part, axis=1) <= ROUNDING * np.linalg.norm(X, axis=1)] = 0
        return left, removed


def find_nearest_centres(X: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Find the nearest of the centres (c, d) to each row (n, d), the first of equals; int64 (n,)."""
    middle = centres.mean(axis=0)
    centres = centres - middle
    # Squared distances less the row's own length.
    distances = np.einsum("cd,cd->c", centres, centres) - 2 * ((X - middle) @ centres.T)
    return distances.argmin(axis=1)


def _find_principal_directions(X: np.ndarray, k: int) -> np.ndarray:
    """At most k principal directions of the rows, (at most k, d): those in which there is variance."""
    k = min(k, len(X) - 1)
    if not k:
        return np.empty((0, X.shape[1]))
    rows = X - X.mean(axis=0)
    if len(rows) > rows.shape[1]:
        rows = np.linalg.qr(rows, mode="r")  # which has the same directions
    _, lengths, directions = np.linalg.svd(rows, full_matrices=False)
    noise = ROUNDING * max(lengths[0], np.abs(X).max())
    return directions[: min(k, int((lengths > noise).sum()))]


def share_between(X: ArrayLike, groups: ArrayLike) -> float:
    r"""Share of the variance that is between groups.

    .. math:: \frac{\sum_g n_g \|\mu_g - \mu\|^2}{\sum_i \|x_i - \mu\|^2}

    Parameters
    ----------
    X : array_like, shape (n, d)
    groups : array_like of int, shape (n,)
        Group of each vector.

    Returns
    -------
    float
        0 to 1; NaN where all vectors are equal. Of m groups that say nothing it is about (m - 1) / (n - 1):
        values of different groupings do not compare; those of one grouping at several steps do.

    Raises
    ------
    ValueError
        If `X` is not two-dimensional, is empty or holds NaN or infinity.
    """
    rows = centre(read_matrix(X))
    names, member = np.unique(np.asarray(groups), return_inverse=True)
    total = float(np.einsum("ij,ij->", rows, rows))
    if total == 0:
        return math.nan
    order = np.argsort(member, kind="stable")
    counts = np.bincount(member, minlength=len(names))
    sums = np.add.reduceat(rows[order], np.cumsum(counts) - counts, axis=0)
    return float((np.einsum("ij,ij->i", sums, sums) / counts).sum()) / total


def number_frequency_bands(token_ids: ArrayLike) -> np.ndarray:
    """Band of each token by how often its type occurs here: 0 for once, 1 for 2 or 3, 2 for 4 to 7 times, ...

    Parameters
    ----------
    token_ids : array_like of int, shape (n,)

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    _, member, counts = np.unique(np.asarray(token_ids), return_inverse=True, return_counts=True)
    exponents: np.ndarray = np.frexp(counts)[1]
    return exponents.astype(np.int64)[member] - 1
