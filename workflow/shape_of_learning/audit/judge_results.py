"""The audit of published results: which steps have the numbers of another one, and which lie apart."""

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
    judge_equals,
)
from shape_of_learning.checkpoints.weight_evidence import CrossEntropy

LOSS = re.compile(r"(?<![a-z])(loss|nll|cross[-_ ]?entropy)(?![a-z])", re.IGNORECASE)
PERPLEXITY = re.compile(r"(?<![a-z])(ppl|perplexity)(?![a-z])", re.IGNORECASE)
# Of equal first steps, which are no fault: the second would have moved as far as the next ones.
CHANCE_AT_START = 0.01
# Of scores: steps on each side, numbers at least, and how many of the largest changes there lie far.
SIDE, FEWEST_SCORES, FAR = 3, 5, 7.0
MOST_DIGITS = 30  # that a sentence gives of a chance
MOST_OF_STRETCH = 0.75  # of the steps between copies of one kind and another
ALTERNATING = "the training goes back and forth between few results, as where a model gives one answer to all questions"


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
        What is known of the training; a report with `same_as` says whose equal results are.

    Returns
    -------
    list of JudgedResults
        By step: `same results as step`, `not yet moved`, `apart`, `unknown` or `ok`.
    """
    owners = {step: report.same_as for report in reports for step in report.all_steps}
    judged = {
        f"{step}": JudgedCheckpoint(f"{step}", step, None, same_as=owners.get(step))
        for step in results.steps
    }
    names = list(judged)
    reasons = dict.fromkeys(names, f"no other step has its {len(results.columns):,} numbers")
    coincidences = Coincidences(results.steps, results.values, results.tasks)
    pairs = coincidences.find_equal_pairs()
    groups = _group_rows(len(results.steps), pairs)
    equalities: dict[str, str] = {}
    for rows in groups:
        members = {row: judged[names[row]] for row in rows}
        verdicts = judge_equals(list(members.values()), names)
        is_start = NOT_YET_MOVED in verdicts.values()
        for row, member in members.items():
            verdict = verdicts[member.name]
            is_owned = verdict.kind is Kind.SAME_AS_STEP
            # In a group two rows may have numbers in common with a third one only.
            others = [other for other in rows if (row, other) in pairs or (other, row) in pairs]
            if is_owned or is_start:
                owner = verdict.steps[0] if is_owned else results.steps[rows[0]]
                others = [other for other in others if results.steps[other] == owner] or others
            other, digits = _find_surest(coincidences, row, others, rows, 1.0 if is_start else None)
            if is_owned or verdict.kind is Kind.SAME_AS_OTHERS:
                verdict = Verdict(Kind.SAME_RESULTS, steps=(results.steps[other],))
            chance = CHANCE_AT_START if is_start else HIGHEST_CHANCE
            if verdict != OK and digits < -math.log10(chance):
                verdict = Verdict(Kind.UNKNOWN)
            judged[member.name] = replace(member, verdict=verdict)
            equality = _describe_equality(results, coincidences, row, others)
            reasons[member.name] = _describe_basis(equality, verdict, digits, is_owned=is_owned)
            if verdict.kind is Kind.SAME_RESULTS and not is_owned:
                equalities[member.name] = equality
    copies = [rows for rows in groups if any(names[row] in equalities for row in rows)]
    for rows in copies:
        for name in [names[row] for row in rows if names[row] in equalities]:
            if _alternates(rows, copies):
                judged[name] = replace(judged[name], verdict=Verdict(Kind.UNKNOWN))
                reasons[name] = f"{equalities[name]}; {ALTERNATING}"
    good = [checkpoint for checkpoint in judged.values() if checkpoint.verdict == OK]
    apart = _find_far_losses(results, good)
    sound = [checkpoint for checkpoint in good if checkpoint.name not in apart]
    for name, evidence in (apart | _find_far_scores(results, coincidences, sound)).items():
        judged[name] = replace(judged[name], verdict=Verdict(Kind.APART))
        reasons[name] = evidence
    return [JudgedResults(judged[name], reasons[name]) for name in names]


def _group_rows(number: int, pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Group the rows with equal numbers."""
    links: dict[str, list[int]] = {f"{row}": [row] for row in range(number)}
    for first, second in pairs:
        links[f"{second}"].append(first)
    return [sorted(map(int, group)) for group in group_by_signature(links)]


def _alternates(rows: Sequence[int], groups: Sequence[Sequence[int]]) -> bool:
    """Return whether a training goes back and forth between a group of equal rows and another one.

    In turn it has the results of the one and of the other, and comes back at least twice to one of them; meanwhile it
    has hardly any other results than those of the groups.
    """
    visits = _count_visits(rows)
    in_groups = sorted(row for group in groups for row in group)
    for other in groups:
        if other is not rows and max(visits, _count_visits(other)) > 2:
            first, last = min(rows[0], other[0]), max(rows[-1], other[-1])
            if sum(first <= row <= last for row in in_groups) < MOST_OF_STRETCH * (
                last - first + 1
            ):
                continue
            turns = [row in rows for row in sorted([*rows, *other])]
            if sum(one != next_one for one, next_one in pairwise(turns)) >= 3:
                return True
    return False


def _count_visits(rows: Sequence[int]) -> int:
    """Count the times that a training comes to results, of which it may have several in a row."""
    return sum(row - 1 not in rows for row in rows)


