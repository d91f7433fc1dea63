"""Which checkpoints of a training are what their names say: by hashes, then by tensors and losses.

Training changes weights. So of steps with the same weights at most one is what its name says, and a shard or
tensor that another step holds too was put where it does not belong. Hashes do not say whose equal weights
are: the last step of training and the published model, the main branch, own theirs, and a report in the
model's entry may name the owner. Where nothing tells, none of them is ok. Only at the very start equal steps
are right: a first update at learning rate 0 moves nothing (EleutherAI/gpt-neox#1373).
"""

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from shape_of_learning.checkpoints.lock import MIXED_SHARDS, Listing
from shape_of_learning.checkpoints.losses import MeasuredLoss, broken
from shape_of_learning.checkpoints.shared_parts import (
    misplaced_parts,
    shards,
    sharing,
    signatures,
)

OK = "ok"
NOT_YET_MOVED = "not yet moved"
NOT_OF_THIS_TRAINING = "not of this training"
MIXED_TENSORS = "mixed tensors"
INFINITE = "broken: perplexity is infinite"
NOT_YET_CONFIRMED = ", not yet confirmed"
MOST_NAMED = 4  # steps of one verdict; of more, their number and the ends are said
# Ours: the least share of the elements of all matrices that must be misplaced. Norms and biases are no
# evidence: rounded to 16 bits, their few numbers may stay as they were, or return.
LEAST_SHARE = 0.01
# Nats. Rounding to 16 bits, another batch size or another machine change a loss less than this.
DIFFERENT_LOSSES = 0.01
# Ours: steps in which no training loses its initial values,
# and distances of what has nothing, or much, in common.
EARLY, UNRELATED, RELATED = 512, 0.9, 0.5


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
    """A revision of a curve: its name, where it is and what is listed there, None if nobody was asked."""

    name: str
    step: int | None
    repository: str
    listed: Listing | None
    is_main: bool = False
    tokens: int | None = None


@dataclass(frozen=True)
class JudgedCheckpoint:
    """A checkpoint and the verdict on it.

    Attributes
    ----------
    name : str
        Within its model.
    step, tokens : int or None
        None where there are none.
    verdict : str
        ``ok`` or what is wrong.
    is_last : bool
        Whether it is the last step of training, which owns its weights.
    same_as : int or None
        The step whose weights it is reported to hold.
    """

    name: str
    step: int | None
    tokens: int | None
    verdict: str = OK
    is_last: bool = False
    same_as: int | None = None

    @property
    def is_good(self) -> bool:
        """Whether it is shown: it is ok, or the training has not moved yet."""
        return self.verdict in (OK, NOT_YET_MOVED)

    @property
    def is_condemned(self) -> bool:
        """Whether it is known to be bad; a report that is not yet confirmed does not suffice."""
        return not self.is_good and not self.verdict.endswith(NOT_YET_CONFIRMED)


@dataclass(frozen=True)
class Evidence:
    """What has been measured of a checkpoint.

    Attributes
    ----------
    tensors : mapping of str to (str, str, str)
        Type, shape and SHA-256 of each tensor; empty if they have not been digested.
    loss : float
        Nats per predicted token; NaN where it is undefined.
    predicted_tokens, vocabulary : int
        0 where the loss is undefined.
    sample : sequence of float
        Some values of one matrix, always the same ones.
    """

    tensors: Mapping[str, tuple[str, str, str]]
    loss: float = math.nan
    predicted_tokens: int = 0
    vocabulary: int = 0
    sample: Sequence[float] = ()


