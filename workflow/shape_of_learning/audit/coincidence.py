"""Whether the results of two steps can be equal by chance, from how finely their neighbours differ.

Training moves the weights, and with them the numbers that an evaluation prints; a step whose numbers are all those
of another one holds its weights, unless the numbers are too few or too coarse to show that it moved. A column whose
numbers are multiples of :math:`g` (of 1/500 where 500 questions are asked) and which differs by :math:`u g` from a
neighbour would have printed the same number, had the weights moved as far as they did, with a chance of about
:math:`1 / 2u`: the density at 0 of a change of that size, times :math:`g`.

Four rules keep the product of these chances on the safe side:

- Of the neighbours, ``NEIGHBOURS`` on each side, the one that differs least decides. Where the training was elsewhere
  between the two steps, either of them came back by chance, so the one with the larger differences decides.
- A step that follows its equal directly may have moved ``STILLER`` times less than its neighbours, at the end of
  training ``STANDING`` times, as where a learning rate falls to almost 0; and less by the ratio of the distances.
- Of a task only the number that says most counts, since all are of the same answers.
- Tasks move together: of ``DEPENDENT`` of them one counts.

Columns that never change prove nothing, and so do digits beyond ``FINEST``. Where most of a step's
numbers have fewer decimals than others of their columns, they are taken to be rounded: a table may have some steps in
full and others rounded. All pairs of steps are compared, so the
chance that one of them is equal is at most their number times as high; it must be below ``HIGHEST_CHANCE``.
"""

import math
from collections.abc import Collection, Sequence

import numpy as np

STILLER, STANDING = 10.0, 1000.0
DEPENDENT = 2
NEIGHBOURS = 3
FINEST = 1e-9  # of the median of a column
MOST_DECIMALS = 9  # of a number that is rounded
NOISE = 1e-12  # of a number, from the sums that it is of
HIGHEST_CHANCE = 1e-6


def find_grid(numbers: np.ndarray) -> float:
    """Find the largest number that a column's differences are multiples of; NaN if the column never changes."""
    distinct = np.unique(numbers[np.isfinite(numbers)])
    if len(distinct) < 2:
        return math.nan
    steps = np.diff(distinct)
    finest = FINEST * (float(np.median(np.abs(distinct))) or float(steps.max()))
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
    """Find the last decimal that each number of a rounded row is written with: 0.01 for 0.25.

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
    """The numbers of a training's steps, and the chance that two of them are equal.

    Parameters
    ----------
    steps : sequence of int
        Ascending.
    values : array, shape (steps, columns)
        NaN where a step lacks a number.
    tasks : sequence of str
        Of each column.
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
        """Find the pairs of rows that agree in each number that both have, at least half of those of one."""
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
        self, first: int, second: int, group: Collection[int], stiller: float | None = None
    ) -> float:
        """Count the digits of the chance that two rows are equal: 9 for one in a thousand million.

        Parameters
        ----------
        first, second : int
            The rows, in their order.
        group : collection of int
            The rows that are equal to them, which are no neighbours.
        stiller : float, optional
            How many times less than its neighbours a step may have moved, if not as the rules say.
        """
        is_common = ~np.isnan(self.values[first] + self.values[second])
        are_there = (~np.isnan(self.values[:, is_common])).sum(axis=1)
        others = [  # with half of the numbers, at least
            row
            for row in range(len(self.steps))
            if row not in group and 2 * are_there[row] >= is_common.sum()
        ]
        is_return = any(first < other < second for other in others)
        if stiller is None:
            is_end = not any(other > second for other in others)
            stiller = 1.0 if is_return else STANDING if is_end else STILLER
        distance = self.steps[second] - self.steps[first]
        sides = []
        for row in (first, second):
            before = [other for other in others if other < row][-NEIGHBOURS:]
            after = [other for other in others if other > row][:NEIGHBOURS]
            digits = []
            for other in before + after:
                share = min(1.0, distance / abs(self.steps[row] - self.steps[other])) / stiller
                digits.append(self._count_digits_of_difference(row, other, share * is_common))
            sides.append(min(digits, default=0.0))
        pairs = len(self.steps) * (len(self.steps) - 1) / 2
        return max(0.0, (max if is_return else min)(sides) - math.log10(pairs))

    def _count_digits_of_difference(self, row: int, other: int, shares: np.ndarray) -> float:
        grids = np.maximum(self.grids, self._rounding[row])
        with np.errstate(invalid="ignore"):
            units = np.abs(self.values[row] - self.values[other]) / grids * shares
        of_columns = np.log10(np.maximum(2 * np.where(np.isfinite(units), units, 0.0), 1.0))
        of_tasks = np.zeros(self._tasks.max(initial=-1) + 1)
        np.maximum.at(of_tasks, self._tasks, of_columns)
        return float(of_tasks.sum()) / DEPENDENT
