"""All measures of a layer, also as the choices of an analysis have it, with left-out values."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
)
from shape_of_learning.metrics.protocol import MeasuringProtocol, Selection
from shape_of_learning.metrics.selections import (
    HiddenStates,
    choose_measured_rows,
    group_by_selection,
    require_batches,
    share_of_windows,
    window_groups,
)
from shape_of_learning.metrics.tidy import FEWEST_WINDOWS, GROUPS, UNDEFINED, TidyRow, whole

SMALLEST_BATCH = 3  # vectors, where a choice makes batches smaller


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
    for selection, chosen in group_by_selection(wanted, protocol.selection):
        own = layer + (selection.before_final_norm and layer == states.layers)
        numbers = [layer - 1, own] if family == "linearity" else [own]
        taken = [states[number] for number in numbers]
        kept = choose_measured_rows(protocol, states.rows, selection, taken)
        how = replace(protocol, selection=selection)
        if (
            len(kept)
            < protocol.batch_vectors
            <= len(choose_measured_rows(protocol, states.rows, selection))
        ):
            # Massive tokens leave less than a batch of what was enough for one.
            how = replace(how, batch_vectors=max(len(kept), protocol.neighbours + 1))
        if len(kept) < len(taken[0]):
            taken = [state[kept] for state in taken]
        told = {key: states.rows[key][kept] for key in ("windows", "token_ids")}
        windows = told["windows"]
        batches = make_batches(taken, told, chosen, how)
        effective = {
            moments: _count_effective_windows(taken, windows, moments)
            for moments in {measure.moments for measure in chosen}
        }
        for measure in chosen:
            rows = _measure_batches(batches, measure, selection.name, layer)
            number = effective[measure.moments]
            few = number < min(FEWEST_WINDOWS, len(np.unique(windows)) / 2)
            without = UNDEFINED if few else rows[-1].without
            rows[-1] = rows[-1]._replace(effective_windows=number, without=without)
            measured += rows
    return measured


def _count_effective_windows(taken: Sequence[Any], windows: np.ndarray, moments: str) -> float:
    """How many windows decide measures of such moments, NaN of none and of broken checkpoints."""
    if not moments or not all(map(is_finite, taken)):
        return math.nan
    X = taken[-1] - taken[0] if moments == "increments" else taken[-1]
    return effective_windows(X, windows)


def measure_batch(batch: Batch, measure: Measure) -> tuple[float, np.ndarray, np.ndarray]:
    """Measure a batch with all its vectors, and without each group of windows.

    Returns
    -------
    value : float
        NaN where it is undefined.
    rows, anew : ndarray of float64, shape (16,)
        Two kinds for measures of neighbours, as :func:`.combine_jackknife_values` describes them; for others the same.
        The value itself without a group that the batch has no vectors of; NaN where undefined.
    """
    if batch.content is None:
        return math.nan, np.full(GROUPS, math.nan), np.full(GROUPS, math.nan)
    if measure.family == "dimension":
        value, rows, anew = _measure_neighbours(batch, measure)
    elif measure.family == "spectrum":
        value, *rows = map(_allow_empty(measure.load()), batch.content)
        anew = rows
    else:
        value, rows = _measure_states(batch, measure)
        anew = rows
    without = np.full((2, GROUPS), value)
    without[0, batch.groups], without[1, batch.groups] = rows, anew
    return value, *without


def _allow_empty(function: Callable[..., float]) -> Callable[..., float]:
    """Let a function be undefined where nothing is left."""
    return lambda left: function(left) if len(left) else math.nan


def _measure_neighbours(batch: Batch, measure: Measure) -> tuple[float, list[float], list[float]]:
    of_distances, k, collapse = measure.load(), int(measure.neighbours), measure.collapse
    lists: NeighbourLists = batch.content

    def function(nearest: np.ndarray) -> float:
        # In a small batch some vectors have too few neighbours in other windows.
        return of_distances(nearest) if len(nearest) and not np.isnan(nearest).any() else math.nan

    nearest = lists.find_nearest(k, collapse)
    left = [batch.group_of != group for group in batch.groups]
    rows = [function(lists.reuse_neighbours(some, nearest, collapse)) for some in left]
    return (
        function(nearest),
        rows,
        list(map(function, lists.recompute_neighbours(left, k, collapse))),
    )


def _measure_states(batch: Batch, measure: Measure) -> tuple[float, Any]:
    block = batch.content if isinstance(batch.content, Pair) else None
    taken = (block.x, block.y) if block else batch.content
    function = measure.load()
    if not measure.left_out:
        return function(*taken), math.nan
    if measure.leaving_out:
        # All measures of a block share what one of them has found.
        return measure.load_leaving_out()(*((block,) if block else (*taken, batch.list_parts())))
    without = []
    for left in batch.list_remaining():
        try:
            without.append(function(*(each[left] for each in taken)) if len(left) > 1 else math.nan)
        except ValueError:  # which says that these are too few
            without.append(math.nan)
    return function(*taken), without


def _measure_batches(
    batches: Sequence[Batch], measure: Measure, selection: str, layer: int
) -> list[TidyRow]:
    """Measure the batches of a layer, with all windows and without each group of them."""
    values, *kinds = map(np.array, zip(*(measure_batch(b, measure) for b in batches), strict=True))
    counts = np.array([batch.counts for batch in batches])
    left_out = np.full(GROUPS, math.nan)
    if counts.any() and not np.isnan(values).any():
        # Without its only group, a batch says nothing.
        speaks = counts < counts.sum(axis=1, keepdims=True)
        rows, anew = (_average_where(kind, speaks) for kind in kinds)
        left_out = combine_jackknife_values(rows, anew) if measure.shrunk else anew
    lists = [batch.content for batch in batches if isinstance(batch.content, NeighbourLists)]
    named = (measure.name, selection, layer)
    return [
        *(
            TidyRow(*named, number, batch.n, batch.n_unique, math.nan, math.nan, None, value)
            for number, (batch, value) in enumerate(zip(batches, values.tolist(), strict=True))
        ),
        TidyRow(
            *named,
            batch=None,
            n=whole(sum(batch.n for batch in batches) / len(batches)),
            n_unique=whole(sum(batch.n_unique for batch in batches) / len(batches)),
            near_duplicates=float(
                np.mean([one.near_duplicate_share() for one in lists] or math.nan)
            ),
            same_token=float(np.mean([one.same_token_share() for one in lists] or math.nan)),
            windows=len(np.unique(np.concatenate([batch.windows for batch in batches]))),
            value=float(values.mean()),
            without=tuple(left_out.tolist()),
        ),
    ]


def _average_where(values: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """Means of columns over the rows that count; NaN where none does."""
    totals = np.where(counted, values, 0).sum(axis=0)
    return totals / np.where(counted.any(axis=0), counted.sum(axis=0), np.nan)


def combine_jackknife_values(rows: np.ndarray, anew: np.ndarray) -> np.ndarray:
    r"""Combine two kinds of left-out values of a measure of neighbours into those that intervals come from.

    Parameters
    ----------
    rows : ndarray of float64, shape (16,)
        Values without the vectors of a group, their distances as found with all.
    anew : ndarray of float64, shape (16,)
        Values without a group, neighbours found anew among the others.

    Returns
    -------
    ndarray of float64, shape (16,)
        `anew`, with deviations from its mean that are shrunk so that the standard error becomes
        :math:`\sqrt{s_\text{rows} \, s_\text{anew}}`. For other measures, where both kinds are the same,
        nothing changes.

    Notes
    -----
    A window bears on an estimate in two ways: by its own vectors, and as the neighbour of others. `rows` sees
    the first only, and is too small where neighbours lie in other windows. `anew` sees both, and by the
    inequality of Efron and Stein it is too large in the mean: what a group does jointly with k - 1 others
    counts k times, and who is the nearest neighbour is decided by many jointly. The truth lies between; that
    the geometric mean comes near it is found by trying, on simulated and on real hidden states
    (docs/explanation/statistics.md). For MADA, MOM and Gride it is too small, so they have `anew` as it is.
    """
    shrinkage = _measure_spread(rows) / _measure_spread(anew) if _measure_spread(anew) else 1.0
    return anew.mean() + np.sqrt(shrinkage) * (anew - anew.mean())


def _measure_spread(values: np.ndarray) -> float:
    return float(np.linalg.norm(values - values.mean()))


@dataclass(frozen=True)
class Part:
    """Measures of the same rows in batches of one size, and the choices that have these rows.

    Attributes
    ----------
    how : MeasuringProtocol
    measures : sequence of Measure
    choices : list of Rows
        Different ones may leave the same rows.
    """

    how: MeasuringProtocol
    measures: Sequence[Measure]
    choices: list[SampleVariant] = field(default_factory=list)


def choose_windows(choices: Iterable[SampleVariant], how: MeasuringProtocol) -> np.ndarray:
    """Numbers of the windows that any of some choices looks at, ascending; without choices all."""
    shares = (float(choice.windows_share) for choice in choices)
    return share_of_windows(window_groups(how.windows, how.seed), max(shares, default=1.0))


def divide_sample(
    rows: Mapping[str, np.ndarray],
    choices: Sequence[SampleVariant],
    measures: Sequence[Measure],
    how: MeasuringProtocol,
) -> list[Part]:
    """Divide what is wanted of a sample into parts, each of which is measured once.

    Where fewer vectors are selected than a batch has, as of one vector per token type, all are one batch.
    Where there are not more than the neighbours that are searched, nothing is measured.

    Parameters
    ----------
    rows : mapping of str to ndarray
        What each row of a hidden state is, as of :class:`.HiddenStates`.
    choices : sequence of Rows
        All of one text.
    measures : sequence of Measure
    how : MeasuringProtocol
        Of the run.

    Raises
    ------
    InputError
        Without choices all is one part, of which there must be a batch: :func:`.require_batches`.
    """
    if not choices:
        require_batches(how, rows, measures)
        return [Part(how, measures)]
    parts: dict[tuple[object, ...], Part] = {}
    for choice in choices:
        # With batches of another size, only what is taken of batches is another.
        is_own_size = choice.batch_share == choices[0].batch_share
        wanted = [measure for measure in measures if is_own_size or measure.family not in WHOLE]
        if choice.same_window == "drop":  # others have no neighbours
            wanted = [each for each in wanted if each.family == "dimension"]
        size = max(SMALLEST_BATCH, round(float(choice.batch_share) * how.batch_vectors))
        chosen = Selection(
            choice.special_tokens,
            choice.first_token,
            choice.token_types,
            choice.massive_tokens,
            choice.same_window,
            windows_share=float(choice.windows_share),
        )
        for selection, together in group_by_selection(wanted, chosen):
            kept = choose_measured_rows(how, rows, selection)
            if len(kept) > how.neighbours:
                vectors = min(size, len(kept))
                own = replace(how, selection=selection, batch_vectors=vectors)
                names = tuple(each.name for each in together)
                beyond_rows = selection.massive_tokens, selection.same_window
                key = kept.tobytes(), beyond_rows, vectors, names
                parts.setdefault(key, Part(own, together)).choices.append(choice)
    return list(parts.values())


def measure_parts(
    states: HiddenStates, parts: Iterable[Part], layer: int, last_layer: str = AFTER
) -> Iterator[tuple[Part, str, list[TidyRow]]]:
    """Measure one layer, the last one as the state after or before the final norm: of each part each family."""
    for part in parts:
        selection = replace(part.how.selection, before_final_norm=True)
        how = replace(part.how, selection=selection) if last_layer == BEFORE else part.how
        for family in FAMILIES:
            yield part, family, measure_layer(states, layer, family, part.measures, how)
