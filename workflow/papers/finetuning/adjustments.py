"""Groups of vectors, and adjustments of a space, which remove means and directions of clusters.

An adjustment that is fitted on some vectors can be applied to other vectors of the same space.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from sklearn.cluster import KMeans

from shape_of_learning.estimators.arrays import centre, read_matrix

# Share of the length of vectors: a shorter difference between them is 0 apart from rounding.
ROUNDING = 1e-12


@dataclass(frozen=True)
class ClusterAdjustment:
    """A method that removes the mean and the leading principal directions of each cluster of vectors.

    Attributes
    ----------
    clusters : int
        The number of clusters of k-means; if it is 1, all vectors are one cluster.
    k : int
        The number of directions of each cluster. The m vectors of a cluster span m - 1 directions at most, and only
        these are removed.
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
        """Find the clusters of some vectors, and the mean and the directions of each cluster.

        Parameters
        ----------
        X : array_like or torch.Tensor, shape (n, d)
            The vectors, of any real dtype; the computation is in float64.

        Raises
        ------
        ValueError
            If `X` is not two-dimensional, is empty, holds NaN or infinity, or has fewer rows than there are
            clusters.
        """
        X = read_matrix(X)
        origin = X.mean(axis=0)
        rows = X - origin  # a common offset would cost distances their last digits
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
    """The means and directions of clusters, which can be removed from any vectors of the same space.

    Attributes
    ----------
    centres : ndarray of float64, shape (clusters, d)
        The means; a vector belongs to the cluster whose mean is nearest.
    directions : sequence of ndarray of float64, shape (k, d)
        The orthogonal unit vectors of each cluster, by descending variance.
    """

    centres: np.ndarray
    directions: Sequence[np.ndarray]

    def select_leading(self, k: int) -> "Adjustment":
        """Return the adjustment with the first k directions of each cluster, or all of a cluster that has fewer."""
        return replace(self, directions=[direction[:k] for direction in self.directions])

    def apply(self, X: ArrayLike) -> np.ndarray:
        """Remove from each vector the mean and the directions of its cluster.

        Parameters
        ----------
        X : array_like or torch.Tensor, shape (n, d)

        Returns
        -------
        ndarray of float64, shape (n, d)
            The rests of the vectors. A rest is set to zero if it is a rounding error.

        Raises
        ------
        ValueError
            If `X` is not two-dimensional, is empty or holds NaN or infinity.
        """
        return self._split_parts(X)[0]

    def project(self, X: ArrayLike) -> np.ndarray:
        """Subtract from each vector the mean of its cluster, and project the difference on the cluster's directions.

        Parameters, shapes and errors are those of :meth:`apply`. The results of both methods add up to the vectors
        less the means.
        """
        return self._split_parts(X)[1]

    def _split_parts(self, X: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        X = read_matrix(X)
        labels = find_nearest_centres(X, self.centres)
        rest = X - self.centres[labels]
        removed_part = np.zeros_like(rest)
        for label, directions in enumerate(self.directions):
            members = labels == label
            if len(directions) and members.any():
                removed_part[members] = rest[members] @ directions.T @ directions
        rest -= removed_part
        # Both subtractions round.
        for vectors in (rest, removed_part):
            vectors[np.linalg.norm(vectors, axis=1) <= ROUNDING * np.linalg.norm(X, axis=1)] = 0
        return rest, removed_part


def find_nearest_centres(X: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Return the number of the nearest centre (c, d) of each row (n, d), int64 (n,); the first of equally near ones."""
    middle = centres.mean(axis=0)
    centres = centres - middle
    # These are squared distances less the squared length of the row, which is the same for all centres.
    distances = np.einsum("cd,cd->c", centres, centres) - 2 * ((X - middle) @ centres.T)
    return distances.argmin(axis=1)


def _find_principal_directions(X: np.ndarray, k: int) -> np.ndarray:
    """Return at most k principal directions of the rows, (at most k, d); directions without variance are left out."""
    k = min(k, len(X) - 1)
    if not k:
        return np.empty((0, X.shape[1]))
    rows = X - X.mean(axis=0)
    if len(rows) > rows.shape[1]:
        rows = np.linalg.qr(rows, mode="r")  # the smaller matrix has the same principal directions
    _, lengths, directions = np.linalg.svd(rows, full_matrices=False)
    noise = ROUNDING * max(lengths[0], np.abs(X).max())
    return directions[: min(k, int((lengths > noise).sum()))]


def share_between(X: ArrayLike, groups: ArrayLike) -> float:
    r"""Return the share of the variance that lies between groups.

    .. math:: \frac{\sum_g n_g \|\mu_g - \mu\|^2}{\sum_i \|x_i - \mu\|^2}

    Parameters
    ----------
    X : array_like, shape (n, d)
    groups : array_like of int, shape (n,)
        The group of each vector.

    Returns
    -------
    float
        A share from 0 to 1; NaN if all vectors are equal. With m groups that do not differ it is about
        (m - 1) / (n - 1), so compare values of one grouping at several steps, not values of different groupings.

    Raises
    ------
    ValueError
        If `X` is not two-dimensional, is empty or holds NaN or infinity.
    """
    rows = centre(read_matrix(X))
    _, numbers = np.unique(np.asarray(groups), return_inverse=True)
    total = float(np.einsum("ij,ij->", rows, rows))
    if total == 0:
        return math.nan
    order = np.argsort(numbers, kind="stable")
    counts = np.bincount(numbers)
    sums = np.add.reduceat(rows[order], np.cumsum(counts) - counts, axis=0)
    return float((np.einsum("ij,ij->i", sums, sums) / counts).sum()) / total


def number_frequency_bands(token_ids: ArrayLike) -> np.ndarray:
    """Return the frequency band of each token: 0 if its type occurs once, 1 if 2 or 3 times, 2 if 4 to 7 times, ...

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
