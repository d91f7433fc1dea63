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
        ndarray of float64, shape (m, k) or (n, k)
            Ascending in each row; NaN where there is no such neighbour.
        """
        if collapse:
            return self.distances[:, :k]
        return self.nearest_anew(np.ones(len(self.distinct_of), bool), k, collapse=False)

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

    def nearest_anew(self, present: np.ndarray, k: int, collapse: bool = True) -> np.ndarray:
        """:meth:`nearest`, of the vectors that are `present`, (n,) of bool, among themselves.

        Returns
        -------
        ndarray of float64, shape (at most m or n, k)
            Without vectors of whose K neighbours fewer than k are left, unless all neighbours are known.
        """
        copies = self._copies(present)
        there = copies > 0
        others = int((there if collapse else copies).sum()) - 1
        if others < k:
            if others < 1:
                return np.full((others + 1, k), np.nan)
            found = self.nearest_anew(present, others, collapse)
            return np.pad(found, ((0, 0), (0, k - others)), constant_values=np.nan)
        m, searched = len(there), min(self.distances.shape[1], len(there) - 1)
        # With a margin, few vectors lack neighbours; for these, all that were searched are looked at.
        columns = min(searched, searched_neighbours(k))
        found, has = self._first(np.arange(m), columns, copies, k, collapse)
        lacking = np.flatnonzero(there & ~has)
        rows = np.flatnonzero(has)
        if len(lacking) and columns < searched:
            more, have = self._first(lacking, searched, copies, k, collapse)
            found, rows = np.concatenate([found, more]), np.concatenate([rows, lacking[have]])
        if collapse:
            return found
        return np.repeat(found, copies[rows], axis=0)

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
        """The first k distances of those rows that have so many in some columns, and which have."""
        whole = len(rows) == len(self.distances)
        some = slice(None) if whole else rows
        distances, indices = self.distances[some, :columns], self.indices[some, :columns]
        if collapse:
            taken = (copies > 0)[indices]
            taken[copies[some] == 0] = False
            available = np.count_nonzero(taken, axis=1)
            found = distances[taken]
        else:
            # The other copies of a vector come first.
            own = copies[some, None]
            counts = np.hstack([own - 1, copies[indices]]) * (own > 0)
            available = counts.sum(axis=1)
            with_zero = np.hstack([np.zeros((len(distances), 1)), distances])
            found = np.repeat(with_zero.ravel(), counts.ravel())
        has = available >= k
        starts = np.cumsum(available) - available
        if not has.any():
            return np.empty((0, k)), has
        return sliding_window_view(found, k)[starts[has]], has
