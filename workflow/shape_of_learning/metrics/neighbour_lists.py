"""Nearest neighbours of a batch: of all its vectors, and of those that are left without a group of windows."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from shape_of_learning.metrics.measure_entry import searched_neighbours

# Beyond, the two nearest neighbours of a vector are so unlike that one of them is nearly the vector itself.
NEAR_DUPLICATE = 10


class NeighbourLists(NamedTuple):
    """The nearest neighbours of the m distinct vectors among n.

    Attributes
    ----------
    distances : ndarray of float64, shape (m, K)
        Ascending. Where m <= K, NaN from column m - 1 on.
    indices : ndarray of int, shape (m, K)
        Which distinct vector is that far away.
    distinct_of : ndarray of int, shape (n,)
        Which distinct vector each of the n is.
    unit : float
        Of distances with copies: :func:`~shape_of_learning.estimators.dimension.mean_distance_to_mean`.
    """

    distances: np.ndarray
    indices: np.ndarray
    distinct_of: np.ndarray
    unit: float = 1.0

    def nearest(self, k: int, collapse: bool = True) -> np.ndarray:
        """Distances to the k nearest, of the distinct vectors or of all.

        Parameters
        ----------
        k : int
            At most K.
        collapse : bool
            Whether vectors that are equal count as one. Else each is a neighbour of the others, at distance
            zero, and of whoever is near; distances are divided by `unit`.

        Returns
        -------
        ndarray of float64, shape (m, k) or (n, k)
            Ascending in each row; NaN where there is no such neighbour.
        """
        if collapse:
            return self.distances[:, :k]
        (everyone,) = self.nearest_anew([np.ones(len(self.distinct_of), bool)], k, collapse=False)
        return everyone

    def nearest_as_found(
        self, present: np.ndarray, nearest: np.ndarray, collapse: bool = True
    ) -> np.ndarray:
        """Rows of what :meth:`nearest` gives, of the vectors that are `present`, (n,) of bool."""
        copies = self._copies(present)
        if collapse:
            return nearest[copies > 0]
        # The rows of copies lie side by side, and are the same.
        everyone = self._copies(np.ones(len(present), bool))
        return nearest[np.repeat(everyone.cumsum() - everyone, copies)]

    def nearest_anew(
        self, presents: Iterable[np.ndarray], k: int, collapse: bool = True
    ) -> Iterator[np.ndarray]:
        """:meth:`nearest`, of some of the vectors among themselves.

        Parameters
        ----------
        presents : iterable of ndarray of bool, shape (n,)
            Which vectors are there, each time.
        k, collapse
            As in :meth:`nearest`.

        Yields
        ------
        ndarray of float64, shape (at most m or n, k)
            Without vectors of whose K neighbours fewer than k are left, unless all neighbours are known.
        """
        m = len(self.distances)
        # With a margin, few vectors lack neighbours; for these, all that were searched are looked at.
        near, far = (self._first_columns(n) for n in (searched_neighbours(k), m - 1))
        for present in presents:
            copies = self._copies(present)
            others = int(np.count_nonzero(copies) if collapse else copies.sum()) - 1
            existing = max(min(k, others), 0)
            rows = np.flatnonzero(copies)
            if not existing:
                yield np.full((others + 1, k), np.nan)
                continue
            found, has = _first(*near, copies, copies, existing, collapse)
            lacking = rows[~has[rows]]
            rows = np.flatnonzero(has)
            if len(lacking) and far[0].shape[1] > near[0].shape[1]:
                distances, indices = far[0][lacking], far[1][lacking]
                more, have = _first(distances, indices, copies, copies[lacking], existing, collapse)
                found, rows = np.concatenate([found, more]), np.concatenate([rows, lacking[have]])
            if not collapse:
                found = np.repeat(found, copies[rows], axis=0) / self.unit
            if existing < k:
                found = np.pad(found, ((0, 0), (0, k - existing)), constant_values=np.nan)
            yield found

    def near_duplicates(self) -> float:
        """Share of the distinct vectors whose second neighbour is ten times as far away as the first."""
        first, second = self.distances[:, :2].T
        return float((second / first > NEAR_DUPLICATE).mean()) if len(first) > 2 else np.nan

    def _copies(self, present: np.ndarray) -> np.ndarray:
        """How many of the present vectors are each distinct one, (m,)."""
        return np.bincount(self.distinct_of[present], minlength=len(self.distances))

    def _first_columns(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Distances and indices of so many neighbours, of those that exist."""
        columns = min(number, self.distances.shape[1], len(self.distances) - 1)
        if columns == self.distances.shape[1]:
            return self.distances, self.indices
        # Many times it is faster to look at what lies side by side, by indices of NumPy's own type.
        return self.distances[:, :columns].copy(), self.indices[:, :columns].astype(np.intp)


def _first(
    distances: np.ndarray,
    indices: np.ndarray,
    copies: np.ndarray,
    own: np.ndarray,
    k: int,
    collapse: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """The first k distances to vectors that are there, of rows that have so many, and which have.

    `copies`, (m,), says how often each distinct vector is there, `own` likewise those whose rows are given.
    """
    if collapse:
        taken = (copies > 0)[indices]
        taken[own == 0] = False
        available = np.count_nonzero(taken, axis=1)
        found = distances[taken]
    else:
        # The other copies of a vector come first.
        counts = np.hstack([own[:, None] - 1, copies[indices]]) * (own[:, None] > 0)
        available = counts.sum(axis=1)
        with_zero = np.hstack([np.zeros((len(distances), 1)), distances])
        found = np.repeat(with_zero.ravel(), counts.ravel())
    has = available >= k
    starts = np.cumsum(available) - available
    if not has.any():
        return np.empty((0, k)), has
    return sliding_window_view(found, k)[starts[has]], has
