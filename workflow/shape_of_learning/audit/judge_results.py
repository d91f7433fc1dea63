"""The audit of published results: steps with the numbers of another step, and steps far from their neighbours."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np

from shape_of_learning.audit.coincidence import HIGHEST_CHANCE, Coincidences
from shape_of_learning.audit.results import PublishedResults
from shape_of_learning.checkpoints.atlas import (
    PUBLISHED,
    AtlasRow,
    find_model,
    find_rows,
    list_reported_mistakes,
)
from shape_of_learning.checkpoints.verdict import (
    NOT_YET_MOVED,
    OK,
    JudgedCheckpoint,
    Kind,
    Mistake,
    Verdict,
    find_broken_losses,
    find_unlikely_losses,
    format_atlas_verdict,
    group_by_signature,
    judge_same_weights,
)
from shape_of_learning.checkpoints.weight_evidence import CrossEntropy

LOSS = re.compile(r"(?<![a-z])(loss|nll|cross[-_ ]?entropy)(?![a-z])", re.IGNORECASE)
PERPLEXITY = re.compile(r"(?<![a-z])(ppl|perplexity)(?![a-z])", re.IGNORECASE)
# The largest chance for equal first steps. It is higher than elsewhere, because equal first steps are no fault.
CHANCE_AT_START = 0.01
SIDE = 3  # steps on each side of a step whose scores are judged
FEWEST_SCORES = 5
FAR = 7.0  # distance from the neighbours, in units of their largest change
MOST_DIGITS = 30  # of a chance in a sentence
MOST_OF_STRETCH = 0.75  # share of the steps from the first to the last member of two groups
ALTERNATING = "the training goes back and forth between few results, as when a model answers all questions alike"


@dataclass(frozen=True)
class JudgedResults:
    """The verdict on the results of a step, and the reason."""

    checkpoint: JudgedCheckpoint
    reason: str


def judge_results(
    results: PublishedResults, reports: Sequence[Mistake] = ()
) -> list[JudgedResults]:
    """Judge the results of each step.

    Parameters
    ----------
    results : PublishedResults
    reports : sequence of Mistake
        The reports on the training; `same_as` names the step that owns equal results.

    Returns
    -------
    list of JudgedResults
        By step: `same results as step`, `not yet moved`, `apart`, `unknown` or `ok`.
    """
    owners = {step: report.same_as for report in reports for step in report.all_steps}
    judgements = {
        f"{step}": JudgedCheckpoint(f"{step}", step, None, same_as=owners.get(step))
        for step in results.steps
    }
    names = list(judgements)
    reasons = dict.fromkeys(names, f"no other step has its {len(results.columns):,} numbers")
    coincidences = Coincidences(results.steps, results.values, results.tasks)
    pairs = coincidences.find_equal_pairs()
    groups = _group_rows(len(results.steps), pairs)
    equalities: dict[str, str] = {}
    for rows in groups:
        members = {row: judgements[names[row]] for row in rows}
        verdicts = judge_same_weights(list(members.values()), names)
        is_start = NOT_YET_MOVED in verdicts.values()
        for row, member in members.items():
            verdict = verdicts[member.name]
            is_owned = verdict.kind is Kind.SAME_AS_STEP
            # Two rows of a group may have numbers in common with a third row only.
            equal_rows = [other for other in rows if (row, other) in pairs or (other, row) in pairs]
            if is_owned or is_start:
                owner = verdict.steps[0] if is_owned else results.steps[rows[0]]
                equal_rows = [
                    other for other in equal_rows if results.steps[other] == owner
                ] or equal_rows
            other, digits = _find_surest(
                coincidences, row, equal_rows, rows, 1.0 if is_start else None
            )
            if is_owned or verdict.kind is Kind.SAME_AS_OTHERS:
                verdict = Verdict(Kind.SAME_RESULTS, steps=(results.steps[other],))
            chance = CHANCE_AT_START if is_start else HIGHEST_CHANCE
            if verdict != OK and digits < -math.log10(chance):
                verdict = Verdict(Kind.UNKNOWN)
            judgements[member.name] = replace(member, verdict=verdict)
            equality = _describe_equality(results, coincidences, row, equal_rows)
            reasons[member.name] = _describe_basis(equality, verdict, digits, is_owned=is_owned)
            if verdict.kind is Kind.SAME_RESULTS and not is_owned:
                equalities[member.name] = equality
    copies = [rows for rows in groups if any(names[row] in equalities for row in rows)]
    for rows in copies:
        if _alternates(rows, copies):
            for name in [names[row] for row in rows if names[row] in equalities]:
                judgements[name] = replace(judgements[name], verdict=Verdict(Kind.UNKNOWN))
                reasons[name] = f"{equalities[name]}; {ALTERNATING}"
    good = [checkpoint for checkpoint in judgements.values() if checkpoint.verdict == OK]
    apart = _find_far_losses(results, good)
    rest = [checkpoint for checkpoint in good if checkpoint.name not in apart]
    for name, evidence in (apart | _find_far_scores(results, coincidences, rest)).items():
        judgements[name] = replace(judgements[name], verdict=Verdict(Kind.APART))
        reasons[name] = evidence
    return [JudgedResults(judgements[name], reasons[name]) for name in names]


def _group_rows(number: int, pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Group the rows with equal numbers."""
    links: dict[str, list[int]] = {f"{row}": [row] for row in range(number)}
    for first, second in pairs:
        links[f"{second}"].append(first)
    return [sorted(map(int, group)) for group in group_by_signature(links)]


