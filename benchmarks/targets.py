"""What a table is to show: targets, and values that must agree."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.results import Results


@dataclass(frozen=True)
class Target:
    """A bound on a number that follows from the rows of a table.

    Attributes
    ----------
    what : str
        In words.
    bound : float or None
        What it must reach; None if it is only of interest.
    measure : callable
        Takes the results, returns the number; a KeyError means that it has not been measured.
    unit : str
        Appended to numbers, such as ``" x"``.
    at_least : bool
        Whether it must not be below, instead of above, the bound.
    """

    what: str
    bound: float | None
    measure: Callable[[Results], float]
    unit: str
    at_least: bool = False

    def measured(self, results: Results) -> float | None:
        """Return the number; None where something has not been measured."""
        try:
            return self.measure(results)
        except KeyError:
            return None

    def met(self, number: float) -> bool:
        """Whether the number reaches the bound, if there is one."""
        if self.bound is None:
            return True
        return number >= self.bound if self.at_least else number <= self.bound


@dataclass(frozen=True)
class Agreement:
    """A value that two contenders must find alike wherever both were measured on one size.

    Attributes
    ----------
    value : str
        Its name among the `values` of both.
    one, other : str
        Contenders.
    tolerance : float
        Relative.
    reason : str
        Why just that much.
    """

    value: str
    one: str
    other: str
    tolerance: float
    reason: str = ""

    def difference(self, results: Results) -> float | None:
        """Return the largest relative difference over all sizes; None where nothing can be compared."""
        found = []
        for size in results.sizes():
            try:
                a, b = (results[size, name].values[self.value] for name in (self.one, self.other))
            except KeyError:
                continue
            found.append(abs(a / b - 1))
        return max(found, default=None)


def require_agreement(agreements: Sequence[Agreement], results: Results) -> None:
    """Raise if two ways to one number disagree.

    Raises
    ------
    RuntimeError
        Names the first pair that does.
    """
    for each in agreements:
        difference = each.difference(results)
        if difference is not None and not difference <= each.tolerance:
            raise RuntimeError(
                f"{each.value}: {each.one} and {each.other} differ by {difference:.1e}, "
                f"beyond {each.tolerance:.0e}"
            )
