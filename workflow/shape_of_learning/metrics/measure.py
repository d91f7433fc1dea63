"""All measures of a layer: its batches, the expensive step that a family shares, and left-out values."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from shape_of_learning.estimators.arrays import distinct_rows, is_finite
from shape_of_learning.estimators.dimension import mean_distance_to_mean
from shape_of_learning.estimators.neighbours import nearest_neighbours
from shape_of_learning.estimators.pair import Pair
from shape_of_learning.estimators.spread import spectrum
from shape_of_learning.metrics.intervals import left_out_values, window_groups
from shape_of_learning.metrics.measure_entry import Measure, searched_neighbours
from shape_of_learning.metrics.neighbour_lists import NeighbourLists
from shape_of_learning.metrics.selections import (
    Selection,
    contiguous_batches,
    require_one_batch,
    shuffled_batches,
)
from shape_of_learning.metrics.table_columns import GROUPS
from shape_of_learning.metrics.tidy import TidyRow, whole
from shape_of_learning.random_streams import random_stream

EVERYTHING = Selection()


class HiddenStates(Protocol):
    """Hidden states of all layers of one checkpoint on one sample, in memory or in files.

    Attributes
    ----------
    layers : int
        Hidden states are 0, the embedding output, to `layers`; the next number is the last one before the
        final norm, where there is such a one.
    rows : mapping of str to ndarray, shape (tokens,)
        What each row is: ``token_ids``, ``positions``, ``windows``, ``special``.
    """

    layers: int

    @property
    def rows(self) -> Mapping[str, np.ndarray]:
        """As above."""

    def __getitem__(self, state: int) -> Any:
        """One hidden state, an ndarray or a tensor, float32 of shape (tokens, width)."""


@dataclass(frozen=True)
class MeasuringProtocol:
    """How vectors are chosen, divided into batches and grouped.

    Attributes
    ----------
    model : str
        Its name decides the shuffle before the batches of the neighbour search.
    windows, seed : int
        How many windows were drawn, and the seed of the run: they decide the groups of windows.
    batch_vectors, neighbours : int
        ``measurement.batch_vectors`` and ``measurement.neighbours`` of the configuration.
    selection : Selection
        Which tokens, unless a measure chooses for itself.
    """

    model: str
    windows: int
    seed: int
    batch_vectors: int
    neighbours: int
    selection: Selection = EVERYTHING

    @classmethod
    def of(cls, model: str, fields: Mapping[str, Any]) -> "MeasuringProtocol":
        """Take what jobs are told, plain values."""
        return cls(model, **{**fields, "selection": Selection(**fields["selection"])})

    @cached_property
    def groups(self) -> np.ndarray:
        """The group of each window."""
        return window_groups(self.windows, self.seed)

    def chosen(self, rows: Mapping[str, np.ndarray], selection: Selection) -> np.ndarray:
        """Numbers of the rows of a sample that are measured."""
        return selection.of(rows, self.groups, self.seed)

    def require_batches(self, rows: Mapping[str, np.ndarray], measures: Iterable[Measure]) -> None:
        """Raise InputError if the sample gives less than a batch to one of the measures, before it is run."""
        of_batches = [m for m in measures if m.family in ("isotropy", "spectrum", "dimension")]
        for selection, _ in by_selection(of_batches, self.selection):
            require_one_batch(len(self.chosen(rows, selection)), self.batch_vectors)


def measure_layer(
    states: HiddenStates,
    layer: int,
    family: str,
    measures: Iterable[Measure],
    protocol: MeasuringProtocol,
) -> list[TidyRow]:
    """Measure one layer with all measures of a family, which share its one expensive step.

    That is one neighbour search, one set of spectra or one fit of each batch and selection of rows.

    Parameters
    ----------
    states : HiddenStates
        Of a checkpoint. Where they are on a GPU, that measures.
    layer : int
        Which; of blocks (linearity) the one that gives this hidden state, from 1: there is none at 0.
    family : str
        Which, as the registry says.
    measures : iterable of Measure
        Those of other families are passed over.
    protocol : MeasuringProtocol
        How.

    Returns
    -------
    list of TidyRow
        For each measure a row per batch, and one of the layer.
    """
    measured: list[TidyRow] = []
    if family == "linearity" and layer == 0:
        return measured
    wanted = (measure for measure in measures if measure.family == family)
    for selection, chosen in by_selection(wanted, protocol.selection):
        kept = protocol.chosen(states.rows, selection)
        own = layer + (selection.before_final_norm and layer == states.layers)
        numbers = [layer - 1, own] if family == "linearity" else [own]
        taken = [_rows(states[number], kept) for number in numbers]
        batches = _batches(taken, states.rows["windows"][kept], chosen, protocol)
        for measure in chosen:
            measured += _measured(batches, measure, selection.name, layer)
    return measured


def by_selection(
    measures: Iterable[Measure], selection: Selection
) -> list[tuple[Selection, list[Measure]]]:
    """Put measures together that are of the same rows."""
    together: dict[Selection, list[Measure]] = {}
    for measure in measures:
        together.setdefault(selection.with_rows(measure.rows), []).append(measure)
    return list(together.items())


def _rows(state: Any, kept: np.ndarray) -> Any:
    return state if len(kept) == len(state) else state[kept]


@dataclass(frozen=True)
class Batch:
    """A batch of vectors, and what measures are taken of.

    Attributes
    ----------
    windows : ndarray of int64, shape (n,)
        The window of text of each vector.
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
    group_of: np.ndarray
    n_unique: int
    content: Any

    @property
    def n(self) -> int:
        """Number of vectors."""
        return len(self.windows)

    @property
    def counts(self) -> np.ndarray:
        """Vectors of each group, (16,); zero where nothing is left out."""
        return np.bincount(self.group_of + 1, minlength=GROUPS + 1)[1:]


