"""Intrinsic dimension of one layer from its neighbour search."""

from collections.abc import Iterable

import numpy as np

from shape_of_learning.metrics.measurements import BatchValue
from shape_of_learning.metrics.registry import Estimator


def dimension_values(
    searched: Iterable[tuple[int, np.ndarray]], estimator: Estimator
) -> list[BatchValue]:
    """Estimate from the nearest distances of each batch.

    Parameters
    ----------
    searched : iterable of (int, ndarray of float64, shape (m, k))
        Vectors of each batch, duplicates included, and the distances from its m distinct ones.
    estimator : Estimator
        One that takes neighbour distances.

    Returns
    -------
    list of BatchValue
        One value per batch.

    Raises
    ------
    ValueError
        If distances are no distances.
    """
    function = estimator.load()
    return [
        BatchValue(number, vectors, len(distances), function(distances, **estimator.arguments))
        for number, (vectors, distances) in enumerate(searched)
    ]
