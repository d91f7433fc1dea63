"""The rows of one layer that are measured, read from a dump."""

import os
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np

from shape_of_learning.errors import InputError
from shape_of_learning.metrics.selections import Selection

# What h5py raises for a file that is missing, truncated, damaged or something else.
UNREADABLE = (OSError, KeyError, RuntimeError, ValueError)


class SelectedRows(NamedTuple):
    """Rows of a layer that are measured.

    Attributes
    ----------
    vectors : ndarray of float32, shape (tokens, width)
        Their hidden states.
    windows : ndarray of int64, shape (tokens,)
        The window of text of each.
    """

    vectors: np.ndarray
    windows: np.ndarray


def read_selected(path: Path, selection: Selection) -> SelectedRows:
    """Read the selected hidden states of one layer.

    Parameters
    ----------
    path : Path
        ``layer_{layer}.h5`` of a dump.
    selection : Selection
        Which of its tokens.

    Returns
    -------
    SelectedRows

    Raises
    ------
    InputError
        If the file is missing, truncated or unreadable.
    """
    try:
        with h5py.File(path, "r") as file:
            rows = selection.rows(file["special"][()], file["positions"][()])
            vectors, windows = file["embeddings"][()], file["windows"][()]
    except UNREADABLE as error:
        remedy = f"delete {path.parent} and run again to dump it anew"
        raise InputError(f"{path} {_reason(path, error)}; {remedy}") from error
    if len(rows) == len(vectors):
        return SelectedRows(vectors, windows)
    return SelectedRows(vectors[rows], windows[rows])


def _reason(path: Path, error: Exception) -> str:
    if not path.exists():
        return "is missing"
    if isinstance(error, OSError) and error.errno:
        return f"cannot be read ({os.strerror(error.errno)})"
    return "cannot be read (truncated?)"
