"""The rows of one layer that are measured, read from a dump."""

import os
from pathlib import Path

import h5py
import numpy as np

from shape_of_learning.errors import InputError
from shape_of_learning.metrics.selections import Selection

# What h5py raises for a file that is missing, truncated, damaged or something else.
UNREADABLE = (OSError, KeyError, RuntimeError, ValueError)


def read_selected(path: Path, selection: Selection) -> np.ndarray:
    """Read the selected hidden states of one layer.

    Parameters
    ----------
    path : Path
        ``layer_{layer}.h5`` of a dump.
    selection : Selection
        Which of its tokens.

    Returns
    -------
    ndarray of float32, shape (tokens, width)

    Raises
    ------
    InputError
        If the file is missing, truncated or unreadable.
    """
    try:
        with h5py.File(path, "r") as file:
            of_rows = (file[name][()] for name in ("special", "positions", "token_ids"))
            rows = selection.rows(*of_rows)
            vectors = file["embeddings"][()]
    except UNREADABLE as error:
        remedy = f"delete {path.parent} and run again to dump it anew"
        raise InputError(f"{path} {_reason(path, error)}; {remedy}") from error
    return vectors if len(rows) == len(vectors) else vectors[rows]


def _reason(path: Path, error: Exception) -> str:
    if not path.exists():
        return "is missing"
    if isinstance(error, OSError) and error.errno:
        return f"cannot be read ({os.strerror(error.errno)})"
    return "cannot be read (truncated?)"
