"""Average cosine similarity between vectors on a GPU."""

import math
from typing import TYPE_CHECKING

import numpy as np

from shape_of_learning.estimators.on_gpu.blocks import centre, extremes, row_blocks

if TYPE_CHECKING:
    import torch


def average_cosine(X: "torch.Tensor", center: bool = False) -> float:
    """Mean cosine over all pairs of rows, from the sum of their directions.

    Parameters
    ----------
    X : torch.Tensor, shape (n, d)
        Of a type in :data:`~shape_of_learning.estimators.arrays.SMALL_TYPES`; n >= 2.
    center : bool
        Whether to subtract the mean vector first.

    Returns
    -------
    float
        As :func:`shape_of_learning.average_cosine`.

    Raises
    ------
    ValueError
        As there.
    """
    X = X.detach()
    low, high = extremes(X)
    if len(X) < 2:
        raise ValueError(f"X has {len(X)} row, but a pair takes at least 2")
    if center and bool((low == high).all()):
        return math.nan
    shifts, noise = (), 0.0
    if center:
        shifts = first, rest = centre(X)
        # A row equal to the mean keeps the rounding of the mean, whose direction says nothing.
        reach = (low - first - rest).abs().maximum((high - first - rest).abs())
        noise = 8 * np.finfo(float).eps * float(reach.norm())
    total, directed = low.new_zeros(X.shape[1]), 0
    for block in row_blocks(X, *shifts):
        norms = block.norm(dim=1)
        directed = norms > noise
        total += (directed / norms.where(directed, 1.0)) @ block
        directed += int(directed.sum())
    if directed < 2:
        return math.nan
    return min((float(total.square().sum()) - directed) / (directed * (directed - 1)), 1.0)
