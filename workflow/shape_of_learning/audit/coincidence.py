"""Estimate the chance that two steps have equal results, from the differences between their neighbours.

Training moves the weights, and with them the numbers that an evaluation prints. Two steps with the same numbers
therefore hold the same weights, unless the numbers are too few or too coarse to show that the weights moved. Suppose
that the numbers of a column are multiples of :math:`g` (1/500 where 500 questions are asked), and that a step differs
by :math:`u g` from a neighbour. Weights that moved as far would print the same number with a chance of about
:math:`1 / 2u`: the density at 0 of a change of that size, times :math:`g`.

Four rules keep the product of these chances on the safe side:

- Each of the two steps is compared with up to ``NEIGHBOURS`` steps on each side, and the neighbour that differs least
  decides. Of the two results, the smaller number of digits counts. If the training had other results between the two
  steps, the larger number counts, because then one of the two came back by chance.
- If no other result lies between the two steps, they may have moved ``SLOWDOWN`` times less than their neighbours, and
  ``SLOWDOWN_AT_END`` times less at the end of training, because a learning rate may fall to almost 0. If a neighbour is
  farther away than the two steps are from each other, its difference is reduced by the ratio of these distances.
- Only the number that differs most counts for a task, since all numbers of a task come from the same answers.
- Tasks move together, so that ``DEPENDENT_TASKS`` of them count as one.

Columns that never change prove nothing, and neither do digits beyond ``FINEST_GRID``. A table may give some steps in
full and others rounded: if most numbers of a step have fewer decimals than others of their columns, the step counts
as rounded. All pairs of steps are compared, so the chance that some pair is equal is at most the number of pairs times
as high; it must be below ``HIGHEST_CHANCE``.
"""

import math
from collections.abc import Collection, Sequence

import numpy as np

SLOWDOWN, SLOWDOWN_AT_END = 10.0, 1000.0
DEPENDENT_TASKS = 2
NEIGHBOURS = 3
FINEST_GRID = 1e-9  # of the median of a column
MOST_DECIMALS = 9  # of a number that is rounded
NOISE = 1e-12  # relative error of a number that was summed up
HIGHEST_CHANCE = 1e-6


def find_grid(numbers: np.ndarray) -> float:
    """Find the largest number that divides all differences in a column; NaN if the column never changes."""
    distinct = np.unique(numbers[np.isfinite(numbers)])
    if len(distinct) < 2:
        return math.nan
    steps = np.diff(distinct)
    finest = FINEST_GRID * (float(np.median(np.abs(distinct))) or float(steps.max()))
    grid = 0.0
    for difference in steps:
        grid, rest = float(difference), grid
        while rest > finest:  # Euclid's algorithm
            remainder = math.fmod(grid, rest)
            if rest - remainder <= finest:
                remainder = 0.0
            grid, rest = rest, remainder
        if grid <= finest:
            return finest
    return grid


def find_rounding(values: np.ndarray) -> np.ndarray:
    """Find the last decimal of each number in a rounded row: 0.01 for 0.25.

    Parameters
    ----------
    values : array, shape (rows, columns)

    Returns
    -------
    array, shape (rows, columns)
        Zero in the rows that are not rounded.
    """
    with np.errstate(invalid="ignore", over="ignore"):  # of infinite and very large numbers
        last_decimals = np.zeros(values.shape)
        for decimals in range(MOST_DECIMALS, -1, -1):
            is_whole = np.abs(values - np.round(values, decimals)) <= NOISE * np.abs(values)
            last_decimals[is_whole] = 10.0**-decimals
    is_there = np.isfinite(values)
    finest = np.where(is_there, last_decimals, np.inf).min(axis=0)
    is_shorter = is_there & (last_decimals > finest)
    is_rounded = 2 * is_shorter.sum(axis=1) > is_there.sum(axis=1)
    return np.where(is_rounded[:, np.newaxis], last_decimals, 0.0)


