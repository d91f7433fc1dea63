"""HDF5 files of nearest distances, shared by the estimators of intrinsic dimension."""

from pathlib import Path

import h5py
import numpy as np

from shape_of_learning.storage.files import atomic_write
from shape_of_learning.storage.hdf5_files import UNREADABLE, unreadable


def write_neighbours(path: Path, batches: list[tuple[int, np.ndarray]], left_over: int) -> None:
    """Write the search of one layer.

    Parameters
    ----------
    path : Path
        File to produce.
    batches : list of (int, ndarray of float64, shape (m, k))
        Vectors of the batch, duplicates included, and the distances from each of its `m` distinct
        vectors to its `k` nearest others.
    left_over : int
        Vectors of the layer that fill no batch.
    """
    # In memory, where they are anyhow: HDF5 itself crashes on a full disk.
    with h5py.File(path.name, "w", driver="core", backing_store=False) as file:
        file.attrs["left_over"] = left_over
        for number, (vectors, distances) in enumerate(batches):
            dataset = file.create_dataset(f"batch_{number}", data=distances)
            dataset.attrs["n"] = vectors
        file.flush()
        content = file.id.get_file_image()
    with atomic_write(path) as partial:
        partial.write_bytes(content)


def read_neighbours(path: Path) -> list[tuple[int, np.ndarray]]:
    """Read what :func:`write_neighbours` wrote: (n, distances) of each batch.

    Raises
    ------
    InputError
        If the file is missing, truncated or unreadable.
    """
    try:
        with h5py.File(path, "r") as file:
            datasets = [file[f"batch_{number}"] for number in range(len(file))]
            if not datasets:
                raise KeyError("batch_0")
            return [(int(dataset.attrs["n"]), dataset[()]) for dataset in datasets]
    except UNREADABLE as error:
        raise unreadable(path, error, "delete it and run again") from error
