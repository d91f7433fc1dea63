"""Which tokens are measured: dumps hold all of them, and a measurement chooses."""

import json
from dataclasses import asdict, dataclass

import numpy as np


@dataclass(frozen=True)
class Selection:
    """A choice of rows.

    Attributes
    ----------
    special_tokens : {"keep", "drop"}
        Those that the tokenizer adds, such as ``[CLS]``.
    first_token : {"keep", "drop"}
        That of each window, special or not.
    """

    special_tokens: str = "keep"
    first_token: str = "keep"

    @property
    def name(self) -> str:
        """Of tables, such as ``all`` or ``without_first_token``."""
        left_out = {"first_token": self.first_token, "special_tokens": self.special_tokens}
        named = [f"without_{key}" for key, what in left_out.items() if what == "drop"]
        return "+".join(named) or "all"

    def rows(self, special: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Choose among the tokens of a sample.

        Parameters
        ----------
        special : ndarray of bool, shape (n,)
            Whether a token is a special one.
        positions : ndarray of int, shape (n,)
            Its position within its window, from 0.

        Returns
        -------
        ndarray of int64, shape (m,)
            Ascending row numbers of the tokens that are measured.

        Examples
        --------
        >>> Selection(first_token="drop").rows(np.zeros(4, bool), np.array([0, 1, 0, 1]))
        array([1, 3])
        """
        kept = np.ones(len(positions), dtype=bool)
        if self.special_tokens == "drop":
            kept &= ~np.asarray(special, dtype=bool)
        if self.first_token == "drop":
            kept &= np.asarray(positions) != 0
        return np.flatnonzero(kept)

    def to_json(self) -> str:
        """Write as one line that :meth:`from_json` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Selection":
        """Read what :meth:`to_json` wrote."""
        return cls(**json.loads(text))
