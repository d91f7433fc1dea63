"""One neighbour search per batch of a layer, for all estimators of intrinsic dimension."""

from typing import TYPE_CHECKING

import numpy as np

from shape_of_learning.estimators.arrays import is_finite
from shape_of_learning.estimators.neighbours import nearest_distances
from shape_of_learning.metrics.batches import shuffled_batches

if TYPE_CHECKING:
    import torch


def search_batches(
    vectors: "np.ndarray | torch.Tensor",
    neighbours: int,
    batch_vectors: int,
    stream: np.random.Generator,
) -> tuple[list[tuple[int, np.ndarray]], int]:
    """Shuffle, divide into batches of exactly `batch_vectors` and search within each.

    Parameters
    ----------
    vectors : ndarray or torch.Tensor, shape (n, d)
        One layer; on a GPU it is searched there.
    neighbours : int
        How many nearest others are looked for.
    batch_vectors : int
        Vectors of a batch.
    stream : numpy.random.Generator
        Decides the shuffle.

    Returns
    -------
    searched : list of (int, ndarray of float64, shape (m, neighbours))
        Vectors of each batch, and the distances from each of its m distinct vectors, ascending; one row of
        NaN if the batch holds NaN or infinity.
    left_over : int
        Vectors that fill no batch.
    """
    batches = shuffled_batches(len(vectors), batch_vectors, stream)
    searched = [(len(rows), _searched(vectors[rows], neighbours)) for rows in batches]
    return searched, len(vectors) - len(batches) * batch_vectors


def _searched(batch: "np.ndarray | torch.Tensor", neighbours: int) -> np.ndarray:
    if is_finite(batch):
        return nearest_distances(batch, neighbours)
    # Of a broken checkpoint: as if all vectors were the same one, so that every estimate is undefined.
    return np.full((1, neighbours), np.nan)
