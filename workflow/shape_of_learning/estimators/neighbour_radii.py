"""What the estimators of intrinsic dimension share.

Every one takes what :func:`shape_of_learning.nearest_distances` returns, so that one search serves all;
``r_1 <= ... <= r_k`` is a row of it. The local ones, MADA, MOM and MLE, compute the *inverse* dimension of
a point, which is zero, not infinite, where distances are tied.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from shape_of_learning.estimators.arrays import as_matrix


class CheckedDistances(np.ndarray):
    """Distances that :func:`nearest` takes as they are, since they are some of those that it has checked."""


def nearest(distances: ArrayLike, k: int) -> np.ndarray:
    """Check `distances` and return its first `k` columns, NaN where there is no such neighbour."""
    if isinstance(distances, CheckedDistances) and k <= distances.shape[1]:
        return distances[:, :k].view(np.ndarray)
    r = as_matrix(distances, "distances", finite=False)
    m, columns = r.shape
    if k > columns:
        raise ValueError(f"k={k} neighbours are needed, but distances has {columns} columns")
    missing = np.isnan(r)
    # Among m vectors each has m - 1 neighbours, so whole columns from there on may be empty.
    absent = missing.all(axis=0) & (np.arange(columns) >= m - 1)
    if (missing & ~absent).any():
        raise ValueError("distances holds NaN in a column whose neighbours exist")
    present = r[:, ~absent]
    if not (np.isfinite(present) & (present > 0)).all():
        raise ValueError(
            "distances must be positive and finite; distinct vectors have no distance 0"
        )
    if (np.diff(r, axis=1) < 0).any():
        raise ValueError("distances must ascend within every row")
    return r[:, :k]


def log_ratio(larger: np.ndarray, smaller: np.ndarray) -> np.ndarray:
    """Natural logarithm of a ratio of positive numbers, which may be beyond the range of float64."""
    with np.errstate(over="ignore"):
        ratio = larger / smaller
    return np.where(np.isinf(ratio), np.log(larger) - np.log(smaller), np.log(ratio))


def combined(inverse: np.ndarray, combine: str) -> float:
    """One dimension from the inverse dimension of every point, zero for ties, (m,)."""
    if combine not in ("mean", "median", "harmonic"):
        raise ValueError(f"combine must be 'mean', 'median' or 'harmonic', but is {combine!r}")
    if np.isnan(inverse).any() or not inverse.any():
        return math.nan
    if combine == "harmonic":
        return float(1 / np.mean(inverse))
    if combine == "mean":
        return float(np.mean(1 / inverse[inverse > 0]))
    with np.errstate(divide="ignore"):
        median = float(np.median(1 / inverse))
    return median if math.isfinite(median) else math.nan
