"""Groups of vectors, and adjustments of a space that remove means and directions of clusters.

Adjustments are fitted on some vectors and applied to others.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from sklearn.cluster import KMeans

from shape_of_learning.estimators.arrays import centre, read_matrix

# Shares of a length that are rounding: the rest of a vector that is removed, and the spread in a direction without
# variance.
ROUNDING = 1e-12


@dataclass(frozen=True)
class ClusterBased:
    """The removal of mean and leading principal directions of each cluster of vectors.

    Attributes
    ----------
    clusters : int
        Of k-means; with 1, mean and directions of all vectors are removed.
    k : int
        Directions of each cluster. The m vectors of a cluster span m - 1 directions at most, and only these are
        removed.
    seed : int
        The seed of the start by k-means++.

    References
    ----------
    Mu and Viswanath, All-but-the-top, ICLR 2018, algorithm 1, with one cluster.
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
            Training tokens of any real dtype; the computation is in float64.

        Raises
        ------
        ValueError
            If `X` is not two-dimensional, is empty, holds NaN or infinity, or has fewer rows than there are
            clusters.
        """
        X = read_matrix(X)
        origin = X.mean(axis=0)
        rows = X - origin  # since distances lose digits to a common offset
        labels = np.zeros(len(X), np.int64)
        if self.clusters > 1:
            labels = KMeans(self.clusters, n_init=1, tol=0, random_state=self.seed).fit_predict(
                rows
            )
        means = [rows[labels == label].mean(axis=0) for label in np.unique(labels)]
        centres = np.array(means) + origin
        labels = find_nearest_centres(X, centres)
        directions = [
            _find_principal_directions(X[labels == label], self.k) for label in range(len(centres))
        ]
        return Adjustment(centres, directions)


@dataclass(frozen=True)
class Adjustment:
    """The means and directions of clusters, which can be removed from any vectors of that space.

    Attributes
    ----------
    centres : ndarray of float64, shape (clusters, d)
        Means; a vector belongs to the nearest mean.
    directions : sequence of ndarray of float64, shape (k, d)
        Unit vectors of each cluster, at right angles, by descending variance.
    """

    centres: np.ndarray
    directions: Sequence[np.ndarray]

    def select_leading(self, k: int) -> "Adjustment":
        """Return the adjustment with the first k directions of each cluster, or fewer if it has fewer."""
        return replace(self, directions=[direction[:k] for direction in self.directions])

    def apply(self, X: ArrayLike) -> np.ndarray:
        """Remove mean and directions.

        Parameters
        ----------
        X : array_like or torch.Tensor, shape (n, d)

        Returns
        -------
        ndarray of float64, shape (n, d)
            Rests that are rounding are set to zero.

        Raises
        ------
        ValueError
            If `X` is not two-dimensional, is empty or holds NaN or infinity.
        """
        return self._split_parts(X)[0]

    def keep_removed(self, X: ArrayLike) -> np.ndarray:
        """Return the part of vectors, less their mean, along the removed directions.

        Parameters, results and errors are those of :meth:`apply`; the two results add up to the vectors less their
        means.
        """
        return self._split_parts(X)[1]

    def _split_parts(self, X: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        X = read_matrix(X)
        labels = find_nearest_centres(X, self.centres)
        rest = X - self.centres[labels]
        removed = np.zeros_like(rest)
        for label, directions in enumerate(self.directions):
            members = labels == label
            if len(directions) and members.any():
                removed[members] = rest[members] @ directions.T @ directions
        rest -= removed
        # The rounding of both subtractions.
        for part in (rest, removed):
            part[np.linalg.norm(part, axis=1) <= ROUNDING * np.linalg.norm(X, axis=1)] = 0
        return rest, removed


def find_nearest_centres(X: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Return the number of the nearest centre (c, d) of each row (n, d), the first of equals; int64 (n,)."""
    middle = centres.mean(axis=0)
    centres = centres - middle
    # Squared distances less the row's own length.
    distances = np.einsum("cd,cd->c", centres, centres) - 2 * ((X - middle) @ centres.T)
    return distances.argmin(axis=1)


def _find_principal_directions(X: np.ndarray, k: int) -> np.ndarray:
    """Return at most k principal directions of the rows, (at most k, d), without directions of no variance."""
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
    r"""Return the share of the variance that is between groups.

    .. math:: \frac{\sum_g n_g \|\mu_g - \mu\|^2}{\sum_i \|x_i - \mu\|^2}

    Parameters
    ----------
    X : array_like, shape (n, d)
    groups : array_like of int, shape (n,)
        The group of each vector.

    Returns
    -------
    float
        0 to 1; NaN if all vectors are equal. With m groups that do not differ it is about (m - 1) / (n - 1), so that
        values of different groupings do not compare; values of one grouping at several steps do.

    Raises
    ------
    ValueError
        If `X` is not two-dimensional, is empty or holds NaN or infinity.
    """
    rows = centre(read_matrix(X))
    names, numbers = np.unique(np.asarray(groups), return_inverse=True)
    total = float(np.einsum("ij,ij->", rows, rows))
    if total == 0:
        return math.nan
    order = np.argsort(numbers, kind="stable")
    counts = np.bincount(numbers, minlength=len(names))
    sums = np.add.reduceat(rows[order], np.cumsum(counts) - counts, axis=0)
    return float((np.einsum("ij,ij->i", sums, sums) / counts).sum()) / total


def number_frequency_bands(token_ids: ArrayLike) -> np.ndarray:
    """Return the band of each token by how often its type occurs: 0 for once, 1 for 2 or 3, 2 for 4 to 7 times, ...

    Parameters
    ----------
    token_ids : array_like of int, shape (n,)

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    _, numbers, counts = np.unique(np.asarray(token_ids), return_inverse=True, return_counts=True)
    exponents: np.ndarray = np.frexp(counts)[1]
    return exponents.astype(np.int64)[numbers] - 1
