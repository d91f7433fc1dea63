"""One sample, measured as all specifications have it: each set of rows once."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from shape_of_learning.claims.choice_tables import BEFORE
from shape_of_learning.claims.choices import WHOLE, Rows, WantedMeasures
from shape_of_learning.metrics.measure_entry import by_rows
from shape_of_learning.metrics.measurements import Measured
from shape_of_learning.metrics.resampling import window_groups
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
        Whose windows they are.
    windows, seed : int
        How many were drawn, and by which seed; it also decides groups and token types.

    Attributes
    ----------
    windows : ndarray of int64
        Numbers of those that any specification looks at.

    Notes
    -----
    Where fewer vectors are selected than a batch has, as of one vector per token type, all are one batch.
    Where there are not more than the neighbours that are searched, nothing is measured.
    """

    def __init__(self, wanted: WantedMeasures, text: str, windows: int, seed: int):
        self._wanted, self._choices, self._seed = wanted, wanted.rows(text), seed
        self._groups = window_groups(windows, seed)
        most = max(float(each.windows_share) for each in self._choices)
        self.windows = share_of_windows(self._groups, most)
        # What is measured together, and whose it is: different choices may leave the same rows.
        self._parts: dict[tuple[bytes, int, str], tuple[SelectedMeasures, list[Rows]]] = {}
        self._last = 0

    def choose(self, rows: Mapping[str, np.ndarray], last: int) -> None:
        """Learn what the rows of the hidden states are, and the number of the last layer.

        Parameters
        ----------
        rows : mapping of str to ndarray
            :attr:`.SampleRun.rows` of the windows that are looked at.
        last : int
        """
        self._last = last
        numbered = {**rows, "windows": self.windows[rows["windows"]]}
        own_size = self._choices[0].batch_share
        for choice in self._choices:
            # With batches of another size, only what is taken of batches.
            measures = [
                replace(each, name=name)
                for name, each in self._wanted.measures.items()
                if choice.batch_share == own_size or each.family not in WHOLE
            ]
            self._add(choice, measures, numbered)

    def _add(self, choice: Rows, measures: list, rows: Mapping[str, np.ndarray]) -> None:
        kept = share_of_windows(self._groups, float(choice.windows_share))
        among = np.flatnonzero(np.isin(rows["windows"], kept))
        size = max(3, round(float(choice.batch_share) * self._wanted.batch_vectors))
        selection = Selection(
            choice.special_tokens, choice.first_token, choice.token_types, self._seed
        )
        for own, chosen in by_rows(measures):
            part = SelectedMeasures(chosen, selection.with_rows(own), rows, size, among)
            if len(part.kept) <= self._wanted.neighbours:
                continue
            part.batch_vectors = min(size, len(part.kept))
            key = part.kept.tobytes(), part.batch_vectors, " ".join(chosen)
            self._parts.setdefault(key, (part, []))[1].append(choice)

    def states(self, layer: int, last_layer: str) -> list[int]:
        """Numbers of the hidden states that measuring a layer needs, ascending."""
        every = (self._states(part, layer, last_layer) for part, _ in self._parts.values())
        return sorted({number for of_part in every for number in of_part})

    def _states(self, part: SelectedMeasures, layer: int, last_layer: str) -> list[int]:
        before = last_layer == BEFORE or (part.before_final_norm and layer == self._last)
        return [layer + before, *([layer - 1] if part.pairs and layer else [])]

    def measured(
        self,
        state: "Mapping[int, np.ndarray | torch.Tensor]",
        layer: int,
        last_layer: str,
        stream: Callable[[], np.random.Generator],
    ) -> list[tuple[Rows, str, Measured]]:
        """Measure a layer.

        Parameters
        ----------
        state : mapping of int to ndarray or tensor
            What :meth:`states` names.
        layer : int
        last_layer : {"after_final_norm", "before_final_norm"}
            The latter for the last layer only.
        stream : callable
            Gives the random numbers of the shuffle, anew for each set of rows.

        Returns
        -------
        list of (Rows, str, Measured)
            Choices of rows, names of estimators, and values.
        """
        found = []
        for part, choices in self._parts.values():
            values = part.measured(
                state,
                self._states(part, layer, last_layer),
                self._wanted.neighbours,
                stream(),
                self._groups,
            )
            found += [(choice, *each) for choice in choices for each in values.items()]
        return found
