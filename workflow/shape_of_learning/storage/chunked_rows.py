"""HDF5 datasets of float32, stored and read by rows, whose space is theirs before they are written."""

import os
from pathlib import Path

# A chunk is the unit of reading: 256 kB are large against a seek, and smaller than the rows of a
# window. Else most chunks are written in parts, of which HDF5 reads and writes each chunk as a whole.
CHUNK_BYTES = 1 << 18
VALUE_BYTES = 4
# Per chunk, its entry in an index that may be half empty; and what is described later.
INDEX_BYTES = 256
DESCRIPTION_BYTES = 1 << 16


def rows_of_a_chunk(rows: int, width: int) -> int:
    """Return how many rows are stored together."""
    return min(rows, max(1, CHUNK_BYTES // (VALUE_BYTES * width)))


def dataset_bytes(rows: int, width: int) -> int:
    """Return the disk space, in bytes, that a dataset takes at most."""
    chunk = rows_of_a_chunk(rows, width)
    chunks = -(-rows // chunk)
    return chunks * (chunk * width * VALUE_BYTES + INDEX_BYTES)


def reserve(path: Path, outline: bytes, size: int) -> None:
    """Write an HDF5 file's beginning, and get blocks of the disk for the `size` bytes that may follow.

    HDF5 crashes where the disk is full (2.0.0, h5py 3.16). It gives back what it has not needed when the file
    is closed.

    Raises
    ------
    OSError
        If there is no space.
    """
    try:
        with path.open("wb") as file:
            file.write(outline)
            file.flush()
            if hasattr(os, "posix_fallocate"):  # macOS has none
                os.posix_fallocate(file.fileno(), 0, len(outline) + size)
    except OSError as error:  # which names no file
        raise OSError(error.errno, error.strerror, str(path)) from error
