"""Standard errors and intervals from values with one group of windows left out."""

import numpy as np
from scipy.special import stdtrit

GROUPS = 16  # of windows
COVERAGE = 0.95


def standard_error(left_out: np.ndarray) -> float:
    r"""Standard error by the delete-a-group jackknife.

    .. math:: \sqrt{\tfrac{G - 1}{G} \sum_g (v_g - \bar v)^2}

    Parameters
    ----------
    left_out : ndarray of float64, shape (G,)
        The value :math:`v_g` without each group.

    Returns
    -------
    float
        NaN if one of them is.

    References
    ----------
    Efron & Stein, The jackknife estimate of variance, Annals of Statistics 9 (1981).

    Examples
    --------
    >>> standard_error(np.array([1.0, 3.0]))  # of the mean of 3 and 1: their distance over 2
    1.0
    """
    left_out = np.asarray(left_out, dtype=np.float64)
    groups = len(left_out)
    return float(np.sqrt((groups - 1) / groups * np.square(left_out - left_out.mean()).sum()))


def interval(value: float, left_out: np.ndarray) -> tuple[float, float]:
    """95 % interval: `value` -+ t(0.975, G - 1) times :func:`standard_error`.

    Parameters
    ----------
    value : float
    left_out : ndarray of float64, shape (G,)
        The value without each group.

    Returns
    -------
    low, high : float
        NaN where the value or one without a group is.
    """
    half = float(stdtrit(len(left_out) - 1, (1 + COVERAGE) / 2)) * standard_error(left_out)
    return value - half, value + half
