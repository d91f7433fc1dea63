"""The evidence on the weights of a checkpoint, and its tables: the loss and the digests of the tensors.

``results/losses/{model}/{revision}.csv`` and ``results/checkpoints/{model}/{revision}.tensors.csv``.
"""

import math
from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from shape_of_learning.files import read_rows, write_table

# The type as safetensors spells it, such as F32; the shape, such as 768x768, empty for a scalar; the hexadecimal
# SHA-256 of the bytes in C order, with -0 written as 0.
TensorDigest = tuple[str, str, str]


@dataclass(frozen=True)
class CrossEntropy:
    r"""Mean negative log-likelihood of the predicted tokens.

    .. math:: H = -\frac{1}{n} \sum_{i=1}^{n} \ln p(t_i \mid \text{what the model sees})

    Attributes
    ----------
    loss : float
        In nats per predicted token. NaN if it is undefined: no language-model head, or nothing to predict. Infinite if
        a token gets no probability, or the logits are not finite.
    predicted_tokens : int
        Number :math:`n`; 0 if the loss is undefined.
    vocabulary : int or None
        Width of the logits, whose logarithm is the loss of a model that guesses. None if the loss is undefined.
    """

    loss: float
    predicted_tokens: int
    vocabulary: int | None


@dataclass(frozen=True)
class TensorDigests:
    """The digest of each tensor by its name, and a sample of values of the largest matrix.

    The distance between two samples tells whether two steps belong to one training.
    """

    digests: Mapping[str, TensorDigest]
    sampled_name: str = ""  # the largest matrix; empty if no matrix has a common type
    sample: tuple[float, ...] = ()


@dataclass(frozen=True)
class WeightEvidence:
    """Loss and tensor digests of one checkpoint; no tensors if they have not been digested."""

    cross_entropy: CrossEntropy
    tensors: TensorDigests


LOSS_COLUMNS = tuple(field.name for field in fields(CrossEntropy))
TENSOR_COLUMNS = ("tensor", "dtype", "shape", "sha256", "sample")
UNDEFINED = CrossEntropy(math.nan, 0, None)


def write_loss(path: Path, cross_entropy: CrossEntropy) -> None:
    """Write the columns `LOSS_COLUMNS`; an undefined value is an empty cell, infinity is ``inf``."""
    write_table(path, LOSS_COLUMNS, [astuple(cross_entropy)])


def read_loss(path: Path) -> CrossEntropy:
    """Read a table of :func:`write_loss`."""
    loss, tokens, vocabulary = read_rows(path, LOSS_COLUMNS)[0]
    return CrossEntropy(float(loss or "nan"), int(tokens), int(vocabulary) if vocabulary else None)


def write_tensor_digests(path: Path, digests: TensorDigests) -> None:
    """Write one row per tensor, sorted by name; the row of the sampled matrix has the sample."""
    sample = " ".join(map(repr, digests.sample))
    rows = [
        (name, *digest, sample if name == digests.sampled_name else "")
        for name, digest in sorted(digests.digests.items())
    ]
    write_table(path, TENSOR_COLUMNS, rows)


def read_tensor_digests(path: Path) -> TensorDigests:
    """Read a table of :func:`write_tensor_digests`."""
    rows = read_rows(path, TENSOR_COLUMNS)
    sampled_name, sample = next(((name, values) for name, *_, values in rows if values), ("", ""))
    digests = {name: (dtype, shape, sha256) for name, dtype, shape, sha256, _ in rows}
    return TensorDigests(digests, sampled_name, tuple(map(float, sample.split())))
