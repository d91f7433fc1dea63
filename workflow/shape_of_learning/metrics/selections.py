"""Which tokens are measured, hidden states being of all of them, in which batches and groups of windows."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from shape_of_learning.errors import InputError
from shape_of_learning.estimators.massive import find_massive
from shape_of_learning.metrics.measure_entry import Measure
from shape_of_learning.metrics.protocol import MeasuringProtocol, Selection
from shape_of_learning.metrics.tidy import GROUPS
from shape_of_learning.random_streams import random_stream


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


def choose_rows(
    selection: Selection,
    rows: Mapping[str, np.ndarray],
    groups: np.ndarray,
    seed: int = 0,
    states: Sequence[Any] = (),
) -> np.ndarray:
    """Choose among the tokens of a sample.

    Parameters
    ----------
    selection : Selection
    rows : mapping of str to ndarray, shape (n,)
        Of each token whether it is a ``special`` one, its position within its window, from 0
        (``positions``), its entry in the vocabulary (``token_ids``) and its window (``windows``).
    groups : ndarray of int64, shape (windows,)
        From :func:`.window_groups`.
    seed : int
        Decides which one of a token type. It belongs to no model or layer: whoever has the same tokens
        measures the same ones.
    states : sequence of ndarray or torch.Tensor, each of shape (n, d)
        That are measured. Massive tokens are dropped last, so that of each type all layers and revisions
        have the same token; without states none is dropped.

    Returns
    -------
    ndarray of int64, shape (m,)
        Ascending numbers of the tokens that are measured.

    Examples
    --------
    >>> rows = {"windows": [0, 0, 1, 1], "special": [False] * 4, "positions": [0, 1, 0, 1]}
    >>> rows |= {"token_ids": [7, 5, 6, 5]}
    >>> choose_rows(Selection(first_token="drop"), rows, np.array([0, 1]))
    array([1, 3])
    """
    kept = np.ones(len(rows["positions"]), dtype=bool)
    if selection.windows_share < 1:
        kept &= np.isin(rows["windows"], share_of_windows(groups, selection.windows_share))
    if selection.special_tokens == "drop":
        kept &= ~np.asarray(rows["special"], dtype=bool)
    if selection.first_token == "drop":
        kept &= np.asarray(rows["positions"]) != 0
    chosen = np.flatnonzero(kept)
    if selection.token_types == "one":
        order = random_stream(seed, "token types").permutation(chosen)
        _, first = np.unique(np.asarray(rows["token_ids"])[order], return_index=True)
        chosen = np.sort(order[first])
    if selection.massive_tokens == "drop" and len(chosen):
        found = [find_massive(state[chosen]) for state in states]
        chosen = chosen[~np.any(found, axis=0)] if found else chosen
    return chosen


def choose_measured_rows(
    protocol: MeasuringProtocol,
    rows: Mapping[str, np.ndarray],
    selection: Selection,
    states: Sequence[Any] = (),
) -> np.ndarray:
    """Return the numbers of the rows of a sample that are measured; of some states without their massive tokens."""
    groups = window_groups(protocol.windows, protocol.seed)
    return choose_rows(selection, rows, groups, protocol.seed, states)


def require_batches(
    protocol: MeasuringProtocol, rows: Mapping[str, np.ndarray], measures: Iterable[Measure]
) -> None:
    """Raise InputError if the sample gives less than a batch to one of the measures, before it is run."""
    batched = [m for m in measures if m.family in ("isotropy", "spectrum", "dimension")]
    for selection, _ in group_by_selection(batched, protocol.selection):
        chosen = choose_measured_rows(protocol, rows, selection)
        require_one_batch(len(chosen), protocol.batch_vectors)


def group_by_selection(
    measures: Iterable[Measure], selection: Selection
) -> list[tuple[Selection, list[Measure]]]:
    """Put measures together that are of the same rows."""
    together: dict[Selection, list[Measure]] = {}
    for measure in measures:
        together.setdefault(selection.set_rows(measure.rows), []).append(measure)
    return list(together.items())


def window_groups(windows: int, seed: int) -> np.ndarray:
    """Divide windows into groups at random, the same for every layer, revision and model.

    Parameters
    ----------
    windows : int
        How many were drawn, ``sampling.windows`` of the configuration.
    seed : int
        ``seed`` of the configuration.

    Returns
    -------
    ndarray of int64, shape (windows,)
        From 0 to 15. Groups differ by one window at most; of fewer than 16 windows some groups have none.

    Examples
    --------
    >>> np.bincount(window_groups(35, 0))
    array([3, 3, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2])
    """
    groups = np.empty(windows, np.int64)
    order = random_stream(seed, "groups of windows").permutation(windows)
    groups[order] = np.arange(windows) % GROUPS
    return groups


def share_of_windows(groups: np.ndarray, share: float) -> np.ndarray:
    """Choose the first windows of each group, so that every group has some.

    Parameters
    ----------
    groups : ndarray of int64, shape (windows,)
        From :func:`.window_groups`.
    share : float
        How many of each, rounded, and one at least.

    Returns
    -------
    ndarray of int64
        Ascending numbers of windows.

    Examples
    --------
    >>> share_of_windows(np.array([0, 1, 1, 0]), 0.5)
    array([0, 1])
    """
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    return np.sort(np.concatenate([of[: max(1, round(share * len(of)))] for of in members]))


def contiguous_batches(vectors: int, size: int) -> list[slice]:
    """Divide in the order of the tokens into batches of at least `size`, for anisotropy and cosine.

    Parameters
    ----------
    vectors : int
        Number of vectors of the layer.
    size : int
        Least number in a batch.

    Returns
    -------
    list of slice
        ``vectors // size`` batches whose lengths differ by at most one: the remainder is spread
        over them, since these measures depend little on the number of vectors.

    Raises
    ------
    InputError
        If there are fewer than `size` vectors.
    """
    require_one_batch(vectors, size)
    batches = vectors // size
    edges = [vectors * number // batches for number in range(batches + 1)]
    return list(map(slice, edges[:-1], edges[1:]))


def shuffled_batches(vectors: int, size: int, stream: np.random.Generator) -> list[np.ndarray]:
    """Divide after a shuffle into batches of exactly `size`, for intrinsic dimension.

    Parameters
    ----------
    vectors, size : int
        Number of vectors of the layer and of a batch. Estimates of dimension depend on the number
        of vectors, so the ``vectors % size`` that are left over are dropped.
    stream : numpy.random.Generator
        Decides the shuffle.

    Returns
    -------
    list of ndarray of int64, shape (size,)
        Disjoint row numbers, ascending within a batch.

    Raises
    ------
    InputError
        If there are fewer than `size` vectors.
    """
    require_one_batch(vectors, size)
    order = stream.permutation(vectors)
    return [np.sort(order[i * size : (i + 1) * size]) for i in range(vectors // size)]


def require_one_batch(vectors: int, size: int) -> None:
    """Raise InputError if there are fewer than `size` vectors."""
    if vectors < size:
        raise InputError(
            f"the windows give {vectors} vectors, fewer than one batch of {size}; raise "
            "`sampling.windows` or lower `measurement.batch_vectors` (with "
            "`measurement.token_types: one` only one vector of each token type is measured)"
        )
