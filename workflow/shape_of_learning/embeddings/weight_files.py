"""The matrices of a checkpoint as one HDF5 file, ``weights.h5`` beside its hidden states."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from shape_of_learning.metrics.table_columns import MATRICES
from shape_of_learning.storage.chunked_rows import (
    DESCRIPTION_BYTES,
    dataset_bytes,
    reserve,
    rows_of_a_chunk,
)
from shape_of_learning.storage.digests import require_unchanged

if TYPE_CHECKING:
    from shape_of_learning.embeddings.model_weights import ModelMatrix


def weights_file(folder: Path) -> Path:
    """Return the path of the file in a folder of embeddings."""
    return folder / "weights.h5"


def weights_bytes(matrices: "Sequence[ModelMatrix]") -> int:
    """Return the disk space, in bytes, that the file takes at most."""
    return DESCRIPTION_BYTES + sum(dataset_bytes(*matrix.shape) for matrix in matrices)


def write_weights(
    path: Path, matrices: "Sequence[ModelMatrix]", attributes: Mapping[str, Any]
) -> None:
    """Write one dataset of float32 for each matrix, by its name; one matrix is in memory at a time.

    Raises
    ------
    OSError
        If there is no space.
    """
    with h5py.File("outline", "w", driver="core", backing_store=False) as file:
        for each in matrices:
            chunks = (rows_of_a_chunk(*each.shape), each.shape[1])
            file.create_dataset(each.name, each.shape, np.float32, chunks=chunks)
        file.attrs.update(attributes)
        file.flush()
        outline = file.id.get_file_image()
    reserve(path, outline, weights_bytes(matrices))
    with h5py.File(path, "r+") as file:
        for each in matrices:
            file[each.name][...] = each.read()


@contextmanager
def opened_weights(path: Path) -> Iterator[dict[str, h5py.Dataset]]:
    """Open the file; matrices by name, of which rows are read as they are asked for.

    Raises
    ------
    InputError
        If the file is missing, or is not what was written under this name.
    """
    require_unchanged(path, f"delete {path.parent} and run again to dump it anew")
    with h5py.File(path, "r") as file:
        yield {name: file[name] for name in MATRICES if name in file}
