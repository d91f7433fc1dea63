r"""Numbers with one-sided bounds, and bounds on the k-th largest of several numbers.

The k-th largest of m numbers with one-sided bounds :math:`\ell_i, u_i` has at level :math:`\alpha` the bounds

.. math::
    \ell_{(k)} \text{ of the } \ell_i \text{ at level } \alpha / (m - k + 1), \qquad
    u_{(k)} \text{ of the } u_i \text{ at level } \alpha / k

however the numbers depend on each other. Proof: if the lower bound is too high, k of the lower bounds lie above the
k-th largest number. At most k - 1 of the numbers lie above it, so one of m - k + 1 bounds is wrong (Bonferroni). For
the least number, k = m, the level is not divided (Berger, Multiparameter hypothesis testing and acceptance sampling,
Technometrics 24, 1982). So a statistic may choose the place of a maximum after it has seen the data.

With weights, the number is the largest value that units with a given share of the weight reach. In the lower bound, k
is the least number of units whose weights can make up that share; in the upper bound, k is the greatest number of units
that may be needed. The proof is the same.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from shape_of_learning.metrics.intervals import LEVEL, standard_error
from shape_of_learning.metrics.tidy import GROUPS

TAIL = (1 - LEVEL) / 2  # the tail at each end of a 95 % interval
ROUNDING = 1e-9  # sums of weights may differ by this much from the exact sum


@dataclass(frozen=True)
class BoundedNumber:
    """A number, or an array of numbers, with one-sided bounds.

    Attributes
    ----------
    estimate : ndarray of float64
    bounds : callable
        Returns both bounds for two tails. The lower tail is the probability that the lower bound exceeds the truth, the
        upper tail the probability that the upper bound falls short of it.
    limits : tuple of float
        The range of the number, such as -1 to 1 for a correlation; approximate bounds may lie outside it.
    """

    estimate: np.ndarray
    bounds: Callable[[float, float], tuple[np.ndarray, np.ndarray]]
    limits: tuple[float, float] = (-np.inf, np.inf)

    def kth_largest(self, rank: int) -> "BoundedNumber":
        """Return the k-th largest along the last axis, by the formula at the top; `rank` is k, from 1."""
        return self.weighted_largest(rank, np.ones(self.estimate.shape[-1]))

    def weighted_largest(self, weight: float, weights: np.ndarray) -> "BoundedNumber":
        """Return the largest number that units with this total weight reach; `weights` has one weight per unit."""
        lower_divisor = len(weights) - count_fewest(weight, weights) + 1
        upper_divisor = int(np.sum(np.cumsum(np.sort(weights)) < weight - ROUNDING)) + 1

        def bounds(lower_tail: float, upper_tail: float) -> tuple[np.ndarray, np.ndarray]:
            low, high = self.bounds(lower_tail / lower_divisor, upper_tail / upper_divisor)
            largest_low = _weighted_quantile(low, weight, weights)
            largest_high = _weighted_quantile(high, weight, weights)
            return largest_low, largest_high

        return BoundedNumber(_weighted_quantile(self.estimate, weight, weights), bounds)

    def find_floor(self, share: float) -> "BoundedNumber":
        """Return the largest number that a share of the numbers along the last axis reach."""
        return self.kth_largest(math.ceil(share * self.estimate.shape[-1] - ROUNDING))

    def least(self) -> "BoundedNumber":
        """Return the least number along the last axis."""
        return self.kth_largest(self.estimate.shape[-1])

    def greatest(self) -> "BoundedNumber":
        """Return the largest number along the last axis."""
        return self.kth_largest(1)


def bound_by_error(
    estimate: np.ndarray, standard_error: np.ndarray, degrees: int = GROUPS - 1
) -> BoundedNumber:
    """Bound a number by its standard error and Student's t.

    A known number has an error of 0. A number whose error is unknown (NaN) has infinite bounds, so that it decides
    nothing and hides no other number.
    """
    from scipy.special import stdtrit

    is_unknown = np.isnan(standard_error) & ~np.isnan(estimate)

    def bounds(lower_tail: float, upper_tail: float) -> tuple[np.ndarray, np.ndarray]:
        lower_quantile, upper_quantile = stdtrit(degrees, [lower_tail, upper_tail])
        low, high = (
            estimate + lower_quantile * standard_error,
            estimate - upper_quantile * standard_error,
        )
        # A single repetition has no degree of freedom.
        if np.isnan([lower_quantile, upper_quantile]).any():
            return low, high
        return np.where(is_unknown, -np.inf, low), np.where(is_unknown, np.inf, high)

    return BoundedNumber(estimate, bounds)


def bound_by_jackknife(values: np.ndarray) -> BoundedNumber:
    """Bound a number by its values, (..., 17): first with all windows, then without each group of windows."""
    return bound_by_error(values[..., 0], standard_error(values[..., 1:]))


def bound_exactly(values: object) -> BoundedNumber:
    """Bound numbers without an error, such as measures of a model's weights, by the numbers themselves."""
    values = np.asarray(values, dtype=np.float64)
    return bound_by_error(values, np.zeros_like(values))


