"""One neighbour search per batch of a layer, for all measures of nearest distances."""

from typing import TYPE_CHECKING

import numpy as np

from shape_of_learning.estimators.arrays import is_finite
from shape_of_learning.estimators.neighbours import nearest_distances
from shape_of_learning.metrics.batches import Batch, shuffled_batches

if TYPE_CHECKING:
    import torch


def neighbour_batches(
    vectors: "np.ndarray | torch.Tensor", size: int, neighbours: int, stream: np.random.Generator
) -> list[Batch]:
    """Shuffle a layer, divide it into batches of exactly `size` vectors and search within each.

    Parameters
    ----------
    vectors : ndarray or torch.Tensor, shape (tokens, width)
        One layer; on a GPU it is searched there.
    size : int
        Vectors of a batch.
    neighbours : int
        How many nearest others are looked for.
    stream : numpy.random.Generator
        Decides the shuffle.

    Returns
    -------
    list of Batch
        Each with the distances from its m distinct vectors, ascending, float64, shape (m, neighbours).
    """
    return [
        _searched(vectors[rows], neighbours)
        for rows in shuffled_batches(len(vectors), size, stream)
    ]


def _searched(batch: "np.ndarray | torch.Tensor", neighbours: int) -> Batch:
    if not is_finite(batch):
        return Batch.not_finite(len(batch))
    distances = nearest_distances(batch, neighbours)
    return Batch(len(batch), len(distances), distances)
