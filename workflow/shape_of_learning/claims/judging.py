"""The verdict on a claim, and what it rests on."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np

from shape_of_learning.claims import statistics, table_statistics, training_statistics
from shape_of_learning.claims.bounds import TAIL, Bounded
from shape_of_learning.claims.claim import Claim
from shape_of_learning.claims.evidence import Evidence
from shape_of_learning.claims.reading import NotMeasured, Reading
from shape_of_learning.claims.rules import (
    UPWARDS,
    Units,
    comparison_of,
    holds,
    how_many,
    in_words,
    leaves,
    margin,
    units_of,
)
from shape_of_learning.errors import InputError

SUPPORTED, CONTRADICTED, UNDECIDED = "supported", "contradicted", "undecided"
NOT_MEASURED = "not measured"
VERDICTS = (SUPPORTED, CONTRADICTED, UNDECIDED, NOT_MEASURED)
DIGITS = 8  # of a short digest


@dataclass(frozen=True)
class PartOfUnit:
    """One number of a claim, such as of one model, with its own 95 % interval."""

    unit: str
    part: str
    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Judgement:
    """What the evidence says of a claim.

    Attributes
    ----------
    verdict : {"supported", "contradicted", "undecided", "not measured"}
    because : str
        Why, in a sentence.
    estimate, low, high : float
        What decides the condition for `supported`, of all units and parts together, with its 95 % interval:
        where all bounds of the condition are the same, the number that must lie beyond it; else the least
        distance to a bound, positive where the condition is met. NaN if nothing is measured.
    smallest_visible : float
        How far beyond the bound the estimate must lie to be told from it.
    models, revisions, n, selections, hashes : tuple of str
        What it rests on; revisions as ``MODEL@REVISION``, digests as ``MODEL:DIGEST`` and ``text:DIGEST``.
    parts : tuple of PartOfUnit
        The numbers that the rule looks at.
    """

    verdict: str
    because: str
    estimate: float = nan
    low: float = nan
    high: float = nan
    smallest_visible: float = nan
    models: tuple[str, ...] = ()
    revisions: tuple[str, ...] = ()
    n: tuple[str, ...] = ()
    selections: tuple[str, ...] = ()
    hashes: tuple[str, ...] = ()
    parts: tuple[PartOfUnit, ...] = ()


def judge(claim: Claim, evidence: Evidence) -> Judgement:
    """Judge a claim by its statistic and its rule.

    Parameters
    ----------
    claim : Claim
        With another `average_over` (:func:`dataclasses.replace`) it is judged by other layers.
    evidence : Evidence
        Of one draw. By :meth:`.Evidence.with_estimators` others stand for the estimators that the claim
        names.

    Returns
    -------
    Judgement
        ``undecided`` also where the rule would decide by values of which some are beyond the conditions of
        their estimator: those do not count as evidence.

    Raises
    ------
    InputError
        If the rule asks for a part that the statistic does not have.
    """
    reading = Reading(claim, evidence)
    try:
        units = parts_of(claim, reading)
        parts = tuple(_parts(units))
    except NotMeasured as reason:
        return Judgement(NOT_MEASURED, f"{str(reason)[:1].upper()}{str(reason)[1:]}.")
    decided = [each for each, is_shown in decide(claim, units).items() if is_shown]
    verdict = decided[0] if len(decided) == 1 else UNDECIDED
    suspect, of = reading.suspects
    because = _because(claim, verdict, units)
    if suspect:
        beyond = f"{suspect:,} of {of:,} values are suspect (near-duplicates)"
        if verdict != UNDECIDED:
            because = f"By the numbers alone it would be {verdict}, but {beyond}."
            verdict = UNDECIDED
        else:
            because = f"{because[:-1]}; and {beyond}."
    if reading.undefined:
        because += f" Left out as undefined: {reading.undefined:,} layers."
    checkpoints = list(reading.checkpoints)
    return Judgement(
        verdict,
        because,
        *_headline(claim.rule[SUPPORTED], units),
        models=tuple(dict.fromkeys(model for model, _ in checkpoints)),
        revisions=tuple(f"{model}@{revision}" for model, revision in checkpoints),
        n=tuple(f"{n:g}" for n in sorted({each.n for each in reading.values})),
        selections=tuple(sorted({each.selection for each in reading.values})),
        hashes=tuple(_hashes(reading)),
        parts=parts,
    )


def parts_of(claim: Claim, reading: Reading) -> Units:
    """Evaluate the statistic of a claim."""
    given = {"estimators": claim.estimators} if claim.estimators else {}
    return find_statistic(claim.statistic)(reading, **given, **claim.arguments)


def decide(claim: Claim, units: Units) -> dict[str, np.ndarray]:
    """Whether the conditions of both verdicts are shown, of each draw; raises as :func:`judge`."""
    try:
        return {each: holds(claim.rule[each], units) for each in (SUPPORTED, CONTRADICTED)}
    except InputError as error:
        raise InputError(f"claim `{claim.name}`: {error}") from None


def find_statistic(name: str) -> Callable[..., Units]:
    """The function of a name, which planning has checked."""
    modules = (statistics, training_statistics, table_statistics)
    return next(getattr(module, name) for module in modules if hasattr(module, name))


def _parts(units: Units) -> list[PartOfUnit]:
    parts = []
    for unit, of in units.items():
        for name, part in of.items():
            numbers = _numbers(part)
            _require_numbers(f"`{name}`" + (f" of `{unit}`" if unit else ""), *numbers)
            parts.append(PartOfUnit(unit, name, numbers[0], *_without_interval(*numbers[1:])))
    return parts


def _numbers(part: Bounded) -> tuple[float, float, float]:
    low, high = part.bounds(TAIL, TAIL)
    return float(part.estimate), float(low), float(high)


def _without_interval(low: float, high: float) -> tuple[float, float]:
    """What is compared as it is has none."""
    return (low, high) if low < high else (nan, nan)


def _require_numbers(what: str, estimate: float, low: float, high: float) -> None:
    if np.isnan(estimate):
        raise NotMeasured(f"{what} is undefined")
    if np.isnan(low) or np.isnan(high):
        raise NotMeasured(f"{what} has no interval, which needs windows in each of 16 groups")


def _headline(condition: Any, units: Units) -> tuple[float, float, float, float]:
    """Estimate, interval and smallest visible effect, in the units of the bound if there is only one."""
    estimate, low, high = _numbers(margin(condition, units))
    visible = estimate - low if low < high else nan
    low, high = _without_interval(low, high)
    bounds = {
        (comparison in UPWARDS, bound)
        for comparison, bound in map(comparison_of, leaves(condition))
        if not comparison.startswith("not_")
    }
    if len(bounds) > 1:
        return estimate, low, high, visible
    ((upwards, bound),) = bounds
    if upwards:
        return bound + estimate, bound + low, bound + high, visible
    return bound - estimate, bound - high, bound - low, visible


def _because(claim: Claim, verdict: str, units: Units) -> str:
    conditions = [SUPPORTED, CONTRADICTED] if verdict == UNDECIDED else [verdict]
    said = [in_words(claim.rule[each]) + _count(claim.rule[each], units) for each in conditions]
    if verdict == UNDECIDED:
        return f"Neither is shown: {said[0]}; nor {said[1]}."
    return f"It is shown: {said[0]}."


def _count(condition: Any, units: Units) -> str:
    """In how many units a condition on a number of them is shown by itself."""
    if "holds" not in condition:
        return ""
    names = units_of(units)
    low = [margin(condition["holds"], units, name).bounds(TAIL, TAIL)[0] for name in names]
    needed = how_many(condition["in"], len(names))
    shown = sum(bool(each > 0) for each in low)
    return f" (by itself in {shown} of {len(names)}, needed in {needed})"


def _hashes(reading: Reading) -> list[str]:
    """Short digests: of all weights of a model that were looked at, of the text, and of other tables."""
    digests = reading.digests
    by_model: dict[str, list[str]] = {}
    for model, revision in reading.checkpoints:
        if (digest := digests.get(f"{model}@{revision}")) is not None:
            by_model.setdefault(model, []).append(digest)
    of_weights = {
        model: hashlib.sha256(" ".join(sorted(of)).encode()).hexdigest()
        for model, of in by_model.items()
    }
    others = ["text"] if reading.values else []
    others += reading.tables
    found = of_weights | {each: digests[each] for each in others if each in digests}
    return [f"{each}:{digest[:DIGITS]}" for each, digest in found.items()]
