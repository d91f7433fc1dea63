"""Judge by files, tensors and losses whether the checkpoints of a training are what their names say.

Training changes weights. Equal steps are right only at the very start, since a first update at learning rate 0 moves
nothing (EleutherAI/gpt-neox#1373). Otherwise at most one of several steps with equal weights is what its name says.
Hashes do not tell the owner of equal weights. The last step of training and the published model, the main branch, own
their weights, and a report in the model's entry may name another owner. Without a known owner no step of a group is ok.
A shard or tensor that several steps share is in the wrong place, unless it rarely or never changes, has not moved yet,
or has stopped moving.

Files of the same weights may differ, but their tensors do not. While a model trains its loss falls, apart from a slow
start, ripples and spikes. A checkpoint with a loss far above its neighbours is broken; with a loss a little above them
it is suspicious.
"""

import math
import re
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from enum import StrEnum
from itertools import combinations, pairwise
from pathlib import Path
from statistics import median_low
from typing import Annotated, Literal, TypeVar

from pydantic import Field, model_validator

from shape_of_learning.checkpoints import lock
from shape_of_learning.checkpoints.lock import MAIN, Checkpoint, Listing
from shape_of_learning.checkpoints.weight_evidence import (
    LOSS_COLUMNS,
    CrossEntropy,
    WeightEvidence,
    read_loss,
    read_tensor_digests,
)
from shape_of_learning.files import write_table
from shape_of_learning.validation import Section, make_validation_error, must_be, unique

COLUMNS = (
    "model",
    "revision",
    "step",
    "tokens",
    *LOSS_COLUMNS,
    "verdict",
    "shown",
    "short_verdict",
)
MOST_NAMED = 4  # steps in one verdict; a verdict on more steps names their number and the ends
# A part that so many checkpoints at the end share moves no more; two equal checkpoints may be a mistake.
STANDSTILL = 3
# Ours: the smallest share of misplaced elements in all matrices. Norms and biases are no evidence: rounded to 16 bits,
# their few numbers may stay the same, or return.
LEAST_SHARE = 0.01
# Nats. Rounding to 16 bits, another batch size or another machine change a loss less than this.
MAX_LOSS_DIFFERENCE = 0.01
# Ours: the last step at which every training still holds its initial values, and the distances above and below which
# weights are unrelated and related.
EARLY, UNRELATED, RELATED = 512, 0.9, 0.5
# Ours: above spikes of 5 nats with their ripples, and far below the factors of 6,000 and more of the broken checkpoints
# that are published.
MARGIN = math.log(250)
# Nats; ours. Ripples and batches move a loss by 0.1. The loss of an untrained model lies at most 0.1 below that of a
# guess; the frequencies of tokens, which a model learns first, lower it by 3.
UNLIKELY = 1.0
# Checkpoints on each side of the judged one: a median of three tolerates one broken checkpoint.
NEIGHBOURS = 3

WeightPart = TypeVar("WeightPart", bound=Hashable)
LAST_STEP = 10**12
Step = Annotated[int, Field(ge=0, le=LAST_STEP)]
Steps = Annotated[list[Step], Field(min_length=1), unique]
Range = Annotated[dict[Literal["from", "to"], Step], Field(min_length=2)]


class Kind(StrEnum):
    """The kinds of verdicts."""

    OK = "ok"
    NOT_YET_MOVED = "not yet moved"
    SAME_AS_STEP = "same weights as step"
    SAME_AS_MAIN = "same weights as main"
    SAME_AS_OTHERS = "same weights in"  # several steps, of unknown owner
    SAME_RESULTS = "same results as step"  # by published results
    MISSING = lock.MISSING
    NO_WEIGHTS = lock.NO_WEIGHTS
    MIXED_SHARDS = lock.MIXED_SHARDS
    MIXED_TENSORS = "mixed tensors"
    NOT_OF_THIS_TRAINING = "not of this training"
    CHANGED = "changed"
    BROKEN = "broken"
    SUSPICIOUS = "suspicious"
    APART = "apart"  # by published results
    REPORTED = "known bad"
    UNCONFIRMED = "known bad, not yet confirmed"
    UNKNOWN = "unknown"

    # A report of Snakemake would read the `<` of the usual form as the start of a tag.
    __repr__ = str.__repr__


