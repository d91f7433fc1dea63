"""Lengths of the parameters of a model's final normalisation."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.estimators.arrays import as_matrix


class FinalNorm(NamedTuple):
    """Euclidean lengths of gain g and bias b, and |b| / |g|; NaN where there is none."""

    gain: float
    bias: float
    ratio: float


def final_norm(gain: ArrayLike, bias: ArrayLike | None = None) -> FinalNorm:
    r"""Lengths of gain and bias of :math:`y = g \odot \hat x + b`, and their ratio.

    Parameters
    ----------
    gain : array_like or torch.Tensor, shape (d,)
        What the normalised vector is multiplied with.
    bias : array_like or torch.Tensor, shape (d,), optional
        What is added; a normalisation by the root mean square has none.

    Returns
    -------
    FinalNorm
        `bias` and `ratio` are NaN without a bias, `ratio` also where the gain is zero.

    Raises
    ------
    ValueError
        If one is not one-dimensional, their lengths differ, or one holds NaN or infinity.

    References
    ----------
    Machina and Mercer, Anisotropy is not inherent to transformers, NAACL 2024.

    Examples
    --------
    >>> final_norm([3, 4], [0, 1])
    FinalNorm(gain=5.0, bias=1.0, ratio=0.2)
    """
    g = _as_vector(gain, "gain")
    if bias is None:
        return FinalNorm(_length(g), math.nan, math.nan)
    b = _as_vector(bias, "bias")
    if len(b) != len(g):
        raise ValueError(f"gain has {len(g)} numbers, but bias has {len(b)}")
    length = _length(g)
    return FinalNorm(length, _length(b), _length(b) / length if length else math.nan)


def _as_vector(values: ArrayLike, name: str) -> np.ndarray:
    found = values if hasattr(values, "shape") else np.asarray(values)
    if len(found.shape) != 1:
        raise ValueError(f"{name} must have one dimension, but its shape is {tuple(found.shape)}")
    return as_matrix(found[None, :], name)[0]


def _length(values: np.ndarray) -> float:
    return float(np.linalg.norm(values))
