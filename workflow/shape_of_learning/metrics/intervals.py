r"""Standard errors and intervals from leaving out groups of whole windows.

Tokens of one window depend on each other, so nothing is left out but whole windows: the delete-a-group
jackknife. With the value :math:`v_g` without group g, of G groups,

.. math:: s^2 = \frac{G - 1}{G} \sum_g (v_g - \bar v)^2, \qquad v \pm t_{0.975, G - 1} \, s

An average over layers, or a difference between steps, has the averages or differences of the left-out values
for its own, since the groups are the same everywhere.

References
----------
Efron and Stein, The jackknife estimate of variance, Annals of Statistics 9 (1981). Künsch, The jackknife and
the bootstrap for general stationary observations, Annals of Statistics 17 (1989), for blocks of dependent
observations. Shao and Wu, A general theory for jackknife variance estimation, Annals of Statistics 17 (1989),
for leaving out more than one. Kott, The delete-a-group jackknife, Journal of Official Statistics 17 (2001),
for the degrees of freedom.
"""

import numpy as np

from shape_of_learning.metrics.table_columns import GROUPS
from shape_of_learning.random_streams import random_stream

LEVEL = 0.95


def window_groups(windows: int, seed: int) -> np.ndarray:
    """Divide windows into groups at random, the same for every layer, revision and model.

    Parameters
    ----------
    windows : int
        How many were drawn, ``sampling.windows`` of the configuration.
    seed : int
        ``seed`` of the configuration.

    Returns
    -------
    ndarray of int64, shape (windows,)
        From 0 to 15. Groups differ by one window at most; of fewer than 16 windows some groups have none.

    Examples
    --------
    >>> np.bincount(window_groups(35, 0))
    array([3, 3, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2])
    """
    groups = np.empty(windows, np.int64)
    order = random_stream(seed, "groups of windows").permutation(windows)
    groups[order] = np.arange(windows) % GROUPS
    return groups


def left_out_values(rows: np.ndarray, anew: np.ndarray) -> np.ndarray:
    r"""Combine two kinds of left-out values of a measure of neighbours into those that intervals come from.

    Parameters
    ----------
    rows : ndarray of float64, shape (16,)
        Values without the vectors of a group, their distances as found with all.
    anew : ndarray of float64, shape (16,)
        Values without a group, neighbours found anew among the others.

    Returns
    -------
    ndarray of float64, shape (16,)
        `anew`, with deviations from its mean that are shrunk so that the standard error becomes
        :math:`\sqrt{s_\text{rows} \, s_\text{anew}}`. For other measures, where both kinds are the same,
        nothing changes.

    Notes
    -----
    A window bears on an estimate in two ways: by its own vectors, and as the neighbour of others. `rows` sees
    the first only, and is too small where neighbours lie in other windows. `anew` sees both, and by the
    inequality of Efron and Stein it is too large in the mean: what a group does jointly with k - 1 others
    counts k times, and who is the nearest neighbour is decided by many jointly. The truth lies between; that
    the geometric mean comes near it is found by trying, on simulated and on real hidden states
    (docs/statistics.md).
    """
    shrinkage = _spread(rows) / _spread(anew) if _spread(anew) else 1.0
    return anew.mean() + np.sqrt(shrinkage) * (anew - anew.mean())


def _spread(values: np.ndarray) -> float:
    return float(np.linalg.norm(values - values.mean()))


def standard_error(left_out: np.ndarray) -> np.ndarray:
    """Standard error from left-out values, the first formula at the top.

    Parameters
    ----------
    left_out : array_like of float, shape (..., G)
        Values without one group each.

    Returns
    -------
    ndarray of float64, shape (...)
        NaN where one of them is NaN.
    """
    left_out = np.asarray(left_out, dtype=np.float64)
    groups = left_out.shape[-1]
    deviations = left_out - left_out.mean(axis=-1, keepdims=True)
    return np.sqrt((groups - 1) / groups * np.square(deviations).sum(axis=-1))


def interval(value: np.ndarray, left_out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """95 % interval of values, the second formula at the top.

    Parameters
    ----------
    value : array_like of float, shape (...)
        With all windows.
    left_out : array_like of float, shape (..., G)
        Without one group each.

    Returns
    -------
    low, high : ndarray of float64, shape (...)
    """
    half = quantile(np.shape(left_out)[-1]) * standard_error(left_out)
    return np.asarray(value) - half, np.asarray(value) + half


def quantile(groups: int = GROUPS) -> float:
    """Quantile of Student's t that bounds the interval: 2.131 for 16 groups."""
    from scipy.special import stdtrit

    return float(stdtrit(groups - 1, (1 + LEVEL) / 2))