def judged_curve(
    points: Sequence[CurvePoint],
    mains: Mapping[str, Listing],
    known_bad: Sequence[KnownBad] = (),
    last_step: int | None = None,
) -> list[JudgedCheckpoint]:
    """Judge every revision of a curve from what is listed of it, before any weights are downloaded.

    Parameters
    ----------
    points : sequence of CurvePoint
        Revisions of the curve, all or some.
    mains : mapping of str to Listing
        The main branches of repositories whose other branches are in the curve.
    known_bad : sequence of KnownBad
        What the model's entry says.
    last_step : int, optional
        The last step of training, whether it is among the `points` or not. Without it the latest point is
        the last step only if it holds the weights of its repository's main branch.

    Returns
    -------
    list of JudgedCheckpoint
        In the order of `points`. Verdicts are ``ok``, ``not yet moved``, ``same weights as step N``, ``same
        weights as main``, ``same weights in steps ...; nothing tells whose they are``, ``missing``, ``no
        weights``, ``mixed shards`` or ``known bad: ...``, which may end in ``, not yet confirmed``.

    Notes
    -----
    Main is the end of training if the last step is in its repository, or not in the curve. No step but the
    last may hold its weights.
    """
    ordered = sorted(points, key=lambda each: each.step or 0)
    last = _last_of_training(ordered, mains, last_step)
    latest = last if last or last_step is not None else (ordered[-1] if ordered else None)
    ends = {  # no revision's name has a blank
        f"main of {repository}": main
        for repository, main in mains.items()
        if not main.problem and (latest is None or latest.repository == repository)
    }
    judged = {each.name: _on_its_own(each, known_bad, each is last) for each in ordered}
    listed = {each.name: each.listed for each in ordered if each.listed and not each.listed.problem}
    groups = sharing({name: signatures(each) for name, each in {**listed, **ends}.items()})
    once = {name for name in {**listed, **ends} if name in ends or not judged[name].is_condemned}
    for group in groups:
        members = [judged[name] for name in group if name in judged]
        with_main = len(members) < len(group)
        found = verdicts_of_equals(members, list(listed), with_main=with_main)
        judged |= {name: replace(judged[name], verdict=v) for name, v in found.items()}
        # Whoever they belong to, these weights count once where single shards are compared.
        right = [name for name in group if name in judged and judged[name].verdict == OK]
        once -= set(group) - {right[0] if right else group[-1 if with_main else 0]}
    curve = [(name, shards(each)) for name, each in listed.items() if name in once]
    held = {value for _, parts in curve for value in parts.values()}
    for name in once & ends.keys():
        # Written anew, all files of main may differ: that tells nothing.
        curve.append((name, {p: value for p, value in shards(ends[name]).items() if value in held}))
    for name in misplaced_parts(curve, {*ends, last.name if last else ""}):
        if not judged[name].is_condemned:
            judged[name] = replace(judged[name], verdict=MIXED_SHARDS)
    return [_with_report(judged[each.name], judged.values(), known_bad) for each in points]


def judged_by_measurements(
    checkpoints: Sequence[JudgedCheckpoint], measured: Mapping[str, Evidence]
) -> list[JudgedCheckpoint]:
    """Judge checkpoints of one training by their tensors, then those that are still ok by their losses.

    Parameters
    ----------
    checkpoints : sequence of JudgedCheckpoint
        By step, with the verdicts on their files.
    measured : mapping of str to Evidence
        By name; those that have not been measured keep their verdicts.

    Notes
    -----
    An infinite loss comes first: such weights are broken, whosesoever they are, and condemn no other. Tensors
    of equal names, types and shapes decide; without them losses that are equal to the last bit do, so that
    weights in a wider type are found. A report that was not yet confirmed is replaced by what these say.
    """
    judged = {each.name: each for each in checkpoints}
    for name, each in measured.items():
        if math.isinf(each.loss) and not judged[name].is_condemned:
            judged[name] = replace(judged[name], verdict=INFINITE)
    known = [n for n in judged if n in measured and not math.isinf(measured[n].loss)]
    links: dict[str, list[Hashable]] = {name: [name] for name in known}
    for a, b in combinations(known, 2):
        if same_weights(measured[a], measured[b]):
            links[b].append(a)
    for group in sharing(links):
        found = verdicts_of_equals([judged[name] for name in group], known)
        judged |= {name: replace(judged[name], verdict=v) for name, v in found.items()}
    by_step = {judged[name].step: name for name in known}
    for name in known:
        other = by_step.get(judged[name].same_as)
        doubted = judged[name].verdict.endswith(NOT_YET_CONFIRMED)
        if doubted and other and same_weights(measured[name], measured[other]) is False:
            judged[name] = replace(judged[name], verdict=OK)
    good = [judged[name] for name in known if judged[name].verdict == OK]
    found = dict.fromkeys(_mixed(good, measured), MIXED_TENSORS)
    found |= dict.fromkeys(_strange_start(good, measured), NOT_OF_THIS_TRAINING)
    of_good = [(each, measured[each.name]) for each in good if each.name not in found]
    found |= broken([MeasuredLoss(e.name, e.step or 0, m.loss, m.vocabulary) for e, m in of_good])
    return [replace(each, verdict=found.get(name, each.verdict)) for name, each in judged.items()]


