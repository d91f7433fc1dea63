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

from shape_of_learning.metrics.tidy import GROUPS

LEVEL = 0.95


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
