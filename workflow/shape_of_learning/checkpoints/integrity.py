"""Integrity: which revisions of a training curve are what their names say, before any of them is downloaded.

Hashes show that two revisions hold the same weights, not which of the two they belong to. What tells is a
report in the model's entry, and that the last step of training is the published model. Where nothing tells,
none of them is ok. A report that a step holds another one's weights is believed where the hashes say so or
where they cannot say; files that differ may still hold the same tensors, so then the tensors decide.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from shape_of_learning.checkpoints.judged_checkpoint import (
    NOT_YET_CONFIRMED,
    OK,
    JudgedCheckpoint,
)
from shape_of_learning.checkpoints.shared_weights import (
    misplaced_parts,
    owner,
    sharing,
    verdicts_of_equals,
)
from shape_of_learning.checkpoints.weight_listing import MIXED_SHARDS, WeightListing

MAIN = "main of "  # no revision's name has a blank


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
        The step whose weights they are; hashes and tensors then decide whether that is still so.
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


def judged_curve(
    points: Sequence[CurvePoint],
    mains: Mapping[str, WeightListing],
    known_bad: Sequence[KnownBad] = (),
    last_step: int | None = None,
) -> list[JudgedCheckpoint]:
    """Judge every revision of a curve from what is listed of it, before any weights are downloaded.

    Parameters
    ----------
    points : sequence of CurvePoint
        Revisions of the curve, all or some.
    mains : mapping of str to WeightListing
        The main branches of repositories whose other branches are in the curve.
    known_bad : sequence of KnownBad
        What the model's entry says.
    last_step : int, optional
        The last step of training, whether it is among the `points` or not. If it is not given, the latest of
        the points is the last step only if it holds the weights of its repository's main branch.

    Returns
    -------
    list of JudgedCheckpoint
        In the order of `points`, without tokens. Verdicts are ``ok``, ``same weights as step N``,
        ``same weights as main``, ``same weights in steps ...; nothing tells whose they are``, ``missing``,
        ``no weights``, ``mixed shards`` or ``known bad: ...``, which may end in ``, not yet confirmed``.

    Notes
    -----
    Main is the end of training if the last step is in its repository, or not in the curve. No step but the
    last may hold its weights. Shards are judged as in :func:`.misplaced_parts`. A revision has mixed shards
    also if its index names files that are not there, or if its files hold fewer bytes than the index says.
    """
    ordered = sorted(points, key=_step)
    last = _last_of_training(ordered, mains, last_step)
    ends = _mains_at_the_end(ordered, mains, last_step)
    judged = {point.name: _on_its_own(point, known_bad, point.name == last) for point in ordered}
    listed = {point.name: point.listed for point in ordered if not point.listed.problem}
    signatures = {name: each.signatures() for name, each in {**listed, **ends}.items()}
    counted = {name for name in signatures if name in ends or not judged[name].is_condemned}
    for group in sharing(signatures):
        members = [judged[name] for name in group if name in judged]
        with_main = len(members) < len(group)
        right = owner(members, with_main=with_main)
        # Whoever they belong to, these weights count once where single shards are compared.
        counted -= set(group) - {right or group[-1 if with_main else 0]}
        for name, verdict in verdicts_of_equals(members, with_main=with_main).items():
            judged[name] = replace(judged[name], verdict=verdict)
    shards = [(name, each.shards()) for name, each in listed.items() if name in counted]
    held = {value for _, parts in shards for value in parts.values()}
    for name, main in ends.items():
        if name in counted:  # written anew, all files of main may differ: that tells nothing
            shards.append((name, {p: v for p, v in main.shards().items() if v in held}))
    for name in misplaced_parts(shards, {*ends, last or ""}):
        if not judged[name].is_condemned:
            judged[name] = replace(judged[name], verdict=MIXED_SHARDS)
    return [_with_report(judged[point.name], judged, known_bad) for point in points]


def _on_its_own(
    point: CurvePoint, known_bad: Sequence[KnownBad], is_last: bool
) -> JudgedCheckpoint:
    """What is known of a revision without comparing it."""
    reports = [each for each in known_bad if point.step in each.steps]
    believed = [each.verdict() for each in reports if each.same_as is None]
    same_as = next((each.same_as for each in reports if each.same_as is not None), None)
    verdict = point.listed.problem or (believed[0] if believed else OK)
    return JudgedCheckpoint(point.name, point.step, None, verdict, is_last, same_as)


def _with_report(
    judged: JudgedCheckpoint, curve: Mapping[str, JudgedCheckpoint], known_bad: Sequence[KnownBad]
) -> JudgedCheckpoint:
    """Add a report that the hashes neither confirm nor replace by what they say."""
    if judged.same_as is None or judged.verdict != OK:
        return judged
    report = next(
        each for each in known_bad if judged.step in each.steps and each.same_as is not None
    )
    other = next((each for each in curve.values() if each.step == judged.same_as), None)
    can_be_compared = other is not None and other.verdict == OK and other.same_as is None
    doubt = NOT_YET_CONFIRMED if can_be_compared else ""
    return replace(judged, verdict=report.verdict() + doubt)


def _last_of_training(
    ordered: Sequence[CurvePoint], mains: Mapping[str, WeightListing], last_step: int | None
) -> str | None:
    """Name of the last step of training, if it is in the curve."""
    if last_step is not None:
        return next((point.name for point in ordered if point.step == last_step), None)
    if not ordered:
        return None
    latest = ordered[-1]
    main = mains.get(latest.repository)
    is_published = latest.is_main or (main is not None and main.same_weights(latest.listed))
    return latest.name if is_published else None


def _mains_at_the_end(
    ordered: Sequence[CurvePoint], mains: Mapping[str, WeightListing], last_step: int | None
) -> dict[str, WeightListing]:
    """Main branches that hold what training ended with, under names that no revision has."""
    if last_step is None:
        last = ordered[-1] if ordered else None
    else:
        last = next((point for point in ordered if point.step == last_step), None)
    return {
        MAIN + repository: main
        for repository, main in mains.items()
        if last is None or last.repository == repository
    }


def _step(point: CurvePoint) -> int:
    return point.step or 0
