"""The verdict on a claim, and what it rests on."""

import hashlib
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np

from shape_of_learning.claims import (
    layer_statistics,
    rules,
    table_statistics,
    training_statistics,
)
from shape_of_learning.claims.bounds import TAIL, Bounded, unknown
from shape_of_learning.claims.claim import Claim
from shape_of_learning.claims.evidence import Evidence
from shape_of_learning.claims.reading import NotMeasured, Reading
from shape_of_learning.errors import InputError

SUPPORTED, CONTRADICTED, UNDECIDED = "supported", "contradicted", "undecided"
NOT_MEASURED = "not measured"
VERDICTS = (SUPPORTED, CONTRADICTED, UNDECIDED, NOT_MEASURED)
DIGITS = 8  # of a short digest
MODULES = (layer_statistics, training_statistics, table_statistics)


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
        distance to a bound, positive where the condition is met; without `not_above` and `not_below`, which
        only add to it. NaN if nothing is measured.
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
        A unit that rests on values beyond the conditions of their estimator counts for nothing, and among
        those that a rule needs.

    Raises
    ------
    InputError
        If the rule asks for a part that the statistic does not have, or for one of several units.
    """
    reading = Reading(claim, evidence)
    try:
        units = parts_of(claim, reading)
        parts = [_part(unit, name, of) for unit in units for name, of in units[unit].items()]
    except NotMeasured as reason:
        return Judgement(NOT_MEASURED, f"{_capitalised(reason)}.")
    by_numbers = _verdict(claim, units)
    known = _without_suspects(units, reading)
    verdict = _verdict(claim, known)
    because = _because(claim, verdict, known)
    if reading.suspects:
        whose = ", ".join(f"{number:,} of `{model}`" for model, number in reading.suspects.items())
        suspect = f"values that are suspect, for near-duplicates, decide nothing: {whose}."
        if verdict != by_numbers:
            because = f"By the numbers alone it would be {by_numbers}, but {suspect}"
        else:
            because += f" {_capitalised(suspect)}"
    if undefined := sum(curve.undefined for curve in reading.curves_read):
        because += f" Left out as undefined: {undefined:,} layers."
    return Judgement(
        verdict,
        because,
        *_headline(claim.rule[SUPPORTED], units),
        models=tuple(dict.fromkeys(model for model, _ in reading.checkpoints)),
        revisions=tuple(f"{model}@{revision}" for model, revision in reading.checkpoints),
        n=tuple(f"{n:g}" for n in sorted({n for curve in reading.curves_read for n in curve.n})),
        selections=tuple(sorted({curve.selection for curve in reading.curves_read})),
        hashes=tuple(_hashes(reading)),
        parts=tuple(parts),
    )


def _capitalised(words: object) -> str:
    return f"{str(words)[:1].upper()}{str(words)[1:]}"


def parts_of(claim: Claim, reading: Reading) -> rules.Units:
    """Evaluate the statistic of a claim."""
    given = {"estimators": claim.estimators} if claim.estimators else {}
    functions = {name: of for module in MODULES for name, of in vars(module).items()}
    units: rules.Units = functions[claim.statistic](reading, **given, **claim.arguments)
    if not units:
        raise NotMeasured(f"`{claim.statistic}` finds nothing in the run that it could judge")
    return units


def _verdict(claim: Claim, units: rules.Units) -> str:
    shown = [each for each, is_shown in decide(claim, units).items() if is_shown]
    return shown[0] if len(shown) == 1 else UNDECIDED


def _without_suspects(units: rules.Units, reading: Reading) -> rules.Units:
    """Units become unknown unless they are of models without suspect values, such as two of them."""
    if not reading.suspects:
        return units
    clear = {model for model, _ in reading.checkpoints} - set(reading.suspects)
    return {
        unit: parts
        if set(unit.split(rules.PAIR)) <= clear
        else {name: unknown(part) for name, part in parts.items()}
        for unit, parts in units.items()
    }


def decide(claim: Claim, units: rules.Units) -> dict[str, np.ndarray]:
    """Whether the conditions of both verdicts are shown, of each draw; raises as :func:`judge`."""
    try:
        return {each: rules.holds(claim.rule[each], units) for each in (SUPPORTED, CONTRADICTED)}
    except InputError as error:
        raise InputError(f"claim `{claim.name}`: {error}") from None


def _part(unit: str, name: str, part: Bounded) -> PartOfUnit:
    what = f"`{name}`" + (f" of `{unit}`" if unit else "")
    if np.isnan(part.estimate):
        raise NotMeasured(f"{what} is undefined")
    if np.isnan(part.bounds(TAIL, TAIL)).any():
        raise NotMeasured(
            f"{what} has no interval, which needs values without each of 16 groups of windows, or of two "
            "seeds at least"
        )
    return PartOfUnit(unit, name, *_numbers(part))


def _numbers(part: Bounded) -> tuple[float, float, float]:
    """Estimate and interval; what is compared as it is has none, and neither what decides nothing."""
    low, high = map(float, part.bounds(TAIL, TAIL))
    return float(part.estimate), *((low, high) if -np.inf < low < high else (nan, nan))


def _headline(condition: Any, units: rules.Units) -> tuple[float, float, float, float]:
    """Estimate, interval and smallest visible effect, in the units of the bound if there is only one."""
    estimate, low, high = _numbers(rules.margin(rules.without_hurdles(condition), units))
    visible = estimate - low
    is_upwards, bound = rules.only_bound(condition) or (True, 0)
    if is_upwards:
        return bound + estimate, bound + low, bound + high, visible
    return bound - estimate, bound - high, bound - low, visible


def _because(claim: Claim, verdict: str, units: rules.Units) -> str:
    rule = claim.rule
    if verdict == UNDECIDED:
        said = [_count(rule[each], units) for each in (SUPPORTED, CONTRADICTED)]
        supports, contradicts = (f" ({each})" if each else "" for each in said)
        if all(decide(claim, units).values()):
            return f"Both what supports it{supports} and what contradicts it{contradicts} is shown."
        return f"Neither what supports it{supports} nor what contradicts it{contradicts} is shown."
    condition = rule[verdict]
    count = _count(condition, units)
    words = rules.in_words(condition["holds"] if count else condition)
    return f"{_capitalised(f'{count}: {words}' if count else words)}."


def _count(condition: Any, units: rules.Units) -> str:
    """In how many units a condition on a number of them is shown, each by its share of the errors."""
    if "holds" not in condition:
        return ""
    names = rules.units_of(units)
    needed = rules.how_many(condition["in"], len(names))
    tail = TAIL / max(len(names) - needed + 1, 1)  # as of :func:`.ranked`
    low = [rules.margin(condition["holds"], units, name).bounds(tail, TAIL)[0] for name in names]
    return f"in {sum(bool(each > 0) for each in low)} of {len(names)} cases, {needed} needed"


def _hashes(reading: Reading) -> list[str]:
    """Short digests: of all weights of a model that were looked at, of the text, and of other tables."""
    digests = reading.evidence.digests
    found = {}
    for model in dict.fromkeys(model for model, _ in reading.checkpoints):
        names = (f"{model}@{revision}" for whose, revision in reading.checkpoints if whose == model)
        if of_model := sorted(digests[name] for name in names if name in digests):
            found[model] = hashlib.sha256(" ".join(of_model).encode()).hexdigest()
    others = [*(["text"] if reading.curves_read else []), *reading.tables]
    found |= {each: digests[each] for each in others if each in digests}
    return [f"{each}:{digest[:DIGITS]}" for each, digest in found.items()]
