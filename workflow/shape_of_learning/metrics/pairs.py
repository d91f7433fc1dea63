"""Measures of a block: of the hidden states before it and after it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from shape_of_learning.estimators.arrays import distinct_rows, is_finite
from shape_of_learning.estimators.pair import Pair
from shape_of_learning.metrics.batches import Batch
from shape_of_learning.metrics.measure_entry import ChosenMeasure
from shape_of_learning.metrics.measurements import Measured, measure_batches

if TYPE_CHECKING:
    import torch


def measure_pair(
    before: "np.ndarray | torch.Tensor",
    after: "np.ndarray | torch.Tensor",
    windows: np.ndarray,
    measures: Mapping[str, ChosenMeasure],
    groups: np.ndarray,
) -> dict[str, Measured]:
    """Measure one block on all vectors together: batches would be too few for wide models.

    Parameters
    ----------
    before, after : ndarray or torch.Tensor, shape (tokens, width)
        Of the same tokens. The widths may differ.
    windows : ndarray of int64, shape (tokens,)
        The window of each.
    measures : mapping of str to ChosenMeasure
        By name. They share what one of them has found.
    groups : ndarray of int64, shape (windows,)
        From :func:`.window_groups`.

    Returns
    -------
    dict of str to Measured
        For each measure its values; ``n_unique`` counts the vectors before the block.
    """
    batch = Batch.not_finite(windows)
    if is_finite(before) and is_finite(after):
        batch = Batch(len(distinct_rows(before)), windows, Pair(before, after, windows))
    return {name: measure_batches([batch], measure, groups) for name, measure in measures.items()}
