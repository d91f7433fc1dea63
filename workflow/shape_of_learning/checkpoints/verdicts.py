"""Which checkpoints of a training are what their names say, by the hashes of their files.

Training changes weights. So of steps with the same weights at most one is what its name says, and a shard or
tensor that another step holds too was put where it does not belong. Hashes do not say whose equal weights
are: the last step of training and the published model, the main branch, own theirs, and a report in the
model's entry may name the owner. Where nothing tells, none of them is ok. Only at the very start equal steps
are right: a first update at learning rate 0 moves nothing (EleutherAI/gpt-neox#1373).
"""

import re
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Literal, TypeVar

from pydantic import Field, model_validator

from shape_of_learning.checkpoints.lock import MAIN, MIXED_SHARDS, Checkpoint, Listing
from shape_of_learning.validation import Section, make_validation_error, must_be, unique

OK = "ok"
NOT_YET_MOVED = "not yet moved"
NOT_YET_CONFIRMED = ", not yet confirmed"
MOST_NAMED = 4  # steps of one verdict; of more, their number and the ends are said
# So many checkpoints at the end that share a part show that it moves no more; two may be a mistake.
STANDSTILL = 3

Part = TypeVar("Part", bound=Hashable)
LAST_STEP = 10**12
Step = Annotated[int, Field(ge=0, le=LAST_STEP)]
Steps = Annotated[list[Step], Field(min_length=1), unique]
Range = Annotated[dict[Literal["from", "to"], Step], Field(min_length=2)]


class Mistake(Section):
    """A publisher's mistake that somebody has reported.

    Attributes
    ----------
    steps
        a list, or `from` and `to`
    because
        what is wrong with them; believed
    same_as
        the step whose weights they are, until tensors or losses say otherwise
    source
        where it is reported
    """

    steps: Annotated[Steps | Range, must_be("a list of steps, or `from` and `to`")]
    because: str | None = None
    same_as: Step | None = None
    source: str

    @property
    def all_steps(self) -> tuple[int, ...] | range:
        """The steps that it is about."""
        if isinstance(self.steps, dict):
            return range(self.steps["from"], self.steps["to"] + 1)
        return tuple(self.steps)

    @model_validator(mode="after")
    def _makes_sense(self) -> "Mistake":
        if (self.because is None) == (self.same_as is None):
            raise make_validation_error("needs exactly one of `because` or `same_as`")
        if not self.all_steps:
            raise make_validation_error("has `steps` whose `from` is above `to`; exchange them")
        if self.same_as in self.all_steps:
            own = f"says that step {self.same_as} has the weights of itself"
            raise make_validation_error(f"{own}; take it from `steps`, or correct `same_as`")
        return self

    @property
    def verdict(self) -> str:
        """It in words."""
        reason = self.because or f"same weights as step {self.same_as}"
        return f"known bad: {reason} ({self.source})"


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


def judge_listing(
    checkpoints: Sequence[Checkpoint],
    listed: Mapping[str, Listing],
    mains: Mapping[str, Listing],
    known_bad: Sequence[Mistake] = (),
    last_step: int | None = None,
) -> list[JudgedCheckpoint]:
    """Judge every revision of a curve from what is listed of it, before any weights are downloaded.

    Parameters
    ----------
    checkpoints : sequence of Checkpoint
        Those of the curve, all or some.
    listed : mapping of str to Listing
        By name, what is listed of them; nothing where nobody was asked.
    mains : mapping of str to Listing
        The main branches of repositories whose other branches are in the curve.
    known_bad : sequence of Mistake
        What the model's entry says.
    last_step : int, optional
        The last step of training, whether it is among them or not. Without it the latest one is the
        last step only if it holds the weights of its repository's main branch.

    Returns
    -------
    list of JudgedCheckpoint
        In the order of `checkpoints`. Verdicts are ``ok``, ``not yet moved``, ``same weights as step N``, ``same
        weights as main``, ``same weights in steps ...; nothing tells whose they are``, ``missing``, ``no
        weights``, ``mixed shards`` or ``known bad: ...``, which may end in ``, not yet confirmed``.

    Notes
    -----
    Main is the end of training if the last step is in its repository, or not in the curve. No step but the
    last may hold its weights.
    """
    ordered = sorted(checkpoints, key=lambda each: each.step or 0)
    last = _find_last_of_training(ordered, listed, mains, last_step)
    latest = last if last or last_step is not None else (ordered[-1] if ordered else None)
    ends = {  # no revision's name has a blank
        f"main of {repository}": main
        for repository, main in mains.items()
        if not main.problem and (latest is None or latest.repository == repository)
    }
    judged = {c.name: _judge_alone(c, listed.get(c.name), known_bad, c is last) for c in ordered}
    found = {c.name: listed[c.name] for c in ordered if c.name in listed}
    whole = {name: each for name, each in found.items() if not each.problem}
    groups = group_by_signature(
        {name: list_signatures(each) for name, each in {**whole, **ends}.items()}
    )
    once = {name for name in {**whole, **ends} if name in ends or not judged[name].is_condemned}
    for group in groups:
        members = [judged[name] for name in group if name in judged]
        with_main = len(members) < len(group)
        equals = judge_equals(members, list(whole), with_main=with_main) if members else {}
        judged = set_verdicts(judged, equals)
        # Whoever they belong to, these weights count once where single shards are compared.
        right = [name for name in group if name in judged and judged[name].verdict == OK]
        once -= set(group) - {right[0] if right else group[-1 if with_main else 0]}
    curve = {name: hash_shards(each) for name, each in whole.items() if name in once}
    held = {value for parts in curve.values() for value in parts.values()}
    for name in once & ends.keys():
        # Written anew, all files of main may differ: that tells nothing.
        curve[name] = {p: value for p, value in hash_shards(ends[name]).items() if value in held}
    misplaced = find_misplaced_parts(curve, {*ends, last.name if last else ""})
    mixed = [name for name in misplaced if not judged[name].is_condemned]
    judged = set_verdicts(judged, dict.fromkeys(mixed, MIXED_SHARDS))
    return [
        _add_report(judged[checkpoint.name], judged.values(), known_bad)
        for checkpoint in checkpoints
    ]


