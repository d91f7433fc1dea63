"""Divide vectors into batches, and compute the spectra, neighbours or fits that measures of a family share."""

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
from shape_of_learning.metrics.selections import divide_contiguously, divide_shuffled, group_windows
from shape_of_learning.metrics.tidy import GROUPS
from shape_of_learning.random_streams import random_stream

# If the second neighbour is more than this many times as far away as the first, the first is nearly a copy.
NEAR_DUPLICATE = 10


@dataclass(frozen=True)
class Batch:
    """A batch of vectors, with the arguments of the measures.

    Attributes
    ----------
    windows, token_ids : ndarray of int64, shape (n,)
        The window of text of each vector, and its token's entry in the vocabulary.
    group_of : ndarray of int64, shape (n,)
        The group of each vector's window, from 0 to 15; -1 if there are no jackknife values.
    n_unique : int
        Number of distinct vectors, or of distinct inputs of a block.
    content : tuple, Pair, list of ndarray, NeighbourLists or None
        The arguments of the measures: the vectors, with or without their windows; the input and output of a block; the
        spectra of all vectors and of the vectors without each group; or neighbours. None if the hidden states hold
        NaN or infinity; all vectors then count as one.
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
        """Number of vectors in each group, (16,); zeros if there are no jackknife values."""
        return np.bincount(self.group_of + 1, minlength=GROUPS + 1)[1:]

    @property
    def groups(self) -> list[int]:
        """The groups with vectors in this batch."""
        return np.flatnonzero(self.counts).tolist()

    def list_parts(self) -> list[np.ndarray]:
        """List the numbers of the vectors in each of the groups."""
        return [np.flatnonzero(self.group_of == group) for group in self.groups]

    def list_remaining(self) -> list[np.ndarray]:
        """List the numbers of the vectors outside each of the groups."""
        return [np.flatnonzero(self.group_of != group) for group in self.groups]


def make_batches(
    arrays: Sequence[Any],
    rows: Mapping[str, np.ndarray],
    measures: Sequence[Measure],
    protocol: MeasuringProtocol,
) -> list[Batch]:
    """Divide a layer, or the input and output of a block, into batches for measures of one family.

    `rows` holds the ``windows`` and the ``token_ids`` of the vectors.
    """
    windows = rows["windows"]
    family, size = measures[0].family, protocol.batch_vectors
    # Other families take all vectors: a fit to a block of a wide model needs more vectors than a batch.
    parts: Sequence[Any] = [slice(None)]
    if family == "dimension":
        # All layers and revisions share one shuffle, so differences between them compare the same tokens.
        stream = random_stream(protocol.seed, "batches", model=protocol.model)
        parts = divide_shuffled(len(windows), size, stream)
    elif family in ("isotropy", "spectrum"):
        parts = divide_contiguously(len(windows), size)
    groups = group_windows(protocol.windows, protocol.seed)
    groups_with_vectors = np.unique(np.concatenate([groups[windows[part]] for part in parts]))
    if len(groups_with_vectors) < GROUPS:
        groups = np.full(len(groups), -1)
    batches = []
    for part in parts:
        batch = Batch(windows[part], rows["token_ids"][part], groups[windows[part]])
        batch_arrays = [array[part] for array in arrays]
        if all(is_finite(array) for array in batch_arrays):
            n_unique, content = _make_content(batch, batch_arrays, measures, protocol)
            batch = replace(batch, n_unique=n_unique, content=content)
        batches.append(batch)
    return batches


def _make_content(
    batch: Batch, arrays: Sequence[Any], measures: Sequence[Measure], protocol: MeasuringProtocol
) -> tuple[int, Any]:
    """Count the distinct vectors of a batch, and make the arguments of its measures."""
    family, vectors = measures[0].family, arrays[0]
    if family == "dimension":
        number = count_searched_neighbours(protocol.neighbours)
        drops_windows = protocol.selection.same_window == "drop"
        window_neighbours = int(np.bincount(batch.windows).max()) - 1 if drops_windows else 0
        neighbours = nearest_neighbours(vectors, min(number + window_neighbours, len(vectors) - 1))
        needs_unit = any(not measure.collapse for measure in measures)
        unit = mean_distance_to_mean(vectors) if needs_unit else 0.0
        lists = NeighbourLists(*neighbours, batch.token_ids, unit or 1.0)
        if drops_windows:
            lists = lists.drop_own_windows(batch.windows, number)
        return len(lists.distances), lists
    n_unique = len(distinct_rows(vectors))
    if family == "linearity":
        inputs, outputs = arrays
        return n_unique, Pair(inputs, outputs, batch.windows, batch.list_parts())
    if family == "spectrum":
        remaining = (vectors[rows] for rows in batch.list_remaining())
        no_spectrum = np.empty(0)
        return n_unique, [spectrum(X) if len(X) > 1 else no_spectrum for X in (vectors, *remaining)]
    return n_unique, (vectors, batch.windows) if family == "windows" else (vectors,)


class NeighbourLists(NamedTuple):
    """The nearest neighbours of the m distinct vectors among n.

    Attributes
    ----------
    distances : ndarray of float64, shape (m, K)
        Ascending. If m <= K, NaN from column m - 1 on.
    indices : ndarray of int, shape (m, K)
        The distinct vectors at these distances.
    distinct_of : ndarray of int, shape (n,)
        The distinct vector that each of the n vectors equals.
    token_ids : ndarray of int64, shape (n,)
        The entry in the vocabulary of each of the n vectors.
    unit : float
        The unit of distances that count copies:
        :func:`~shape_of_learning.estimators.dimension.mean_distance_to_mean`.
    has_near_copies : ndarray of bool, shape (m,), optional
        Whether the copies of each distinct vector are its neighbours, if copies count; by default all are.
    """

    distances: np.ndarray
    indices: np.ndarray
    distinct_of: np.ndarray
    token_ids: np.ndarray
    unit: float = 1.0
    has_near_copies: np.ndarray | None = None

    def drop_own_windows(self, windows: np.ndarray, number: int) -> "NeighbourLists":
        """Keep the nearest `number` neighbours in other windows.

        `windows`, (n,), holds the window of each vector. A vector with copies in several windows belongs to no window.
        """
        pairs = np.unique(np.column_stack([self.distinct_of, windows]), axis=0)
        window_of = np.empty(len(self.distances), np.int64)
        window_of[pairs[:, 0]] = pairs[:, 1]
        has_one = np.bincount(pairs[:, 0], minlength=len(window_of)) == 1
        same = window_of[self.indices] == window_of[:, None]
        same &= has_one[:, None] & has_one[self.indices]
        order = np.argsort(same, axis=1, kind="stable")[:, :number]
        distances = np.where(same, np.nan, self.distances)
        return self._replace(
            distances=np.take_along_axis(distances, order, 1),
            indices=np.take_along_axis(self.indices, order, 1),
            has_near_copies=~has_one,
        )

    def find_nearest(self, k: int, collapse: bool = True) -> np.ndarray:
        """Return the distances from the distinct vectors, or from all vectors, to their k nearest neighbours.

        Parameters
        ----------
        k : int
            At most K.
        collapse : bool
            Whether equal vectors count as one. If not, they are neighbours of each other at distance zero, and
            distances are divided by `unit`.

        Returns
        -------
        ndarray of float64, shape (m, k) or (n, k)
            Ascending in each row; NaN if there are fewer neighbours.
        """
        if collapse:
            return self.distances[:, :k]
        everything = np.ones(len(self.distinct_of), bool)
        return next(self.recompute_neighbours([everything], k, collapse=False))

    def reuse_neighbours(
        self, present: np.ndarray, nearest: np.ndarray, collapse: bool = True
    ) -> np.ndarray:
        """Keep the rows of the result of :meth:`find_nearest` whose vectors are `present`, (n,) of bool."""
        copies = self._count_copies(present)
        if collapse:
            return nearest[copies > 0]
        # Copies of a vector have equal rows, which stand side by side.
        all_copies = self._count_copies(np.ones(len(present), bool))
        return nearest[np.repeat(all_copies.cumsum() - all_copies, copies)]

    def recompute_neighbours(
        self, subsets: Iterable[np.ndarray], k: int, collapse: bool = True
    ) -> Iterator[np.ndarray]:
        """Yield the result of :meth:`find_nearest` for subsets of the vectors.

        Parameters
        ----------
        subsets : iterable of ndarray of bool, shape (n,)
            The vectors of each subset.
        k, collapse
            As in :meth:`find_nearest`.

        Yields
        ------
        ndarray of float64, shape (at most m or n, k)
            Vectors with fewer than k of their K neighbours in the subset have no row, unless K is all neighbours.
        """
        m = len(self.distances)
        # The near columns are enough for most vectors; the remaining vectors use all columns.
        near = self._read_columns(count_searched_neighbours(k))
        far = self._read_columns(m - 1)
        for present in subsets:
            copies = self._count_copies(present)
            other_vectors = int(np.count_nonzero(copies) if collapse else copies.sum()) - 1
            existing = max(min(k, other_vectors), 0)
            rows = np.flatnonzero(copies)
            if not existing:
                yield np.full((other_vectors + 1, k), np.nan)
                continue
            # The other copies of a vector, at distance zero, are not neighbours if they are in its own window.
            zeros = np.maximum(copies - 1, 0)
            if self.has_near_copies is not None:
                zeros *= self.has_near_copies
            distances, has_enough = _select_nearest(
                *near, copies, copies, zeros, existing, collapse
            )
            lacking = rows[~has_enough[rows]]
            rows = np.flatnonzero(has_enough)
            if len(lacking) and far[0].shape[1] > near[0].shape[1]:
                rows_of_far = (far[0][lacking], far[1][lacking], copies, copies[lacking])
                more, has_enough = _select_nearest(*rows_of_far, zeros[lacking], existing, collapse)
                distances = np.concatenate([distances, more])
                rows = np.concatenate([rows, lacking[has_enough]])
            if not collapse:
                distances = np.repeat(distances, copies[rows], axis=0) / self.unit
            if existing < k:
                distances = np.pad(distances, ((0, 0), (0, k - existing)), constant_values=np.nan)
            yield distances

    def near_duplicate_share(self) -> float:
        """Return the share of distinct vectors whose second neighbour is more than ten times as far as the first."""
        first, second = self.distances[:, :2].T
        return float((second / first > NEAR_DUPLICATE).mean()) if len(first) > 2 else np.nan

    def same_token_share(self) -> float:
        """Return the share of distinct vectors whose nearest neighbour is of the same token type."""
        tokens = np.empty(len(self.distances), np.int64)
        tokens[self.distinct_of] = self.token_ids
        return float((tokens[self.indices[:, 0]] == tokens).mean()) if len(tokens) > 2 else np.nan

    def _count_copies(self, present: np.ndarray) -> np.ndarray:
        """Count the present copies of each distinct vector, (m,)."""
        return np.bincount(self.distinct_of[present], minlength=len(self.distances))

    def _read_columns(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return distances and indices of `number` neighbours, or of all that exist."""
        columns = min(number, self.distances.shape[1], len(self.distances) - 1)
        if columns == self.distances.shape[1]:
            return self.distances, self.indices
        # Contiguous memory and indices of NumPy's own type make many later look-ups faster.
        return self.distances[:, :columns].copy(), self.indices[:, :columns].astype(np.intp)


def _select_nearest(
    distances: np.ndarray,
    indices: np.ndarray,
    copies: np.ndarray,
    row_copies: np.ndarray,
    zeros: np.ndarray,
    k: int,
    collapse: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the first k distances to present vectors, for each row with so many, and a mask of these rows.

    `copies`, (m,), counts the present copies of each distinct vector, `row_copies` the copies of each row's vector, and
    `zeros` those of its other copies that are its neighbours.
    """
    if collapse:
        is_present = (copies > 0)[indices]
        is_present[row_copies == 0] = False
        available = np.count_nonzero(is_present, axis=1)
        values = distances[is_present]
    else:
        # The other copies of a vector come first.
        counts = np.hstack([zeros[:, None], copies[indices]])
        counts *= row_copies[:, None] > 0
        available = counts.sum(axis=1)
        all_distances = np.hstack([np.zeros((len(distances), 1)), distances])
        values = np.repeat(all_distances.ravel(), counts.ravel())
    has_enough = available >= k
    if not has_enough.any():
        return np.empty((0, k)), has_enough
    starts = np.cumsum(available) - available
    return sliding_window_view(values, k)[starts[has_enough]], has_enough
