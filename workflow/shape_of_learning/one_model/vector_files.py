"""Read a matrix of vectors from a file: NumPy, PyTorch, safetensors or Parquet."""

import logging
import math
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from shape_of_learning.errors import InputError
from shape_of_learning.files import expand_home, refuse_odd_file

logger = logging.getLogger(__name__)

SUFFIXES = (".npy", ".npz", ".pt", ".safetensors", ".parquet")
VECTORS, GROUPS = "vectors", "groups"


def is_vector_file(model: str) -> bool:
    """Return whether a name is the name of a file of vectors, which may be missing."""
    return model.lower().endswith(SUFFIXES) and not Path(model).is_dir()


def read_vectors(file: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Read vectors and, if the file has groups, the groups of the vectors.

    Parameters
    ----------
    file : str
        The path of a file with a matrix (n, d). If the file has several arrays, ``vectors`` is the matrix, and
        ``groups`` holds the text, or another unit, of each vector. In a table of Parquet the columns of numbers are the
        coordinates, or one column has a list for each vector; the column ``groups`` holds the groups.

    Returns
    -------
    vectors : ndarray, shape (n, d)
    groups : ndarray, shape (n,), or None

    Raises
    ------
    InputError
        If the file cannot be read, or has no matrix or more than one.
    """
    path = expand_home(file)
    if not path.is_file():
        raise InputError(f"{file}: there is no file {path.absolute()}; correct the path")
    refuse_odd_file(path)
    try:
        arrays = _READERS[path.suffix.lower()](path)
    except InputError:
        raise
    except Exception as error:  # each library raises its own errors
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{file} cannot be read ({reason:.200}); write it again") from None
    groups = arrays.pop(GROUPS, None)
    if VECTORS in arrays:
        arrays = {VECTORS: arrays[VECTORS]}
    matrices = {name: array for name, array in arrays.items() if np.ndim(array) == 2}
    if len(matrices) != 1:
        number = f"{len(matrices)} matrices" if matrices else "no matrix"
        raise InputError(
            f"{file} has {number} of shape (n, d); write one matrix of vectors, named `{VECTORS}` if there are others. "
            "To measure the weights of a model, give their folder"
        )
    return next(iter(matrices.values())), groups


def _read_npy(path: Path) -> dict[str, Any]:
    return {VECTORS: np.load(path, allow_pickle=False)}


def _read_npz(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


def _read_pt(path: Path) -> dict[str, Any]:
    import torch

    content = torch.load(path, map_location="cpu", weights_only=True)
    return _convert_tensors(content if isinstance(content, Mapping) else {VECTORS: content})


def _read_safetensors(path: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return _convert_tensors(load_file(path))


def _convert_tensors(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Convert tensors into arrays; tensors of 16 bits become float32, which holds all their values."""
    arrays = {}
    for name, tensor in tensors.items():
        if hasattr(tensor, "detach"):
            is_short = tensor.is_floating_point() and tensor.element_size() < 4
            arrays[name] = (tensor.float() if is_short else tensor).detach().numpy()
        elif name == GROUPS and isinstance(tensor, list | tuple):
            arrays[name] = np.asarray(tensor)
    return arrays


def _read_parquet(path: Path) -> dict[str, Any]:
    import pandas as pd

    try:
        table = pd.read_parquet(path)
    except ImportError:
        raise InputError(f"{path} needs the package `pyarrow`; pip install pyarrow") from None
    arrays: dict[str, Any] = {}
    if GROUPS in table:
        arrays[GROUPS] = table.pop(GROUPS).to_numpy()
    first_values: dict[Any, Any] = {name: next(iter(table[name].dropna()), None) for name in table}
    for name, value in first_values.items():
        if isinstance(value, Decimal):
            table[name] = table[name].astype(float)
    numbers = table.select_dtypes("number")
    list_columns = [
        name for name in table if name not in numbers and np.ndim(first_values[name]) == 1
    ]
    coordinate_columns = list_columns or [*numbers]
    other_columns = [str(name) for name in table if name not in coordinate_columns]
    other_columns += [str(name) for name in table.index.names if name is not None]
    if other_columns:
        logger.warning(
            "%s: these columns are left out, since they are not coordinates: %s",
            path,
            ", ".join(other_columns),
        )
    if numbers.shape[1] and not list_columns:
        whole_columns = [str(name) for name in numbers.select_dtypes("integer")]
        if whole_columns and len(whole_columns) < numbers.shape[1]:
            raise InputError(
                f"{path} has columns of whole numbers (`{whole_columns[0]:.50}`) beside coordinates; leave them out or "
                f"call one of them `{GROUPS}`"
            )
        vectors = numbers.to_numpy()
        if vectors.dtype == object:  # pandas has columns of nullable types
            vectors = numbers.to_numpy(dtype=float, na_value=math.nan)
        return arrays | {VECTORS: vectors}
    return arrays | {name: np.stack(table[name].to_list()) for name in list_columns}


_READERS = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".pt": _read_pt,
    ".safetensors": _read_safetensors,
    ".parquet": _read_parquet,
}