class Coincidences:
    """The numbers of the steps of a training, and the chance that two steps have equal numbers.

    Parameters
    ----------
    steps : sequence of int
        Ascending.
    values : array, shape (steps, columns)
        NaN where a step lacks a number.
    tasks : sequence of str
        The task of each column.
    """

    def __init__(self, steps: Sequence[int], values: np.ndarray, tasks: Sequence[str]) -> None:
        self.steps = np.asarray(steps, dtype=float)
        self.values = values
        self.grids = np.array([find_grid(column) for column in values.T])
        self._rounding = find_rounding(values)
        self._tasks = np.unique(np.asarray(tasks, dtype=object), return_inverse=True)[1]

    @property
    def can_differ(self) -> np.ndarray:
        """Whether each column changes along the training."""
        return ~np.isnan(self.grids)

    def find_equal_pairs(self) -> set[tuple[int, int]]:
        """Find the pairs of equal rows.

        Two rows are equal if they agree in all numbers that both have, and these are at least half of the numbers of
        one row.
        """
        is_there = ~np.isnan(self.values)
        pairs = set()
        for first in range(len(self.values) - 1):
            common = is_there[first] & is_there[first + 1 :]
            differs = common & (self.values[first] != self.values[first + 1 :])
            fewest = np.minimum(is_there[first].sum(), is_there[first + 1 :].sum(axis=1))
            is_equal = ~differs.any(axis=1) & (2 * common.sum(axis=1) >= fewest) & (fewest > 0)
            pairs |= {(first, first + 1 + int(other)) for other in np.flatnonzero(is_equal)}
        return pairs

    def count_digits(
        self, first: int, second: int, group: Collection[int], slowdown: float | None = None
    ) -> float:
        """Count the digits of the chance that two rows are equal: 9 for a chance of one in a thousand million.

        Parameters
        ----------
        first, second : int
            The rows, in their order.
        group : collection of int
            The rows that are equal to these two; they do not count as neighbours.
        slowdown : float, optional
            The factor by which a step may have moved less than its neighbours; by default that of the rules above.
        """
        is_common = ~np.isnan(self.values[first] + self.values[second])
        common_counts = (~np.isnan(self.values[:, is_common])).sum(axis=1)
        other_rows = [  # with at least half of the numbers
            row
            for row in range(len(self.steps))
            if row not in group and 2 * common_counts[row] >= is_common.sum()
        ]
        is_return = any(first < other < second for other in other_rows)
        if slowdown is None:
            is_end = not any(other > second for other in other_rows)
            slowdown = 1.0 if is_return else SLOWDOWN_AT_END if is_end else SLOWDOWN
        distance = self.steps[second] - self.steps[first]
        sides = []
        for row in (first, second):
            earlier_rows = [other for other in other_rows if other < row][-NEIGHBOURS:]
            later_rows = [other for other in other_rows if other > row][:NEIGHBOURS]
            digits = []
            for other in earlier_rows + later_rows:
                share = min(1.0, distance / abs(self.steps[row] - self.steps[other])) / slowdown
                digits.append(self._count_digits_of_difference(row, other, share * is_common))
            sides.append(min(digits, default=0.0))
        pairs = len(self.steps) * (len(self.steps) - 1) / 2
        return max(0.0, (max if is_return else min)(sides) - math.log10(pairs))

    def _count_digits_of_difference(self, row: int, other: int, shares: np.ndarray) -> float:
        grids = np.maximum(self.grids, self._rounding[row])
        with np.errstate(invalid="ignore"):
            units = np.abs(self.values[row] - self.values[other]) / grids * shares
        column_digits = np.log10(np.maximum(2 * np.where(np.isfinite(units), units, 0.0), 1.0))
        task_digits = np.zeros(self._tasks.max(initial=-1) + 1)
        np.maximum.at(task_digits, self._tasks, column_digits)
        return float(task_digits.sum()) / DEPENDENT_TASKS
