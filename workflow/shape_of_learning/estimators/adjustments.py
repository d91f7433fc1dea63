"""Adjustments of a space, fitted on some vectors and applied to others: mean or directions are removed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.estimators.arrays import as_count, as_matrix
from shape_of_learning.estimators.k_means import k_means, nearest_centres

# Shares of a length that are rounding: what is left of a vector of which all has been removed, and of the
# variance in a direction that has none.
ROUNDING = 1e-12


@dataclass(frozen=True)
class WithoutPrincipalDirections:
    """Removal of the mean vector and the k leading principal directions.

    Attributes
    ----------
    k : int
        With 0, only the mean is removed.

    References
    ----------
    Mu and Viswanath, All-but-the-top, ICLR 2018, algorithm 1.
    """

    k: int

    def fit(self, X: ArrayLike) -> "Adjustment":
        """Find mean and directions of vectors (n, d); errors as :meth:`ClusterBased.fit`."""
        return ClusterBased(1, self.k).fit(X)


@dataclass(frozen=True)
class ClusterBased:
    """Removal of mean and leading principal directions of each cluster of vectors.

    Attributes
    ----------
    clusters : int
        Of k-means.
    k : int
        Directions of each; a cluster whose m vectors span fewer, m - 1 at most, gives up these.
    seed : int
        Of the k-means++ start.

    References
    ----------
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
            If `X` is not two-dimensional, is empty, holds NaN or infinity, or has fewer distinct rows than
            there are clusters; if `clusters` or `k` cannot be.
        """
        X = as_matrix(X)
        k = as_count(self.k, "k", 0)
        centres, labels = k_means(X, self.clusters, self.seed)
        directions = [_principal_directions(X[labels == label], k) for label in range(len(centres))]
        return Adjustment(centres, tuple(directions))


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

    def leading(self, k: int) -> "Adjustment":
        """The same with the first k directions of each cluster, or as many as it has."""
        return replace(self, directions=tuple(each[:k] for each in self.directions))

    def apply(self, X: ArrayLike) -> np.ndarray:
        """Remove mean and directions.

        Parameters
        ----------
        X : array_like or torch.Tensor, shape (n, d)

        Returns
        -------
        ndarray of float64, shape (n, d)
            A vector of which nothing but rounding is left is exactly zero, see :func:`zero_vectors`.

        Raises
        ------
        ValueError
            If `X` is not such a matrix, or its vectors are not as wide as those that were fitted.
        """
        return self._parts(X)[0]

    def removed(self, X: ArrayLike) -> np.ndarray:
        """Keep of vectors, less their mean, what lies along the removed directions, and nothing else.

        Parameters, results and errors as of :meth:`apply`; the two add up to the vectors less their means.
        """
        return self._parts(X)[1]

    def _parts(self, X: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        X = as_matrix(X)
        if X.shape[1] != self.centres.shape[1]:
            raise ValueError(
                f"X has {X.shape[1]} columns, but what was fitted has {self.centres.shape[1]}"
            )
        labels = nearest_centres(X, self.centres)
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


def zero_vectors(X: ArrayLike) -> int:
    """Count the rows of norm zero, which have no cosine and are left out of cosines.

    Parameters
    ----------
    X : array_like or torch.Tensor, shape (n, d)
        Such as :meth:`Adjustment.apply` returns; errors as of :func:`.as_matrix`.
    """
    return int((~as_matrix(X).any(axis=1)).sum())


def _principal_directions(X: np.ndarray, k: int) -> np.ndarray:
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
