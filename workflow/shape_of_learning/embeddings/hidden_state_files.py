"""HDF5 files of hidden states: one per layer, ``layer_{layer}.h5``."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from shape_of_learning.errors import InputError
from shape_of_learning.storage.hdf5_files import UNREADABLE, unreadable

# A chunk is the unit of reading: 256 kB are large against a seek, and smaller than the rows of a
# window. Else most chunks are written in parts, of which HDF5 reads and writes each chunk as a whole.
CHUNK_BYTES = 1 << 18
# Besides the hidden states: each row's token and position; per chunk, its entry in an index that may be half
# empty; and what is described later.
NUMBERING_BYTES = 16
INDEX_BYTES = 256
DESCRIPTION_BYTES = 1 << 16


def layer_file(folder: Path, layer: int) -> Path:
    """Return the path of one layer's file."""
    return folder / f"layer_{layer}.h5"


def rows_of_a_chunk(tokens: int, width: int, dtype: np.dtype) -> int:
    """Return how many rows are stored together."""
    return min(tokens, max(1, CHUNK_BYTES // (dtype.itemsize * width)))


def file_bytes(tokens: int, width: int, dtype: np.dtype) -> int:
    """Return the disk space, in bytes, that a layer's file takes at most."""
    rows = rows_of_a_chunk(tokens, width, dtype)
    chunks = -(-tokens // rows)
    numbers = chunks * rows * width * dtype.itemsize + tokens * NUMBERING_BYTES
    return numbers + chunks * INDEX_BYTES + DESCRIPTION_BYTES


def _reserve(path: Path, outline: bytes, size: int) -> None:
    """Write an HDF5 file's beginning, and get blocks of the disk for the `size` bytes that may follow.

    HDF5 gives back what it has not needed when the file is closed.
    """
    try:
        with path.open("wb") as file:
            file.write(outline)
            file.flush()
            if hasattr(os, "posix_fallocate"):  # macOS has none
                os.posix_fallocate(file.fileno(), 0, len(outline) + size)
    except OSError as error:  # which names no file
        raise OSError(error.errno, error.strerror, str(path)) from error


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

    HDF5 crashes where the disk is full (2.0.0, h5py 3.16). So all space is reserved before it opens a file,
    and a disk that others fill meanwhile does no harm.

    Raises
    ------
    OSError
        If there is no space for all files.
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
        self._files: list[h5py.File] = []
        for layer, width in enumerate(widths):
            path = layer_file(folder, layer)
            outline = self._outline(len(token_ids), width, {"layer": layer, **attributes})
            _reserve(path, outline, file_bytes(len(token_ids), width, self.dtype))
        for layer in range(len(widths)):
            file = h5py.File(layer_file(folder, layer), "r+")
            self._files.append(file)
            file["token_ids"][...] = token_ids
            file["positions"][...] = positions

    def _outline(self, tokens: int, width: int, attributes: Mapping[str, Any]) -> bytes:
        """A file that has everything but the numbers, as HDF5 makes it in memory."""
        with h5py.File("outline", "w", driver="core", backing_store=False) as file:
            rows = rows_of_a_chunk(tokens, width, self.dtype)
            file.create_dataset("embeddings", (tokens, width), self.dtype, chunks=(rows, width))
            for name in ("token_ids", "positions"):
                file.create_dataset(name, (tokens,), np.int64)
            file.attrs.update(attributes)
            file.flush()
            return file.id.get_file_image()

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
        If the file is missing, truncated or unreadable.
    """
    path = layer_file(folder, layer)
    try:
        with h5py.File(path, "r") as file:
            values = file["embeddings"][()].astype(np.float32, copy=False)
    except UNREADABLE as error:
        remedy = f"delete {folder} and run again to dump it anew"
        raise unreadable(path, error, remedy) from error
    if values.ndim != 2:
        raise InputError(f"{path} holds no matrix; delete {folder} and run again")
    return values
