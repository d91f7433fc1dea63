"""Select the tokens that are measured, and divide them into batches and groups of windows."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np

from shape_of_learning.errors import InputError
from shape_of_learning.metrics.measure_entry import Measure
from shape_of_learning.metrics.protocol import MeasuringProtocol, Selection
from shape_of_learning.metrics.tidy import GROUPS
from shape_of_learning.random_streams import random_stream


class HiddenStates(Protocol):
    """The hidden states of all layers of one checkpoint on one sample, in memory or in files.

    Attributes
    ----------
    layers : int
        Hidden states are 0, the embedding output, to `layers`. With `last_layer` ``"both"``, the number after `layers`
        is the last hidden state before the final norm; without a final norm it equals the last hidden state.
    rows : mapping of str to ndarray, shape (tokens,)
        ``token_ids``, ``positions``, ``windows`` and ``special`` of the rows.
    """

    layers: int

    @property
    def rows(self) -> Mapping[str, np.ndarray]:
        """The columns that describe the rows."""

    @property
    def massive(self) -> np.ndarray:
        """Whether each token is massive in any hidden state, bool of shape (tokens,)."""

    def __getitem__(self, state: int) -> Any:
        """Return a hidden state, an ndarray or a tensor, float32, of shape (tokens, width)."""


def choose_rows(
    selection: Selection,
    rows: Mapping[str, np.ndarray],
    groups: np.ndarray,
    seed: int = 0,
    massive: np.ndarray | None = None,
) -> np.ndarray:
    """Choose the tokens of a sample that are measured.

    Parameters
    ----------
    selection : Selection
    rows : mapping of str to ndarray, shape (n,)
        For each token: whether it is ``special``, its position in the window, from 0 (``positions``), its entry in the
        vocabulary (``token_ids``) and its window (``windows``).
    groups : ndarray of int64, shape (windows,)
        The result of :func:`.group_windows`.
    seed : int
        The seed that decides which token of a type is drawn. All models and layers with the same tokens draw the same.
    massive : ndarray of bool, shape (n,), optional
        The massive tokens of the checkpoint, as in :class:`HiddenStates`; by default no token. They are dropped after
        one token of each type is drawn, so that all revisions draw the same tokens.

    Returns
    -------
    ndarray of int64, shape (m,)
        Ascending numbers of the chosen tokens, or of the tokens in the means of windows.

    Examples
    --------
    >>> rows = {"windows": [0, 0, 1, 1], "special": [False] * 4, "positions": [0, 1, 0, 1]}
    >>> rows |= {"token_ids": [7, 5, 6, 5]}
    >>> choose_rows(Selection(first_token="drop"), rows, np.array([0, 1]))
    array([1, 3])
    """
    is_kept = np.ones(len(rows["positions"]), dtype=bool)
    if selection.windows_share < 1:
        is_kept &= np.isin(rows["windows"], choose_first_windows(groups, selection.windows_share))
    if selection.special_tokens == "drop":
        is_kept &= ~np.asarray(rows["special"], dtype=bool)
    if selection.first_token == "drop":
        is_kept &= np.asarray(rows["positions"]) != 0
    chosen_rows = np.flatnonzero(is_kept)
    if selection.token_types == "one":
        order = random_stream(seed, "token types").permutation(chosen_rows)
        _, first = np.unique(np.asarray(rows["token_ids"])[order], return_index=True)
        chosen_rows = np.sort(order[first])
    if selection.massive_tokens == "drop" and massive is not None:
        chosen_rows = chosen_rows[~massive[chosen_rows]]
    if selection.sequence == "last_token":
        chosen_rows = chosen_rows[find_last_tokens(np.asarray(rows["windows"])[chosen_rows])]
    return chosen_rows


def find_last_tokens(windows: np.ndarray) -> np.ndarray:
    """Find the last token of each window.

    Examples
    --------
    >>> find_last_tokens(np.array([0, 0, 0, 2, 2]))
    array([2, 4])
    """
    _, last = np.unique(windows[::-1], return_index=True)
    return np.sort(len(windows) - 1 - last)


def average_windows(state: Any, windows: np.ndarray) -> Any:
    """Average the vectors of each window.

    Parameters
    ----------
    state : ndarray or torch.Tensor, shape (n, d)
    windows : ndarray of int64, shape (n,)

    Returns
    -------
    ndarray or torch.Tensor, shape (number of windows, d)
        Means in the order of the windows' numbers, of the type of `state`; their sums are in float64.

    Examples
    --------
    >>> average_windows(np.array([[1.0], [3.0], [5.0]]), np.array([0, 0, 2]))
    array([[2.],
           [5.]])
    """
    _, place, sizes = np.unique(windows, return_inverse=True, return_counts=True)
    if isinstance(state, np.ndarray):
        sums = np.zeros((len(sizes), state.shape[1]))
        np.add.at(sums, place, state)
        return (sums / sizes[:, None]).astype(state.dtype)
    sums = state.double().new_zeros(len(sizes), state.shape[1])
    sums.index_add_(0, sums.new_tensor(place).long(), state.double())
    return (sums / sums.new_tensor(sizes)[:, None]).to(state.dtype)


def count_vectors(
    protocol: MeasuringProtocol, rows: Mapping[str, np.ndarray], selection: Selection
) -> int:
    """Count the vectors of a selection, including massive tokens."""
    chosen_rows = choose_measured_rows(protocol, rows, selection)
    if selection.sequence == "mean":
        return len(np.unique(np.asarray(rows["windows"])[chosen_rows]))
    return len(chosen_rows)


def choose_measured_rows(
    protocol: MeasuringProtocol,
    rows: Mapping[str, np.ndarray],
    selection: Selection,
    massive: np.ndarray | None = None,
) -> np.ndarray:
    """Choose rows by :func:`choose_rows` with the groups and the seed of a run."""
    groups = group_windows(protocol.windows, protocol.seed)
    return choose_rows(selection, rows, groups, protocol.seed, massive)


def require_batches(
    protocol: MeasuringProtocol, rows: Mapping[str, np.ndarray], measures: Iterable[Measure]
) -> None:
    """Raise InputError if the sample has fewer vectors than a batch for any measure of batches."""
    batch_measures = [m for m in measures if m.family in ("isotropy", "spectrum", "dimension")]
    for selection, _ in group_by_selection(batch_measures, protocol.selection):
        require_one_batch(count_vectors(protocol, rows, selection), protocol.batch_vectors)


def group_by_selection(
    measures: Iterable[Measure], selection: Selection
) -> list[tuple[Selection, list[Measure]]]:
    """Group measures by their selection of rows."""
    groups: dict[Selection, list[Measure]] = {}
    for measure in measures:
        groups.setdefault(selection.set_rows(measure.rows), []).append(measure)
    return list(groups.items())


def group_windows(windows: int, seed: int) -> np.ndarray:
    """Divide windows into groups at random, the same for every layer, revision and model.

    Parameters
    ----------
    windows : int
        ``sampling.windows`` of the configuration.
    seed : int
        ``seed`` of the configuration.

    Returns
    -------
    ndarray of int64, shape (windows,)
        Numbers from 0 to 15. Sizes of groups differ by at most one; with fewer than 16 windows some groups are empty.

    Examples
    --------
    >>> np.bincount(group_windows(35, 0))
    array([3, 3, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2])
    """
    groups = np.empty(windows, np.int64)
    order = random_stream(seed, "groups of windows").permutation(windows)
    groups[order] = np.arange(windows) % GROUPS
    return groups


def choose_first_windows(groups: np.ndarray, share: float) -> np.ndarray:
    """Choose the first windows of each group, so that every group keeps at least one.

    Parameters
    ----------
    groups : ndarray of int64, shape (windows,)
        From :func:`.group_windows`.
    share : float
        The share of windows of each group, rounded to whole windows, at least one.

    Returns
    -------
    ndarray of int64
        Ascending numbers of windows.

    Examples
    --------
    >>> choose_first_windows(np.array([0, 1, 1, 0]), 0.5)
    array([0, 1])
    """
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    return np.sort(np.concatenate([x[: max(1, round(share * len(x)))] for x in members]))


def divide_contiguously(vectors: int, size: int) -> list[slice]:
    """Divide vectors in their order into batches of at least `size`, for isotropy and spectra.

    Parameters
    ----------
    vectors : int
        Number of vectors.
    size : int
        Least number of vectors in a batch.

    Returns
    -------
    list of slice
        ``vectors // size`` batches whose lengths differ by at most one. The remainder is spread over them, since these
        measures depend little on the number of vectors.

    Raises
    ------
    InputError
        If there are fewer than `size` vectors.
    """
    require_one_batch(vectors, size)
    batches = vectors // size
    edges = [vectors * number // batches for number in range(batches + 1)]
    return list(map(slice, edges[:-1], edges[1:]))


def divide_shuffled(vectors: int, size: int, stream: np.random.Generator) -> list[np.ndarray]:
    """Shuffle vectors and divide them into batches of exactly `size`, for intrinsic dimension.

    Parameters
    ----------
    vectors, size : int
        Number of all vectors, and of vectors in a batch. Estimates of dimension depend on the number of vectors, so
        the last ``vectors % size`` vectors are dropped.
    stream : numpy.random.Generator
        The stream of the shuffle.

    Returns
    -------
    list of ndarray of int64, shape (size,)
        Disjoint row numbers, ascending in each batch.

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
        more = f" to {math.ceil(10 * size / vectors) / 10:g} times as many" if vectors else ""
        raise InputError(
            f"the windows give {vectors} vectors, fewer than one batch of {size}; raise `sampling.windows`{more}, "
            f"or lower `measurement.batch_vectors`, which changes every dimension (with "
            "`measurement.token_types: one` only one vector of each token type is measured, with "
            "`measurement.sequence` one of each window)"
        )
