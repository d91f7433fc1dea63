"""Which training steps a run looks at, where a rule and not a list says it."""

import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class StepRule:
    """A way to choose among the steps that a repository offers.

    Attributes
    ----------
    spacing : {"log", "linear", "all"}
        Whether the ratio or the difference of neighbouring steps is to be even, or none is left out.
    points : int or None
        How many steps; None, for ``"log"`` only, takes one per doubling.
    """

    spacing: str
    points: int | None = None

    @classmethod
    def parse(cls, written: Any) -> "StepRule | None":
        """Read ``all``, ``log``, ``{log: 12}`` or ``{linear: 20}``; None for a list, which needs no rule."""
        if isinstance(written, dict):
            ((spacing, points),) = written.items()
            return cls(spacing, points)
        return None if isinstance(written, list) else cls(written)

    def __str__(self) -> str:
        return self.spacing if self.points is None else f"{self.spacing}: {self.points}"

    def choose(self, offered: Iterable[int]) -> list[int]:
        """Choose steps.

        Parameters
        ----------
        offered : iterable of int
            The steps that there are.

        Returns
        -------
        list of int
            Ascending: with ``"all"`` each of them; else the first and the last that are offered, and between
            them those nearest to even spacing, no two of them the same. Step 0 has no logarithm: with
            ``"log"`` it comes besides the even spacing, but counts among the points.

        Examples
        --------
        >>> StepRule("log").choose(range(101))
        [0, 1, 2, 4, 8, 16, 32, 64, 100]
        >>> StepRule("linear", 3).choose(range(0, 101, 10))
        [0, 50, 100]
        """
        steps = sorted(set(offered))
        if self.spacing == "all":
            return steps
        if self.spacing == "linear":
            return _nearest(steps, _even(steps, self.points, float, float))
        positive = [step for step in steps if step > 0]
        zero = [step for step in steps if step == 0]
        points = None if self.points is None else max(1, self.points - len(zero))
        return zero + _nearest(positive, _even(positive, points, math.log, math.exp), math.log)


def _even(steps: list[int], points: int | None, scale: Any, back: Any) -> list[float]:
    """Targets from the first to the last step, evenly spaced on a scale."""
    if not steps:
        return []
    low, high = scale(steps[0]), scale(steps[-1])
    if points is None:
        doublings = range(math.floor((high - low) / math.log(2)) + 1)
        return [steps[0] * 2.0**i for i in doublings] + [float(steps[-1])]
    if points == 1:
        return [float(steps[-1])]
    return [back(low + (high - low) * i / (points - 1)) for i in range(points)]


def _nearest(steps: list[int], targets: list[float], scale: Any = float) -> list[int]:
    chosen = set()
    for target in targets:
        place = bisect_left(steps, target)
        around = steps[max(0, place - 1) : place + 1]
        chosen.add(min(around, key=lambda step: abs(scale(step) - scale(target))))
    return sorted(chosen)
