"""All estimates on one layer that is in memory."""

from typing import TYPE_CHECKING

import numpy as np

from shape_of_learning.metrics.dimension import dimension_values
from shape_of_learning.metrics.isotropy import MatrixRows, isotropy_values
from shape_of_learning.metrics.measurements import BatchValue
from shape_of_learning.metrics.neighbour_search import search_batches
from shape_of_learning.metrics.registry import ESTIMATORS, NEIGHBOURS

if TYPE_CHECKING:
    import torch


def layer_values(
    vectors: "np.ndarray | torch.Tensor", batch_vectors: int, stream: np.random.Generator
) -> dict[str, list[BatchValue]]:
    """Estimate all that the registry has, by one neighbour search.

    Parameters
    ----------
    vectors : ndarray or tensor, shape (tokens, width)
        Where it is a tensor on a GPU, that measures.
    batch_vectors : int
        Least number of vectors in a batch.
    stream : numpy.random.Generator
        Decides the shuffle before the batches of the neighbour search.

    Returns
    -------
    dict of str to list of BatchValue
        For each estimator one value per batch.
    """
    isotropy = {name: entry for name, entry in ESTIMATORS.items() if not entry.needs_neighbours}
    values = isotropy_values(MatrixRows(vectors), batch_vectors, isotropy)
    searched, _ = search_batches(vectors, NEIGHBOURS, batch_vectors, stream)
    for name in ESTIMATORS.keys() - isotropy.keys():
        values[name] = dimension_values(searched, ESTIMATORS[name])
    return values
