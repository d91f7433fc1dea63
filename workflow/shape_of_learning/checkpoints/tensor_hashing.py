"""Digests of the tensors of a checkpoint, from its files; no model is made of them."""

import hashlib
import json
import pickle
import zipfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from shape_of_learning.checkpoints.checkpoint_files import WEIGHTS, shard_names
from shape_of_learning.checkpoints.checkpoint_record import refuse_changed
from shape_of_learning.checkpoints.tensor_digests import TensorDigest, TensorDigests
from shape_of_learning.errors import InputError
from shape_of_learning.storage.digests import BLOCK

if TYPE_CHECKING:
    import torch

# What safetensors calls the types of torch.
TYPES = {
    "bool": "BOOL",
    **{f"int{bits}": f"I{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"U{bits}" for bits in (8, 16, 32, 64)},
    **{f"float{bits}": f"F{bits}" for bits in (16, 32, 64)},
    **{"bfloat16": "BF16", "complex64": "C64"},
    **{"float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2"},
}


def tensor_digests(folder: Path, threads: int = 1) -> TensorDigests:
    """Digest each tensor of a checkpoint.

    Parameters
    ----------
    folder : Path
        Checkpoint in Hugging Face format: ``model.safetensors``, or its shards by their index, or
        ``pytorch_model.bin`` likewise; the first that is there, which transformers loads too.
    threads : int
        Tensors that are read at the same time.

    Returns
    -------
    dict of str to (str, str, str)
        Name -> type, shape, SHA-256 of the bytes, whatever the format and the shards. What a ``.bin`` file
        has twice, such as tied embeddings, is there twice, as it is in that file.

    Raises
    ------
    InputError
        If a file is missing or damaged, or two shards hold different tensors of one name.
    """
    digests: TensorDigests = {}
    with ThreadPoolExecutor(threads) as pool:
        for path in weight_files(folder):
            with _explained(path):
                digest = _of_safetensors if path.suffix == ".safetensors" else _of_pickle
                found = digest(path, pool)
            for name, own in found.items():
                if digests.setdefault(name, own) != own:
                    raise InputError(
                        f"{path} and another shard hold different tensors called `{name}`; fetch the "
                        "checkpoint anew, or mend it if it is your own"
                    )
    if not digests:
        raise InputError(f"the weights in {folder} hold no tensor; fetch them anew")
    return digests


def checked_tensors(folder: Path, receipt: Path | None, threads: int = 1) -> TensorDigests:
    """Digest the tensors of a checkpoint that is about to be run, if it still is what came.

    Parameters
    ----------
    folder : Path
        The checkpoint.
    receipt : Path or None
        What :func:`.refuse_changed` compares it with; None for a folder of the user's.
    threads : int
        Files and tensors that are read at the same time.

    Raises
    ------
    InputError
        As :func:`.refuse_changed` and :func:`tensor_digests`.
    """
    if receipt is not None:
        refuse_changed(folder, receipt, threads)
    return tensor_digests(folder, threads)


def weight_files(folder: Path) -> list[Path]:
    """List the files that hold the weights of a checkpoint, sorted.

    Raises
    ------
    InputError
        If there are none, or an index of shards is damaged.
    """
    for whole, index in WEIGHTS:
        if (folder / whole).exists():
            return [folder / whole]
        if (folder / index).exists():
            try:
                content = json.loads((folder / index).read_text(encoding="utf-8"))
                return [folder / name for name in shard_names(content)]
            except ValueError as error:
                raise InputError(
                    f"{folder / index} is no index of shards ({error}); fetch the checkpoint anew, or "
                    "mend it if it is your own"
                ) from error
    names = " or ".join(f"`{name}`" for names in WEIGHTS for name in names)
    raise InputError(
        f"{folder} holds no weights: none of {names} is there; fetch the checkpoint anew, or save the whole "
        "model there if it is your own"
    )


def _of_safetensors(path: Path, pool: ThreadPoolExecutor) -> TensorDigests:
    import safetensors

    # The library's own reader refuses a header that contradicts itself or the file's size.
    with safetensors.safe_open(path, framework="numpy"):
        pass
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    header.pop("__metadata__", None)
    start = 8 + length

    def digest(entry: dict) -> TensorDigest:
        first, last = entry["data_offsets"]
        content = hashlib.sha256()
        with path.open("rb") as file:
            file.seek(start + first)
            while first < last:
                block = file.read(min(BLOCK, last - first))
                if not block:
                    raise EOFError("the file has become shorter")
                content.update(block)
                first += len(block)
        return entry["dtype"], _written(entry["shape"]), content.hexdigest()

    return dict(zip(header, pool.map(digest, header.values()), strict=True))


def _of_pickle(path: Path, pool: ThreadPoolExecutor) -> TensorDigests:
    import torch

    # Files of old versions of torch cannot be mapped into memory.
    mapped = zipfile.is_zipfile(path)
    loaded = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    if not isinstance(loaded, dict):
        raise ValueError("it holds no dictionary of tensors")
    tensors = {name: value for name, value in loaded.items() if isinstance(value, torch.Tensor)}

    def digest(tensor: "torch.Tensor") -> TensorDigest:
        kind = TYPES.get(str(tensor.dtype).removeprefix("torch."))
        if kind is None or tensor.layout is not torch.strided:
            raise ValueError(f"a tensor of type {tensor.dtype}, {tensor.layout}")
        content = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy()
        return kind, _written(tensor.shape), hashlib.sha256(content.data).hexdigest()

    return dict(zip(tensors, pool.map(digest, tensors.values()), strict=True))


def _written(shape: Iterable[int]) -> str:
    return "x".join(map(str, shape))


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    import safetensors

    # What torch makes of a damaged pickle is hardly any narrower.
    damaged = (ArithmeticError, AttributeError, EOFError, LookupError, TypeError, ValueError)
    others = (FileNotFoundError, RuntimeError, pickle.UnpicklingError, safetensors.SafetensorError)
    try:
        yield
    except (*damaged, *others) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"{path} holds no weights that can be read ({reason}); fetch the checkpoint anew, or mend it if "
            "it is your own"
        ) from error