def verdicts_of_equals(
    members: Sequence[JudgedCheckpoint], in_order: Sequence[str], *, with_main: bool = False
) -> dict[str, str]:
    """Judge several checkpoints with the same weights: the owner is what it was, all others are not ok.

    Parameters
    ----------
    members : sequence of JudgedCheckpoint
    in_order : sequence of str
        Names of all checkpoints that can be compared, by step.
    with_main : bool
        Whether the published model, the end of training, has these weights too.
    """
    members = sorted(members, key=lambda each: each.step or 0)
    condemned = [each for each in members if each.is_condemned]
    ends = with_main or condemned or any(each.is_last for each in members)
    is_start = members[0].step == 0 and {e.name for e in members} == {*in_order[: len(members)]}
    if is_start and not ends:
        return {members[0].name: OK} | {each.name: NOT_YET_MOVED for each in members[1:]}
    owner = _owner(members, with_main=with_main)
    if owner is not None:
        verdict = f"same weights as step {owner.step}"
    elif with_main:
        verdict = "same weights as main"
    elif condemned:
        verdict = f"same weights as step {condemned[0].step}"
    else:
        verdict = f"same weights in {_steps(members)}; nothing tells whose they are"
    return {e.name: e.verdict if e.is_condemned or e is owner else verdict for e in members}


def _owner(members: Sequence[JudgedCheckpoint], *, with_main: bool) -> JudgedCheckpoint | None:
    """The last step of training, unless it is reported to hold another's; or whom reports name."""
    last = next((each for each in members if each.is_last and not each.is_condemned), None)
    steps = {each.step: each for each in members}
    if last is not None and last.same_as not in steps:
        return last
    named = {each.same_as for each in members if each.same_as in steps}
    owners = [steps[step] for step in named]
    owners = [each for each in owners if each.same_as is None and not each.is_condemned]
    return owners[0] if len(owners) == 1 and (last is not None or not with_main) else None


def same_weights(a: Evidence, b: Evidence) -> bool | None:
    """Whether two checkpoints hold the same weights; None if nothing tells.

    Tensors are compared by name, if most of those of the smaller one are also in the other: some formats
    leave out what can be computed, or write tied tensors twice.
    """
    common = a.tensors.keys() & b.tensors.keys()
    if common and 2 * len(common) >= min(len(a.tensors), len(b.tensors)):
        differing = [name for name in common if a.tensors[name] != b.tensors[name]]
        if not differing:
            return True
        if any(a.tensors[name][:2] == b.tensors[name][:2] for name in differing):
            return False
    if not (math.isfinite(a.loss) and math.isfinite(b.loss)):
        return None
    if a.loss == b.loss and a.predicted_tokens == b.predicted_tokens:
        return True
    return False if abs(a.loss - b.loss) > DIFFERENT_LOSSES else None


def distance(a: Sequence[float], b: Sequence[float]) -> float:
    r"""Relative distance :math:`|a - b| / \sqrt{|a|^2 + |b|^2}`: 0 of equals, near 1 of what is unrelated."""
    squares = math.fsum(x * x for x in a) + math.fsum(y * y for y in b)
    apart = math.fsum((x - y) ** 2 for x, y in zip(a, b, strict=True))
    return math.sqrt(apart / squares) if squares else 0.0


