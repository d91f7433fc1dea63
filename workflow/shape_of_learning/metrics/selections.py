"""Which tokens are measured: dumps hold all of them, and a measurement chooses."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from shape_of_learning.random_streams import random_stream


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
        All tokens, or one of each token type (entry of the vocabulary), drawn from those that the other two
        leave.
    before_final_norm : bool
        Whether the last layer is the state before the final norm, though the run measures that after it.
    seed : int
        Decides which. It belongs to no model or layer: whoever has the same tokens measures the same ones.
    """

    special_tokens: str = "keep"
    first_token: str = "keep"
    token_types: str = "all"
    seed: int = 0
    before_final_norm: bool = False

    def with_rows(self, chosen: Mapping[str, str]) -> "Selection":
        """Make the choices that a measure's entry makes for itself, `rows` of :class:`.Measure`."""
        switches: Any = {key: value for key, value in chosen.items() if key != "last_layer"}
        return replace(self, before_final_norm="last_layer" in chosen, **switches)

    @property
    def name(self) -> str:
        """How tables call it."""
        parts = {
            "without_first_token": self.first_token == "drop",
            "without_special_tokens": self.special_tokens == "drop",
            "one_per_token_type": self.token_types == "one",
            "before_final_norm": self.before_final_norm,
        }
        return "+".join(part for part, applies in parts.items() if applies) or "all"

    def rows(self, special: np.ndarray, positions: np.ndarray, token_ids: np.ndarray) -> np.ndarray:
        """Choose among the tokens of a sample.

        Parameters
        ----------
        special : ndarray of bool, shape (n,)
            Whether a token is a special one.
        positions : ndarray of int, shape (n,)
            Its position within its window, from 0.
        token_ids : ndarray of int, shape (n,)
            Its type: its entry in the vocabulary.

        Returns
        -------
        ndarray of int64, shape (m,)
            Ascending row numbers of the tokens that are measured.

        Examples
        --------
        >>> positions, token_ids = np.array([0, 1, 0, 1]), np.array([7, 5, 6, 5])
        >>> Selection(first_token="drop").rows(np.zeros(4, bool), positions, token_ids)
        array([1, 3])
        """
        kept = np.ones(len(positions), dtype=bool)
        if self.special_tokens == "drop":
            kept &= ~np.asarray(special, dtype=bool)
        if self.first_token == "drop":
            kept &= np.asarray(positions) != 0
        rows = np.flatnonzero(kept)
        if self.token_types == "one":
            order = random_stream(self.seed, "token types").permutation(rows)
            _, first = np.unique(np.asarray(token_ids)[order], return_index=True)
            rows = np.sort(order[first])
        return rows

    def to_json(self) -> str:
        """Write as one line that :meth:`from_json` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Selection":
        """Read what :meth:`to_json` wrote."""
        return cls(**json.loads(text))
