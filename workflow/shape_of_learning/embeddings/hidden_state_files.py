"""Hidden states of all layers of one checkpoint as HDF5 files, ``layer_{layer}.h5``.

With them may be that of the last block before the final norm, ``layer_{layer}_before_final_norm.h5``.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from shape_of_learning.embeddings.weight_files import weights_bytes, weights_file, write_weights
from shape_of_learning.storage.chunked_rows import (
    DESCRIPTION_BYTES,
    dataset_bytes,
    reserve,
    rows_of_a_chunk,
)
from shape_of_learning.storage.digests import add_digest
from shape_of_learning.storage.files import atomic_write, require_space

if TYPE_CHECKING:
    from shape_of_learning.checkpoints.losses import CrossEntropy
    from shape_of_learning.embeddings.model_weights import ModelMatrix
    from shape_of_learning.embeddings.sample_run import SampleRun

# What is stored of each row besides, by the names of SampleRun.rows.
ROW_TYPES = {"token_ids": np.int64, "positions": np.int64, "windows": np.int64, "special": bool}
ROW_BYTES = 3 * 8 + 1


def layer_file(folder: Path, layer: int, *, before_final_norm: bool = False) -> Path:
    """Return the path of one layer's file."""
    return folder / f"layer_{layer}{'_before_final_norm' if before_final_norm else ''}.h5"


def state_files(folder: Path, states: int, *, before_final_norm: bool) -> list[Path]:
    """Return the paths of so many hidden states, the last of which may be that before the final norm."""
    files = [layer_file(folder, layer) for layer in range(states - before_final_norm)]
    if before_final_norm:
        files.append(layer_file(folder, len(files) - 1, before_final_norm=True))
    return files


def file_bytes(tokens: int, width: int) -> int:
    """Return the disk space, in bytes, that a layer's file takes at most."""
    return dataset_bytes(tokens, width) + tokens * ROW_BYTES + DESCRIPTION_BYTES


def _outline(tokens: int, width: int, attributes: Mapping[str, Any]) -> bytes:
    """A file that has everything but the numbers, as HDF5 makes it in memory."""
    with h5py.File("outline", "w", driver="core", backing_store=False) as file:
        chunks = (rows_of_a_chunk(tokens, width), width)
        file.create_dataset("embeddings", (tokens, width), np.float32, chunks=chunks)
        for name, kind in ROW_TYPES.items():
            file.create_dataset(name, (tokens,), kind)
        file.attrs.update(attributes)
        file.flush()
        return file.id.get_file_image()


class HiddenStateWriter:
    """Write the hidden states of all layers of one checkpoint, window by window.

    Parameters
    ----------
    folder : Path
        Folder to fill; must exist.
    widths : list of int
        Width of the hidden state of each layer, embedding output first.
    rows : mapping of str to ndarray, shape (tokens,)
        What each row is, as :attr:`SampleRun.rows` says it; datasets of these names.
    attributes : mapping
        Where the data come from; stored as attributes of each file, beside ``layer``.
    before_final_norm : bool
        Whether the last of them is that before the final norm, beside the one after it.

    Notes
    -----
    Dataset ``embeddings`` is float32 of shape ``(tokens, width)``, is chunked by rows and not compressed:
    the mantissa of a hidden state is noise to a compressor.

    HDF5 crashes where the disk is full (2.0.0, h5py 3.16). So all space is reserved before it opens a file,
    and a disk that others fill meanwhile does no harm.

    Raises
    ------
    OSError
        If there is no space for all files.
    """

    device = "cpu"

    def __init__(
        self,
        folder: Path,
        widths: list[int],
        rows: Mapping[str, np.ndarray],
        attributes: Mapping[str, Any],
        *,
        before_final_norm: bool = False,
    ):
        self._files: list[h5py.File] = []
        tokens, last = len(rows["token_ids"]), len(widths) - 1 - before_final_norm
        paths = state_files(folder, len(widths), before_final_norm=before_final_norm)
        for state, (path, width) in enumerate(zip(paths, widths, strict=True)):
            outline = _outline(tokens, width, {"layer": min(state, last), **attributes})
            reserve(path, outline, file_bytes(tokens, width))
        for path in paths:
            file = h5py.File(path, "r+")
            self._files.append(file)
            for name in ROW_TYPES:
                file[name][...] = rows[name]

    def write(self, state: int, rows: slice, values: np.ndarray) -> None:
        """Write `values`, float32 of shape (rows, width)."""
        self._files[state]["embeddings"][rows] = values

    def describe(self, attributes: Mapping[str, Any]) -> None:
        """Add attributes to each file, such as are known only once all is computed."""
        for file in self._files:
            for name, value in attributes.items():
                file.attrs[name] = value

    def close(self) -> None:
        """Flush and close all files."""
        for file in self._files:
            file.close()


def dump_embeddings(
    sample: "SampleRun",
    matrices: "Sequence[ModelMatrix]",
    destination: Path,
    attributes: Mapping[str, Any],
) -> "CrossEntropy":
    """Run the windows through the checkpoint and write a file per layer, and one of the model's own matrices.

    Parameters
    ----------
    sample : SampleRun
        Both.
    matrices : sequence of ModelMatrix
        Of the model.
    destination : Path
        Folder that receives ``layer_0.h5`` (embedding output) to ``layer_L.h5`` and ``weights.h5``, and the
        digest of each; with ``last_layer: both``, ``layer_L_before_final_norm.h5`` besides.
    attributes : mapping
        Where the data come from, stored in every file beside the `loss`.

    Returns
    -------
    CrossEntropy
        Of the checkpoint on all windows.

    Raises
    ------
    InputError
        If the disk is too small, and as :meth:`SampleRun.into`.
    """
    of_layers = sum(file_bytes(sample.tokens, width) for width in sample.widths)
    require_space(destination, of_layers + weights_bytes(matrices))
    with atomic_write(destination) as folder:
        folder.mkdir()
        write_weights(weights_file(folder), matrices, attributes)
        both = sample.before_final_norm
        writer = HiddenStateWriter(
            folder, sample.widths, sample.rows, attributes, before_final_norm=both
        )
        try:
            cross_entropy = sample.into(writer)
        finally:
            writer.close()
        states = state_files(folder, len(sample.widths), before_final_norm=both)
        for file in (*states, weights_file(folder)):
            add_digest(file, destination / file.name)
    return cross_entropy
