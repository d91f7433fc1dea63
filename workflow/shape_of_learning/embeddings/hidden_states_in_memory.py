"""Hidden states that are measured where they are and never reach a disk."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from shape_of_learning.errors import InputError

if TYPE_CHECKING:
    import torch


class HiddenStatesInMemory:
    """Take the hidden states of all layers, as :class:`HiddenStateWriter` does, and keep them in memory.

    Parameters
    ----------
    tokens : int
        Rows of each layer.
    widths : list of int
        Width of the hidden state of each layer, embedding output first.
    dtype : str
        ``"float32"`` or ``"float16"``, of what is kept.

    Raises
    ------
    InputError
        If memory is too small.
    """

    def __init__(self, tokens: int, widths: list[int], dtype: str = "float32"):
        self.dtype = np.dtype(dtype)
        try:
            # Pages that nobody has written to take no memory yet.
            self._layers = [np.zeros((tokens, width), self.dtype) for width in widths]
        except MemoryError as error:
            size = tokens * sum(widths) * self.dtype.itemsize
            raise InputError(
                f"the hidden states of {tokens} tokens take {size / 1e9:,.1f} GB, more than there is memory; "
                "lower `sampling.windows`, or let them be written to the disk with `embeddings.dump: true`"
            ) from error

    def write(self, layer: int, rows: slice, values: np.ndarray) -> None:
        """Take in `values`, shape (rows, width), of the kept type."""
        self._layers[layer][rows] = values

    def describe(self, attributes: Mapping[str, Any]) -> None:
        """Ignore what a file would say of itself."""

    def take(self, layer: int, device: "torch.device") -> "np.ndarray | torch.Tensor":
        """Give one layer away, shape (tokens, width), as float32; it is kept no longer.

        An array, or a tensor where `device` is not the CPU.
        """
        values, self._layers[layer] = self._layers[layer], np.zeros((0, 0), self.dtype)
        values = values.astype(np.float32, copy=False)
        if device.type == "cpu":
            return values
        import torch

        return torch.from_numpy(values).to(device)
