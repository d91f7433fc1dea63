"""Lists of nearest neighbours of a batch, and what they are without some of its vectors."""

from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from shape_of_learning.metrics.neighbour_margin import searched_neighbours

# Beyond, the two nearest neighbours of a vector are so unlike that one of them is nearly the vector itself.
NEAR_DUPLICATE = 10


class NeighbourLists(NamedTuple):
    """The nearest neighbours of the m distinct vectors among n.

    Attributes
    ----------
    distances : ndarray of float64, shape (m, K)
        Ascending. Where m <= K, NaN from column m - 1 on.
    indices : ndarray of int64, shape (m, K)
        Which distinct vector is that far away.
    distinct_of : ndarray of int64, shape (n,)
        Which distinct vector each of the n is.
    """

    distances: np.ndarray
    indices: np.ndarray
    distinct_of: np.ndarray

    def nearest(self, k: int, collapse: bool = True) -> np.ndarray:
        """Distances to the k nearest, of the distinct vectors or of all.

        Parameters
        ----------
        k : int
            At most K.
        collapse : bool
            Whether vectors that are equal count as one. Else each is a neighbour of the others, at distance
            zero, and of whoever is near.

        Returns
        -------
        ndarray of float64, shape (m, k), or (n, k) in the order of the batch
            Ascending in each row; NaN where there is no such neighbour.
        """
        if collapse:
            return self.distances[:, :k]
        return self.nearest_anew(np.ones(len(self.distinct_of), bool), k, collapse=False)

    def nearest_as_found(
        self, present: np.ndarray, nearest: np.ndarray, collapse: bool = True
    ) -> np.ndarray:
        """Rows of what :meth:`nearest` gives, of the vectors that are `present`, (n,) of bool."""
        return nearest[self._copies(present) > 0 if collapse else present]

    def nearest_anew(self, present: np.ndarray, k: int, collapse: bool = True) -> np.ndarray:
        """:meth:`nearest`, of the vectors that are `present`, (n,) of bool, among themselves.

        Returns
        -------
        ndarray of float64, shape (at most m or n, k)
            Without vectors of whose K neighbours fewer than k are left, unless all neighbours are known.
        """
        copies = self._copies(present)
        rows = np.flatnonzero(copies)
        others = (len(rows) if collapse else int(copies.sum())) - 1
        if others < k:
            nothing = np.full((others + 1, k), np.nan)
            if others > 0:
                existing = self.nearest_anew(present, others, collapse)
                nothing = np.full((len(existing), k), np.nan)
                nothing[:, :others] = existing
            return nothing
        m, searched = self.distances.shape
        found, lacking = np.empty((m, k)), rows
        # Of a margin, few lack neighbours; of these, all that were searched are looked at.
        for columns in sorted({min(searched, searched_neighbours(k)), searched}):
            first, enough = self._first(lacking, columns, copies, k, collapse)
            found[lacking[enough]] = first
            lacking = lacking[~enough]
            if not len(lacking):
                break
        known = np.zeros(m, bool)
        known[rows] = True
        known[lacking] = False
        if collapse:
            return found[known]
        owners = self.distinct_of[present]
        return found[owners[known[owners]]]

    def near_duplicates(self) -> float:
        """Share of the distinct vectors whose second neighbour is ten times as far away as the first."""
        first, second = self.distances[:, :2].T
        return float((second / first > NEAR_DUPLICATE).mean()) if len(first) > 2 else np.nan

    def _copies(self, present: np.ndarray) -> np.ndarray:
        """How many of the present vectors are each distinct one, (m,)."""
        return np.bincount(self.distinct_of[present], minlength=len(self.distances))

    def _first(
        self, rows: np.ndarray, columns: int, copies: np.ndarray, k: int, collapse: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """The first k distances of rows that have so many in some columns, and which rows have."""
        distances, indices = self.distances[rows, :columns], self.indices[rows, :columns]
        if collapse:
            is_there = (copies > 0).take(indices)
            is_there &= ~np.isnan(distances)
            available = np.count_nonzero(is_there, axis=1)
            found = distances[is_there]
        else:
            # The other copies of a vector come first.
            counts = np.where(np.isnan(distances), 0, copies.take(indices))
            counts = np.hstack([copies[rows, None] - 1, counts])
            available = counts.sum(axis=1)
            with_zero = np.hstack([np.zeros((len(rows), 1)), distances])
            found = np.repeat(with_zero.ravel(), counts.ravel())
        enough = available >= k
        starts = np.cumsum(available) - available
        if not enough.any():
            return np.empty((0, k)), enough
        return sliding_window_view(found, k)[starts[enough]], enough
