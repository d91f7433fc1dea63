"""Digests of the tensors of a checkpoint, read from its files without a model.

Two checkpoints with different files may hold the same weights in other shards, another order or another format. Their
tensors tell.
"""

import hashlib
import pickle
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import safetensors
import torch
from safetensors.torch import load_file

from shape_of_learning.checkpoints.record import refuse_changed
from shape_of_learning.checkpoints.weight_evidence import TensorDigest, TensorDigests
from shape_of_learning.checkpoints.weight_files import list_weight_files, make_unreadable_error
from shape_of_learning.errors import InputError
from shape_of_learning.validation import cut

BLOCK = 1 << 20  # bytes hashed at once; larger ones hash no faster
SAMPLED = 256  # values of one matrix, enough to distinguish a distance of 1 from one of 0
# The names of the types in safetensors.
TYPES = {
    torch.bool: "BOOL",
    torch.int8: "I8",
    torch.int16: "I16",
    torch.int32: "I32",
    torch.int64: "I64",
    torch.uint8: "U8",
    torch.uint16: "U16",
    torch.uint32: "U32",
    torch.uint64: "U64",
    torch.float16: "F16",
    torch.float32: "F32",
    torch.float64: "F64",
    torch.bfloat16: "BF16",
    torch.complex64: "C64",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
    torch.float8_e4m3fnuz: "F8_E4M3FNUZ",
    torch.float8_e5m2fnuz: "F8_E5M2FNUZ",
    torch.float8_e8m0fnu: "F8_E8M0",
}
SAMPLED_TYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
# Bytes of a number, whose first bit is its sign. -0 equals 0, but its bytes do not (EleutherAI/pythia#203).
FLOATS = {"F64": 8, "F32": 4, "C64": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1}
# Errors of the libraries on a damaged file; a pickle may raise nearly any.
DAMAGED = (
    ArithmeticError,
    AttributeError,
    EOFError,
    FileNotFoundError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
    pickle.UnpicklingError,
    safetensors.SafetensorError,
)


def digest_tensors(folder: Path, threads: int = 1) -> TensorDigests:
    """Digest each tensor of a checkpoint.

    Parameters
    ----------
    folder : Path
        Checkpoint in Hugging Face format: ``model.safetensors``, or its shards by their index, or
        ``pytorch_model.bin`` likewise; the first of these that is there, as transformers chooses.
    threads : int
        Tensors that are read at the same time.

    Returns
    -------
    TensorDigests
        The same for any format and any shards, except that a ``.bin`` file may hold a tensor, such as tied
        embeddings, twice.

    Raises
    ------
    InputError
        If a file is missing or damaged, or two shards hold different tensors of one name.
    """
    digests: dict[str, TensorDigest] = {}
    best, sample = (1, ""), TensorDigests({})
    with ThreadPoolExecutor(threads) as pool:
        for path, tensors in map_tensors(folder).items():
            try:
                digests |= zip(tensors, pool.map(_digest, tensors.values()), strict=True)
            except DAMAGED as error:
                raise make_unreadable_error(path, " ".join(str(error).split())[:200]) from error
            for name, tensor in tensors.items():
                size = (tensor.numel(), name)
                if tensor.ndim > 1 and tensor.dtype in SAMPLED_TYPES and size > best:
                    best, sample = size, TensorDigests({}, name, _sample(tensor))
    if not digests:
        raise InputError(f"the weights in {folder} hold no tensor; fetch them again")
    return replace(sample, digests=digests)


def check_tensors(folder: Path, is_download: bool, threads: int = 1) -> TensorDigests:
    """Digest the tensors of a checkpoint before it is run, and refuse a download that has changed.

    Parameters
    ----------
    folder : Path
        The checkpoint.
    is_download : bool
        Whether it has a record of its files.
    threads : int
        Files and tensors that are read at the same time.

    Raises
    ------
    InputError
        As :func:`.refuse_changed` and :func:`digest_tensors`.
    """
    if is_download:
        refuse_changed(folder, threads)
    return digest_tensors(folder, threads)


def map_tensors(folder: Path) -> dict[Path, dict[str, torch.Tensor]]:
    """Read the tensors of a checkpoint, mapped into memory, by the files that hold them.

    Raises
    ------
    InputError
        If a file is missing, damaged or must not be read, a tensor is not plain numbers, or two shards hold different
        tensors of one name.
    """
    tensors_by_file = {path: read_tensors(path) for path in list_weight_files(folder)}
    first_by_name: dict[str, torch.Tensor] = {}
    for path, tensors in tensors_by_file.items():
        for name, tensor in tensors.items():
            other = first_by_name.setdefault(name, tensor)
            if other is not tensor and not _have_same_values(other, tensor):
                raise InputError(
                    f"{path} and another shard hold different tensors called `{cut(name)}`; fetch the "
                    "checkpoint again, or mend it if it is your own"
                )
    return tensors_by_file


def read_tensors(path: Path) -> dict[str, torch.Tensor]:
    """Read the tensors of one file, mapped into memory; InputError if it is damaged or they are not plain numbers."""
    try:
        return load_file(path) if path.suffix == ".safetensors" else _read_pickle(path)
    except DAMAGED as error:
        raise make_unreadable_error(path, " ".join(str(error).split())[:200]) from error


def _have_same_values(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    return (
        tensor.dtype == other.dtype
        and tensor.shape == other.shape
        and _digest(tensor) == _digest(other)
    )


def _read_pickle(path: Path) -> dict[str, torch.Tensor]:
    # Files of old versions of torch are no archives, and cannot be mapped into memory.
    is_archive = zipfile.is_zipfile(path)
    content = torch.load(path, map_location="cpu", weights_only=True, mmap=is_archive)
    if not isinstance(content, dict):
        raise ValueError("it holds no dictionary of tensors")
    tensors = {}
    for name, tensor in content.items():
        if isinstance(tensor, torch.Tensor):
            if problem := describe_layout(tensor):
                raise ValueError(f"`{cut(name)}` {problem}")
            if tensor.nbytes > tensor.untyped_storage().nbytes():
                raise ValueError(f"`{cut(name)}` is larger than its stored numbers")
            tensors[name] = tensor.detach()
    return tensors


def describe_layout(tensor: torch.Tensor) -> str:
    """Say why a tensor is no dense array of numbers in memory; empty if it is one."""
    if tensor.layout is not torch.strided:
        return "is sparse; save it dense (`.to_dense()`)"
    if tensor.is_quantized:
        return "is quantised, which changes its numbers; give the full weights"
    if tensor.is_meta:
        return "has no values, only a shape (it is on the device `meta`); save the loaded model"
    return ""


def _digest(tensor: torch.Tensor) -> TensorDigest:
    kind, digest = TYPES[tensor.dtype], hashlib.sha256()
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
    places = np.linspace(0, tensor.numel() - 1, SAMPLED).astype(np.int64)
    return tuple(tensor.reshape(-1)[torch.from_numpy(places)].double().tolist())