def _find_surest(
    coincidences: Coincidences,
    row: int,
    others: Sequence[int],
    rows: Sequence[int],
    stiller: float | None,
) -> tuple[int, float]:
    """Find the row that a row is least likely to equal by chance, of the nearest and the farthest ones."""
    before = [other for other in others if other < row]
    after = [other for other in others if other > row]
    digits = {
        other: coincidences.count_digits(min(row, other), max(row, other), rows, stiller)
        for other in dict.fromkeys([*before[:1], *before[-1:], *after[:1], *after[-1:]])
    }
    surest = max(digits, key=lambda other: digits[other])
    return surest, digits[surest]


def _describe_equality(
    results: PublishedResults, coincidences: Coincidences, row: int, others: Sequence[int]
) -> str:
    """Say which steps have the same numbers, and how many of these change along the training."""
    is_common = ~np.isnan(results.values[[row, *others]]).any(axis=0)
    common, moving = int(is_common.sum()), int((is_common & coincidences.can_differ).sum())
    steps = ", ".join(f"{results.steps[other]:,}" for other in others[:3])
    more = " and more" if len(others) > 3 else ""
    words = f"all {common:,} numbers are those of step{'s' * (len(others) > 1)} {steps}{more}"
    return words if moving == common else f"{words} ({moving:,} of them change along the training)"


def _describe_basis(equality: str, verdict: Verdict, digits: float, *, is_owned: bool) -> str:
    """Describe the reason of a verdict on equal results."""
    if verdict.kind is Kind.UNKNOWN:
        chance = f" (1 in {10**digits:,.0f} trainings)" if digits >= 1 else ""
        return f"{equality}; they are so few or so coarse that this may be chance{chance}"
    if verdict == NOT_YET_MOVED:
        return f"{equality}; a first update at learning rate 0 moves nothing"
    if verdict == OK:
        return f"{equality}, too"
    whose = "" if is_owned else "; nothing tells whose they are"
    return f"{equality}, by chance in fewer than 1 of 10^{min(int(digits), MOST_DIGITS)} trainings{whose}"


def _find_far_losses(results: PublishedResults, good: Sequence[JudgedCheckpoint]) -> dict[str, str]:
    """Find the steps whose losses lie far from those of their neighbours, as losses of weights are judged."""
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
        first = next((step for step, of in losses.items() if not math.isnan(of.loss)), "")
        for other, verdict in find_broken_losses(losses).items():
            if other != first:  # before it a model guesses, at an unknown score
                broken.setdefault(other, f"{name}: {verdict.evidence}")
        sound = [checkpoint for checkpoint in good if checkpoint.name not in broken]
        for other, verdict in find_unlikely_losses(sound, losses, from_scratch=False).items():
            unlikely.setdefault(other, []).append(f"{name}: {verdict.evidence}")
    often = {
        name: evidence[0]
        for name, evidence in unlikely.items()
        if 2 * len(evidence) >= len(columns) and name not in broken
    }
    return broken | often


def _find_far_scores(
    results: PublishedResults, coincidences: Coincidences, good: Sequence[JudgedCheckpoint]
) -> dict[str, str]:
    """Find the steps whose scores lie far beyond those of the steps before and after, in half of the columns.

    The distance of a score is from the medians of the steps on both sides, in units of the largest change between
    successive ones of these steps, or between the medians. The first and the last three steps are not judged.
    """
    columns = [
        place
        for place, name in enumerate(results.columns)
        if coincidences.can_differ[place] and not (LOSS.search(name) or PERPLEXITY.search(name))
    ]
    rows = [results.steps.index(checkpoint.step or 0) for checkpoint in good]
    values = results.values[np.ix_(rows, columns)]
    found: dict[str, str] = {}
    if len(columns) < FEWEST_SCORES:
        return found
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
        defined = distances[np.isfinite(distances)]
        if len(defined) >= FEWEST_SCORES and np.median(defined) >= FAR:
            far = f"{np.median(defined):.0f} times the largest change there"
            found[checkpoint.name] = (
                f"half of its {len(defined):,} scores lie {far} or more beyond those of the steps before and after"
            )
    return found


def make_rows(
    results: PublishedResults, repository: str = "", sources: Sequence[str] = ()
) -> list[AtlasRow]:
    """Judge results, and write the verdicts as the atlas has them.

    Parameters
    ----------
    results : PublishedResults
    repository : str
        Whose steps they are; with it reports of the atlas say whose equal results are.
    sources : sequence of str
        Addresses of the results, with the commit that they are from.
    """
    known: Mapping[int | None, AtlasRow] = {}
    reports: Sequence[Mistake] = ()
    if repository:
        reports = list_reported_mistakes({repository}, None)
        known = {
            row.step: row
            for row in find_rows(find_model(repository))
            if row.repository == repository
        }
    day = datetime.now(UTC).date()
    rows = []
    for judged in judge_results(results, reports):
        step = judged.checkpoint.step
        verdict = judged.checkpoint.verdict
        row = known.get(step)
        revision = row.revision if row else results.revisions.get(step or 0, f"step{step}")
        threads = row.reports if row and row.is_fault else []
        rows.append(
            AtlasRow(
                repository=repository,
                revision=revision,
                step=step,
                tokens=row.tokens if row else None,
                verdict=format_atlas_verdict(verdict, step),
                reason=judged.reason,
                known_by="" if verdict.kind is Kind.UNKNOWN else PUBLISHED,
                source=" ".join(dict.fromkeys([*(sources or ["audit"]), *threads])),
                checked=day,
            )
        )
    return rows
