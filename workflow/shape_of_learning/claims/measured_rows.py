"""One layer of one sample, measured as all specifications have it: each set of rows once."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from shape_of_learning.claims.choices import WHOLE, Rows, WantedMeasures
from shape_of_learning.metrics.measure_entry import by_rows
from shape_of_learning.metrics.measurements import Measured
from shape_of_learning.metrics.selected_measures import SelectedMeasures
from shape_of_learning.metrics.selections import Selection

if TYPE_CHECKING:
    import torch


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


class MeasuredRows:
    """All that is wanted of the hidden states of one sample.

    Parameters
    ----------
    wanted : WantedMeasures
    text : str
        Whose sample it is.
    rows : mapping of str to ndarray
        :attr:`.SampleRun.rows`.
    groups : ndarray of int64, shape (windows,)
        From :func:`.window_groups`.
    seed : int
        Of the selection of one vector per token type.
    last : int
        Number of the last layer.

    Notes
    -----
    Where fewer vectors are selected than a batch has, as of one vector per token type, all are one batch. Where
    they are fewer than the neighbours that are searched, nothing is measured.
    """

    def __init__(
        self,
        wanted: WantedMeasures,
        text: str,
        rows: Mapping[str, np.ndarray],
        groups: np.ndarray,
        seed: int,
        last: int,
    ):
        self._wanted, self._groups, self._last = wanted, groups, last
        # What is measured together, and whose it is: different choices may leave the same rows.
        self._parts: dict[tuple[bytes, int, str], tuple[SelectedMeasures, list[Rows]]] = {}
        chosen = wanted.rows(text)
        for each in chosen:
            self._add(each, rows, seed, each.batch_share == chosen[0].batch_share)

    def _add(
        self, choice: Rows, rows: Mapping[str, np.ndarray], seed: int, of_own_size: bool
    ) -> None:
        among = np.flatnonzero(
            np.isin(rows["windows"], share_of_windows(self._groups, float(choice.windows_share)))
        )
        size = max(3, round(float(choice.batch_share) * self._wanted.batch_vectors))
        selection = Selection(choice.special_tokens, choice.first_token, choice.token_types, seed)
        # With batches of another size, only what is taken of batches.
        measures = [
            replace(each, name=name)
            for name, each in self._wanted.measures.items()
            if of_own_size or each.of not in WHOLE
        ]
        for own, chosen in by_rows(measures):
            part = SelectedMeasures(chosen, selection.with_rows(own), rows, size, among)
            if len(part.kept) <= self._wanted.neighbours:
                continue
            part.batch_vectors = min(size, len(part.kept))
            key = part.kept.tobytes(), part.batch_vectors, " ".join(chosen)
            self._parts.setdefault(key, (part, []))[1].append(choice)

    def states(self, layer: int, before_final_norm: bool) -> list[int]:
        """Numbers of the hidden states that measuring a layer needs, ascending."""
        return sorted(
            {
                number
                for part, _ in self._parts.values()
                for number in self._states(part, layer, before_final_norm)
            }
        )

    def measured(
        self,
        state: "Mapping[int, np.ndarray | torch.Tensor]",
        layer: int,
        before_final_norm: bool,
        stream: Callable[[], np.random.Generator],
    ) -> list[tuple[Rows, str, Measured]]:
        """Measure a layer.

        Parameters
        ----------
        state : mapping of int to ndarray or tensor
            What :meth:`states` names.
        layer : int
        before_final_norm : bool
            Whether it is the last layer, as it is before the final norm.
        stream : callable
            Gives the random numbers of the shuffle, anew for each set of rows.

        Returns
        -------
        list of (Rows, str, Measured)
            Choices of rows, names of estimators, and values.
        """
        found = []
        for part, choices in self._parts.values():
            numbers = self._states(part, layer, before_final_norm)
            values = part.measured(state, numbers, self._wanted.neighbours, stream(), self._groups)
            found += [(choice, *each) for choice in choices for each in values.items()]
        return found

    def _states(self, part: SelectedMeasures, layer: int, before_final_norm: bool) -> list[int]:
        before = before_final_norm or (part.before_final_norm and layer == self._last)
        return [layer + before, *([layer - 1] if part.pairs and layer else [])]