def set_verdicts(
    judged: Mapping[str, JudgedCheckpoint], found: Mapping[str, str]
) -> dict[str, JudgedCheckpoint]:
    """Checkpoints by name, those in `found` with another verdict."""
    changed = {name: replace(judged[name], verdict=verdict) for name, verdict in found.items()}
    return {**judged, **changed}


def judge_equals(
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
    condemned = [member for member in members if member.is_condemned]
    is_end = with_main or condemned or any(member.is_last for member in members)
    is_start = members[0].step == 0 and {e.name for e in members} == {*in_order[: len(members)]}
    if is_start and not is_end:
        return {members[0].name: OK} | {member.name: NOT_YET_MOVED for member in members[1:]}
    owner = _find_owner(members, with_main=with_main)
    if owner is not None:
        verdict = f"same weights as step {owner.step}"
    elif with_main:
        verdict = "same weights as main"
    elif condemned:
        verdict = f"same weights as step {condemned[0].step}"
    else:
        verdict = f"same weights in {_format_steps(members)}; nothing tells whose they are"
    return {e.name: e.verdict if e.is_condemned or e is owner else verdict for e in members}


def _find_owner(members: Sequence[JudgedCheckpoint], *, with_main: bool) -> JudgedCheckpoint | None:
    """The last step of training, unless it is reported to hold another's; or whom reports name."""
    last = next((member for member in members if member.is_last and not member.is_condemned), None)
    steps = {member.step: member for member in members}
    if last is not None and last.same_as not in steps:
        return last
    named = {member.same_as for member in members if member.same_as in steps}
    owners = [steps[step] for step in named]
    owners = [owner for owner in owners if owner.same_as is None and not owner.is_condemned]
    return owners[0] if len(owners) == 1 and (last is not None or not with_main) else None


def list_signatures(listed: Listing) -> list[tuple[str, ...]]:
    """Tell what weights these are, once per format: revisions with one in common hold the same."""
    formats = (listed.files, listed.other_format)
    return [tuple(sorted(file.hash for file in files.values())) for files in formats if files]


def hash_shards(listed: Listing) -> dict[str, str]:
    """Hashes of the shards in any format; their names are without the number of shards."""
    formats = [files for files in (listed.files, listed.other_format) if len(files) > 1]
    files = {name: file for each in formats for name, file in each.items()}
    return {re.sub(r"-of-\d+", "", name): file.hash for name, file in files.items()}


def group_by_signature(signatures: Mapping[str, Iterable[Hashable]]) -> list[list[str]]:
    """Find the names that hold the same weights: with a signature in common, or linked by others."""
    group_of: dict[str, list[str]] = {}
    holder: dict[Hashable, str] = {}
    for name, of_name in signatures.items():
        group_of[name] = [name]
        for signature in of_name:
            other = group_of[holder.setdefault(signature, name)]
            if other is not group_of[name]:
                merged = other + group_of[name]
                group_of.update(dict.fromkeys(merged, merged))
    return list({id(group): group for group in group_of.values() if len(group) > 1}.values())


def find_misplaced_parts(
    curve: Mapping[str, Mapping[Part, str]], ends: Collection[str]
) -> dict[str, set[Part]]:
    """Find parts of the weights, shards or tensors, that are not those of their step.

    Parameters
    ----------
    curve : mapping of str to mapping of hashable to str
        Name of a checkpoint -> the hash of each part, by training step.
    ends : collection of str
        Names of the last step of training and of the published model: their parts are theirs.

    Returns
    -------
    dict of str to set of hashable
        Name of a checkpoint -> parts that it should not hold.

    Notes
    -----
    A part that changes at fewer than half of the steps mostly stays: what differs between equal ones is
    wrong. Of any other a value is held by one step, by the first ones in a row, where it has not moved yet,
    or by three or more in a row at the end, where it moves no more. Who else shares a value should not,
    but for an end and those in a row before it.
    """
    values: dict[Part, list[tuple[str, str]]] = defaultdict(list)
    for name, parts in curve.items():
        for part, value in parts.items():
            values[part].append((name, value))
    found: dict[str, set[Part]] = defaultdict(set)
    for part, held in values.items():
        changes = sum(a != b for (_, a), (_, b) in pairwise(held))
        if changes:
            mostly_stays = 2 * changes < len(held) - 1
            for place in _find_between_equals(held) if mostly_stays else _find_repeated(held, ends):
                found[held[place][0]].add(part)
    return {name: parts for name, parts in found.items() if name not in ends}


def _find_between_equals(held: Sequence[tuple[str, str]]) -> set[int]:
    last = {value: place for place, (_, value) in enumerate(held)}
    found, reach = set(), (-1, "")  # the farthest place at which a value comes again
    for place, (_, value) in enumerate(held):
        if reach[0] > place and value != reach[1]:
            found.add(place)
        else:
            reach = max(reach, (last[value], value))
    return found


def _find_repeated(held: Sequence[tuple[str, str]], ends: Collection[str]) -> set[int]:
    places: dict[str, list[int]] = defaultdict(list)
    for place, (_, value) in enumerate(held):
        places[value].append(place)
    found: set[int] = set()
    for value, shared in places.items():
        if len(shared) == 1 or shared == list(range(len(shared))):
            continue
        row = {p for i, p in enumerate(reversed(shared)) if p == shared[-1] - i}
        stands_still = value == held[-1][1] and len(row) >= STANDSTILL
        is_of_the_end = row == set(shared) or any(held[place][0] in ends for place in row)
        found |= set(shared) - (row if stands_still and is_of_the_end else set())
    return found


def _find_last_of_training(
    ordered: Sequence[Checkpoint],
    listed: Mapping[str, Listing],
    mains: Mapping[str, Listing],
    last_step: int | None,
) -> Checkpoint | None:
    """The last step of training, if it is in the curve."""
    if last_step is not None:
        return next((each for each in ordered if each.step == last_step), None)
    latest = ordered[-1] if ordered else None
    if latest is None or latest.revision == MAIN:
        return latest
    both = mains.get(latest.repository), listed.get(latest.name)
    published, own = (set(list_signatures(each)) if each else set() for each in both)
    return latest if published & own else None


def _judge_alone(
    checkpoint: Checkpoint, listed: Listing | None, known_bad: Sequence[Mistake], is_last: bool
) -> JudgedCheckpoint:
    """What is known of a revision without comparing it."""
    reports = [each for each in known_bad if checkpoint.step in each.all_steps]
    believed = [report.verdict for report in reports if report.same_as is None]
    same_as = next((report.same_as for report in reports if report.same_as is not None), None)
    problem = listed.problem if listed else ""
    verdict = problem or [*believed, OK][0]
    named = checkpoint.name, checkpoint.step, checkpoint.tokens
    return JudgedCheckpoint(*named, verdict, is_last, same_as)


def _add_report(
    judged: JudgedCheckpoint, curve: Collection[JudgedCheckpoint], known_bad: Sequence[Mistake]
) -> JudgedCheckpoint:
    """Add a report that the hashes neither confirm nor replace by what they say."""
    if judged.same_as is None or judged.verdict != OK:
        return judged
    report = next(r for r in known_bad if judged.step in r.all_steps and r.same_as is not None)
    other = next((each for each in curve if each.step == judged.same_as), None)
    can_be_compared = other is not None and other.verdict == OK and other.same_as is None
    doubt = NOT_YET_CONFIRMED if can_be_compared else ""
    return replace(judged, verdict=report.verdict + doubt)


def _format_steps(members: Sequence[JudgedCheckpoint]) -> str:
    steps = [member.step or 0 for member in members]
    if len(steps) > MOST_NAMED:
        return f"{len(steps)} steps from {steps[0]} to {steps[-1]}"
    return f"steps {', '.join(map(str, steps[:-1]))} and {steps[-1]}"
