"""One neighbour search per batch of a layer, for all measures of nearest distances."""

from typing import TYPE_CHECKING

import numpy as np

from shape_of_learning.estimators.arrays import is_finite
from shape_of_learning.estimators.dimension import mean_distance_to_mean
from shape_of_learning.estimators.neighbours import nearest_neighbours
from shape_of_learning.metrics.batches import Batch, shuffled_batches
from shape_of_learning.metrics.neighbour_lists import NeighbourLists
from shape_of_learning.metrics.neighbour_margin import searched_neighbours

if TYPE_CHECKING:
    import torch


def neighbour_batches(
    vectors: "np.ndarray | torch.Tensor",
    windows: np.ndarray,
    size: int,
    neighbours: int,
    stream: np.random.Generator,
) -> list[Batch]:
    """Shuffle a layer, divide it into batches of exactly `size` vectors and search within each.

    Parameters
    ----------
    vectors : ndarray or torch.Tensor, shape (tokens, width)
        One layer; on a GPU it is searched there.
    windows : ndarray of int64, shape (tokens,)
        The window of each.
    size : int
        Vectors of a batch.
    neighbours : int
        How many nearest others measures ask for; :func:`.searched_neighbours` says how many are looked for.
    stream : numpy.random.Generator
        Decides the shuffle.

    Returns
    -------
    list of Batch
        Each with its lists of neighbours.
    """
    searched = min(searched_neighbours(neighbours), size - 1)
    return [
        _searched(vectors[rows], windows[rows], searched)
        for rows in shuffled_batches(len(vectors), size, stream)
    ]


def _searched(vectors: "np.ndarray | torch.Tensor", windows: np.ndarray, neighbours: int) -> Batch:
    if not is_finite(vectors):
        return Batch.not_finite(windows)
    unit = np.array(mean_distance_to_mean(vectors) or 1.0)
    lists = NeighbourLists(*nearest_neighbours(vectors, neighbours), unit)
    return Batch(len(lists.distances), windows, lists)
