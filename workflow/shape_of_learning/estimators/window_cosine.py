"""Mean cosine between vectors of the same window of text, and between those of different windows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.estimators.arrays import as_matrix, as_numpy, namespace


def intra_window_cosine(X: ArrayLike, windows: ArrayLike) -> float:
    r"""Mean cosine of the angle between two vectors of the same window, over all such pairs.

    .. math:: \frac{\sum_w (\|s_w\|^2 - n_w)}{\sum_w n_w (n_w - 1)}, \qquad
              s_w = \sum_{i \in w} x_i / \|x_i\|

    Parameters
    ----------
    X : array_like or torch.Tensor, shape (n, d)
        Vectors of any real dtype; computed in float64, those on a GPU there if they are float32, bfloat16
        or float16.
    windows : array_like of int, shape (n,)
        The window of each.

    Returns
    -------
    float
        In [-1, 1]. Rows of norm zero have no direction and are left out; NaN if no window is left with two.

    Raises
    ------
    ValueError
        If `X` is not two-dimensional, is empty, or holds NaN or infinity; if `windows` is not one whole
        number for each row.

    Notes
    -----
    Exact in O(n d): no pair is sampled.

    References
    ----------
    Machina and Mercer, Anisotropy is not inherent to transformers, NAACL 2024 (intra- and inter-similarity;
    the definition is ours).

    Examples
    --------
    >>> intra_window_cosine([[1, 0], [2, 0], [0, 1], [0, -1]], [0, 0, 1, 1])
    0.0
    """
    return intra_leaving_out(X, windows, [])[0]


def inter_window_cosine(X: ArrayLike, windows: ArrayLike) -> float:
    r"""Mean cosine of the angle between two vectors of different windows, over all such pairs.

    .. math:: \frac{\|\sum_w s_w\|^2 - \sum_w \|s_w\|^2}{n^2 - \sum_w n_w^2}

    Parameters, errors, notes and references as of :func:`intra_window_cosine`.

    Returns
    -------
    float
        In [-1, 1]. NaN if the rows that have a direction are all of one window.

    Examples
    --------
    >>> inter_window_cosine([[1, 0], [2, 0], [0, 1], [0, -1]], [0, 0, 1, 1])
    0.0
    """
    return inter_leaving_out(X, windows, [])[0]


def intra_leaving_out(
    X: ArrayLike, windows: ArrayLike, parts: Sequence[np.ndarray]
) -> tuple[float, np.ndarray]:
    """:func:`intra_window_cosine` of all rows, and of those that are left without each of some parts.

    Parameters
    ----------
    X, windows
        As in :func:`intra_window_cosine`, errors likewise.
    parts : sequence of ndarray of int
        Numbers of the rows that are left out each time. No row is in two of them.

    Returns
    -------
    value : float
    without : ndarray of float64, shape (parts,)
        NaN where undefined.
    """
    return _each(_Cells.intra, X, windows, parts)


def inter_leaving_out(
    X: ArrayLike, windows: ArrayLike, parts: Sequence[np.ndarray]
) -> tuple[float, np.ndarray]:
    """:func:`inter_window_cosine` likewise; parameters and results as of :func:`intra_leaving_out`."""
    return _each(_Cells.inter, X, windows, parts)


@dataclass(frozen=True)
class _Cells:
    """Rows that share window and part: sum of their unit vectors, how many have a direction, window."""

    sums: np.ndarray
    counts: np.ndarray
    windows: np.ndarray

    def by_window(self, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sum of unit vectors, (windows, d), and their number, of each window in the cells that are kept."""
        windows, index = np.unique(self.windows[kept], return_inverse=True)
        sums = np.zeros((len(windows), self.sums.shape[1]))
        np.add.at(sums, index, self.sums[kept])
        return sums, np.bincount(index, self.counts[kept], len(windows))

    def intra(self, kept: np.ndarray) -> float:
        sums, counts = self.by_window(kept)
        pairs = float((counts * (counts - 1)).sum())
        return (float((sums**2).sum()) - float(counts.sum())) / pairs if pairs else math.nan

    def inter(self, kept: np.ndarray) -> float:
        sums, counts = self.by_window(kept)
        pairs = float(counts.sum()) ** 2 - float((counts**2).sum())
        of_all = float((sums.sum(axis=0) ** 2).sum())
        return (of_all - float((sums**2).sum())) / pairs if pairs else math.nan


def _each(
    cosine: Any, X: ArrayLike, windows: ArrayLike, parts: Sequence[np.ndarray]
) -> tuple[float, np.ndarray]:
    X = as_matrix(X, stay=True)
    windows = np.asarray(windows)
    if windows.shape != (len(X),) or windows.dtype.kind not in "iu":
        raise ValueError(
            f"windows must be {len(X)} whole numbers, one for each row of X, but are {windows.dtype} of "
            f"shape {windows.shape}"
        )
    part = np.full(len(X), -1)
    for number, rows in enumerate(parts):
        part[rows] = number
    order = np.lexsort((part, windows))
    edges = np.flatnonzero(np.diff(windows[order]) | np.diff(part[order])) + 1
    rows_of_cells = np.split(order, edges)
    found = [_directions(X[rows]) for rows in rows_of_cells]
    firsts = np.array([rows[0] for rows in rows_of_cells])
    cells = _Cells(
        np.array([total for total, _ in found]),
        np.array([count for _, count in found]),
        windows[firsts],
    )
    of = part[firsts]
    without = [min(cosine(cells, of != number), 1.0) for number in range(len(parts))]
    return min(cosine(cells, np.full(len(of), True)), 1.0), np.array(without)


def _directions(rows: Any) -> tuple[np.ndarray, int]:
    """Sum of the unit vectors of rows, (d,), and of how many: those of norm zero have none."""
    xp = namespace(rows)
    largest = xp.amax(abs(rows), axis=1)
    kept = largest > 0
    # Scaled before they are squared, which then neither overflows nor underflows.
    rows = rows[kept] / largest[kept][:, None]
    norms = xp.sqrt(xp.einsum("ij,ij->i", rows, rows))
    # Not a matrix product, whose last bits depend on the number of threads.
    return as_numpy(xp.einsum("i,ij->j", 1 / norms, rows)), int(kept.sum())
