"""Measures of the same rows, taken of the hidden states of a checkpoint that are in memory."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from shape_of_learning.metrics.layer import measure_layer
from shape_of_learning.metrics.measure_entry import ChosenMeasure
from shape_of_learning.metrics.measurements import Measured
from shape_of_learning.metrics.pairs import measure_pair
from shape_of_learning.metrics.selections import Selection

if TYPE_CHECKING:
    import torch


class SelectedMeasures:
    """What is measured of some rows of each hidden state.

    Parameters
    ----------
    measures : mapping of str to ChosenMeasure
        By name; their own `rows` do not count.
    selection : Selection
        Which rows.
    rows : mapping of str to ndarray
        What each row of a hidden state is, :attr:`.SampleRun.rows`.
    batch_vectors : int
        ``measurement.batch_vectors`` of the configuration.
    among : ndarray of int64, optional
        Ascending row numbers that the selection is made of. By default all.

    Attributes
    ----------
    kept : ndarray of int64
        Row numbers of what is measured, ascending.
    is_in_batches : bool
        Whether any measure is taken of batches of vectors.
    """

    def __init__(
        self,
        measures: Mapping[str, ChosenMeasure],
        selection: Selection,
        rows: Mapping[str, np.ndarray],
        batch_vectors: int,
        among: np.ndarray | None = None,
    ):
        self.pairs = {name: each for name, each in measures.items() if each.of == "pair"}
        self.of_layers = {name: each for name, each in measures.items() if each.of != "pair"}
        self.before_final_norm = selection.before_final_norm
        self.batch_vectors = batch_vectors
        among = np.arange(len(rows["windows"])) if among is None else among
        of_rows = (rows[name][among] for name in ("special", "positions", "token_ids"))
        self.kept = among[selection.rows(*of_rows)]
        self.all_are_kept = len(self.kept) == len(rows["windows"])
        self.windows, self.token_ids = (rows[name][self.kept] for name in ("windows", "token_ids"))
        self.is_in_batches = any(each.of != "labelled" for each in self.of_layers.values())

    def states(self, layer: int, last: int) -> list[int]:
        """Numbers of the hidden states that are needed to measure a layer: its own, and that before it."""
        own = layer + (layer == last and self.before_final_norm)
        return [own, *([layer - 1] if self.pairs and layer else [])]

    def measured(
        self,
        state: "Mapping[int, np.ndarray | torch.Tensor]",
        numbers: list[int],
        neighbours: int,
        stream: np.random.Generator,
        groups: np.ndarray,
    ) -> dict[str, Measured]:
        """Measure a layer.

        Parameters
        ----------
        state : mapping of int to ndarray or tensor
            Hidden states by their numbers, all of their rows.
        numbers : list of int
            What :meth:`states` said of this layer.
        neighbours, stream, groups
            As :func:`.measure_layer` takes them.

        Returns
        -------
        dict of str to Measured
            By the names of the measures.
        """
        after, *before = (
            state[number] if self.all_are_kept else state[number][self.kept] for number in numbers
        )
        values = measure_layer(
            after,
            self.windows,
            self.of_layers,
            self.batch_vectors,
            neighbours,
            stream,
            groups,
            self.token_ids,
        )
        for state_before in before:  # one, or none
            values |= measure_pair(state_before, after, self.windows, self.pairs, groups)
        return values
