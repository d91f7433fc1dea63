"""Batches of vectors, and the expensive step that measures of a family share: spectra, neighbours, fits."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from shape_of_learning.estimators.arrays import distinct_rows, is_finite
from shape_of_learning.estimators.dimension import mean_distance_to_mean
from shape_of_learning.estimators.neighbours import nearest_neighbours
from shape_of_learning.estimators.pair import Pair
from shape_of_learning.estimators.spread import spectrum
from shape_of_learning.metrics.measure_entry import Measure, count_searched_neighbours
from shape_of_learning.metrics.protocol import MeasuringProtocol
from shape_of_learning.metrics.selections import contiguous_batches, shuffled_batches, window_groups
from shape_of_learning.metrics.tidy import GROUPS
from shape_of_learning.random_streams import random_stream

# Beyond, the two nearest neighbours of a vector are so unlike that one of them is nearly the vector itself.
NEAR_DUPLICATE = 10


@dataclass(frozen=True)
class Batch:
    """A batch of vectors, and what measures are taken of.

    Attributes
    ----------
    windows, token_ids : ndarray of int64, shape (n,)
        The window of text of each vector, and its entry in the vocabulary.
    group_of : ndarray of int64, shape (n,)
        The group of each one's window, from 0 to 15; -1 where nothing is left out.
    n_unique : int
        Distinct ones among its vectors; of a block, among those before it.
    content : tuple, Pair, list of ndarray, NeighbourLists or None
        The arguments of measures of vectors, with or without their windows; a block; spectra, of all vectors
        and without each group; or neighbours. None of a broken checkpoint, whose hidden states are NaN or
        infinite: as if all vectors were one.
    """

    windows: np.ndarray
    token_ids: np.ndarray
    group_of: np.ndarray
    n_unique: int = 1
    content: Any = None

    @property
    def n(self) -> int:
        """Number of vectors."""
        return len(self.windows)

    @property
    def counts(self) -> np.ndarray:
        """Vectors of each group, (16,); zero where nothing is left out."""
        return np.bincount(self.group_of + 1, minlength=GROUPS + 1)[1:]

    @property
    def groups(self) -> list[int]:
        """Those that it has vectors of."""
        return np.flatnonzero(self.counts).tolist()

    def list_parts(self) -> list[np.ndarray]:
        """Numbers of the vectors of each of these."""
        return [np.flatnonzero(self.group_of == group) for group in self.groups]

    def list_remaining(self) -> list[np.ndarray]:
        """Numbers of the vectors that are left without each of these."""
        return [np.flatnonzero(self.group_of != group) for group in self.groups]


def make_batches(
    taken: Sequence[Any],
    rows: Mapping[str, np.ndarray],
    measures: Sequence[Measure],
    protocol: MeasuringProtocol,
) -> list[Batch]:
    """Divide a layer, or what is before and after a block, into batches for measures of one family.

    `rows` holds the ``windows`` and the ``token_ids`` of its vectors.
    """
    windows = rows["windows"]
    family, size = measures[0].family, protocol.batch_vectors
    divided: Sequence[Any] = [slice(None)]  # batches would be too few for blocks of wide models
    if family == "dimension":
        # One shuffle for all layers and revisions: differences between them are of the same tokens.
        stream = random_stream(protocol.seed, "batches", model=protocol.model)
        divided = shuffled_batches(len(windows), size, stream)
    elif family in ("isotropy", "spectrum"):
        divided = contiguous_batches(len(windows), size)
    groups = window_groups(protocol.windows, protocol.seed)
    measured_groups = np.unique(np.concatenate([groups[windows[chosen]] for chosen in divided]))
    if len(measured_groups) < GROUPS:
        groups = np.full(len(groups), -1)
    batches = []
    for chosen in divided:
        own = windows[chosen]
        batch = Batch(own, rows["token_ids"][chosen], groups[own])
        arrays = [each[chosen] for each in taken]
        if all(map(is_finite, arrays)):
            n_unique, content = _make_content(batch, arrays, measures, protocol)
            batch = replace(batch, n_unique=n_unique, content=content)
        batches.append(batch)
    return batches


def _make_content(
    batch: Batch, arrays: Sequence[Any], measures: Sequence[Measure], protocol: MeasuringProtocol
) -> tuple[int, Any]:
    """Distinct vectors of a batch, and what its measures are taken of."""
    family, vectors = measures[0].family, arrays[0]
    if family == "dimension":
        wanted = count_searched_neighbours(protocol.neighbours)
        in_others = protocol.selection.same_window == "drop"
        of_window = int(np.bincount(batch.windows).max()) - 1 if in_others else 0
        searched = min(wanted + of_window, len(vectors) - 1)
        # The unit of distances with copies.
        needs_unit = any(not measure.collapse for measure in measures)
        unit = mean_distance_to_mean(vectors) if needs_unit else 0.0
        lists = NeighbourLists(*nearest_neighbours(vectors, searched), batch.token_ids, unit or 1.0)
        if in_others:
            lists = lists.drop_own_windows(batch.windows, wanted)
        return len(lists.distances), lists
    n_unique = len(distinct_rows(vectors))
    if family == "linearity":
        before, after = arrays
        return n_unique, Pair(before, after, batch.windows, batch.list_parts())
    if family == "spectrum":
        without = (vectors[left] for left in batch.list_remaining())
        none = np.empty(0)  # as of one vector
        return n_unique, [spectrum(X) if len(X) > 1 else none for X in (vectors, *without)]
    return n_unique, (vectors, batch.windows) if family == "windows" else (vectors,)


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
    token_ids : ndarray of int64, shape (n,)
        The entry in the vocabulary of each.
    unit : float
        Of distances with copies: :func:`~shape_of_learning.estimators.dimension.mean_distance_to_mean`.
    """

    distances: np.ndarray
    indices: np.ndarray
    distinct_of: np.ndarray
    token_ids: np.ndarray
    unit: float = 1.0

    def drop_own_windows(self, windows: np.ndarray, number: int) -> "NeighbourLists":
        """So many neighbours, without those of a vector's own window, (n,) of int.

        A vector with copies in several windows is of none; copies are as near as they were.
        """
        pairs = np.unique(np.column_stack([self.distinct_of, windows]), axis=0)
        own = np.empty(len(self.distances), np.int64)
        own[pairs[:, 0]] = pairs[:, 1]
        is_in_one = np.bincount(pairs[:, 0], minlength=len(own)) == 1
        same = (own[self.indices] == own[:, None]) & is_in_one[:, None] & is_in_one[self.indices]
        order = np.argsort(same, axis=1, kind="stable")[:, :number]
        distances = np.where(same, np.nan, self.distances)
        distances, indices = (np.take_along_axis(x, order, 1) for x in (distances, self.indices))
        return self._replace(distances=distances, indices=indices)

    def find_nearest(self, k: int, collapse: bool = True) -> np.ndarray:
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
        (everyone,) = self.recompute_neighbours(
            [np.ones(len(self.distinct_of), bool)], k, collapse=False
        )
        return everyone

    def reuse_neighbours(
        self, present: np.ndarray, nearest: np.ndarray, collapse: bool = True
    ) -> np.ndarray:
        """Rows of what :meth:`find_nearest` gives, of the vectors that are `present`, (n,) of bool."""
        copies = self._count_copies(present)
        if collapse:
            return nearest[copies > 0]
        # The rows of copies lie side by side, and are the same.
        everyone = self._count_copies(np.ones(len(present), bool))
        return nearest[np.repeat(everyone.cumsum() - everyone, copies)]

    def recompute_neighbours(
        self, presents: Iterable[np.ndarray], k: int, collapse: bool = True
    ) -> Iterator[np.ndarray]:
        """:meth:`find_nearest`, of some of the vectors among themselves.

        Parameters
        ----------
        presents : iterable of ndarray of bool, shape (n,)
            Which vectors are there, each time.
        k, collapse
            As in :meth:`find_nearest`.

        Yields
        ------
        ndarray of float64, shape (at most m or n, k)
            Without vectors of whose K neighbours fewer than k are left, unless all neighbours are known.
        """
        m = len(self.distances)
        # With a margin, few vectors lack neighbours; for these, all that were searched are looked at.
        near, far = (self._read_columns(n) for n in (count_searched_neighbours(k), m - 1))
        for present in presents:
            copies = self._count_copies(present)
            others = int(np.count_nonzero(copies) if collapse else copies.sum()) - 1
            existing = max(min(k, others), 0)
            rows = np.flatnonzero(copies)
            if not existing:
                yield np.full((others + 1, k), np.nan)
                continue
            found, has = _select_nearest(*near, copies, copies, existing, collapse)
            lacking = rows[~has[rows]]
            rows = np.flatnonzero(has)
            if len(lacking) and far[0].shape[1] > near[0].shape[1]:
                distances, indices = far[0][lacking], far[1][lacking]
                more, have = _select_nearest(
                    distances, indices, copies, copies[lacking], existing, collapse
                )
                found, rows = np.concatenate([found, more]), np.concatenate([rows, lacking[have]])
            if not collapse:
                found = np.repeat(found, copies[rows], axis=0) / self.unit
            if existing < k:
                found = np.pad(found, ((0, 0), (0, k - existing)), constant_values=np.nan)
            yield found

    def near_duplicate_share(self) -> float:
        """Share of the distinct vectors whose second neighbour is ten times as far away as the first."""
        first, second = self.distances[:, :2].T
        return float((second / first > NEAR_DUPLICATE).mean()) if len(first) > 2 else np.nan

    def same_token_share(self) -> float:
        """Share of the distinct vectors whose nearest neighbour is of the same token."""
        tokens = np.empty(len(self.distances), np.int64)
        tokens[self.distinct_of] = self.token_ids
        return float((tokens[self.indices[:, 0]] == tokens).mean()) if len(tokens) > 2 else np.nan

    def _count_copies(self, present: np.ndarray) -> np.ndarray:
        """How many of the present vectors are each distinct one, (m,)."""
        return np.bincount(self.distinct_of[present], minlength=len(self.distances))

    def _read_columns(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Distances and indices of so many neighbours, of those that exist."""
        columns = min(number, self.distances.shape[1], len(self.distances) - 1)
        if columns == self.distances.shape[1]:
            return self.distances, self.indices
        # Many times it is faster to look at what lies side by side, by indices of NumPy's own type.
        return self.distances[:, :columns].copy(), self.indices[:, :columns].astype(np.intp)


def _select_nearest(
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