def _alternates(rows: Sequence[int], groups: Sequence[Sequence[int]]) -> bool:
    """Return whether a training goes back and forth between a group of equal rows and another group.

    The training has the results of both groups in turn and comes back to one of them at least twice. Meanwhile it has
    hardly any results outside of the groups.
    """
    visits = _count_visits(rows)
    grouped_rows = sorted(row for group in groups for row in group)
    for other in groups:
        if other is not rows and max(visits, _count_visits(other)) > 2:
            first, last = min(rows[0], other[0]), max(rows[-1], other[-1])
            if sum(first <= row <= last for row in grouped_rows) < MOST_OF_STRETCH * (
                last - first + 1
            ):
                continue
            turns = [row in rows for row in sorted([*rows, *other])]
            if sum(turn != next_turn for turn, next_turn in pairwise(turns)) >= 3:
                return True
    return False


def _count_visits(rows: Sequence[int]) -> int:
    """Count how often a training arrives at equal results, which it may keep for several steps."""
    return sum(row - 1 not in rows for row in rows)


def _find_surest(
    coincidences: Coincidences,
    row: int,
    equal_rows: Sequence[int],
    rows: Sequence[int],
    slowdown: float | None,
) -> tuple[int, float]:
    """Find the row that a row is least likely to equal by chance, among the nearest and the farthest equal rows."""
    earlier_rows = [other for other in equal_rows if other < row]
    later_rows = [other for other in equal_rows if other > row]
    digits = {
        other: coincidences.count_digits(min(row, other), max(row, other), rows, slowdown)
        for other in dict.fromkeys(
            [*earlier_rows[:1], *earlier_rows[-1:], *later_rows[:1], *later_rows[-1:]]
        )
    }
    surest = max(digits, key=lambda other: digits[other])
    return surest, digits[surest]


def _describe_equality(
    results: PublishedResults, coincidences: Coincidences, row: int, equal_rows: Sequence[int]
) -> str:
    """Name the steps with the same numbers, and count those that change along the training."""
    is_common = ~np.isnan(results.values[[row, *equal_rows]]).any(axis=0)
    common, moving = int(is_common.sum()), int((is_common & coincidences.can_differ).sum())
    steps = ", ".join(f"{results.steps[other]:,}" for other in equal_rows[:3])
    more = " and more" if len(equal_rows) > 3 else ""
    words = f"all {common:,} numbers are those of step{'s' * (len(equal_rows) > 1)} {steps}{more}"
    return words if moving == common else f"{words} ({moving:,} of them change along the training)"


def _describe_basis(equality: str, verdict: Verdict, digits: float, *, is_owned: bool) -> str:
    """Describe the reason for a verdict on equal results."""
    if verdict.kind is Kind.UNKNOWN:
        chance = f" (1 in {10**digits:,.0f} trainings)" if digits >= 1 else ""
        return f"{equality}; the numbers are so few or so coarse that this may be chance{chance}"
    if verdict == NOT_YET_MOVED:
        return f"{equality}; a first update at learning rate 0 moves nothing"
    if verdict == OK:
        return f"{equality}, too"
    whose = "" if is_owned else "; nothing tells whose they are"
    return f"{equality}, by chance in fewer than 1 of 10^{min(int(digits), MOST_DIGITS)} trainings{whose}"


