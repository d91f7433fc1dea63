"""``results/checkpoints/{model}/{revision}.tensors.csv``: a digest of each tensor of a checkpoint."""

from collections.abc import Mapping
from pathlib import Path

from shape_of_learning.storage.csv_table import read_rows, write_table

COLUMNS = ("tensor", "dtype", "shape", "sha256")

# Name in the model file -> type such as F32, shape such as 768x768, SHA-256 of the bytes in C order.
TensorDigests = Mapping[str, tuple[str, str, str]]


def read_tensor_digests(path: Path) -> TensorDigests:
    """Read what :func:`write_tensor_digests` wrote.

    Raises
    ------
    InputError
        If the file is missing or has other columns.
    """
    return {name: (dtype, shape, sha256) for name, dtype, shape, sha256 in read_rows(path, COLUMNS)}


def write_tensor_digests(path: Path, digests: TensorDigests) -> None:
    """Write one row per tensor, by name."""
    write_table(path, COLUMNS, [(name, *digest) for name, digest in sorted(digests.items())])
