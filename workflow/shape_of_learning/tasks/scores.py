"""How well predicted labels agree with the true ones."""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata


def accuracy(labels: ArrayLike, predictions: ArrayLike) -> float:
    """Share of the labels that are predicted; arrays of shape (n,)."""
    return float(np.mean(np.asarray(labels) == np.asarray(predictions)))


def matthews(labels: ArrayLike, predictions: ArrayLike) -> float:
    r"""Correlation of two classifications.

    .. math:: \frac{c s - \sum_k p_k t_k}{\sqrt{(s^2 - \sum_k p_k^2)(s^2 - \sum_k t_k^2)}}

    with s examples, c of them predicted rightly, and of class k p_k predicted and t_k true ones: of two
    classes that of Matthews (1975), of more that of Gorodkin (2004).

    Parameters
    ----------
    labels, predictions : array_like of int, shape (n,)

    Returns
    -------
    float
        -1 to 1; NaN where either is constant.
    """
    true, predicted = np.asarray(labels), np.asarray(predictions)
    classes = np.union1d(true, predicted)
    t, p = ((each[:, None] == classes).sum(axis=0).astype(float) for each in (true, predicted))
    s, c = float(len(true)), float((true == predicted).sum())
    under = (s * s - p @ p) * (s * s - t @ t)
    return float((c * s - p @ t) / math.sqrt(under)) if under > 0 else math.nan


def spearman(labels: ArrayLike, predictions: ArrayLike) -> float:
    """Correlation of ranks, equal values having their mean rank; NaN where either is constant."""
    first, second = (rankdata(each) - (np.size(each) + 1) / 2 for each in (labels, predictions))
    under = math.sqrt(float(first @ first) * float(second @ second))
    return float(first @ second) / under if under > 0 else math.nan


SCORES = {"accuracy": accuracy, "matthews": matthews, "spearman": spearman}
