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
    return read_labelled(path, selection, "windows")[0]


def read_labelled(path: Path, selection: Selection, label: str) -> tuple[SelectedRows, np.ndarray]:
    """Read the selected hidden states of one layer, and what labels them.

    Parameters
    ----------
    path, selection
        As in :func:`read_selected`, errors likewise.
    label : {"windows", "token_ids"}
        Number of the window of text, or entry of the vocabulary.

    Returns
    -------
    SelectedRows
    ndarray of int64, shape (tokens,)
    """
    require_unchanged(path, f"delete {path.parent} and run again to dump it anew")
    with h5py.File(path, "r") as file:
        of_rows = (file[name][()] for name in ("special", "positions", "token_ids"))
        rows = selection.rows(*of_rows)
        vectors, windows, labels = (file[n][()] for n in ("embeddings", "windows", label))
    if len(rows) < len(vectors):
        vectors, windows, labels = vectors[rows], windows[rows], labels[rows]
    return SelectedRows(vectors, windows), labels
