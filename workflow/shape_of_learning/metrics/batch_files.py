"""HDF5 files of what is kept of a layer's batches: nearest distances, or spectra.

Beside each lies ``{name}.sha256``, as sha256sum writes and checks it. For large files Snakemake goes by
times, which a copy of the folder changes; for small ones by content.
"""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import h5py
import numpy as np

from shape_of_learning.metrics.batches import Batch
from shape_of_learning.storage.digests import read_unchanged, write_with_digest


def write_batches(path: Path, batches: Sequence[Batch]) -> None:
    """Write datasets ``batch_0``, ``batch_1``, ..., empty of what is not finite, and the digest.

    Their attributes are ``n`` and ``n_unique``.
    """
    # In memory, where they are anyhow: HDF5 itself crashes on a full disk.
    with h5py.File(path.name, "w", driver="core", backing_store=False) as file:
        for number, batch in enumerate(batches):
            content = np.empty(0) if batch.content is None else batch.content
            dataset = file.create_dataset(f"batch_{number}", data=content)
            dataset.attrs.update(n=batch.n, n_unique=batch.n_unique)
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
    with h5py.File(BytesIO(image), "r") as file:
        datasets = [file[f"batch_{number}"] for number in range(len(file))]
        return [
            Batch(
                int(dataset.attrs["n"]),
                int(dataset.attrs["n_unique"]),
                dataset[()] if dataset.size else None,
            )
            for dataset in datasets
        ]
