"""Measure one layer, for every variant of the sample, with jackknife values."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from shape_of_learning.estimators.arrays import is_finite
from shape_of_learning.estimators.pair import Pair
from shape_of_learning.estimators.spread import effective_windows
from shape_of_learning.metrics.batches import Batch, NeighbourLists, make_batches
from shape_of_learning.metrics.measure_entry import (
    AFTER,
    BEFORE,
    FAMILIES,
    WHOLE,
    Measure,
    SampleVariant,
    find_first_layer,
)
from shape_of_learning.metrics.protocol import MeasuringProtocol, Selection
from shape_of_learning.metrics.selections import (
    HiddenStates,
    average_windows,
    choose_first_windows,
    choose_measured_rows,
    count_vectors,
    group_by_selection,
    group_windows,
    require_batches,
)
from shape_of_learning.metrics.tidy import (
    GROUPS,
    UNDEFINED,
    TidyRow,
    have_few_windows,
    shorten_number,
)

SMALLEST_BATCH = 3  # vectors; a sample variant with smaller batches has batches of this size


def measure_layer(
    states: HiddenStates,
    layer: int,
    family: str,
    measures: Iterable[Measure],
    protocol: MeasuringProtocol,
) -> list[TidyRow]:
    """Measure one layer with all measures of a family.

    The measures share one neighbour search, one set of spectra or one fit per batch and selection of rows.

    Parameters
    ----------
    states : HiddenStates
        The hidden states of a checkpoint. If they are on a GPU, the GPU measures them.
    layer : int
        The number of the hidden state. For linearity, the number of the block, from 1, whose output this hidden state
        is; layer 0 has no block.
    family : str
        One of :data:`.FAMILIES`.
    measures : iterable of Measure
        Measures of other families are skipped.
    protocol : MeasuringProtocol

    Returns
    -------
    list of TidyRow
        For each measure one row per batch, then one row for the layer.
    """
    table: list[TidyRow] = []
    if layer < find_first_layer(family):
        return table
    family_measures = (measure for measure in measures if measure.family == family)
    for selection, group in group_by_selection(family_measures, protocol.selection):
        number = layer + (selection.is_before_final_norm and layer == states.layers)
        numbers = [layer - 1, number] if family == "linearity" else [number]
        arrays = [states[number] for number in numbers]
        selection_protocol = replace(protocol, selection=selection)
        massive = states.massive if selection.massive_tokens == "drop" else None
        kept_rows = choose_measured_rows(protocol, states.rows, selection, massive)
        if len(kept_rows) < len(arrays[0]):
            arrays = [array[kept_rows] for array in arrays]
        rows = {key: states.rows[key][kept_rows] for key in ("windows", "token_ids")}
        if selection.sequence == "mean":
            arrays = [average_windows(array, rows["windows"]) for array in arrays]
            windows = np.unique(rows["windows"])
            rows = {"windows": windows, "token_ids": windows}  # no two vectors are of one token
        vectors = len(rows["windows"])
        if vectors < protocol.batch_vectors <= count_vectors(protocol, states.rows, selection):
            # The sample is smaller than a batch only because massive tokens are left out, so it is one batch.
            size = max(vectors, protocol.neighbours + 1)
            selection_protocol = replace(selection_protocol, batch_vectors=size)
        batches = make_batches(arrays, rows, group, selection_protocol)
        effective = {
            moments: _count_effective_windows(arrays, rows["windows"], moments)
            for moments in {measure.moments for measure in group}
        }
        number_of_windows = len(np.unique(rows["windows"]))
        for measure in group:
            *batch_rows, layer_row = _measure_batches(batches, measure, selection.name, layer)
            layer_row = layer_row._replace(effective_windows=effective[measure.moments])
            if have_few_windows(layer_row.effective_windows, number_of_windows):
                layer_row = layer_row._replace(jackknife_values=UNDEFINED)
            table += [*batch_rows, layer_row]
    return table


def _count_effective_windows(arrays: Sequence[Any], windows: np.ndarray, moments: str) -> float:
    """Count the windows that hold the largest variance.

    NaN if the measure uses no moments, if a state is not finite, or if there are no increments between states of
    different width.
    """
    if not moments or not all(is_finite(array) for array in arrays):
        return math.nan
    if moments != "increments":
        return effective_windows(arrays[-1], windows)
    if arrays[0].shape[1] != arrays[-1].shape[1]:  # there is no increment
        return math.nan
    return effective_windows(arrays[-1] - arrays[0], windows)


def measure_batch(batch: Batch, measure: Measure) -> tuple[float, np.ndarray, np.ndarray]:
    """Measure a batch with all its vectors, and without each group of windows.

    Returns
    -------
    value : float
        NaN if it is undefined.
    reused_values, recomputed_values : ndarray of float64, shape (16,)
        Jackknife values: for measures of neighbours the two kinds of :func:`.combine_jackknife_values`, for other
        measures the same values twice. The entry of a group without vectors in this batch is `value`; undefined
        entries are NaN.
    """
    if batch.content is None:
        return math.nan, np.full(GROUPS, math.nan), np.full(GROUPS, math.nan)
    if measure.family == "dimension":
        value, reused_values, recomputed_values = _measure_neighbours(batch, measure)
    elif measure.family == "spectrum":
        function = measure.load()
        values = [function(spectrum) if len(spectrum) else math.nan for spectrum in batch.content]
        value, reused_values = values[0], values[1:]
        recomputed_values = reused_values
    else:
        value, reused_values = _measure_states(batch, measure)
        recomputed_values = reused_values
    jackknife_values = np.full((2, GROUPS), value)
    jackknife_values[0, batch.groups] = reused_values
    jackknife_values[1, batch.groups] = recomputed_values
    return value, *jackknife_values


def _measure_neighbours(batch: Batch, measure: Measure) -> tuple[float, list[float], list[float]]:
    function, k, collapse = measure.load(), int(measure.neighbours), measure.collapse
    lists: NeighbourLists = batch.content

    def estimate(nearest: np.ndarray) -> float:
        # In a small batch some vectors have fewer than k neighbours in other windows.
        return function(nearest) if len(nearest) and not np.isnan(nearest).any() else math.nan

    nearest = lists.find_nearest(k, collapse)
    remaining = [batch.group_of != group for group in batch.groups]
    reused_values = [
        estimate(lists.reuse_neighbours(rows, nearest, collapse)) for rows in remaining
    ]
    recomputed_values = [estimate(x) for x in lists.recompute_neighbours(remaining, k, collapse)]
    return estimate(nearest), reused_values, recomputed_values


def _measure_states(batch: Batch, measure: Measure) -> tuple[float, Any]:
    block = batch.content if isinstance(batch.content, Pair) else None
    arrays = (block.x, block.y) if block else batch.content
    function = measure.load()
    if not measure.has_jackknife:
        return function(*arrays), math.nan
    if measure.jackknife_function:
        if block:  # the pair caches the fits that its measures share
            return measure.load_jackknife()(block)
        return measure.load_jackknife()(*arrays, batch.list_parts())
    values = []
    for rows in batch.list_remaining():
        try:
            remaining = [array[rows] for array in arrays]
            values.append(function(*remaining) if len(rows) > 1 else math.nan)
        except ValueError:  # too few rows
            values.append(math.nan)
    return function(*arrays), values


def _measure_batches(
    batches: Sequence[Batch], measure: Measure, selection: str, layer: int
) -> list[TidyRow]:
    """Return a row per batch, then the row of the layer with its jackknife values."""
    values, reused_values, recomputed_values = (
        np.array(column)
        for column in zip(*(measure_batch(batch, measure) for batch in batches), strict=True)
    )
    counts = np.array([batch.counts for batch in batches])
    jackknife_values = np.full(GROUPS, math.nan)
    if counts.any() and not np.isnan(values).any():
        # If all vectors of a batch belong to one group, the batch has no value without this group.
        has_value = counts < counts.sum(axis=1, keepdims=True)
        jackknife_values = _average_where(recomputed_values, has_value)
        if measure.shrinks_jackknife:
            reused_values = _average_where(reused_values, has_value)
            jackknife_values = combine_jackknife_values(reused_values, jackknife_values)
    lists = [batch.content for batch in batches if isinstance(batch.content, NeighbourLists)]
    rows = [
        TidyRow(
            estimator=measure.name,
            selection=selection,
            layer=layer,
            batch=number,
            n=batch.n,
            n_unique=batch.n_unique,
            near_duplicates=math.nan,
            same_token=math.nan,
            windows=None,
            value=value,
        )
        for number, (batch, value) in enumerate(zip(batches, values.tolist(), strict=True))
    ]
    layer_row = rows[0]._replace(
        batch=None,
        n=shorten_number(sum(batch.n for batch in batches) / len(batches)),
        n_unique=shorten_number(sum(batch.n_unique for batch in batches) / len(batches)),
        near_duplicates=float(np.mean([x.near_duplicate_share() for x in lists] or math.nan)),
        same_token=float(np.mean([x.same_token_share() for x in lists] or math.nan)),
        windows=len(np.unique(np.concatenate([batch.windows for batch in batches]))),
        value=float(values.mean()),
        jackknife_values=tuple(jackknife_values.tolist()),
    )
    return [*rows, layer_row]


def _average_where(values: np.ndarray, is_counted: np.ndarray) -> np.ndarray:
    """Average the counted values of each column; NaN if a column has no counted value."""
    totals = np.where(is_counted, values, 0).sum(axis=0)
    return totals / np.where(is_counted.any(axis=0), is_counted.sum(axis=0), np.nan)


def combine_jackknife_values(
    reused_values: np.ndarray, recomputed_values: np.ndarray
) -> np.ndarray:
    r"""Combine the two kinds of jackknife values of a measure of neighbours.

    Parameters
    ----------
    reused_values : ndarray of float64, shape (16,)
        Values without the vectors of a group; the remaining vectors keep their neighbours, also those in the group.
    recomputed_values : ndarray of float64, shape (16,)
        Values without a group; the remaining vectors search their neighbours again among themselves.

    Returns
    -------
    ndarray of float64, shape (16,)
        `recomputed_values`, with deviations from their mean shrunk so that the standard error is
        :math:`\sqrt{s_\text{reused} \, s_\text{recomputed}}`. If both kinds are equal, nothing changes.

    Notes
    -----
    A window affects an estimate by its own vectors, and by these as neighbours of other vectors. `reused_values` have
    the first effect only, and their standard error is too small if neighbours lie in other windows.
    `recomputed_values` have both effects, and by the inequality of Efron and Stein their standard error is too large in
    the mean: a joint effect of k groups counts k times, and many groups decide jointly which vector is the nearest. The
    truth lies between. The geometric mean comes near it in trials on simulated and on real hidden states
    (docs/explanation/statistics.md). For MADA, MOM and Gride it is too small, so these use `recomputed_values`.
    """
    mean = recomputed_values.mean()
    spread = np.linalg.norm(recomputed_values - mean)
    shrinkage = np.linalg.norm(reused_values - reused_values.mean()) / spread if spread else 1.0
    return mean + np.sqrt(shrinkage) * (recomputed_values - mean)


@dataclass(frozen=True)
class Part:
    """The measures that are taken of the same rows in batches of one size.

    Attributes
    ----------
    protocol : MeasuringProtocol
    measures : sequence of Measure
    variants : list of SampleVariant
        All variants of the sample that have these rows.
    """

    protocol: MeasuringProtocol
    measures: Sequence[Measure]
    variants: list[SampleVariant] = field(default_factory=list)

    @property
    def drops_massive_tokens(self) -> bool:
        """Whether a measure leaves out the massive tokens."""
        selections = group_by_selection(self.measures, self.protocol.selection)
        return any(selection.massive_tokens == "drop" for selection, _ in selections)


def choose_windows(variants: Iterable[SampleVariant], protocol: MeasuringProtocol) -> np.ndarray:
    """Return the ascending numbers of the windows that variants use, or of all windows if there are no variants."""
    shares = (float(variant.windows_share) for variant in variants)
    groups = group_windows(protocol.windows, protocol.seed)
    return choose_first_windows(groups, max(shares, default=1.0))


def divide_sample(
    rows: Mapping[str, np.ndarray],
    variants: Sequence[SampleVariant],
    measures: Sequence[Measure],
    protocol: MeasuringProtocol,
) -> list[Part]:
    """Divide the measurements of a sample into parts; each part is measured once.

    A selection with fewer vectors than a batch, such as one vector per token type, is one batch. A selection with no
    more vectors than `protocol.neighbours` is not measured.

    Parameters
    ----------
    rows : mapping of str to ndarray
        The rows of a hidden state, as in :class:`.HiddenStates`.
    variants : sequence of SampleVariant
        Variants with the same text.
    measures : sequence of Measure
    protocol : MeasuringProtocol
        The protocol of the run.

    Raises
    ------
    InputError
        If there are no variants and the sample is smaller than one batch.
    """
    if not variants:
        require_batches(protocol, rows, measures)
        return [Part(protocol, measures)]
    parts: dict[tuple[object, ...], Part] = {}
    for variant in variants:
        # A batch size other than the first one changes only measures of batches.
        has_run_size = variant.batch_share == variants[0].batch_share
        variant_measures = [
            measure for measure in measures if has_run_size or measure.family not in WHOLE
        ]
        if variant.same_window != variants[0].same_window:  # changes neighbours only
            variant_measures = [
                measure for measure in variant_measures if measure.family == "dimension"
            ]
        size = max(SMALLEST_BATCH, round(float(variant.batch_share) * protocol.batch_vectors))
        choice = Selection(
            variant.special_tokens,
            variant.first_token,
            variant.token_types,
            variant.massive_tokens,
            variant.same_window,
            windows_share=float(variant.windows_share),
            sequence=variant.sequence,
        )
        for selection, group in group_by_selection(variant_measures, choice):
            kept_rows = choose_measured_rows(protocol, rows, selection)
            number = count_vectors(protocol, rows, selection)
            if number > protocol.neighbours:
                vectors = min(size, number)
                names = tuple(measure.name for measure in group)
                key = (
                    kept_rows.tobytes(),
                    selection.massive_tokens,
                    selection.same_window,
                    selection.sequence,
                    vectors,
                    names,
                )
                part_protocol = replace(protocol, selection=selection, batch_vectors=vectors)
                parts.setdefault(key, Part(part_protocol, group)).variants.append(variant)
    return list(parts.values())


def measure_parts(
    states: HiddenStates, parts: Iterable[Part], layer: int, last_layer: str = AFTER
) -> Iterator[tuple[Part, str, list[TidyRow]]]:
    """Measure one layer of every part, family by family; `last_layer` is :data:`.AFTER` or :data:`.BEFORE`."""
    for part in parts:
        protocol = part.protocol
        if last_layer == BEFORE:
            selection = replace(protocol.selection, is_before_final_norm=True)
            protocol = replace(protocol, selection=selection)
        for family in FAMILIES:
            yield part, family, measure_layer(states, layer, family, part.measures, protocol)
