"""All measures of a layer: its batches, the expensive step that a family shares, and left-out values."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from shape_of_learning.metrics.batches import (
    Batch,
    block_batch,
    neighbour_batches,
    require_one_batch,
    shuffle_of,
    spectrum_batches,
    vector_batches,
    window_batch,
)
from shape_of_learning.metrics.intervals import left_out_values, window_groups
from shape_of_learning.metrics.leaving_out import NeighbourLists, measure_batch
from shape_of_learning.metrics.measure_entry import Measure
from shape_of_learning.metrics.selections import Selection
from shape_of_learning.metrics.table_columns import GROUPS
from shape_of_learning.metrics.tables import TidyRow

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
    for selection, chosen in by_selection(
        (m for m in measures if m.family == family), protocol.selection
    ):
        kept = protocol.chosen(states.rows, selection)
        windows = states.rows["windows"][kept]
        own = layer + (selection.before_final_norm and layer == states.layers)
        vectors = _rows(states[own], kept)
        size = protocol.batch_vectors
        if family == "isotropy":
            batches = vector_batches(vectors, windows, size)
        elif family == "spectrum":
            batches = spectrum_batches(vectors, windows, size, protocol.groups)
        elif family == "windows":
            batches = [window_batch(vectors, windows)]
        elif family == "linearity":
            batches = [block_batch(_rows(states[layer - 1], kept), vectors, windows)]
        else:
            copies = any(not measure.collapse for measure in chosen)
            stream = shuffle_of(protocol.seed, protocol.model)
            batches = neighbour_batches(
                vectors, windows, size, protocol.neighbours, stream, with_copies=copies
            )
        for measure in chosen:
            measured += _measured(batches, measure, protocol.groups, selection.name, layer)
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


def _measured(
    batches: Sequence[Batch], measure: Measure, groups: np.ndarray, selection: str, layer: int
) -> list[TidyRow]:
    """Measure the batches of a layer, with all windows and without each group of them."""
    # Vectors of each group in each batch.
    counts = np.array([np.bincount(groups[batch.windows], minlength=GROUPS) for batch in batches])
    all_groups = bool(counts.any(axis=0).all())
    measured = [
        measure_batch(
            batch.content,
            measure,
            groups[batch.windows] if all_groups else np.full(batch.n, -1),
        )
        for batch in batches
    ]
    values = np.array([value for value, _, _ in measured])
    left_out = np.full(GROUPS, math.nan)
    if all_groups and not np.isnan(values).any():
        # Without its only group, a batch says nothing.
        speaks = counts < counts.sum(axis=1, keepdims=True)
        rows, anew = (
            _mean_where(np.array(kind), speaks) for kind in list(zip(*measured, strict=True))[1:]
        )
        left_out = left_out_values(rows, anew)
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
            n=_mean([batch.n for batch in batches]),
            n_unique=_mean([batch.n_unique for batch in batches]),
            near_duplicates=float(np.mean([one.near_duplicates() for one in lists] or math.nan)),
            windows=len(np.unique(np.concatenate([batch.windows for batch in batches]))),
            value=float(values.mean()),
            without=tuple(left_out.tolist()),
        ),
    ]


def _mean(numbers: Sequence[int]) -> float:
    """Mean, as a whole number where it is one."""
    mean = sum(numbers) / len(numbers)
    return int(mean) if mean.is_integer() else mean


def _mean_where(values: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """Means of columns over the rows that count; NaN where none does."""
    totals = np.where(counted, values, 0).sum(axis=0)
    return totals / np.where(counted.any(axis=0), counted.sum(axis=0), np.nan)
