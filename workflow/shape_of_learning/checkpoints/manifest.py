"""The manifest of a checkpoint: the digest of each tensor as it was saved, in a file beside the weights.

It shows later, even after copies and uploads, whether a folder holds the weights of its step.
"""

import json
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import ValidationError

from shape_of_learning.checkpoints.tensors import digest_tensors
from shape_of_learning.checkpoints.weight_evidence import TensorDigest
from shape_of_learning.errors import InputError
from shape_of_learning.files import atomic_write
from shape_of_learning.validation import Section, read_whole_number

MANIFEST = "tensor_manifest.json"
MOST_NAMED = 3  # tensors in a sentence


class SavedTensor(Section):
    """A tensor as it was saved.

    Attributes
    ----------
    dtype
        as safetensors writes it, such as F32 or BF16
    shape
        its numbers of rows and columns
    sha256
        the SHA-256 of its bytes in C order, with -0 as 0
    """

    dtype: str
    shape: list[int]
    sha256: str

    @property
    def digest(self) -> TensorDigest:
        """The digest as :func:`.digest_tensors` gives it."""
        return self.dtype, "x".join(map(str, self.shape)), self.sha256


class TensorManifest(Section):
    """The tensors of a checkpoint by name, and its step."""

    version: Literal[1] = 1
    step: int
    tensors: dict[str, SavedTensor]

    @property
    def digests(self) -> dict[str, TensorDigest]:
        """The digests of all tensors, by name."""
        return {name: tensor.digest for name, tensor in self.tensors.items()}


class ManifestComparison(NamedTuple):
    """The tensors in a folder, compared with its manifest.

    Attributes
    ----------
    manifest : TensorManifest
    digests : dict of str to TensorDigest
        The digests of the tensors that are in the folder now.
    """

    manifest: TensorManifest
    digests: dict[str, TensorDigest]

    @property
    def changed_names(self) -> list[str]:
        """The tensors that are missing, new or different."""
        saved_digests = self.manifest.digests
        names = sorted(saved_digests.keys() | self.digests.keys())
        return [name for name in names if saved_digests.get(name) != self.digests.get(name)]

    @property
    def sentence(self) -> str:
        """Say whether the weights are those that were saved."""
        names = self.changed_names
        if not names:
            return "as saved"
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        return f"changed since it was saved: {', '.join(names[:MOST_NAMED])}{more}"


def write_manifest(folder: Path | str, step: int, threads: int = 1) -> None:
    """Write the manifest of a checkpoint that has just been saved, beside its weights.

    Parameters
    ----------
    folder : Path or str
        Checkpoint in Hugging Face format.
    step : int
        Its training step.
    threads : int
        Tensors that are read at the same time.

    Raises
    ------
    InputError
        If the folder holds no weights, or damaged ones, or if the step is not a whole number from 0 on.
    """
    folder, step = Path(folder), read_whole_number("step", step, 0)
    tensors = {
        name: {
            "dtype": dtype,
            "shape": [int(size) for size in shape.split("x") if size],
            "sha256": digest,
        }
        for name, (dtype, shape, digest) in sorted(digest_tensors(folder, threads).digests.items())
    }
    manifest = TensorManifest.model_validate({"step": step, "tensors": tensors})
    with atomic_write(folder / MANIFEST) as partial:
        partial.write_text(f"{manifest.model_dump_json(indent=1)}\n", encoding="utf-8")


def read_manifest(folder: Path) -> TensorManifest | None:
    """Read the manifest in a folder; None if there is none, InputError if it is damaged."""
    path = folder / MANIFEST
    if not path.is_file():
        return None
    try:
        return TensorManifest.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, RecursionError) as error:
        if isinstance(error, ValidationError):
            reason = error.errors()[0]["msg"]
        else:
            reason = " ".join(str(error).split())
        raise InputError(
            f"{path} is no manifest of tensors ({reason:.200}); restore it, or remove it"
        ) from None


def compare_with_manifest(folder: Path, manifest: TensorManifest) -> ManifestComparison:
    """Compare the tensors in a folder with a manifest; InputError if they cannot be read."""
    return ManifestComparison(manifest, dict(digest_tensors(folder).digests))
