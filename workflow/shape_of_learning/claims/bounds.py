r"""Numbers with bounds that hold together: of one statistic, and of the k-th largest of several.

A rule asks whether a number, or the least, the largest or the k-th largest of several, lies beyond another.
Of m parts with one-sided bounds :math:`\ell_i, u_i`, the k-th largest has at level :math:`\alpha` the bounds

.. math::
    \ell_{(k)} \text{ of the } \ell_i \text{ at level } \alpha / (m - k + 1), \qquad
    u_{(k)} \text{ of the } u_i \text{ at level } \alpha / k

whatever the parts have in common. For if the lower one is too high, then k of the lower bounds lie above the
k-th largest number, and at most k - 1 of the numbers do, so that one of m - k + 1 bounds is wrong
(Bonferroni). For the least, k = m, nothing is divided (Berger, Multiparameter hypothesis testing and
acceptance sampling, Technometrics 24, 1982). So where a maximum lies may be chosen after looking.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from shape_of_learning.metrics.intervals import LEVEL, standard_error
from shape_of_learning.metrics.tidy import GROUPS

TAIL = (1 - LEVEL) / 2  # of a 95 % interval, at each end


@dataclass(frozen=True)
class Bounded:
    """A number, or an array of them, with one-sided bounds.

    Attributes
    ----------
    estimate : ndarray of float64
    bounds : callable
        Of two tails, how often the lower bound may exceed the truth and the upper one fall short of it, gives
        both bounds.
    """

    estimate: np.ndarray
    bounds: Callable[[float, float], tuple[np.ndarray, np.ndarray]]


def estimated(
    estimate: np.ndarray, standard_error: np.ndarray, degrees: int = GROUPS - 1
) -> Bounded:
    """Take deviation over standard error for Student's t; an error of 0 is that of a known number."""
    from scipy.special import stdtrit

    def bounds(below: float, above: float) -> tuple[np.ndarray, np.ndarray]:
        down, up = stdtrit(degrees, [below, above])
        return estimate + down * standard_error, estimate - up * standard_error

    return Bounded(estimate, bounds)


def jackknifed(values: np.ndarray) -> Bounded:
    """Take the standard error from left-out values: (..., 17), with all windows, then without each group."""
    return estimated(values[..., 0], standard_error(values[..., 1:]))


def known(values: object) -> Bounded:
    """Give numbers no error: of a model's weights, or of what is compared as it is."""
    values = np.asarray(values, dtype=np.float64)
    return estimated(values, np.zeros_like(values))


def replicated(values: object) -> Bounded:
    """Take mean and standard error of independent repetitions, such as seeds, along the last axis."""
    values = np.asarray(values, dtype=np.float64)
    number = values.shape[-1]
    error = values.std(axis=-1, ddof=1) / np.sqrt(number)
    return estimated(values.mean(axis=-1), error, number - 1)


def apart(upper: Bounded, lower: Bounded) -> Bounded:
    """How far one number lies above another by an interval of each: positive if these do not meet."""

    def bounds(below: float, above: float) -> tuple[np.ndarray, np.ndarray]:
        (low, high), (other_low, other_high) = (
            each.bounds(below, above) for each in (upper, lower)
        )
        return low - other_high, high - other_low

    return Bounded(upper.estimate - lower.estimate, bounds)


def unknown(of: Bounded) -> Bounded:
    """Make a number decide nothing, whatever its estimate."""
    infinite = np.full_like(of.estimate, np.inf)
    return Bounded(of.estimate, lambda below, above: (-infinite, infinite))


def stacked(parts: Sequence[Bounded]) -> Bounded:
    """Put several numbers along a new last axis."""

    def bounds(below: float, above: float) -> tuple[np.ndarray, np.ndarray]:
        low, high = zip(*(part.bounds(below, above) for part in parts), strict=True)
        return np.stack(low, axis=-1), np.stack(high, axis=-1)

    return Bounded(np.stack([part.estimate for part in parts], axis=-1), bounds)


def ranked(of: Bounded, rank: int) -> Bounded:
    """The k-th largest along the last axis, by the formula at the top; `rank` is k, from 1."""
    number = of.estimate.shape[-1]

    def bounds(below: float, above: float) -> tuple[np.ndarray, np.ndarray]:
        low, high = of.bounds(below / (number - rank + 1), above / rank)
        return _kth_largest(low, rank), _kth_largest(high, rank)

    return Bounded(_kth_largest(of.estimate, rank), bounds)


def _kth_largest(values: np.ndarray, rank: int) -> np.ndarray:
    # Sorting takes NaN for the largest, so that the least of several would pass over it.
    undefined = np.isnan(values).any(axis=-1)
    return np.where(undefined, np.nan, np.sort(values, axis=-1)[..., -rank])


def least(of: Bounded) -> Bounded:
    """The least along the last axis."""
    return ranked(of, of.estimate.shape[-1])


def greatest(of: Bounded) -> Bounded:
    """The largest along the last axis."""
    return ranked(of, 1)
