"""``results/checkpoints/{model}/{revision}.tensors.csv``: a digest of each tensor of a checkpoint.

Two checkpoints whose files differ may hold the same weights: in other shards, in another order or in another
format. Their tensors tell.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from shape_of_learning.errors import InputError
from shape_of_learning.storage.csv_table import read_rows, write_table

COLUMNS = ("tensor", "dtype", "shape", "sha256")
# Type as safetensors writes it, such as F32 or BF16; shape, such as 768x768, empty for a scalar; hexadecimal
# SHA-256 of the bytes, in C order.
TensorDigest = tuple[str, str, str]
# By the names of the tensors in their file.
TensorDigests = dict[str, TensorDigest]

_TYPE, _SHAPE = re.compile(r"[A-Z0-9_]+"), re.compile(r"(\d+(x\d+)*)?", re.ASCII)
_SHA256 = re.compile("[0-9a-f]{64}")


def write_tensor_digests(path: Path, digests: Mapping[str, TensorDigest]) -> None:
    """Write one row per tensor, sorted by name."""
    write_table(path, COLUMNS, [(name, *digest) for name, digest in sorted(digests.items())])


def read_tensor_digests(path: Path) -> TensorDigests:
    """Read what :func:`write_tensor_digests` has written.

    Raises
    ------
    InputError
        If the file is missing, holds no tensor, or a row is none of such a table.
    """
    digests: TensorDigests = {}
    for name, kind, shape, sha256 in read_rows(path, COLUMNS):
        whole = _TYPE.fullmatch(kind) and _SHAPE.fullmatch(shape) and _SHA256.fullmatch(sha256)
        if not whole or name in digests:
            raise InputError(f"{path} has a damaged row for `{name}`; delete it and run again")
        digests[name] = kind, shape, sha256
    if not digests:
        raise InputError(f"{path} holds no tensor; delete it and run again")
    return digests
