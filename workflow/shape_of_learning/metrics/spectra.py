"""One spectrum per batch of a layer, for all measures of spectra."""

from typing import TYPE_CHECKING

from shape_of_learning.estimators.spectrum import spectrum
from shape_of_learning.metrics.batches import Batch, vector_batches

if TYPE_CHECKING:
    import numpy as np
    import torch


def spectrum_batches(vectors: "np.ndarray | torch.Tensor", size: int) -> list[Batch]:
    """Find the spectra of a layer's contiguous batches.

    Parameters
    ----------
    vectors : ndarray or torch.Tensor, shape (tokens, width)
        One layer.
    size : int
        Least number of vectors in a batch.

    Returns
    -------
    list of Batch
        Each with the eigenvalues of its covariance, descending, float64.
    """
    return [
        batch if batch.content is None else Batch(batch.n, batch.n_unique, spectrum(batch.content))
        for batch in vector_batches(vectors, size)
    ]
