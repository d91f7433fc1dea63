"""Decide which rows of hidden states are measured, in which batches, and by which measures.

This module imports nothing heavy, because every start of Snakemake imports it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from shape_of_learning.metrics.measure_entry import Measure


@dataclass(frozen=True)
class Selection:
    """A choice of rows.

    Attributes
    ----------
    special_tokens : {"keep", "drop"}
        The tokens that the tokenizer adds, such as ``[CLS]``.
    first_token : {"keep", "drop"}
        The first token of each window, special or not.
    token_types : {"all", "one"}
        All tokens, or one of each token type (entry of the vocabulary), drawn from the tokens that the other choices
        keep.
    massive_tokens : {"keep", "drop"}
        The tokens that :func:`.find_massive` finds in any hidden state of the checkpoint. All layers and blocks drop
        the same tokens, whatever the other choices are.
    same_window : {"keep", "drop"}
        Neighbours that are in the same window as the vector.
    is_before_final_norm : bool
        Whether the last layer is measured before the final norm, though the run measures it after the norm.
    windows_share : float
        The share of windows whose tokens are measured: the first windows of each group.
    sequence : {"all", "last_token", "mean"}
        A vector for each token that the other choices keep, or a vector for each window: that of its last token, or
        the mean of its tokens.
    """

    special_tokens: str = "keep"
    first_token: str = "keep"
    token_types: str = "all"
    massive_tokens: str = "keep"
    same_window: str = "keep"
    is_before_final_norm: bool = False
    windows_share: float = 1.0
    sequence: str = "all"

    def set_rows(self, rows: Mapping[str, str]) -> "Selection":
        """Override choices by the `rows` of a :class:`.Measure`."""
        switches: Any = {key: value for key, value in rows.items() if key != "last_layer"}
        is_before_final_norm = self.is_before_final_norm or "last_layer" in rows
        return replace(self, is_before_final_norm=is_before_final_norm, **switches)

    @property
    def name(self) -> str:
        """The name in tables."""
        parts = {
            "without_first_token": self.first_token == "drop",
            "without_special_tokens": self.special_tokens == "drop",
            "one_per_token_type": self.token_types == "one",
            "without_massive_tokens": self.massive_tokens == "drop",
            "neighbours_in_other_windows": self.same_window == "drop",
            "before_final_norm": self.is_before_final_norm,
            "last_token": self.sequence == "last_token",
            "mean_of_window": self.sequence == "mean",
        }
        return "+".join(part for part, applies in parts.items() if applies) or "all"


@dataclass(frozen=True)
class MeasuringProtocol:
    """The settings that decide which vectors are measured, in which batches and groups.

    Attributes
    ----------
    model : str
        The name of the model, which decides the shuffle before the neighbour search.
    windows, seed : int
        The number of windows and the seed of the run, which decide the groups of windows.
    batch_vectors, neighbours : int
        ``measurement.batch_vectors`` and ``measurement.neighbours`` of the configuration.
    selection : Selection
        The choice of rows, which a measure can override.
    """

    model: str
    windows: int
    seed: int
    batch_vectors: int
    neighbours: int
    selection: Selection = Selection()


class MeasureJob(NamedTuple):
    """Measure one layer of a dump by the measures of one family.

    Attributes
    ----------
    layer, layers : int
        The measured layer, and the last layer of the dump.
    family : str
    measures : tuple of Measure
    protocol : MeasuringProtocol
    """

    layer: int
    layers: int
    family: str
    measures: tuple[Measure, ...]
    protocol: MeasuringProtocol
