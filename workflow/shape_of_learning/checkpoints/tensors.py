"""Digests of the tensors of a checkpoint, from its files; no model is made of them.

Two checkpoints whose files differ may hold the same weights: in other shards, in another order or in another
format. Their tensors tell.
"""

import hashlib
import json
import pickle
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import safetensors
import torch
from safetensors.torch import load_file

from shape_of_learning.checkpoints.measured import TensorDigest, TensorDigests
from shape_of_learning.checkpoints.record import refuse_changed
from shape_of_learning.checkpoints.shapes import WEIGHTS, shard_names
from shape_of_learning.errors import InputError

BLOCK = 1 << 20  # bytes hashed at once; larger ones hash no faster
SAMPLED = 256  # values of one matrix: they tell a distance of 1 from one of 0
# What safetensors calls the types of torch.
TYPES = {
    "bool": "BOOL",
    **{f"int{bits}": f"I{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"U{bits}" for bits in (8, 16, 32, 64)},
    **{f"float{bits}": f"F{bits}" for bits in (16, 32, 64)},
    **{"bfloat16": "BF16", "complex64": "C64"},
    **{"float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2"},
    **{"float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ"},
    "float8_e8m0fnu": "F8_E8M0",
}
COMMON = (torch.float64, torch.float32, torch.float16, torch.bfloat16)  # whose values are sampled
# Bytes of a number, whose first bit is its sign. -0 equals 0, but its bytes do not (EleutherAI/pythia#203).
FLOATS = {"F64": 8, "F32": 4, "C64": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1}
# What libraries make of a damaged file: of a pickle torch may make nearly anything.
DAMAGED = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, TypeError, ValueError),
    *(FileNotFoundError, RuntimeError, pickle.UnpicklingError, safetensors.SafetensorError),
)


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
    TensorDigests
        Whatever the format and the shards. What a ``.bin`` file has twice, such as tied embeddings, is there
        twice, as it is in that file.

    Raises
    ------
    InputError
        If a file is missing or damaged, or two shards hold different tensors of one name.
    """
    digests: dict[str, TensorDigest] = {}
    best, sampled = (1, ""), TensorDigests({})
    with ThreadPoolExecutor(threads) as pool:
        for path in weight_files(folder):
            tensors, found = _read(path, pool)
            for name, own in found.items():
                if digests.setdefault(name, own) != own:
                    raise InputError(
                        f"{path} and another shard hold different tensors called `{name}`; fetch the "
                        "checkpoint anew, or mend it if it is your own"
                    )
            for name, tensor in tensors.items():
                size = (tensor.numel(), name)
                if tensor.ndim > 1 and tensor.dtype in COMMON and size > best:
                    best, sampled = size, TensorDigests({}, name, _sample(tensor))
    if not digests:
        raise InputError(f"the weights in {folder} hold no tensor; fetch them anew")
    return replace(sampled, of=digests)


def checked_tensors(folder: Path, is_download: bool, threads: int = 1) -> TensorDigests:
    """Digest the tensors of a checkpoint that is about to be run, if it still is what came.

    Parameters
    ----------
    folder : Path
        The checkpoint.
    is_download : bool
        Whether it has a record of what it was as it came.
    threads : int
        Files and tensors that are read at the same time.

    Raises
    ------
    InputError
        As :func:`.refuse_changed` and :func:`tensor_digests`.
    """
    if is_download:
        refuse_changed(folder, threads)
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


def _read(
    path: Path, pool: ThreadPoolExecutor
) -> tuple[dict[str, torch.Tensor], dict[str, TensorDigest]]:
    """The tensors of a file, mapped into memory, and their digests."""
    try:
        is_pickle = path.suffix != ".safetensors"
        tensors = dict(_of_pickle(path)) if is_pickle else load_file(path)
        return tensors, dict(zip(tensors, pool.map(_digest, tensors.values()), strict=True))
    except DAMAGED as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"{path} holds no weights that can be read ({reason}); fetch the checkpoint anew, or mend it if "
            "it is your own"
        ) from error


def _of_pickle(path: Path) -> Iterator[tuple[str, torch.Tensor]]:
    # Files of old versions of torch are no archives, and cannot be mapped into memory.
    mapped = zipfile.is_zipfile(path)
    if mapped:
        with zipfile.ZipFile(path) as archive:
            if any(each.compress_type != zipfile.ZIP_STORED for each in archive.infolist()):
                raise ValueError("it is compressed, which torch does not undo")
    loaded = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    if not isinstance(loaded, dict):
        raise ValueError("it holds no dictionary of tensors")
    for name, tensor in loaded.items():
        if isinstance(tensor, torch.Tensor):
            if tensor.nbytes > tensor.untyped_storage().nbytes():
                raise ValueError(f"`{name}` is larger than what is stored of it")
            yield name, tensor.detach()


def _digest(tensor: torch.Tensor) -> TensorDigest:
    """As `TensorDigest` says."""
    kind, digest = TYPES[str(tensor.dtype).removeprefix("torch.")], hashlib.sha256()
    content = tensor.contiguous().reshape(-1).view(torch.uint8).numpy()
    for start in range(0, len(content), BLOCK):
        block = content[start : start + BLOCK]
        if size := FLOATS.get(kind):
            numbers = block.view(f"<u{size}")
            is_negative_zero = numbers == numbers.dtype.type(1 << (8 * size - 1))
            if is_negative_zero.any():
                block = np.where(is_negative_zero, numbers.dtype.type(0), numbers)
        digest.update(np.ascontiguousarray(block).view(np.uint8).data)
    return kind, "x".join(map(str, tensor.shape)), digest.hexdigest()


def _sample(tensor: torch.Tensor) -> tuple[float, ...]:
    """Evenly spaced values."""
    places = np.linspace(0, tensor.numel() - 1, SAMPLED).astype(np.int64)
    return tuple(tensor.reshape(-1)[torch.from_numpy(places)].double().tolist())
