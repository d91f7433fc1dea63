"""The rows of one layer that are measured, read from a dump."""

from pathlib import Path

import h5py
import numpy as np

from shape_of_learning.metrics.selections import Selection
from shape_of_learning.storage.digests import require_unchanged


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
        If the file is missing, or is not what was written under this name.
    """
    require_unchanged(path, f"delete {path.parent} and run again to dump it anew")
    with h5py.File(path, "r") as file:
        rows = selection.rows(file["special"][()], file["positions"][()])
        vectors = file["embeddings"][()]
    return vectors if len(rows) == len(vectors) else vectors[rows]
