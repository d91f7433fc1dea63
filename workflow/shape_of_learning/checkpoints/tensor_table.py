"""``results/checkpoints/{model}/{revision}.tensors.csv``: the digest of each tensor of a checkpoint.

The largest matrix has some of its values there, too: their distance tells whether two steps are of one training.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from shape_of_learning.files import read_rows, write_table

COLUMNS = ("tensor", "dtype", "shape", "sha256", "sample")

# Type as safetensors writes it, such as F32 or BF16; shape, such as 768x768, empty for a scalar; hexadecimal
# SHA-256 of the bytes in C order, with one zero.
TensorDigest = tuple[str, str, str]


@dataclass(frozen=True)
class TensorDigests:
    """The digest of each tensor by its name, and some values of one matrix."""

    of: Mapping[str, TensorDigest]
    sampled: str = ""  # its name; empty if there is none of a common type
    sample: tuple[float, ...] = ()


def write_tensor_digests(path: Path, digests: TensorDigests) -> None:
    """Write one row per tensor, sorted by name; the matrix whose values are sampled has them in its row."""
    sample = " ".join(map(repr, digests.sample))
    rows = [
        (name, *digest, sample if name == digests.sampled else "")
        for name, digest in sorted(digests.of.items())
    ]
    write_table(path, COLUMNS, rows)


def read_tensor_digests(path: Path) -> TensorDigests:
    """Read what :func:`write_tensor_digests` has written."""
    rows = read_rows(path, COLUMNS)
    sampled, sample = next(((name, values) for name, *_, values in rows if values), ("", ""))
    digests = {name: (dtype, shape, sha256) for name, dtype, shape, sha256, _ in rows}
    return TensorDigests(digests, sampled, tuple(map(float, sample.split())))
