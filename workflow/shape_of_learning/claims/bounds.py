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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from shape_of_learning.metrics.intervals import LEVEL, standard_error
from shape_of_learning.metrics.table_columns import GROUPS

TAIL = (1 - LEVEL) / 2  # of a 95 % interval, at each end


class Bounded(Protocol):
    """A number, or an array of them, with one-sided bounds."""

    @property
    def estimate(self) -> np.ndarray:
        """The number itself."""

    def bounds(self, below: float, above: float) -> tuple[np.ndarray, np.ndarray]:
        """Give bounds.

        Parameters
        ----------
        below, above : float
            How often the lower one may exceed the truth, and the upper one fall short of it.

        Returns
        -------
        low, high : ndarray of float64
        """


@dataclass(frozen=True)
class Estimated:
    """A number with a standard error, whose deviation over that is Student's t.

    Attributes
    ----------
    estimate, standard_error : ndarray of float64
        Of one shape. An error of 0 is that of a number which is known; NaN, of one of whose error nothing is.
    degrees : int
        Of freedom.
    """

    estimate: np.ndarray
    standard_error: np.ndarray
    degrees: int = GROUPS - 1

    def bounds(self, below: float, above: float) -> tuple[np.ndarray, np.ndarray]:
        """As of :class:`Bounded`."""
        from scipy.special import stdtrit

        down, up = stdtrit(self.degrees, [below, above])
        return self.estimate + down * self.standard_error, self.estimate - up * self.standard_error


def jackknifed(values: np.ndarray) -> Estimated:
    """Take the standard error from left-out values.

    Parameters
    ----------
    values : ndarray of float64, shape (..., 17)
        With all windows, then without each group of them.
    """
    return Estimated(values[..., 0], standard_error(values[..., 1:]))


def known(values: object) -> Estimated:
    """Give numbers no error: of a model's weights, or of what is compared as it is."""
    values = np.asarray(values, dtype=np.float64)
    return Estimated(values, np.zeros_like(values))


def replicated(values: object) -> Estimated:
    """Take mean and standard error of independent repetitions, such as seeds, along the last axis."""
    values = np.asarray(values, dtype=np.float64)
    number = values.shape[-1]
    error = values.std(axis=-1, ddof=1) / np.sqrt(number)
    return Estimated(values.mean(axis=-1), error, number - 1)


@dataclass(frozen=True)
class Apart:
    """How far one number lies above another by an interval of each: positive if these do not meet."""

    upper: Bounded
    lower: Bounded

    @property
    def estimate(self) -> np.ndarray:
        """As of :class:`Bounded`."""
        return self.upper.estimate - self.lower.estimate

    def bounds(self, below: float, above: float) -> tuple[np.ndarray, np.ndarray]:
        """As of :class:`Bounded`."""
        (low, high), (other_low, other_high) = (
            each.bounds(below, above) for each in (self.upper, self.lower)
        )
        return low - other_high, high - other_low


@dataclass(frozen=True)
class Unknown:
    """A number that decides nothing, whatever its estimate."""

    of: Bounded

    @property
    def estimate(self) -> np.ndarray:
        """As of :class:`Bounded`."""
        return self.of.estimate

    def bounds(self, below: float, above: float) -> tuple[np.ndarray, np.ndarray]:
        """As of :class:`Bounded`."""
        return np.full_like(self.estimate, -np.inf), np.full_like(self.estimate, np.inf)


@dataclass(frozen=True)
class Stacked:
    """Several numbers along a new last axis."""

    parts: Sequence[Bounded]

    @property
    def estimate(self) -> np.ndarray:
        """As of :class:`Bounded`."""
        return np.stack([part.estimate for part in self.parts], axis=-1)

    def bounds(self, below: float, above: float) -> tuple[np.ndarray, np.ndarray]:
        """As of :class:`Bounded`."""
        pairs = [part.bounds(below, above) for part in self.parts]
        low, high = (np.stack(side, axis=-1) for side in zip(*pairs, strict=True))
        return low, high


@dataclass(frozen=True)
class Ranked:
    """The k-th largest along the last axis, by the formula at the top; `rank` is k, from 1."""

    of: Bounded
    rank: int

    @property
    def estimate(self) -> np.ndarray:
        """As of :class:`Bounded`."""
        return self._ranked(self.of.estimate)

    def bounds(self, below: float, above: float) -> tuple[np.ndarray, np.ndarray]:
        """As of :class:`Bounded`."""
        number = self.of.estimate.shape[-1]
        low, high = self.of.bounds(below / (number - self.rank + 1), above / self.rank)
        return self._ranked(low), self._ranked(high)

    def _ranked(self, values: np.ndarray) -> np.ndarray:
        ranked = np.sort(values, axis=-1)[..., -self.rank]
        # Sorting takes NaN for the largest, so that the least of several would pass over it.
        return np.where(np.isnan(values).any(axis=-1), np.nan, ranked)


def least(of: Bounded) -> Ranked:
    """The least along the last axis."""
    return Ranked(of, of.estimate.shape[-1])


def greatest(of: Bounded) -> Ranked:
    """The largest along the last axis."""
    return Ranked(of, 1)
