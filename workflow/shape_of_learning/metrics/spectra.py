"""Spectra of the batches of a layer, for all measures of spectra."""

from typing import TYPE_CHECKING

import numpy as np

from shape_of_learning.estimators.spread import spectrum
from shape_of_learning.metrics.batches import Batch, Spectra, vector_batches
from shape_of_learning.metrics.resampling import GROUPS

if TYPE_CHECKING:
    import torch


def spectrum_batches(
    vectors: "np.ndarray | torch.Tensor", windows: np.ndarray, size: int, groups: np.ndarray
) -> list[Batch]:
    """Find the spectra of a layer's contiguous batches, with all windows and without each group of them.

    Parameters
    ----------
    vectors : ndarray or torch.Tensor, shape (tokens, width)
        One layer.
    windows : ndarray of int64, shape (tokens,)
        The window of each.
    size : int
        Least number of vectors in a batch.
    groups : ndarray of int64, shape (windows,)
        From :func:`.window_groups`.

    Returns
    -------
    list of Batch
        Each with the eigenvalues of its covariances. Seventeen spectra take seventeen times as long as one;
        they are found where a measure asks for them, of which the paper has none.
    """
    return [
        batch
        if batch.content is None
        else Batch(batch.n_unique, batch.windows, _spectra(batch.content, groups[batch.windows]))
        for batch in vector_batches(vectors, windows, size)
    ]


def _spectra(vectors: "np.ndarray | torch.Tensor", groups: np.ndarray) -> Spectra:
    whole = spectrum(vectors)
    without = np.full((GROUPS, len(whole)), np.nan)
    for group in range(GROUPS):
        rows = np.flatnonzero(groups != group)
        if len(rows) == len(groups):
            without[group] = whole
        elif len(rows) > 1:
            eigenvalues = spectrum(vectors[rows])
            without[group, : len(eigenvalues)] = eigenvalues
    return Spectra(whole, without)
