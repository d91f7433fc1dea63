"""Scores of predictions of a task's labels."""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata
from sklearn.metrics import matthews_corrcoef


def accuracy(labels: ArrayLike, predictions: ArrayLike) -> float:
    """Return the share of correct predictions; arrays of shape (n,)."""
    return float(np.mean(np.asarray(labels) == np.asarray(predictions)))


def matthews(labels: ArrayLike, predictions: ArrayLike) -> float:
    """Return the correlation of two classifications (Matthews 1975, Gorodkin 2004); NaN if either is constant."""
    if min(len(np.unique(values)) for values in (labels, predictions)) == 1:
        return math.nan
    return float(matthews_corrcoef(labels, predictions))


def spearman(labels: ArrayLike, predictions: ArrayLike) -> float:
    """Return the correlation of ranks, with mean ranks for equal values; NaN if either is constant."""
    first, second = (
        rankdata(values) - (np.size(values) + 1) / 2 for values in (labels, predictions)
    )
    norm = math.sqrt(float(first @ first) * float(second @ second))
    return float(first @ second) / norm if norm > 0 else math.nan


SCORES = {"accuracy": accuracy, "matthews": matthews, "spearman": spearman}