def _batches(
    taken: Sequence[Any],
    windows: np.ndarray,
    measures: Sequence[Measure],
    protocol: MeasuringProtocol,
) -> list[Batch]:
    """Divide a layer, or what is before and after a block, into batches for measures of one family."""
    family, size = measures[0].family, protocol.batch_vectors
    divided: Sequence[Any] = [slice(None)]  # batches would be too few for blocks of wide models
    if family == "dimension":
        # One shuffle for all layers and revisions: differences between them are of the same tokens.
        stream = random_stream(protocol.seed, "batches", model=protocol.model)
        divided = shuffled_batches(len(windows), size, stream)
    elif family in ("isotropy", "spectrum"):
        divided = contiguous_batches(len(windows), size)
    groups = protocol.groups
    measured_groups = np.unique(np.concatenate([groups[windows[rows]] for rows in divided]))
    if len(measured_groups) < GROUPS:
        groups = np.full(len(groups), -1)
    batches = []
    for rows in divided:
        own, arrays = windows[rows], [each[rows] for each in taken]
        n_unique, content = 1, None
        if all(map(is_finite, arrays)):
            n_unique, content = _content(arrays, own, groups[own], measures, protocol)
        batches.append(Batch(own, groups[own], n_unique, content))
    return batches


def _content(
    arrays: Sequence[Any],
    windows: np.ndarray,
    group_of: np.ndarray,
    measures: Sequence[Measure],
    protocol: MeasuringProtocol,
) -> tuple[int, Any]:
    """Distinct vectors of a batch, and what its measures are taken of."""
    family, vectors = measures[0].family, arrays[0]
    if family == "dimension":
        searched = min(searched_neighbours(protocol.neighbours), len(vectors) - 1)
        # The unit of distances with copies.
        needs_unit = any(not measure.collapse for measure in measures)
        unit = mean_distance_to_mean(vectors) if needs_unit else 0.0
        lists = NeighbourLists(*nearest_neighbours(vectors, searched), unit or 1.0)
        return len(lists.distances), lists
    n_unique = len(distinct_rows(vectors))
    if family == "linearity":
        before, after = arrays
        return n_unique, Pair(before, after, windows, list(parts_of(group_of).values()))
    if family == "spectrum":
        return n_unique, _spectra(vectors, group_of)
    return n_unique, (vectors, windows) if family == "windows" else (vectors,)


def parts_of(group_of: np.ndarray) -> dict[int, np.ndarray]:
    """Numbers of the vectors of each group that has some."""
    every = {group: np.flatnonzero(group_of == group) for group in range(GROUPS)}
    return {group: rows for group, rows in every.items() if len(rows)}


def _spectra(vectors: Any, group_of: np.ndarray) -> list[np.ndarray]:
    """Eigenvalues of the covariance of a batch, and of what is left without each group; of one vector, none."""
    found = [spectrum(vectors)]
    for group in range(GROUPS):
        left = np.flatnonzero(group_of != group)
        if len(left) == len(group_of):
            found.append(found[0])
        else:
            found.append(spectrum(vectors[left]) if len(left) > 1 else np.empty(0))
    return found


