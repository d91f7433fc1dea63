"""The verdict on a claim, and what it rests on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from math import nan

import numpy as np

from shape_of_learning.claims import rules, statistics
from shape_of_learning.claims.bounds import TAIL, BoundedNumber, apart, average_seeds
from shape_of_learning.claims.claim import Claim
from shape_of_learning.claims.evidence import Evidence
from shape_of_learning.claims.reading import (
    ClaimData,
    NotMeasured,
    OutsideTheClaim,
    describe_scope,
    group_models,
    list_names,
)
from shape_of_learning.errors import InputError

SUPPORTED, CONTRADICTED, UNDECIDED = "supported", "contradicted", "undecided"
DEPENDS = "depends on the estimator"
OUTSIDE, NOT_MEASURED = OutsideTheClaim.verdict, NotMeasured.verdict
VERDICTS = (SUPPORTED, CONTRADICTED, DEPENDS, UNDECIDED, OUTSIDE, NOT_MEASURED)
DECIDED = {SUPPORTED, CONTRADICTED}
UNJUDGED = {OUTSIDE, NOT_MEASURED}
OTHER_SEEDS = " and other seeds"


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
    verdict : str
        One of `VERDICTS`.
    because : str
        Why, in a sentence.
    summary : str
        The numbers that decide, each with its bound, a plain sentence per number; empty if nothing is measured.
    estimate, low, high : float
        What decides the condition for `supported`, of all units and parts together, with its 95 % interval:
        where all bounds of the condition are the same, the number that must lie beyond it; else the least
        distance to a bound, positive where the condition is met; without `not_above` and `not_below`, which
        only add to it. NaN if nothing is measured.
    smallest_visible : float
        How far beyond the bound the estimate must lie to be told from it.
    models, revisions, n, selections : tuple of str
        What it rests on; revisions as ``MODEL@REVISION``.
    p_supported, p_contradicted : float
        The least tails at which the conditions are shown; NaN of what has no interval.
    to_contradict : dict of str to float
        Part -> how far it must lie beyond its bound for `contradicted` to be told from it; infinite if the data
        could not have contradicted the claim by it, 0 if it has no interval.
    besides : tuple of str
        Verdicts by other estimators, for other selections and beyond controls, each as ``WHICH: VERDICT``.
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
    p_supported: float = nan
    p_contradicted: float = nan
    to_contradict: Mapping[str, float] = field(default_factory=dict)
    besides: tuple[str, ...] = ()
    parts: tuple[PartOfUnit, ...] = ()
    summary: str = ""


def judge(claim: Claim, evidence: Evidence) -> Judgement:
    """Judge a claim by its statistic and its rule, by the estimators of the paper, then by others.

    Parameters
    ----------
    claim : Claim
        With another `average_over` (:func:`dataclasses.replace`) it is judged by other layers.
    evidence : Evidence
        Of one draw. Others may stand for the estimators that the claim names (:class:`.MeasuredChoices`).

    Returns
    -------
    Judgement
        By the paper's estimators. Where others of the same quantity decide the opposite, the claim `depends
        on the estimator`; where the paper's are suspect, the others decide.

    Raises
    ------
    InputError
        If the rule asks for a part that the statistic does not have, or for one of several units.
    """
    asked, claim = claim, claim.restrict_to_run(evidence.models)

    def judge_with(names: Sequence[str]) -> Judgement:
        instead = dict(zip(claim.estimators, names, strict=True))
        return judge_by(claim, ClaimData(claim, evidence, instead))

    reading = ClaimData(claim, evidence)
    own = judge_by(claim, reading)
    others = {" and ".join(names): judge_with(names) for names in claim.others}
    also = {f"also {what}": judge_with(names) for what, names in claim.also.items()}
    every = {" and ".join(claim.estimators): own, **others}
    joined = _join_verdicts(own, every, is_suspect=bool(reading.suspects))
    if claim is not asked and joined.verdict != NOT_MEASURED:
        said = (
            f" Asked of this run's models ({claim.models}), since it has none that the claim names."
        )
        joined = replace(joined, because=joined.because + said)
    shown = every if others else {}
    besides = [
        f"{n}: {of.verdict}" for n, of in {**shown, **also}.items() if of.verdict != NOT_MEASURED
    ]
    return replace(joined, besides=(*besides, *_compare_with_controls(claim, evidence, own)))


def _join_verdicts(own: Judgement, by: Mapping[str, Judgement], *, is_suspect: bool) -> Judgement:
    """The verdict of the paper's estimator, unless others contradict it or decide in its place."""
    named = {
        verdict: list_names([name for name, of in by.items() if of.verdict == verdict])
        for verdict in (SUPPORTED, CONTRADICTED)
    }
    if all(named.values()):
        said = f"Supported by {named[SUPPORTED]}, contradicted by {named[CONTRADICTED]}."
        return replace(own, verdict=DEPENDS, because=said)
    known = [of for of in by.values() if of.parts]
    if is_suspect and not own.parts and known:
        other = next((of for of in known if of.verdict in DECIDED), known[0])
        which = list_names([name for name, of in by.items() if of.verdict == other.verdict])
        whose = list_names([name for name, of in by.items() if of is other])
        return replace(
            other,
            because=f"{capitalise(other.verdict)} by {which}. By {whose}, whose numbers are below: "
            f"{uncapitalise(other.because)} By `{next(iter(by))}`, {own.verdict}: {own.because}",
        )
    return own


def _compare_with_controls(claim: Claim, evidence: Evidence, own: Judgement) -> list[str]:
    """Whether a claim that is supported is met by more than by each control that is measured."""
    if own.verdict != SUPPORTED or not claim.estimators:  # other tables have no controls
        return []
    condition = rules.drop_hurdles(claim.rule[SUPPORTED])
    own_units, own_families = group_units(claim, ClaimData(claim, evidence))
    found = []
    for control in dict.fromkeys(key[-1] for key in evidence.controls):
        try:
            units, _ = group_units(claim, ClaimData(claim, evidence, control=control))
        except NotMeasured:
            continue
        common = [unit for unit in own_units if unit in units]
        if not common or (common == [rules.TOGETHER] and rules.list_units(own_units)):
            continue
        model, of_control = (
            rules.margin(condition, {u: of[u] for u in common}, families=own_families)
            for of in (own_units, units)
        )
        low, high = apart(model, of_control).bounds(TAIL, TAIL)
        says = "no" if of_control.bounds(TAIL, TAIL)[0] > 0 or high < 0 else "not told"
        found.append(f"beyond {control}: {'yes' if low > 0 else says}")
    return found


def judge_by(claim: Claim, reading: ClaimData) -> Judgement:
    """Judge a claim by the values of one reading alone; raises as :func:`judge`."""
    try:
        units, families = group_units(claim, reading)
        units, left_out = _select_defined(claim, units)
        parts = [_make_part(unit, name, of) for unit in units for name, of in units[unit].items()]
    except NotMeasured as reason:
        suspect = f"; {_describe_suspects(reading)}" if reading.suspects else ""
        return Judgement(reason.verdict, f"{capitalise(reason)}{suspect}.")
    shown = [each for each, is_shown in decide(claim, units, families).items() if is_shown]
    verdict = shown[0] if len(shown) == 1 else UNDECIDED
    because = _explain_verdict(claim, verdict, units, families)
    if reading.outside:
        because += f" Outside the claim: {group_models(reading.outside)}; {describe_scope(claim)}."
    if reading.suspects:
        because += f" {capitalise(_describe_suspects(reading))}."
    because += f" Left out, since {left_out}." if left_out else ""
    if undefined := sum(curve.undefined for curve in reading.curves_read):
        because += f" Left out as undefined: {undefined:,} layers."
    to_contradict = {}
    for part in rules.list_parts(claim.rule[CONTRADICTED]):
        of_part = rules.select_part(claim.rule[CONTRADICTED], part)
        margin = rules.margin(of_part, units, families=families)
        to_contradict[part] = float(margin.estimate - margin.bounds(TAIL, TAIL)[0])
    if to_contradict and not any(to_contradict.values()):
        because += " No number that decides has an interval."
    return Judgement(
        verdict,
        because,
        *_estimate_margin(claim.rule[SUPPORTED], units, families),
        models=tuple(dict.fromkeys(model for model, _ in reading.checkpoints)),
        revisions=tuple(f"{model}@{revision}" for model, revision in reading.checkpoints),
        n=tuple(f"{n:,.0f}" for n in sorted({n for curve in reading.curves_read for n in curve.n})),
        selections=tuple(sorted({curve.selection for curve in reading.curves_read})),
        p_supported=rules.chance(claim.rule[SUPPORTED], units, families),
        p_contradicted=rules.chance(claim.rule[CONTRADICTED], units, families),
        to_contradict=to_contradict,
        parts=tuple(parts),
        summary=write_summary(claim, verdict, units, families),
    )


def _describe_suspects(reading: ClaimData) -> str:
    by: dict[str, dict[str, str]] = {}
    for (model, estimator), said in reading.suspects.items():
        by.setdefault(estimator, {})[model] = said
    whose = "; ".join(
        f"by `{estimator}` {group_models(models)}" for estimator, models in by.items()
    )
    return f"suspect values, whose neighbours are copies: {whose}"


def group_units(claim: Claim, reading: ClaimData) -> tuple[rules.Units, dict[str, str]]:
    """Evaluate the statistic, join units that differ in nothing but seeds, and say the family of each."""
    units = evaluate_statistic(claim, reading)
    models = reading.evidence.models
    together: dict[tuple[str, ...], list[str]] = {}
    for unit in units:
        of = [models[name] for name in unit.split(rules.PAIR) if name in models]
        key = tuple(each.training or each.name for each in of) or (unit,)
        together.setdefault(key, []).append(unit)
    found: dict[str, Mapping[str, BoundedNumber]] = {}
    families: dict[str, str] = {}
    for members in together.values():
        pairs = [unit.split(rules.PAIR) for unit in members]
        # Of pairs, as many are independent as there are of the rarer one.
        numbers = [len(set(names)) for names in zip(*pairs, strict=True)]
        number = min((number for number in numbers if number > 1), default=1)
        name, first = members[0], units[members[0]]
        if number > 1:
            name += f"{OTHER_SEEDS} ({number})"
            first = {
                part: average_seeds([units[m][part] for m in members], number) for part in first
            }
        found[name] = first
        known = [models[each] for each in pairs[0] if each in models]
        families[name] = rules.PAIR.join(each.family or each.name for each in known) or name
    return found, families


def capitalise(words: object) -> str:
    """Begin with a capital letter."""
    return f"{str(words)[:1].upper()}{str(words)[1:]}"


def uncapitalise(words: str) -> str:
    """Go on in a sentence."""
    return f"{words[:1].lower()}{words[1:]}"


def evaluate_statistic(claim: Claim, reading: ClaimData) -> rules.Units:
    """Evaluate the statistic of a claim, which several papers have or its own."""
    given = {"estimators": claim.estimators} if claim.estimators else {}
    statistic = getattr(statistics, claim.statistic, None)
    if statistic is None:
        statistic = getattr(import_module(f"papers.{claim.paper}.statistics"), claim.statistic)
    units: rules.Units = statistic(reading, **given, **claim.arguments)
    if not units:
        raise NotMeasured(f"`{claim.statistic}` finds nothing in the run that it could judge")
    return units


def decide(
    claim: Claim, units: rules.Units, families: rules.Families | None = None
) -> dict[str, np.ndarray]:
    """Whether the conditions of both verdicts are shown, of each draw; raises as :func:`judge`."""
    try:
        return {
            each: rules.holds(claim.rule[each], units, families)
            for each in (SUPPORTED, CONTRADICTED)
        }
    except InputError as error:
        raise InputError(f"claim `{claim.name}`: {error}") from None


def _select_defined(claim: Claim, units: rules.Units) -> tuple[rules.Units, str]:
    """Units whose parts are all defined, and why others are not; raises where the claim needs them, too."""
    found: dict[str, Mapping[str, BoundedNumber]] = {}
    reasons = []
    for unit, parts in units.items():
        try:
            for name, of in parts.items():
                _make_part(unit, name, of)
            found[unit] = parts
        except NotMeasured as reason:
            reasons.append(reason)
    are_all_needed = not isinstance(claim.models, str) and not claim.needs
    if reasons and (are_all_needed or len(rules.list_units(found)) < max(claim.needs, 1)):
        raise reasons[0]
    return found, "; ".join(map(str, reasons))


def _make_part(unit: str, name: str, part: BoundedNumber) -> PartOfUnit:
    what = f"`{name}`" + (f" of `{unit}`" if unit else "")
    ends = part.bounds(TAIL, TAIL)
    # What has infinite bounds is unknown, and decides nothing.
    if np.isnan(part.estimate) and not np.isinf(ends).all():
        raise NotMeasured(f"{what} is undefined")
    if np.isnan(ends).any():
        raise NotMeasured(
            f"{what} has no interval, which needs values without each of 16 groups of windows, or of two "
            "seeds at least"
        )
    return PartOfUnit(unit, name, *_read_numbers(part))


def _read_numbers(part: BoundedNumber) -> tuple[float, float, float]:
    """Estimate and interval; what is compared as it is has none, and neither what decides nothing."""
    low, high = (float(np.clip(end, *part.limits)) for end in part.bounds(TAIL, TAIL))
    return float(part.estimate), *((low, high) if -np.inf < low < high else (nan, nan))


def _estimate_margin(
    condition: rules.Condition, units: rules.Units, families: rules.Families
) -> tuple[float, float, float, float]:
    """Estimate, interval and smallest visible effect, in the units of the bound if there is only one."""
    estimate, low, high = _read_numbers(
        rules.margin(rules.drop_hurdles(condition), units, families=families)
    )
    visible = estimate - low
    is_upwards, bound = rules.find_only_bound(condition) or (True, 0)
    if is_upwards:
        return bound + estimate, bound + low, bound + high, visible
    return bound - estimate, bound - high, bound - low, visible


def write_summary(claim: Claim, verdict: str, units: rules.Units, families: rules.Families) -> str:
    """Say the numbers that decide, and which bounds they are compared with."""
    of = CONTRADICTED if verdict == CONTRADICTED else SUPPORTED
    condition = rules.drop_hurdles(claim.rule[of])
    condition = rules.find_deciding(condition, units, families, is_shown=verdict in DECIDED)
    sentences = []
    for part, comparison, bound in rules.comparisons(condition):
        known = [
            _read_numbers(parts[part or next(iter(parts))])
            for parts in units.values()
            if (part in parts if part else len(parts) == 1)
        ]
        found = sorted(numbers for numbers in known if not np.isnan(numbers[0]))
        if not found:
            continue
        said = [number_with_interval(*numbers) for numbers in found]
        values = said[0] if len(said) == 1 else f"{said[0]} to {said[-1]} in {len(said)} cases"
        words = capitalise(rules.strip_brackets(rules.format_part(part or "value", claim.parts)))
        sentences.append(f"{words} is {values}; {of} if {comparison.replace('_', ' ')} {bound:g}.")
    return " ".join(dict.fromkeys(sentences))


def number_with_interval(estimate: float, low: float, high: float) -> str:
    """Write a number, and its interval if it has one."""
    interval = "" if np.isnan(low) else f" (95 % interval {low:.3g} to {high:.3g})"
    return f"{estimate:.3g}{interval}"


def _explain_verdict(
    claim: Claim, verdict: str, units: rules.Units, families: rules.Families
) -> str:
    def format_condition(of: str, *, is_shown: bool) -> tuple[str, str]:
        condition = claim.rule[of]
        count = _count(condition, units, families)
        condition = rules.find_deciding(condition, units, families, is_shown=is_shown)
        return count, rules.format_condition(
            condition["holds"] if count else condition, claim.parts
        )

    if verdict != UNDECIDED:
        return capitalise(": ".join(filter(None, format_condition(verdict, is_shown=True)))) + "."
    if all(decide(claim, units, families).values()):
        each = (
            ": ".join(filter(None, format_condition(of, is_shown=True)))
            for of in (SUPPORTED, CONTRADICTED)
        )
        return "Both are shown: support ({}) and a contradiction ({}).".format(*each)
    count, lacking = format_condition(SUPPORTED, is_shown=False)
    support = (
        f"Support is shown {count}; lacking: {lacking}." if count else f"Support lacks: {lacking}."
    )
    count, lacking = format_condition(CONTRADICTED, is_shown=False)
    return f"{support} A contradiction " + (f"is shown {count}." if count else f"lacks: {lacking}.")


def _count(condition: rules.Condition, units: rules.Units, families: rules.Families) -> str:
    """In how many units a condition on a number of them is shown, each by its share of the errors."""
    if "holds" not in condition:
        return ""
    names = rules.list_units(units)
    weight, weights = rules.needed_weight(condition["in"], names, families)
    tail = TAIL / rules.count_errors(condition["in"], names, families)
    low = [rules.margin(condition["holds"], units, name).bounds(tail, TAIL)[0] for name in names]
    shown = sum(of for of, end in zip(weights, low, strict=True) if end > 0)
    what = "cases" if (total := weights.sum()) == len(names) else f"families ({len(names)} cases)"
    number = condition["in"]
    share = f"{100 * number:g} %" if isinstance(number, float) else f"{weight:g}"
    needed = "more than half" if number == "most" else share
    return f"in {shown:.3g} of {total:.3g} {what}, {needed} needed"
