"""HDF5 files of hidden states: one per layer, ``layer_{layer}.h5``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from shape_of_learning.errors import InputError

# A chunk is the unit of reading: 256 kB are large against a seek, and smaller than the rows of a
# window. Else most chunks are written in parts, of which HDF5 reads and writes each chunk as a whole.
CHUNK_BYTES = 1 << 18


def layer_file(folder: Path, layer: int) -> Path:
    """Return the path of one layer's file."""
    return folder / f"layer_{layer}.h5"


class HiddenStateWriter:
    """Write the hidden states of all layers of one checkpoint, window by window.

    Parameters
    ----------
    folder : Path
        Folder to fill; must exist.
    widths : list of int
        Width of the hidden state of each layer, embedding output first.
    token_ids, positions : ndarray of int64, shape (tokens,)
        Vocabulary entry of each row and its position within its window.
    attributes : mapping
        Where the data come from; stored as attributes of each file, beside ``layer``.
    dtype : str
        ``"float32"`` or ``"float16"``, of what is stored.

    Notes
    -----
    Dataset ``embeddings`` has the shape ``(tokens, width)``, is chunked by rows and not compressed:
    the mantissa of a hidden state is noise to a compressor.
    """

    def __init__(
        self,
        folder: Path,
        widths: list[int],
        token_ids: np.ndarray,
        positions: np.ndarray,
        attributes: Mapping[str, Any],
        dtype: str = "float32",
    ):
        self.dtype = np.dtype(dtype)
        self._files = []
        tokens = len(token_ids)
        for layer, width in enumerate(widths):
            file = h5py.File(layer_file(folder, layer), "w")
            rows = min(tokens, max(1, CHUNK_BYTES // (self.dtype.itemsize * width)))
            file.create_dataset("embeddings", (tokens, width), self.dtype, chunks=(rows, width))
            file.create_dataset("token_ids", data=token_ids)
            file.create_dataset("positions", data=positions)
            file.attrs["layer"] = layer
            self._files.append(file)
        self.describe(attributes)

    def write(self, layer: int, rows: slice, values: np.ndarray) -> None:
        """Write `values`, shape (rows, width), of the stored type."""
        self._files[layer]["embeddings"][rows] = values

    def describe(self, attributes: Mapping[str, Any]) -> None:
        """Add attributes to each file, such as are known only once all is computed."""
        for file in self._files:
            for name, value in attributes.items():
                file.attrs[name] = value

    def close(self) -> None:
        """Flush and close all files."""
        for file in self._files:
            file.close()


def read_hidden_states(folder: Path, layer: int) -> np.ndarray:
    """Read one layer.

    Returns
    -------
    ndarray of float32, shape (tokens, width)
        Whatever type is stored.

    Raises
    ------
    InputError
        If the file is missing or truncated.
    """
    path = layer_file(folder, layer)
    try:
        with h5py.File(path, "r") as file:
            values = file["embeddings"][()].astype(np.float32, copy=False)
    except (OSError, KeyError) as error:
        reason = "is missing" if not path.exists() else "cannot be read (truncated?)"
        raise InputError(
            f"{path} {reason}; delete {folder} and run again to dump it anew"
        ) from error
    if values.ndim != 2:
        raise InputError(f"{path} holds no matrix; delete {folder} and run again")
    return values
