"""Lengths of the parameters of a model's final normalisation, and their ratio."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.estimators.arrays import as_matrix


def gain_length(gain: ArrayLike, bias: ArrayLike | None = None) -> float:
    r"""Euclidean length of the gain g of a normalisation :math:`y = g \odot \hat x + b`.

    Parameters
    ----------
    gain : array_like or torch.Tensor, shape (d,)
        What the normalised vector is multiplied with.
    bias : array_like or torch.Tensor, shape (d,), optional
        What is added; a normalisation by the root mean square has none.

    Raises
    ------
    ValueError
        If one is not one-dimensional, their shapes differ, or one holds NaN or infinity.

    References
    ----------
    Machina and Mercer, Anisotropy is not inherent to transformers, NAACL 2024.

    Examples
    --------
    >>> gain_length([3, 4])
    5.0
    """
    return _lengths(gain, bias)[0]


def bias_length(gain: ArrayLike, bias: ArrayLike | None = None) -> float:
    """Euclidean length of the bias; NaN without one. Otherwise as :func:`gain_length`."""
    return _lengths(gain, bias)[1]


def bias_gain_ratio(gain: ArrayLike, bias: ArrayLike | None = None) -> float:
    r"""Length of the bias over that of the gain, :math:`\|b\| / \|g\|`.

    NaN without a bias, or with a gain of zeros. Otherwise as :func:`gain_length`.

    Examples
    --------
    >>> bias_gain_ratio([3, 4], [0, 1])
    0.2
    """
    gain_is, bias_is = _lengths(gain, bias)
    return bias_is / gain_is if gain_is else math.nan


def _lengths(gain: ArrayLike, bias: ArrayLike | None) -> tuple[float, float]:
    g = _as_vector(gain, "gain")
    if bias is None:
        return float(np.linalg.norm(g)), math.nan
    b = _as_vector(bias, "bias")
    if b.shape != g.shape:
        raise ValueError(f"gain has {len(g)} numbers, but bias has {len(b)}")
    return float(np.linalg.norm(g)), float(np.linalg.norm(b))


def _as_vector(values: ArrayLike, name: str) -> np.ndarray:
    found: Any = values if hasattr(values, "shape") else np.asarray(values)
    if len(found.shape) != 1:
        raise ValueError(f"{name} must have one dimension, but its shape is {tuple(found.shape)}")
    return as_matrix(found[None], name)[0]