def bound_repetitions(values: object) -> BoundedNumber:
    """Average independent repetitions, such as seeds, along the last axis."""
    values = np.asarray(values, dtype=np.float64)
    number = values.shape[-1]
    error = values.std(axis=-1, ddof=1) / np.sqrt(number)
    return bound_by_error(values.mean(axis=-1), error, number - 1)


def average_seeds(parts: Sequence[BoundedNumber], number: int) -> BoundedNumber:
    """Average a number over trainings that differ only in their seeds.

    Parameters
    ----------
    parts : sequence of BoundedNumber
        The number of each training. All trainings have the same windows, so their errors do not cancel.
    number : int
        How many trainings are independent.
    """
    estimates = np.stack([part.estimate for part in parts], axis=-1)
    seed_error = bound_by_error(
        np.zeros_like(estimates[..., 0]),
        estimates.std(axis=-1, ddof=1) / np.sqrt(number),
        number - 1,
    )

    def bounds(lower_tail: float, upper_tail: float) -> tuple[np.ndarray, np.ndarray]:
        mean = estimates.mean(axis=-1)
        mean_low, mean_high = np.mean(
            [part.bounds(lower_tail, upper_tail) for part in parts], axis=0
        )
        seed_low, seed_high = seed_error.bounds(lower_tail, upper_tail)
        return (
            mean - np.hypot(mean_low - mean, seed_low),
            mean + np.hypot(mean_high - mean, seed_high),
        )

    return BoundedNumber(estimates.mean(axis=-1), bounds, parts[0].limits)


def subtract_numbers(upper: BoundedNumber, lower: BoundedNumber) -> BoundedNumber:
    """Subtract one number from another; the lower bound is the gap between both intervals."""

    def bounds(lower_tail: float, upper_tail: float) -> tuple[np.ndarray, np.ndarray]:
        (low, high), (other_low, other_high) = (
            number.bounds(lower_tail, upper_tail) for number in (upper, lower)
        )
        return low - other_high, high - other_low

    return BoundedNumber(upper.estimate - lower.estimate, bounds)


def shift(number: BoundedNumber, amount: float) -> BoundedNumber:
    """Add a known number."""

    def bounds(lower_tail: float, upper_tail: float) -> tuple[np.ndarray, np.ndarray]:
        low, high = number.bounds(lower_tail, upper_tail)
        return low + amount, high + amount

    return BoundedNumber(number.estimate + amount, bounds)


def find_ceiling(number: BoundedNumber, share: float) -> BoundedNumber:
    """Return the number that a share of the numbers along the last axis do not exceed."""
    size = number.estimate.shape[-1]
    return number.kth_largest(size - math.ceil(share * size - ROUNDING) + 1)


def make_undecided(number: BoundedNumber) -> BoundedNumber:
    """Give a number infinite bounds, so that it decides nothing."""
    infinite = np.full_like(number.estimate, np.inf)
    return BoundedNumber(number.estimate, lambda lower_tail, upper_tail: (-infinite, infinite))


def stack_bounds(parts: Sequence[BoundedNumber]) -> BoundedNumber:
    """Stack several numbers along a new last axis."""

    def bounds(lower_tail: float, upper_tail: float) -> tuple[np.ndarray, np.ndarray]:
        low, high = zip(*(part.bounds(lower_tail, upper_tail) for part in parts), strict=True)
        return np.stack(low, axis=-1), np.stack(high, axis=-1)

    return BoundedNumber(np.stack([part.estimate for part in parts], axis=-1), bounds)


def count_fewest(weight: float, weights: np.ndarray) -> int:
    """Return the least number of units that together have this weight."""
    return int(np.sum(np.cumsum(np.sort(weights)[::-1]) < weight - ROUNDING)) + 1


def _weighted_quantile(values: np.ndarray, weight: float, weights: np.ndarray) -> np.ndarray:
    order = np.argsort(-values, axis=-1, kind="stable")
    first = np.argmax(np.cumsum(weights[order], axis=-1) >= weight - ROUNDING, axis=-1)
    quantile = np.take_along_axis(values, np.take_along_axis(order, first[..., None], -1), -1)[
        ..., 0
    ]
    # Sorting places NaN last, so the largest of several numbers would ignore it.
    return np.where(np.isnan(values).any(axis=-1), np.nan, quantile)
