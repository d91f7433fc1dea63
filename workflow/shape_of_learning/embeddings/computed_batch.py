"""What a batch of windows gives; on a GPU it may still be on its way."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from shape_of_learning.embeddings.host_copies import HostCopy
from shape_of_learning.embeddings.tokenisation import TokenisedWindow


@dataclass(frozen=True)
class ComputedBatch:
    """Hidden states and likelihoods of some windows.

    Attributes
    ----------
    windows : list of TokenisedWindow
        In the order of the first rows of what follows; further rows fill up.
    states : list of HostCopy of float32, shape (rows, length, width)
        By layer, embedding output first.
    sums : HostCopy of float64, shape (windows,), or None
        Negative log-likelihood of each window's predicted tokens, in nats.
    """

    windows: list[TokenisedWindow]
    states: list[HostCopy]
    sums: HostCopy | None

    @property
    def widths(self) -> list[int]:
        """Width of each layer."""
        return [state.width for state in self.states]

    def kept_rows(self, layer: int) -> Iterator[np.ndarray]:
        """Wait for a layer; yield the kept rows of each window, float32 of shape (kept, width)."""
        for window, values in zip(self.windows, self.states[layer].array(), strict=False):
            of_window = values[: len(window.ids)]
            yield of_window if window.kept.all() else of_window[window.kept]

    def likelihoods(self) -> np.ndarray:
        """Wait for the likelihoods, float64 of shape (windows,)."""
        return self.sums.array()