def _find_far_losses(results: PublishedResults, good: Sequence[JudgedCheckpoint]) -> dict[str, str]:
    """Find the steps whose losses lie far from those of their neighbours, by the rules for losses that are measured."""
    rows = [results.steps.index(checkpoint.step or 0) for checkpoint in good]
    broken: dict[str, str] = {}
    unlikely: dict[str, list[str]] = {}
    columns = [
        place
        for place, name in enumerate(results.columns)
        if LOSS.search(name) or PERPLEXITY.search(name)
    ]
    for place in columns:
        name, numbers = results.columns[place], results.values[rows, place]
        if PERPLEXITY.search(name):
            with np.errstate(divide="ignore", invalid="ignore"):
                numbers = np.log(numbers)
        losses = {
            checkpoint.name: CrossEntropy(float(loss), 1, None)
            for checkpoint, loss in zip(good, numbers, strict=True)
        }
        for checkpoint in good:
            if losses[checkpoint.name].loss == math.inf:
                broken.setdefault(checkpoint.name, f"{name} is infinite")
                losses[checkpoint.name] = CrossEntropy(math.nan, 0, None)
        first = next(
            (
                checkpoint.name
                for checkpoint in good
                if not math.isnan(losses[checkpoint.name].loss)
            ),
            "",
        )
        for step, verdict in find_broken_losses(losses).items():
            # Nothing comes before the first step, and the loss of a guess is unknown.
            if step != first:
                broken.setdefault(step, f"{name}: {verdict.evidence}")
        whole = [checkpoint for checkpoint in good if checkpoint.name not in broken]
        for step, verdict in find_unlikely_losses(whole, losses, is_from_scratch=False).items():
            unlikely.setdefault(step, []).append(f"{name}: {verdict.evidence}")
    frequent = {
        step: evidence[0]
        for step, evidence in unlikely.items()
        if 2 * len(evidence) >= len(columns) and step not in broken
    }
    return broken | frequent


def _find_far_scores(
    results: PublishedResults, coincidences: Coincidences, good: Sequence[JudgedCheckpoint]
) -> dict[str, str]:
    """Find the steps whose scores lie far beyond those of the steps before and after, in half of the columns.

    The distance of a score is its distance from the medians of the three steps on both sides, in units of the largest
    change between two successive steps there, or between the medians. The first and the last three steps are not
    judged.
    """
    columns = [
        place
        for place, name in enumerate(results.columns)
        if coincidences.can_differ[place] and not (LOSS.search(name) or PERPLEXITY.search(name))
    ]
    rows = [results.steps.index(checkpoint.step or 0) for checkpoint in good]
    values = results.values[np.ix_(rows, columns)]
    reasons: dict[str, str] = {}
    if len(columns) < FEWEST_SCORES:
        return reasons
    for place, checkpoint in list(enumerate(good))[SIDE:-SIDE]:
        sides = [values[place - SIDE : place], values[place + 1 : place + 1 + SIDE]]
        with np.errstate(invalid="ignore"):
            middles = np.stack([np.median(side, axis=0) for side in sides])
            changes = np.concatenate([np.abs(np.diff(side, axis=0)) for side in sides])
            usual = np.maximum(changes.max(axis=0), coincidences.grids[columns])
            usual = np.maximum(usual, np.ptp(middles, axis=0))
            differences = values[place] - middles
            is_beyond = (differences > 0).all(axis=0) | (differences < 0).all(axis=0)
            distances = np.where(is_beyond, np.abs(differences).min(axis=0) / usual, 0.0)
        finite_distances = distances[np.isfinite(distances)]
        if len(finite_distances) >= FEWEST_SCORES and np.median(finite_distances) >= FAR:
            times = f"{np.median(finite_distances):.0f} times the largest change there"
            reasons[checkpoint.name] = (
                f"half of its {len(finite_distances):,} scores lie {times} or more beyond those of the steps before "
                "and after"
            )
    return reasons


def make_rows(
    results: PublishedResults, repository: str = "", sources: Sequence[str] = ()
) -> list[AtlasRow]:
    """Judge results, and return the verdicts as rows of the atlas.

    Parameters
    ----------
    results : PublishedResults
    repository : str
        The repository whose steps were evaluated. Reports of the atlas on it name the owners of equal results.
    sources : sequence of str
        Addresses of the results, each with its commit.
    """
    atlas_rows: Mapping[int | None, AtlasRow] = {}
    reports: Sequence[Mistake] = ()
    if repository:
        reports = list_reported_mistakes({repository}, None)
        atlas_rows = {
            atlas_row.step: atlas_row
            for atlas_row in find_rows(find_model(repository))
            if atlas_row.repository == repository
        }
    day = datetime.now(UTC).date()
    rows = []
    for result in judge_results(results, reports):
        step = result.checkpoint.step
        verdict = result.checkpoint.verdict
        atlas_row = atlas_rows.get(step)
        revision = (
            atlas_row.revision if atlas_row else results.revisions.get(step or 0, f"step{step}")
        )
        threads = atlas_row.reports if atlas_row and atlas_row.is_fault else []
        rows.append(
            AtlasRow(
                repository=repository,
                revision=revision,
                step=step,
                tokens=atlas_row.tokens if atlas_row else None,
                verdict=format_atlas_verdict(verdict, step),
                reason=result.reason,
                known_by="" if verdict.kind is Kind.UNKNOWN else PUBLISHED,
                source=" ".join(dict.fromkeys([*(sources or ["audit"]), *threads])),
                checked=day,
            )
        )
    return rows
