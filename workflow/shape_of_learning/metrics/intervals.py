r"""Standard errors and intervals by the delete-a-group jackknife.

The tokens of a window depend on each other, so the jackknife leaves out groups of whole windows. With the value
:math:`v_g` without group g, of G groups,

.. math:: s^2 = \frac{G - 1}{G} \sum_g (v_g - \bar v)^2, \qquad v \pm t_{0.975, G - 1} \, s

All layers and steps have the same groups. So the jackknife values of an average over layers, or of a difference
between steps, are the averages or differences of the jackknife values.

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


def standard_error(jackknife_values: np.ndarray) -> np.ndarray:
    """Return the standard error, the first formula at the top.

    Parameters
    ----------
    jackknife_values : array_like of float, shape (..., G)
        The values without each of the groups.

    Returns
    -------
    ndarray of float64, shape (...)
        NaN if one of the values is NaN.
    """
    jackknife_values = np.asarray(jackknife_values, dtype=np.float64)
    groups = jackknife_values.shape[-1]
    deviations = jackknife_values - jackknife_values.mean(axis=-1, keepdims=True)
    return np.sqrt((groups - 1) / groups * np.square(deviations).sum(axis=-1))


def interval(value: np.ndarray, jackknife_values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the 95 % interval of values, the second formula at the top.

    Parameters
    ----------
    value : array_like of float, shape (...)
        The values of all windows.
    jackknife_values : array_like of float, shape (..., G)
        The values without each of the groups.

    Returns
    -------
    low, high : ndarray of float64, shape (...)
    """
    half = quantile(np.shape(jackknife_values)[-1]) * standard_error(jackknife_values)
    return np.asarray(value) - half, np.asarray(value) + half


def quantile(groups: int = GROUPS) -> float:
    """Return the quantile of Student's t for the interval: 2.131 for 16 groups."""
    from scipy.special import stdtrit

    return float(stdtrit(groups - 1, (1 + LEVEL) / 2))
