"""Anisotropy of vectors on a GPU."""

import math
from typing import TYPE_CHECKING

import numpy as np

from shape_of_learning.estimators.anisotropy import GRAM_SIDE, largest_by_lanczos, largest_of_gram
from shape_of_learning.estimators.on_gpu.blocks import centre, extremes, row_blocks

if TYPE_CHECKING:
    import torch


def anisotropy(X: "torch.Tensor", center: bool = True) -> float:
    """Share of the first principal direction, from the smaller Gram matrix.

    Parameters
    ----------
    X : torch.Tensor, shape (n, d)
        Of a type in :data:`~shape_of_learning.estimators.arrays.SMALL_TYPES`; n >= 2 if they are centred.
    center : bool
        Whether to subtract the mean vector first.

    Returns
    -------
    float
        As :func:`shape_of_learning.anisotropy`.

    Raises
    ------
    ValueError
        As there.
    """
    X = X.detach()
    low, high = extremes(X)
    if center and len(X) < 2:
        raise ValueError(f"X has {len(X)} row, but variance takes at least 2")
    if center and bool((low == high).all()):
        return math.nan
    shifts = centre(X) if center else ()
    if X.shape[0] >= X.shape[1]:
        gram = sum(block.T @ block for block in row_blocks(X, *shifts))
    else:
        whole = X.double()
        for shift in shifts:
            whole = whole - shift
        gram = whole @ whole.T
    variance = float(gram.trace())
    if variance == 0:
        return math.nan
    gram /= variance  # Lanczos iteration takes an eigenvalue of 1e-11 for zero

    def product(v: np.ndarray) -> np.ndarray:
        return (gram @ gram.new_tensor(v)).cpu().numpy()

    largest = largest_by_lanczos(product, len(gram)) if len(gram) > GRAM_SIDE else None
    if largest is None:
        largest = largest_of_gram(gram.cpu().numpy())
    return min(largest, 1.0)