def measure_batch(batch: Batch, measure: Measure) -> tuple[float, np.ndarray, np.ndarray]:
    """Measure a batch with all its vectors, and without each group of windows.

    Returns
    -------
    value : float
        NaN where it is undefined.
    rows, anew : ndarray of float64, shape (16,)
        Two kinds for measures of neighbours, as :func:`.left_out_values` describes them; for others the same.
        The value itself without a group that the batch has no vectors of; NaN where undefined.
    """
    if batch.content is None:
        return math.nan, np.full(GROUPS, math.nan), np.full(GROUPS, math.nan)
    parts = parts_of(batch.group_of)
    groups = list(parts)
    if measure.family == "dimension":
        value, rows, anew = _of_neighbours(batch.content, measure, batch.group_of, groups)
    elif measure.family == "spectrum":
        function = _if_any(measure.load())
        value, *all_without = map(function, batch.content)
        rows = anew = [all_without[group] for group in groups]
    else:
        value, rows = _of_hidden_states(batch.content, measure, list(parts.values()))
        anew = rows
    without = np.full((2, GROUPS), value)
    without[0, groups], without[1, groups] = rows, anew
    return value, *without


def _if_any(function: Callable[..., float]) -> Callable[..., float]:
    """Let a function be undefined where nothing is left."""
    return lambda left: function(left) if len(left) else math.nan


def _of_neighbours(
    lists: NeighbourLists, measure: Measure, group_of: np.ndarray, groups: Sequence[int]
) -> tuple[float, list[float], list[float]]:
    function, k, collapse = _if_any(measure.load()), int(measure.neighbours), measure.collapse
    nearest = lists.nearest(k, collapse)
    left = [group_of != group for group in groups]
    rows = [function(lists.nearest_as_found(some, nearest, collapse)) for some in left]
    return function(nearest), rows, list(map(function, lists.nearest_anew(left, k, collapse)))


def _of_hidden_states(
    content: Any, measure: Measure, parts: Sequence[np.ndarray]
) -> tuple[float, Any]:
    is_block = isinstance(content, Pair)
    taken = (content.x, content.y) if is_block else content
    function = measure.load()
    if not measure.left_out:
        return function(*taken), math.nan
    if measure.leaving_out:
        # All measures of a block share what one of them has found.
        return measure.load_leaving_out()(*((content,) if is_block else (*taken, parts)))
    without = []
    for part in parts:
        left = np.delete(np.arange(len(taken[0])), part)
        try:
            without.append(function(*(each[left] for each in taken)) if len(left) > 1 else math.nan)
        except ValueError:  # which says that these are too few
            without.append(math.nan)
    return function(*taken), without


def _measured(
    batches: Sequence[Batch], measure: Measure, selection: str, layer: int
) -> list[TidyRow]:
    """Measure the batches of a layer, with all windows and without each group of them."""
    values, *kinds = map(np.array, zip(*(measure_batch(b, measure) for b in batches), strict=True))
    counts = np.array([batch.counts for batch in batches])
    left_out = np.full(GROUPS, math.nan)
    if counts.any() and not np.isnan(values).any():
        # Without its only group, a batch says nothing.
        speaks = counts < counts.sum(axis=1, keepdims=True)
        left_out = left_out_values(*(_mean_where(kind, speaks) for kind in kinds))
    lists = [batch.content for batch in batches if isinstance(batch.content, NeighbourLists)]
    named = (measure.name, selection, layer)
    return [
        *(
            TidyRow(*named, number, batch.n, batch.n_unique, math.nan, None, value)
            for number, (batch, value) in enumerate(zip(batches, values.tolist(), strict=True))
        ),
        TidyRow(
            *named,
            batch=None,
            n=whole(sum(batch.n for batch in batches) / len(batches)),
            n_unique=whole(sum(batch.n_unique for batch in batches) / len(batches)),
            near_duplicates=float(np.mean([one.near_duplicates() for one in lists] or math.nan)),
            windows=len(np.unique(np.concatenate([batch.windows for batch in batches]))),
            value=float(values.mean()),
            without=tuple(left_out.tolist()),
        ),
    ]


def _mean_where(values: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """Means of columns over the rows that count; NaN where none does."""
    totals = np.where(counted, values, 0).sum(axis=0)
    return totals / np.where(counted.any(axis=0), counted.sum(axis=0), np.nan)
