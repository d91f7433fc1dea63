"""How hidden states are measured: which of their rows, in batches of how many, and by which measures.

This module imports nothing heavy, because the Snakefile reads it at every start.
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
        Those that the tokenizer adds, such as ``[CLS]``.
    first_token : {"keep", "drop"}
        That of each window, special or not.
    token_types : {"all", "one"}
        All tokens, or one of each token type (entry of the vocabulary), drawn from those that the other
        choices leave.
    massive_tokens : {"keep", "drop"}
        Those that :func:`.find_massive` finds in a hidden state among the tokens that all other choices leave; of a
        block those of the state before it or after it, since the former decide the fit and the latter the score.
    same_window : {"keep", "drop"}
        Neighbours that are of the window of the vector itself.
    before_final_norm : bool
        Whether the last layer is the state before the final norm, though the run measures that after it.
    windows_share : float
        Share of the windows whose tokens are measured, of each group the first ones.
    """

    special_tokens: str = "keep"
    first_token: str = "keep"
    token_types: str = "all"
    massive_tokens: str = "keep"
    same_window: str = "keep"
    before_final_norm: bool = False
    windows_share: float = 1.0

    def set_rows(self, chosen: Mapping[str, str]) -> "Selection":
        """Make the choices that a measure's entry makes for itself, `rows` of :class:`.Measure`."""
        switches: Any = {key: value for key, value in chosen.items() if key != "last_layer"}
        before = self.before_final_norm or "last_layer" in chosen
        return replace(self, before_final_norm=before, **switches)

    @property
    def name(self) -> str:
        """How tables call it."""
        parts = {
            "without_first_token": self.first_token == "drop",
            "without_special_tokens": self.special_tokens == "drop",
            "one_per_token_type": self.token_types == "one",
            "without_massive_tokens": self.massive_tokens == "drop",
            "neighbours_in_other_windows": self.same_window == "drop",
            "before_final_norm": self.before_final_norm,
        }
        return "+".join(part for part, applies in parts.items() if applies) or "all"


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
    selection: Selection = Selection()

    @classmethod
    def read_fields(cls, model: str, fields: Mapping[str, Any]) -> "MeasuringProtocol":
        """Take what jobs are told, plain values."""
        return cls(model, **{**fields, "selection": Selection(**fields["selection"])})


class MeasureJob(NamedTuple):
    """The measures of one family that are taken of one layer of a dump.

    Attributes
    ----------
    layer, layers : int
        The layer that is measured, and the last one of the dump.
    family : str
    measures : tuple of Measure
    protocol : MeasuringProtocol
    """

    layer: int
    layers: int
    family: str
    measures: tuple[Measure, ...]
    protocol: MeasuringProtocol
