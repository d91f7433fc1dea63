"""Integrity: which revisions of a training curve are what their names say.

Hashes show that two revisions hold the same weights, not which of the two they belong to. The order of
trust is: what the model list says of known mistakes; the last step, if it is the published model, its
repository's main branch; else the earlier step. Where several revisions hold the weights of main and the last
is none of them, these weights belong to no step of the curve.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from shape_of_learning.checkpoints.weight_listing import MIXED_SHARDS, WeightListing

OK = "ok"


@dataclass(frozen=True)
class KnownBad:
    """A mistake of a publisher that somebody has reported.

    Attributes
    ----------
    steps : collection of int
        The steps with the wrong weights, a tuple or a range.
    source : str
        Where it was reported.
    because : str
        What is wrong with them.
    same_as : int or None
        The step whose weights they are; hashes then decide whether that is still so.
    """

    steps: Collection[int]
    source: str
    because: str = ""
    same_as: int | None = None

    def verdict(self) -> str:
        """Say it in words."""
        reason = self.because or f"same weights as step {self.same_as}"
        return f"known bad: {reason} ({self.source})"


@dataclass(frozen=True)
class CurvePoint:
    """A revision of a curve: its name within the model, where it is and what is listed there."""

    name: str
    step: int | None
    repository: str
    listed: WeightListing
    is_main: bool = False


@dataclass(frozen=True)
class JudgedCheckpoint:
    """A checkpoint of a model and the verdict on it; step and tokens are None where there are none."""

    name: str
    step: int | None
    tokens: int | None
    verdict: str


def verdicts(
    points: Sequence[CurvePoint],
    mains: Mapping[str, WeightListing],
    known_bad: Sequence[KnownBad] = (),
) -> dict[str, str]:
    """Judge every revision of a curve from what the Hub lists, before any weights are downloaded.

    Parameters
    ----------
    points : sequence of CurvePoint
        All revisions of the curve.
    mains : mapping of str to WeightListing
        The main branches of repositories whose other branches are in the curve.
    known_bad : sequence of KnownBad
        What the model's entry says.

    Returns
    -------
    dict of str to str
        Name of the revision -> ``ok``, ``same weights as step N``, ``same weights as main``,
        ``missing``, ``no weights``, ``mixed shards`` or ``known bad: ...``; in the order of `points`.

    Notes
    -----
    A revision has mixed shards if its index names files that are not there, if its files hold fewer bytes
    than the index says, or if some but not all of them are those of another revision.
    """
    steps = {point.step for point in points if not point.listed.problem}
    last = max(steps, default=None, key=lambda step: step or 0)
    mistakes = {
        point.name: mistake
        for point in points
        for mistake in known_bad
        if point.step in mistake.steps
    }
    # Whether a step still has the weights of another is to be seen, unless the other is not here.
    judged = {
        name: mistake.verdict()
        for name, mistake in mistakes.items()
        if mistake.same_as is None or mistake.same_as not in steps
    }

    def distrust(point: CurvePoint) -> tuple[int, int]:
        if point.name in judged:
            return 0, 0  # first, so that whoever shares its weights is found
        if point.name in mistakes:
            return 3, point.step or 0
        return (1 if point.step == last and _is_published(point, mains) else 2), point.step or 0

    of_main = _copies_of_main(points, mains, last)
    found: dict[str, str] = {}
    seen: list[CurvePoint] = []
    for point in sorted(points, key=distrust):
        if point.listed.problem:
            found[point.name] = point.listed.problem
            continue
        if point.name in judged:
            found[point.name] = judged[point.name]
        elif point.name in of_main:
            found[point.name] = "same weights as main"
        elif twin := _first(seen, point.listed.same_weights):
            found[point.name] = f"same weights as step {twin.step}"
        elif _first(seen, point.listed.shares_a_shard):
            found[point.name] = MIXED_SHARDS
        else:
            found[point.name] = OK
        seen.append(point)
    return {point.name: found[point.name] for point in points}


def _is_published(point: CurvePoint, mains: Mapping[str, WeightListing]) -> bool:
    main = mains.get(point.repository)
    return point.is_main or (main is not None and main.same_weights(point.listed))


def _copies_of_main(
    points: Sequence[CurvePoint], mains: Mapping[str, WeightListing], last: int | None
) -> set[str]:
    """Names of revisions that repeat their repository's main branch.

    One revision alone may be what main was made from, and the last step usually is.
    """
    copies: set[str] = set()
    for repository, main in mains.items():
        same = [
            point
            for point in points
            if point.repository == repository and main.same_weights(point.listed)
        ]
        if len(same) > 1 and last not in {point.step for point in same}:
            copies |= {point.name for point in same}
    return copies


def _first(
    points: Sequence[CurvePoint], holds: Callable[[WeightListing], bool]
) -> CurvePoint | None:
    return next((point for point in points if holds(point.listed)), None)