@dataclass(frozen=True)
class Verdict:
    """The verdict on a checkpoint.

    Attributes
    ----------
    kind : Kind
    evidence : str
        The reason, such as a loss, a missing shard or a report; empty if the kind is enough.
    steps : tuple of int
        The step that owns the weights, also by a report, or of whose bad weights these are a copy; for
        `SAME_AS_OTHERS` all steps that hold the weights.
    source : str
        The place of a report, such as an address; empty without a report.
    """

    kind: Kind
    evidence: str = ""
    steps: tuple[int, ...] = ()
    source: str = ""


OK, NOT_YET_MOVED = Verdict(Kind.OK), Verdict(Kind.NOT_YET_MOVED)


def format_verdict(verdict: Verdict) -> str:
    """Write a verdict in the words of the workflow's tables, such as ``same weights as step 9``."""
    if verdict.kind in (Kind.SAME_AS_STEP, Kind.SAME_RESULTS):
        return f"{verdict.kind} {verdict.steps[0]}"
    if verdict.kind is Kind.SAME_AS_OTHERS:
        return f"{verdict.kind} {format_doubtful_steps(verdict.steps)}"
    if verdict.kind is Kind.UNCONFIRMED:
        return f"{Kind.REPORTED}: {format_evidence(verdict)}, not yet confirmed"
    return f"{verdict.kind}: {format_evidence(verdict)}" if verdict.evidence else str(verdict.kind)


def format_evidence(verdict: Verdict) -> str:
    """Write the evidence, with the place of a report in brackets."""
    return f"{verdict.evidence} ({verdict.source})" if verdict.source else verdict.evidence


def format_doubtful_steps(steps: Sequence[int]) -> str:
    """Name the steps that share their weights."""
    words = f"steps {', '.join(map(str, steps[:-1]))} and {steps[-1]}"
    if len(steps) > MOST_NAMED:
        words = f"{len(steps)} steps from {steps[0]} to {steps[-1]}"
    return f"{words}; nothing tells whose they are"


def format_atlas_verdict(verdict: Verdict, step: int | None) -> str:
    """Write the verdict on a step in the words of the atlas, such as ``same as step 9``."""
    if verdict.kind is Kind.SAME_AS_MAIN:
        return f"same as {MAIN}"
    if verdict.kind is Kind.SAME_AS_OTHERS:
        other_steps = list(verdict.steps)
        other_steps.remove(step or 0)
        return f"same as step {other_steps[0]}"
    if verdict.kind is Kind.SAME_AS_STEP or (verdict.kind is Kind.REPORTED and verdict.steps):
        return f"same as step {verdict.steps[0]}"
    if verdict.kind is Kind.SAME_RESULTS:
        return f"{verdict.kind} {verdict.steps[0]}"
    shorter = {
        Kind.NO_WEIGHTS: Kind.MISSING,
        Kind.REPORTED: Kind.SUSPICIOUS,
        Kind.UNCONFIRMED: Kind.UNKNOWN,
    }
    return str(shorter.get(verdict.kind, verdict.kind))


def parse_atlas_verdict(words: str) -> Verdict:
    """Parse a verdict from the words of the atlas."""
    if match := re.fullmatch(rf"same as (?:{MAIN}|step (\d+))", words):
        if match[1] is None:
            return Verdict(Kind.SAME_AS_MAIN)
        return Verdict(Kind.SAME_AS_STEP, steps=(int(match[1]),))
    if match := re.fullmatch(rf"{Kind.SAME_RESULTS} (\d+)", words):
        return Verdict(Kind.SAME_RESULTS, steps=(int(match[1]),))
    return Verdict(Kind(words))


