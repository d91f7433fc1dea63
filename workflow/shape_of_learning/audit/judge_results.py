"""The audit of published results: which steps have the numbers of another one, and which lie apart."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

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
from shape_of_learning.checkpoints.verdicts import (
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
# Of equal first steps, which accuse nobody: had the second moved as far as the next ones.
CHANCE_AT_START = 0.01
MOST_DIGITS = 30  # that a sentence gives of a chance


@dataclass(frozen=True)
class JudgedResults:
    """The verdict on the results of a step, and what it rests on."""

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
    for rows in _group_rows(coincidences):
        members = [judged[names[row]] for row in rows]
        verdicts = judge_equals(members, names)
        is_start = NOT_YET_MOVED in verdicts.values()
        digits = min(
            coincidences.count_digits(first, second, rows, 1.0 if is_start else None)
            for place, first in enumerate(rows)
            for second in rows[place + 1 :]
        )
        is_proven = digits >= -math.log10(CHANCE_AT_START if is_start else HIGHEST_CHANCE)
        for member in members:
            others = [other.step or 0 for other in members if other is not member]
            verdict = verdicts[member.name]
            is_owned = verdict.kind is Kind.SAME_AS_STEP
            if is_owned or verdict.kind is Kind.SAME_AS_OTHERS:
                owner = verdict.steps[0] if is_owned else others[0]
                verdict = Verdict(Kind.SAME_RESULTS, steps=(owner,))
            if not is_proven:
                verdict = Verdict(Kind.UNKNOWN)
            judged[member.name] = replace(member, verdict=verdict)
            equality = _describe_equality(results, coincidences, rows, others)
            reasons[member.name] = _describe_basis(equality, verdict, digits, is_owned=is_owned)
    good = [checkpoint for checkpoint in judged.values() if checkpoint.verdict == OK]
    for name, evidence in _find_apart(results, good).items():
        judged[name] = replace(judged[name], verdict=Verdict(Kind.APART))
        reasons[name] = evidence
    return [JudgedResults(judged[name], reasons[name]) for name in names]


def _group_rows(coincidences: Coincidences) -> list[list[int]]:
    """Group the rows with equal numbers."""
    links: dict[str, list[int]] = {f"{row}": [row] for row in range(len(coincidences.steps))}
    for first, second in coincidences.find_equal_pairs():
        links[f"{second}"].append(first)
    return [sorted(map(int, group)) for group in group_by_signature(links)]


def _describe_equality(
    results: PublishedResults,
    coincidences: Coincidences,
    rows: Sequence[int],
    others: Sequence[int],
) -> str:
    """Say which steps have the same numbers, and how many of these change along the training."""
    is_common = ~np.isnan(results.values[rows]).any(axis=0)
    common, moving = int(is_common.sum()), int((is_common & coincidences.can_differ).sum())
    steps = ", ".join(f"{step:,}" for step in others[:3]) + (" and more" if len(others) > 3 else "")
    words = f"all {common:,} numbers are those of step{'s' * (len(others) > 1)} {steps}"
    return words if moving == common else f"{words} ({moving:,} of them change along the training)"


def _describe_basis(equality: str, verdict: Verdict, digits: float, *, is_owned: bool) -> str:
    """Describe what a verdict on equal results rests on."""
    if verdict.kind is Kind.UNKNOWN:
        chance = f" (1 in {10**digits:,.0f} trainings)" if digits >= 1 else ""
        return f"{equality}; they are so few or so coarse that this may be chance{chance}"
    if verdict == NOT_YET_MOVED:
        return f"{equality}; a first update at learning rate 0 moves nothing"
    if verdict == OK:
        return f"{equality}, too"
    whose = "" if is_owned else "; nothing tells whose they are"
    return f"{equality}, by chance in fewer than 1 of 10^{min(int(digits), MOST_DIGITS)} trainings{whose}"


def _find_apart(results: PublishedResults, good: Sequence[JudgedCheckpoint]) -> dict[str, str]:
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
            if other != first:  # before it a model guesses, nobody says how well
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


def make_rows(
    results: PublishedResults, repository: str = "", sources: Iterable[str] = ()
) -> list[AtlasRow]:
    """Judge results, and write the verdicts as the atlas has them.

    Parameters
    ----------
    results : PublishedResults
    repository : str
        Whose steps they are; with it reports of the atlas say whose equal results are.
    sources : iterable of str
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
        rows.append(
            AtlasRow(
                repository=repository,
                revision=revision,
                step=step,
                tokens=row.tokens if row else None,
                verdict=format_atlas_verdict(verdict, step),
                reason=judged.reason,
                known_by="" if verdict.kind is Kind.UNKNOWN else PUBLISHED,
                source=" ".join(sources) or "audit",
                checked=day,
            )
        )
    return rows
