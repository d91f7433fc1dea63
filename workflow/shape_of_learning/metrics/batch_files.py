"""HDF5 files of what is kept of a layer's batches: nearest neighbours, or spectra.

Beside each lies ``{name}.sha256``, as sha256sum writes and checks it. For large files Snakemake goes by
times, which a copy of the folder changes; for small ones by content.
"""

from collections.abc import Sequence
from pathlib import Path

import h5py
import numpy as np

from shape_of_learning.metrics.batches import Batch, Spectra
from shape_of_learning.storage.digests import read_unchanged, write_with_digest


def write_batches(path: Path, batches: Sequence[Batch]) -> None:
    """Write groups ``batch_0``, ``batch_1``, ... and the digest.

    Each has the attribute ``n_unique``, the dataset ``windows`` and the fields of what the batch holds, of
    :class:`.NeighbourLists` or of :class:`.Spectra`; if it is not finite, no others.
    """
    # In memory, where they are anyhow: HDF5 itself crashes on a full disk.
    with h5py.File(path.name, "w", driver="core", backing_store=False) as file:
        for number, batch in enumerate(batches):
            group = file.create_group(f"batch_{number}")
            group.attrs["n_unique"] = batch.n_unique
            content = {} if batch.content is None else batch.content._asdict()
            for name, array in {"windows": batch.windows, **content}.items():
                group[name] = array.astype(_smallest_type(array), copy=False)
        file.flush()
        image = file.id.get_file_image()
    with write_with_digest(path) as partial:
        partial.write_bytes(image)


def read_batches(path: Path) -> list[Batch]:
    """Read what :func:`write_batches` wrote.

    Raises
    ------
    InputError
        If the file or its digest is missing, or it is not what was written.
    """
    image = read_unchanged(path)
    with h5py.File(h5py.h5f.open_file_image(image)) as file:
        return [_read(file[f"batch_{number}"]) for number in range(len(file))]


def _read(group: h5py.Group) -> Batch:
    # Here, since spectra are written by jobs whose results do not depend on it.
    from shape_of_learning.metrics.neighbour_lists import NeighbourLists

    arrays = {name: dataset[()] for name, dataset in group.items()}
    kind = NeighbourLists if "distances" in arrays else Spectra
    windows = arrays.pop("windows").astype(np.int64)
    return Batch(int(group.attrs["n_unique"]), windows, kind(**arrays) if arrays else None)


def _smallest_type(array: np.ndarray) -> np.dtype:
    """Unsigned for indices: two bytes each, as long as they fit."""
    return np.min_scalar_type(array.max()) if array.dtype.kind == "i" else array.dtype
