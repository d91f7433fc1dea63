"""The rows of one layer that are measured, read from a dump."""

from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np

from shape_of_learning.metrics.selections import Selection
from shape_of_learning.storage.digests import require_unchanged


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
        If the file is missing, or is not what was written under this name.
    """
    require_unchanged(path, f"delete {path.parent} and run again to dump it anew")
    with h5py.File(path, "r") as file:
        of_rows = (file[name][()] for name in ("special", "positions", "token_ids"))
        rows = selection.rows(*of_rows)
        vectors, windows = file["embeddings"][()], file["windows"][()]
    if len(rows) == len(vectors):
        return SelectedRows(vectors, windows)
    return SelectedRows(vectors[rows], windows[rows])