class Mistake(Section):
    """A publisher's mistake that somebody has reported.

    Attributes
    ----------
    steps
        a list, or `from` and `to`
    because
        what is wrong with them; taken as true without a check
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
        """The steps that the report is about."""
        if isinstance(self.steps, dict):
            return range(self.steps["from"], self.steps["to"] + 1)
        return tuple(self.steps)

    @model_validator(mode="after")
    def _check_consistency(self) -> "Mistake":
        if (self.because is None) == (self.same_as is None):
            raise make_validation_error("needs exactly one of `because` or `same_as`")
        if not self.all_steps:
            raise make_validation_error("has `steps` whose `from` is above `to`; exchange them")
        if self.same_as in self.all_steps:
            problem = f"says that step {self.same_as} has the weights of itself"
            raise make_validation_error(f"{problem}; take it from `steps`, or correct `same_as`")
        return self

    @property
    def evidence(self) -> str:
        """The report in words, without its source."""
        return self.because or f"{Kind.SAME_AS_STEP} {self.same_as}"


@dataclass(frozen=True)
class JudgedCheckpoint:
    """A checkpoint and the verdict on it.

    Attributes
    ----------
    name : str
        Within its model.
    step, tokens : int or None
        None if unknown.
    verdict : Verdict
    is_last : bool
        Whether the checkpoint is the last step of training, which owns its weights.
    same_as : int or None
        The step that owns the weights by a report.
    """

    name: str
    step: int | None
    tokens: int | None
    verdict: Verdict = OK
    is_last: bool = False
    same_as: int | None = None

    @property
    def is_good(self) -> bool:
        """Whether nothing speaks against the checkpoint: it is ok, or the training has not moved yet."""
        return self.verdict in (OK, NOT_YET_MOVED)

    @property
    def is_bad(self) -> bool:
        """Whether the checkpoint is known to be bad; an unconfirmed report does not suffice."""
        return not self.is_good and self.verdict.kind is not Kind.UNCONFIRMED


# By the hashes of files ---------------------------------------------------------------------------


def judge_listing(
    checkpoints: Sequence[Checkpoint],
    listings: Mapping[str, Listing],
    mains: Mapping[str, Listing],
    known_bad: Sequence[Mistake] = (),
    last_step: int | None = None,
) -> list[JudgedCheckpoint]:
    """Judge each checkpoint of a training by the hashes of its files, before any weights are downloaded.

    Parameters
    ----------
    checkpoints : sequence of Checkpoint
        All or some checkpoints of the training.
    listings : mapping of str to Listing
        The files of checkpoints, by name; a checkpoint is absent if the Hub was not asked for it.
    mains : mapping of str to Listing
        The main branch of each repository whose other branches are among the checkpoints.
    known_bad : sequence of Mistake
        The reports in the model's entry and in the atlas.
    last_step : int, optional
        The last step of training, which need not be among the checkpoints. Without it the latest checkpoint is
        the last step only if it holds the weights of its repository's main branch.

    Returns
    -------
    list of JudgedCheckpoint
        In the order of `checkpoints`.

    Notes
    -----
    Some main branches are the end of training. If the last step is among the checkpoints, it is the main branch of its
    repository. If the last step is known but not among them, it is that of each repository. If the last step is
    unknown, it is that of the repository with the latest checkpoint. No step but the last may hold the weights of such
    a branch.
    """
    ordered_checkpoints = sorted(checkpoints, key=lambda checkpoint: checkpoint.step or 0)
    last = _find_last_of_training(ordered_checkpoints, listings, mains, last_step)
    latest = (
        last
        if last or last_step is not None
        else (ordered_checkpoints[-1] if ordered_checkpoints else None)
    )
    ends = {  # no revision's name has a blank
        f"main of {repository}": main
        for repository, main in mains.items()
        if not main.problem and (latest is None or latest.repository == repository)
    }
    judgements = {}
    for checkpoint in ordered_checkpoints:
        listing = listings.get(checkpoint.name)
        judgements[checkpoint.name] = _judge_alone(
            checkpoint, listing, known_bad, checkpoint is last
        )
    whole = {
        checkpoint.name: listings[checkpoint.name]
        for checkpoint in ordered_checkpoints
        if checkpoint.name in listings and not listings[checkpoint.name].problem
    }
    groups = group_by_signature(
        {name: list_signatures(listing) for name, listing in {**whole, **ends}.items()}
    )
    once = {name for name in {**whole, **ends} if name in ends or not judgements[name].is_bad}
    for group in groups:
        members = [judgements[name] for name in group if name in judgements]
        has_main = len(members) < len(group)
        equals = judge_same_weights(members, list(whole), has_main=has_main) if members else {}
        judgements = set_verdicts(judgements, equals)
        # The comparison of single shards counts these weights once, whatever their owner.
        right = [name for name in group if name in judgements and judgements[name].verdict == OK]
        once -= set(group) - {right[0] if right else group[-1 if has_main else 0]}
    curve = {name: hash_shards(listing) for name, listing in whole.items() if name in once}
    shard_hashes = {shard_hash for shards in curve.values() for shard_hash in shards.values()}
    for name in once & ends.keys():
        # All files of main may differ because they were saved again, so a difference shows nothing.
        main_shards = hash_shards(ends[name]).items()
        curve[name] = {shard: digest for shard, digest in main_shards if digest in shard_hashes}
    misplaced_parts = find_misplaced_parts(curve, {*ends, last.name if last else ""})
    mixed_names = [name for name in misplaced_parts if not judgements[name].is_bad]
    judgements = set_verdicts(judgements, dict.fromkeys(mixed_names, Verdict(Kind.MIXED_SHARDS)))
    return [
        _add_report(judgements[checkpoint.name], judgements.values(), known_bad)
        for checkpoint in checkpoints
    ]


def _find_last_of_training(
    ordered_checkpoints: Sequence[Checkpoint],
    listings: Mapping[str, Listing],
    mains: Mapping[str, Listing],
    last_step: int | None,
) -> Checkpoint | None:
    """Find the last step of training; None if it is not among the checkpoints, or is unknown."""
    if last_step is not None:
        return next(
            (checkpoint for checkpoint in ordered_checkpoints if checkpoint.step == last_step), None
        )
    latest = ordered_checkpoints[-1] if ordered_checkpoints else None
    if latest is None or latest.revision == MAIN:
        return latest
    main, listing = mains.get(latest.repository), listings.get(latest.name)
    if main is None or listing is None:
        return None
    return None if {*list_signatures(main)}.isdisjoint(list_signatures(listing)) else latest


def _judge_alone(
    checkpoint: Checkpoint, listing: Listing | None, known_bad: Sequence[Mistake], is_last: bool
) -> JudgedCheckpoint:
    """Judge a checkpoint by its own listing and the reports on it, without comparing it to others."""
    reports = [mistake for mistake in known_bad if checkpoint.step in mistake.all_steps]
    same_as = next((report.same_as for report in reports if report.same_as is not None), None)
    believed_report = next((report for report in reports if report.same_as is None), None)
    verdict = OK
    if listing and listing.problem:
        verdict = Verdict(Kind(listing.problem), listing.lacking)
    elif believed_report:
        steps = () if same_as is None else (same_as,)
        verdict = Verdict(Kind.REPORTED, believed_report.evidence, steps, believed_report.source)
    return JudgedCheckpoint(
        checkpoint.name, checkpoint.step, checkpoint.tokens, verdict, is_last, same_as
    )


def _add_report(
    checkpoint: JudgedCheckpoint, curve: Collection[JudgedCheckpoint], known_bad: Sequence[Mistake]
) -> JudgedCheckpoint:
    """Add the report that a checkpoint holds the weights of another step, if it is ok by its hashes."""
    if checkpoint.same_as is None or checkpoint.verdict != OK:
        return checkpoint
    report = next(
        mistake
        for mistake in known_bad
        if checkpoint.step in mistake.all_steps and mistake.same_as is not None
    )
    other = next(
        (
            other_checkpoint
            for other_checkpoint in curve
            if other_checkpoint.step == checkpoint.same_as
        ),
        None,
    )
    can_be_compared = other is not None and other.verdict == OK and other.same_as is None
    kind = Kind.UNCONFIRMED if can_be_compared else Kind.REPORTED
    verdict = Verdict(kind, report.evidence, (checkpoint.same_as,), report.source)
    return replace(checkpoint, verdict=verdict)


def set_verdicts(
    judgements: Mapping[str, JudgedCheckpoint], verdicts: Mapping[str, Verdict]
) -> dict[str, JudgedCheckpoint]:
    """Give some checkpoints, by name, another verdict."""
    changed_judgements = {
        name: replace(judgements[name], verdict=verdict) for name, verdict in verdicts.items()
    }
    return {**judgements, **changed_judgements}


def judge_same_weights(
    members: Sequence[JudgedCheckpoint], ordered_names: Sequence[str], *, has_main: bool = False
) -> dict[str, Verdict]:
    """Judge several checkpoints with the same weights: the owner keeps its verdict, the others are its copies.

    At the start of training they are no copies: the first is ok, and the others have not moved yet.

    Parameters
    ----------
    members : sequence of JudgedCheckpoint
    ordered_names : sequence of str
        Names of all checkpoints that can be compared, by step.
    has_main : bool
        Whether the published model, the end of training, has these weights too.
    """
    members = sorted(members, key=lambda member: member.step or 0)
    names = {member.name for member in members}
    bad_members = [member for member in members if member.is_bad]
    is_end = has_main or bad_members or any(member.is_last for member in members)
    is_start = members[0].step == 0 and names == {*ordered_names[: len(members)]}
    if is_start and not is_end:
        return {members[0].name: OK} | {member.name: NOT_YET_MOVED for member in members[1:]}
    owner = _find_owner(members, has_main=has_main)
    if owner is not None:
        verdict = Verdict(Kind.SAME_AS_STEP, steps=(owner.step or 0,))
    elif has_main:
        verdict = Verdict(Kind.SAME_AS_MAIN)
    elif bad_members:
        verdict = Verdict(Kind.SAME_AS_STEP, steps=(bad_members[0].step or 0,))
    else:
        steps = tuple(member.step or 0 for member in members)
        verdict = Verdict(Kind.SAME_AS_OTHERS, steps=steps)
    return {
        member.name: member.verdict if member.is_bad or member is owner else verdict
        for member in members
    }


def _find_owner(members: Sequence[JudgedCheckpoint], *, has_main: bool) -> JudgedCheckpoint | None:
    """Find the owner of equal weights: the last step, unless a report denies it, or the step that reports name."""
    last = next((member for member in members if member.is_last and not member.is_bad), None)
    steps = {member.step: member for member in members}
    if last is not None and last.same_as not in steps:
        return last
    reported_steps = {member.same_as for member in members if member.same_as in steps}
    owners = [steps[step] for step in reported_steps]
    owners = [owner for owner in owners if owner.same_as is None and not owner.is_bad]
    return owners[0] if len(owners) == 1 and (last is not None or not has_main) else None


def list_signatures(listing: Listing) -> list[tuple[str, ...]]:
    """List the hashes of the weights in each format; revisions with a common signature hold the same weights."""
    formats = (listing.files, listing.other_format)
    return [tuple(sorted(file.hash for file in files.values())) for files in formats if files]


def hash_shards(listing: Listing) -> dict[str, str]:
    """Return the hashes of the shards in both formats, by their names without their number; a lone file is no shard."""
    hashes = {}
    for files in (listing.files, listing.other_format):
        if len(files) > 1:
            for name, file in files.items():
                hashes[re.sub(r"-of-\d+", "", name)] = file.hash
    return hashes


def group_by_signature(signatures: Mapping[str, Iterable[Hashable]]) -> list[list[str]]:
    """Group the names that hold the same weights: they share a signature, or other names link them."""
    groups: dict[str, list[str]] = {}
    holder: dict[Hashable, str] = {}
    for name, own_signatures in signatures.items():
        groups[name] = [name]
        for signature in own_signatures:
            other = groups[holder.setdefault(signature, name)]
            if other is not groups[name]:
                merged_group = other + groups[name]
                groups.update(dict.fromkeys(merged_group, merged_group))
    return list({id(group): group for group in groups.values() if len(group) > 1}.values())


def find_misplaced_parts(
    curve: Mapping[str, Mapping[WeightPart, str]], ends: Collection[str]
) -> dict[str, set[WeightPart]]:
    """Find parts of the weights, shards or tensors, that belong to another step.

    Parameters
    ----------
    curve : mapping of str to mapping of hashable to str
        The hash of each part, by name of the checkpoint, in the order of steps.
    ends : collection of str
        Names of the last step of training and of the published model, which own their parts.

    Returns
    -------
    dict of str to set of hashable
        The parts that a checkpoint should not hold, by its name.

    Notes
    -----
    A part that never changes is right. If a part changes at fewer than half of the steps, a value between two equal
    values is wrong. In any other part all values that steps share are wrong, with these exceptions: the first steps in
    a row (the part has not moved yet), three or more steps in a row before an end or up to it (the part no longer
    moves), and the ends themselves.
    """
    values: dict[WeightPart, list[tuple[str, str]]] = defaultdict(list)
    for name, parts in curve.items():
        for part, value in parts.items():
            values[part].append((name, value))
    misplaced_parts: dict[str, set[WeightPart]] = defaultdict(set)
    for part, series in values.items():
        changes = sum(a != b for (_, a), (_, b) in pairwise(series))
        if changes:
            mostly_stays = 2 * changes < len(series) - 1
            places = _find_between_equals(series) if mostly_stays else _find_repeated(series, ends)
            for place in places:
                misplaced_parts[series[place][0]].add(part)
    return {name: parts for name, parts in misplaced_parts.items() if name not in ends}


def _find_between_equals(series: Sequence[tuple[str, str]]) -> set[int]:
    last = {value: place for place, (_, value) in enumerate(series)}
    places = set()
    reach = (-1, "")  # the farthest place at which a value returns, and the value
    for place, (_, value) in enumerate(series):
        if reach[0] > place and value != reach[1]:
            places.add(place)
        else:
            reach = max(reach, (last[value], value))
    return places


def _find_repeated(series: Sequence[tuple[str, str]], ends: Collection[str]) -> set[int]:
    places_by_value: dict[str, list[int]] = defaultdict(list)
    for place, (_, value) in enumerate(series):
        places_by_value[value].append(place)
    repeated_places: set[int] = set()
    for value, places in places_by_value.items():
        if len(places) == 1 or places == list(range(len(places))):
            continue
        row = {place for i, place in enumerate(reversed(places)) if place == places[-1] - i}
        stands_still = value == series[-1][1] and len(row) >= STANDSTILL
        is_of_the_end = row == set(places) or any(series[place][0] in ends for place in row)
        repeated_places |= set(places) - (row if stands_still and is_of_the_end else set())
    return repeated_places


# By tensors and losses ----------------------------------------------------------------------------


def write_verdicts(
    path: Path,
    model: str,
    checkpoints: Sequence[JudgedCheckpoint],
    tables: Mapping[str, tuple[Path, Path]],
    *,
    policy: str,
    is_from_scratch: bool = True,
) -> None:
    """Judge the checkpoints of a model by their tensors and losses and write the table, one row each.

    Parameters
    ----------
    path : Path
        ``results/tables/verdicts/{model}.csv``.
    model : str
        The name of the model.
    checkpoints : sequence of JudgedCheckpoint
        All checkpoints in the model's entry, by step.
    tables : mapping of str to (Path, Path)
        The tables of the loss and of the tensors of each measured checkpoint, by its name.
    policy : {"skip", "flag"}
        Whether figures leave out a checkpoint that is not good (``shown`` is ``no``), or draw it hollow if it has
        been measured. Suspicious checkpoints are hollow in any case.
    is_from_scratch : bool
        As for :func:`judge_measurements`.

    Raises
    ------
    InputError
        If a table cannot be read.
    """
    evidence = {
        name: WeightEvidence(read_loss(loss), read_tensor_digests(tensors))
        for name, (loss, tensors) in tables.items()
    }
    rows = []
    for checkpoint in judge_measurements(checkpoints, evidence, is_from_scratch=is_from_scratch):
        is_measured = checkpoint.name in evidence
        is_drawn = policy == "flag" or checkpoint.verdict.kind is Kind.SUSPICIOUS
        display = "hollow" if is_measured and is_drawn else "no"
        if checkpoint.is_good:
            display = "yes"
        loss = astuple(evidence[checkpoint.name].cross_entropy) if is_measured else ("", "", "")
        place = [model, checkpoint.name, checkpoint.step, checkpoint.tokens]
        words = format_verdict(checkpoint.verdict)
        short_words = format_verdict(replace(checkpoint.verdict, source=""))
        rows.append([*place, *loss, words, display, short_words])
    write_table(path, COLUMNS, rows)


def judge_measurements(
    checkpoints: Sequence[JudgedCheckpoint],
    evidence: Mapping[str, WeightEvidence],
    *,
    is_from_scratch: bool = True,
) -> list[JudgedCheckpoint]:
    """Judge checkpoints of one training by their tensors, then those that are still ok by their losses.

    Parameters
    ----------
    checkpoints : sequence of JudgedCheckpoint
        By step, with the verdicts on their files.
    evidence : mapping of str to WeightEvidence
        By name; checkpoints that have not been measured keep their verdicts.
    is_from_scratch : bool
        Whether step 0 is untrained; in a fine-tuning it is not.

    Notes
    -----
    An infinite loss counts first: the weights are broken, whatever their owner, and speak against no other checkpoint.
    Then tensors of equal names, types and shapes decide. Without them losses decide: if they are equal to the last bit,
    the weights are equal, also in a wider type; if they differ by more than 0.01, the weights differ. This evidence
    replaces a report that was not yet confirmed.
    """
    judgements = {checkpoint.name: checkpoint for checkpoint in checkpoints}
    losses = {name: weight_evidence.cross_entropy for name, weight_evidence in evidence.items()}
    infinite = {name for name, loss in losses.items() if math.isinf(loss.loss)}
    destroyed_names = [name for name in infinite if not judgements[name].is_bad]
    impossible = Verdict(Kind.BROKEN, "perplexity is infinite")
    judgements = set_verdicts(judgements, dict.fromkeys(destroyed_names, impossible))
    finite = [name for name in judgements if name in evidence and name not in infinite]
    links: dict[str, list[Hashable]] = {name: [name] for name in finite}
    for a, b in combinations(finite, 2):
        if have_same_weights(evidence[a], evidence[b]):
            links[b].append(a)
    for group in group_by_signature(links):
        judgements = set_verdicts(
            judgements, judge_same_weights([judgements[name] for name in group], finite)
        )
    names_by_step = {judgements[name].step: name for name in finite}
    for name in finite:
        other = names_by_step.get(judgements[name].same_as)
        is_doubted = judgements[name].verdict.kind is Kind.UNCONFIRMED
        if is_doubted and other and have_same_weights(evidence[name], evidence[other]) is False:
            judgements = set_verdicts(judgements, {name: OK})
    good = [judgements[name] for name in finite if judgements[name].verdict == OK]
    verdicts = dict.fromkeys(_find_mixed_checkpoints(good, evidence), Verdict(Kind.MIXED_TENSORS))
    strange = _find_strange_start(good, evidence)
    verdicts |= dict.fromkeys(strange, Verdict(Kind.NOT_OF_THIS_TRAINING))
    good = [checkpoint for checkpoint in good if checkpoint.name not in verdicts]
    broken = find_broken_losses({checkpoint.name: losses[checkpoint.name] for checkpoint in good})
    good = [checkpoint for checkpoint in good if checkpoint.name not in broken]
    unlikely = find_unlikely_losses(good, losses, is_from_scratch=is_from_scratch)
    return list(set_verdicts(judgements, {**verdicts, **broken, **unlikely}).values())


def have_same_weights(a: WeightEvidence, b: WeightEvidence) -> bool | None:
    """Return whether two checkpoints hold the same weights; None if the evidence does not tell.

    Tensors are compared by name, if the checkpoints have at least half of the smaller one's names in common: some
    formats leave out computed tensors, or write tied tensors twice.
    """
    digests_a, digests_b = a.tensors.digests, b.tensors.digests
    common = digests_a.keys() & digests_b.keys()
    if common and 2 * len(common) >= min(len(digests_a), len(digests_b)):
        differing = [name for name in common if digests_a[name] != digests_b[name]]
        if not differing:
            return True
        if any(digests_a[name][:2] == digests_b[name][:2] for name in differing):
            return False
    loss, other = a.cross_entropy, b.cross_entropy
    difference = abs(loss.loss - other.loss)  # NaN if a loss is NaN, or both are infinite
    if difference == 0 and loss.predicted_tokens == other.predicted_tokens:
        return True
    return False if MAX_LOSS_DIFFERENCE < difference < math.inf else None


def distance(a: Sequence[float], b: Sequence[float]) -> float:
    r"""Return the relative distance :math:`|a - b| / \sqrt{|a|^2 + |b|^2}`: 0 if equal, near 1 if unrelated."""
    squares = math.fsum(x * x for x in a) + math.fsum(y * y for y in b)
    difference = math.fsum((x - y) ** 2 for x, y in zip(a, b, strict=True))
    return math.sqrt(difference / squares) if squares else 0.0


def find_broken_losses(losses: Mapping[str, CrossEntropy]) -> dict[str, Verdict]:
    """Find the checkpoints of one training whose loss cannot be right.

    Parameters
    ----------
    losses : mapping of str to CrossEntropy
        By name of a checkpoint, in the order of their steps.

    Returns
    -------
    dict of str to Verdict
        The verdicts on the broken checkpoints, by name.

    Notes
    -----
    A checkpoint is broken if its loss is more than ``ln(250)`` above the median of the three checkpoints before it and
    of the three after it. Before the first checkpoint a model guesses, with a loss of ``ln(vocabulary)``.

    A loss near or below those of the neighbours does not reveal wrong weights, such as the weights of a neighbour, or
    of a later step under an early name. A training that diverged for good, three broken checkpoints in a row, and two
    at the end, look like a good training.
    """
    defined_losses = {name: loss for name, loss in losses.items() if not math.isnan(loss.loss)}
    values = [loss.loss for loss in defined_losses.values()]
    verdicts: dict[str, Verdict] = {}
    for place, (name, loss) in enumerate(defined_losses.items()):
        earlier_losses, later_losses = (
            values[:place][-NEIGHBOURS:],
            values[place + 1 :][:NEIGHBOURS],
        )
        if place == 0 and loss.vocabulary:
            earlier_losses = [math.log(loss.vocabulary)]
        sides = [median_low(side) for side in (earlier_losses, later_losses) if side]
        excess = min((loss.loss - side for side in sides), default=0.0)
        if excess > MARGIN:
            evidence = f"perplexity {_format_ratio(excess)} times that of the other steps"
            verdicts[name] = Verdict(Kind.BROKEN, evidence)
    return verdicts


def find_unlikely_losses(
    checkpoints: Sequence[JudgedCheckpoint],
    losses: Mapping[str, CrossEntropy],
    *,
    is_from_scratch: bool = True,
) -> dict[str, Verdict]:
    """Find the checkpoints of one training, given by step, whose loss is possible, but unlikely.

    Returns
    -------
    dict of str to Verdict
        The verdicts on these checkpoints, by name. A loss is unlikely if it is a nat or more above those of the
        checkpoints before and after it, as in a spike of a single checkpoint, or if it is a nat or more below that of
        a guess, ``ln(vocabulary)``, at step 0.
    """
    pairs = [(checkpoint, losses[checkpoint.name]) for checkpoint in checkpoints]
    defined_losses = [(checkpoint, loss) for checkpoint, loss in pairs if not math.isnan(loss.loss)]
    verdicts: dict[str, Verdict] = {}
    for first, loss in defined_losses[:1]:
        guess = math.log(loss.vocabulary or 1)
        if is_from_scratch and first.step == 0 and guess - loss.loss >= UNLIKELY:
            evidence = f"loss {loss.loss:.1f}, where a guess has {guess:.1f}"
            verdicts[first.name] = Verdict(Kind.SUSPICIOUS, evidence)
            defined_losses = defined_losses[1:]  # a loss above this wrong one is no spike
    triples = zip(defined_losses, defined_losses[1:], defined_losses[2:], strict=False)
    for (_, loss_before), (checkpoint, loss), (_, loss_after) in triples:
        excess = loss.loss - max(loss_before.loss, loss_after.loss)
        if excess >= UNLIKELY:
            evidence = f"loss {excess:.1f} above those of the steps beside it"
            verdicts[checkpoint.name] = Verdict(Kind.SUSPICIOUS, evidence)
    return verdicts


def _format_ratio(difference: float) -> str:
    """Write the exponential of a difference of losses to two digits, such as 250, 1,300 or 2e9."""
    ratio = math.exp(min(difference, 700.0))
    if ratio >= 1e9:
        return f"{ratio:.0e}".replace("e+0", "e").replace("e+", "e")
    decimals = 1 - math.floor(math.log10(ratio))
    return f"{round(ratio, decimals):,.{max(0, decimals)}f}"


def _find_strange_start(
    checkpoints: Sequence[JudgedCheckpoint], evidence: Mapping[str, WeightEvidence]
) -> list[str]:
    """Find a step 0 unrelated to the next steps, which are related to each other (EleutherAI/pythia#203)."""
    early = [
        checkpoint
        for checkpoint in checkpoints
        if checkpoint.step is not None and checkpoint.step <= EARLY
    ][:3]
    samples = [evidence[checkpoint.name].tensors.sample for checkpoint in early]
    if len(early) < 3 or early[0].step != 0 or not samples[0] or len({*map(len, samples)}) > 1:
        return []
    first, second, third = samples
    is_strange = distance(first, second) > UNRELATED and distance(second, third) < RELATED
    return [early[0].name] if is_strange else []


def _find_mixed_checkpoints(
    checkpoints: Sequence[JudgedCheckpoint], evidence: Mapping[str, WeightEvidence]
) -> list[str]:
    """Find the checkpoints with matrices of other steps."""
    parts = {}
    for checkpoint in checkpoints:
        tensors = evidence[checkpoint.name].tensors.digests.items()
        # A matrix of another type is another part, since its bytes cannot be compared.
        parts[checkpoint.name] = {
            (name, dtype, shape): digest for name, (dtype, shape, digest) in tensors if "x" in shape
        }
    ends = {checkpoint.name for checkpoint in checkpoints if checkpoint.is_last}
    return [
        name
        for name, misplaced_parts in find_misplaced_parts(parts, ends).items()
        if _count_elements(misplaced_parts) >= LEAST_SHARE * _count_elements(parts[name])
    ]


def _count_elements(parts: Iterable[tuple[str, str, str]]) -> int:
    return sum(math.prod(map(int, shape.split("x"))) for _, _, shape in parts)