def _strange_start(
    checkpoints: Sequence[JudgedCheckpoint], measured: Mapping[str, Evidence]
) -> list[str]:
    """Step 0, if the next steps have much in common, but nothing with it (EleutherAI/pythia#203)."""
    early = [each for each in checkpoints if each.step is not None and each.step <= EARLY][:3]
    samples = [measured[each.name].sample for each in early]
    if len(early) < 3 or early[0].step != 0 or not samples[0]:
        return []
    if len({len(sample) for sample in samples}) > 1:
        return []
    first, second, third = samples
    is_strange = distance(first, second) > UNRELATED and distance(second, third) < RELATED
    return [early[0].name] if is_strange else []


def _mixed(checkpoints: Sequence[JudgedCheckpoint], measured: Mapping[str, Evidence]) -> list[str]:
    """Names of checkpoints with matrices that are not those of their step."""
    curve = []
    for each in checkpoints:
        tensors = measured[each.name].tensors.items()
        # Converted to another type, a matrix is another part: its bytes cannot be compared.
        parts = {f"{name} {dtype} {shape}": digest for name, (dtype, shape, digest) in tensors}
        curve.append(
            (each.name, {part: d for part, d in parts.items() if "x" in part.rpartition(" ")[2]})
        )
    elements = {name: _elements(parts) for name, parts in curve}
    misplaced = misplaced_parts(curve, {each.name for each in checkpoints if each.is_last})
    return [n for n, parts in misplaced.items() if _elements(parts) >= LEAST_SHARE * elements[n]]


def _elements(parts: Iterable[str]) -> int:
    shapes = (part.rpartition(" ")[2] for part in parts)
    return sum(math.prod(map(int, shape.split("x"))) for shape in shapes)


def _last_of_training(
    ordered: Sequence[CurvePoint], mains: Mapping[str, Listing], last_step: int | None
) -> CurvePoint | None:
    """The last step of training, if it is in the curve."""
    if last_step is not None:
        return next((point for point in ordered if point.step == last_step), None)
    latest = ordered[-1] if ordered else None
    if latest is None or latest.is_main:
        return latest
    main = mains.get(latest.repository)
    published = set(signatures(main)) if main else set()
    return latest if latest.listed and published & set(signatures(latest.listed)) else None


def _on_its_own(
    point: CurvePoint, known_bad: Sequence[KnownBad], is_last: bool
) -> JudgedCheckpoint:
    """What is known of a revision without comparing it."""
    reports = [each for each in known_bad if point.step in each.steps]
    believed = [each.verdict() for each in reports if each.same_as is None]
    same_as = next((each.same_as for each in reports if each.same_as is not None), None)
    problem = point.listed.problem if point.listed else ""
    verdict = problem or (believed[0] if believed else OK)
    return JudgedCheckpoint(point.name, point.step, point.tokens, verdict, is_last, same_as)


def _with_report(
    judged: JudgedCheckpoint, curve: Collection[JudgedCheckpoint], known_bad: Sequence[KnownBad]
) -> JudgedCheckpoint:
    """Add a report that the hashes neither confirm nor replace by what they say."""
    if judged.same_as is None or judged.verdict != OK:
        return judged
    report = next(r for r in known_bad if judged.step in r.steps and r.same_as is not None)
    other = next((each for each in curve if each.step == judged.same_as), None)
    can_be_compared = other is not None and other.verdict == OK and other.same_as is None
    doubt = NOT_YET_CONFIRMED if can_be_compared else ""
    return replace(judged, verdict=report.verdict() + doubt)


def _steps(members: Sequence[JudgedCheckpoint]) -> str:
    steps = [each.step or 0 for each in members]
    if len(steps) > MOST_NAMED:
        return f"{len(steps)} steps from {steps[0]} to {steps[-1]}"
    return f"steps {', '.join(map(str, steps[:-1]))} and {steps[-1]}"
