"""The verdict on a claim, and the numbers that it rests on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from math import isfinite, nan
from typing import NamedTuple

import numpy as np

from shape_of_learning.claims import criteria, statistics
from shape_of_learning.claims.bounds import (
    ROUNDING,
    TAIL,
    BoundedNumber,
    average_seeds,
    subtract_numbers,
)
from shape_of_learning.claims.claim import (
    DECIDED,
    TOGETHER,
    UNJUDGED,
    Claim,
    ClaimVerdict,
    Condition,
    Criterion,
    Rule,
)
from shape_of_learning.claims.criteria import ALL_TOGETHER, PAIR, Families, Units
from shape_of_learning.claims.evidence import (
    UNTRAINED_CONTROL,
    ClaimData,
    Evidence,
    LayerValues,
    NotMeasured,
    describe_scope,
    group_models,
    list_names,
)
from shape_of_learning.errors import InputError
from shape_of_learning.metrics.suspects import COPIES, NEAR_THE_WIDTH
from shape_of_learning.words import capitalise, uncapitalise

OTHER_SEEDS = " and other seeds"


class UnitNumber(NamedTuple):
    """One number of a statistic, such as of one model, with its own 95 % interval."""

    unit: str
    name: str
    estimate: float
    low: float
    high: float


class CriterionResult(NamedTuple):
    """A number of a unit beside the bound of a criterion, and whether the criterion is met there.

    The criterion is one of the condition for `verdict`.
    """

    number: UnitNumber
    comparison: str
    bound: float
    is_met: bool
    verdict: ClaimVerdict


@dataclass(frozen=True)
class Judgement:
    """What the evidence says of a claim.

    Attributes
    ----------
    verdict : ClaimVerdict
    because : str
        The reason, in a sentence.
    estimators : tuple of str
        The estimators that the numbers are of; they may stand for those that the claim names.
    cases : int
        How many units were judged: models, pairs of models, or all seeds of a training.
    estimate, low, high : float
        The number that decides whether the claim is supported, over all units, with its 95 % interval. If all bounds
        of `supported` are equal, this number must lie beyond the bound. Otherwise it is the least distance to a bound,
        positive if the condition is met. Criteria with `not_above` and `not_below` are left out. NaN if nothing is
        measured.
    smallest_visible : float
        The least distance beyond the bound at which an estimate can be told from it.
    models, revisions, n, selections : tuple of str
        The models and data of the verdict; revisions are ``MODEL@REVISION``.
    p_supported, p_contradicted : float
        The least tails at which the conditions are shown; NaN without an interval.
    to_contradict : dict of str to float
        Number -> the least distance beyond its bound for `contradicted` at which it would contradict the claim;
        infinite if these data could not have contradicted the claim, 0 if the number has no interval.
    other_verdicts : mapping of str to ClaimVerdict
        Verdicts by other estimators and on other selections, by their names.
    beyond_controls : mapping of str to {"yes", "no", "not told", "no interval"}
        By control, such as ``untrained``: whether the models meet the claim by more than their null models do.
    numbers : tuple of UnitNumber
        All numbers of the statistic.
    results : tuple of CriterionResult
        The results of the condition that is shown; if none is shown, of the conditions for both verdicts.
    deciding : tuple of str
        The numbers that decide a verdict: those of the criteria that are shown by themselves, of rules of which any
        criterion is enough, and all of other rules.
    null_numbers : mapping of str to tuple of UnitNumber
        By control, the numbers of null models that criteria look at.
    equal_values : tuple of str
        The keys of `robustness` whose values are those of the claim's own estimators, so that they say nothing new.
    curves : mapping of (str, str) to LayerValues
        The values of each model and estimator that were read.
    withheld : str
        How many values have no interval, and why; empty if all have one.
    suspects : str
        How many values are suspect, and why; empty if no value is.
    is_suspect : bool
        Whether the verdict rests on suspect values, which decide nothing alone.
    labels, trainings : mapping of str to str
        Name of a model -> its label in figures, and what it shares with the other seeds of its training.
    """

    verdict: ClaimVerdict
    because: str
    estimators: tuple[str, ...] = ()
    cases: int = 0
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
    other_verdicts: Mapping[str, ClaimVerdict] = field(default_factory=dict)
    beyond_controls: Mapping[str, str] = field(default_factory=dict)
    numbers: tuple[UnitNumber, ...] = ()
    results: tuple[CriterionResult, ...] = ()
    deciding: tuple[str, ...] = ()
    null_numbers: Mapping[str, tuple[UnitNumber, ...]] = field(default_factory=dict)
    equal_values: tuple[str, ...] = ()
    curves: Mapping[tuple[str, str], LayerValues] = field(default_factory=dict)
    withheld: str = ""
    suspects: str = ""
    is_suspect: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    trainings: Mapping[str, str] = field(default_factory=dict)

    def label_unit(self, unit: str) -> str:
        """Name a model, the models of a pair, or the seeds of a training, as figures do."""
        names, _, seeds = unit.partition(OTHER_SEEDS)
        labels = [self.labels.get(name) or name for name in names.split(PAIR)]
        if not seeds:
            return PAIR.join(labels)
        trainings = (label.rpartition(", seed")[0] or label for label in labels)
        return f"{PAIR.join(trainings)} ({seeds.strip(' ()')} seeds)"


def judge(claim: Claim, evidence: Evidence) -> Judgement:
    """Judge a claim by its statistic and its criteria, by the estimators of the paper, then by others.

    Parameters
    ----------
    claim : Claim
        With another `average_over` (:func:`dataclasses.replace`) it is judged by other layers.
    evidence : Evidence
        Of one draw. Others may stand for the estimators that the claim names (:class:`.MeasuredChoices`).

    Returns
    -------
    Judgement
        By the paper's estimators. If others of the same quantity decide the opposite, the claim `depends
        on the estimator`; if the paper's are suspect, the others decide, and if these do not, the claim is undecided.

    Raises
    ------
    InputError
        If a criterion names a number that the statistic does not have.
    """
    written, claim = claim, claim.restrict_to_run(evidence.models)

    def judge_with(names: Sequence[str]) -> Judgement:
        substitutes = dict(zip(claim.estimators, names, strict=True))
        return _judge_with_suspects(claim, evidence, substitutes)

    by_paper = judge_with(claim.estimators)
    if claim.on_estimators and by_paper.suspects:
        by_paper = _judge_without_suspects(claim, evidence, by_paper)
    by_others = {" and ".join(names): judge_with(names) for names in claim.other_estimators}
    further = {name: judge_with(names) for name, names in claim.robustness.items()}
    by_all = {" and ".join(claim.estimators): by_paper, **by_others}
    joined = _join_verdicts(by_paper, by_all)
    if claim is not written and joined.verdict != ClaimVerdict.NOT_MEASURED:
        note = f" Judged by this run's models ({claim.models}), since it has none that the claim names."
        joined = replace(joined, because=joined.because + note)
    others: dict[str, ClaimVerdict] = {
        name: judgement.verdict
        for name, judgement in (by_all if by_others else {}).items()
        if judgement.verdict != ClaimVerdict.NOT_MEASURED
    }
    equal = tuple(name for name in further if _has_equal_values(by_paper, further[name]))
    others |= {name: of.verdict for name, of in further.items() if name not in equal}
    return replace(
        joined,
        other_verdicts=others,
        equal_values=equal,
        beyond_controls=_compare_with_controls(claim, evidence, by_paper),
        null_numbers=_read_null_numbers(claim, evidence, joined),
        labels={model.name: model.label for model in evidence.models.values()},
        trainings={m.name: m.training or m.name for m in evidence.models.values()},
    )


def _has_equal_values(judgement: Judgement, other: Judgement) -> bool:
    """Return whether all values that two judgements rest on are equal, as where no token is massive."""
    pairs = zip(judgement.curves.items(), other.curves.items(), strict=False)
    return 0 < len(judgement.curves) == len(other.curves) and all(
        model == of and np.array_equal(curve.values, values.values, equal_nan=True)
        for ((model, _), curve), ((of, _), values) in pairs
    )


def _read_null_numbers(
    claim: Claim, evidence: Evidence, judgement: Judgement
) -> dict[str, tuple[UnitNumber, ...]]:
    """Read the numbers of null models that the criteria of a decided verdict look at, by control."""
    if judgement.verdict not in DECIDED or claim.checkpoints != "last" or not claim.estimators:
        return {}  # tables have no null models, and null models have no training
    names = {result.number.name for result in judgement.results}
    substitutes = dict(zip(claim.estimators, judgement.estimators, strict=True))
    found: dict[str, tuple[UnitNumber, ...]] = {}
    for control in dict.fromkeys(key[-1] for key in evidence.controls):
        try:
            units, _ = group_units(claim, ClaimData(claim, evidence, substitutes, control=control))
            found[control] = tuple(
                UnitNumber(unit, name, *_read_interval(number))
                for unit, numbers in units.items()
                for name, number in numbers.items()
                if name in names and not np.isnan(number.estimate)
            )
        except NotMeasured:
            continue
    return found


def _judge_with_suspects(
    claim: Claim, evidence: Evidence, substitutes: Mapping[str, str]
) -> Judgement:
    """Judge without suspect values; if too few are left, with them, which decides nothing."""
    data = ClaimData(claim, evidence, substitutes)
    found = judge_by(claim, data)
    if not data.suspects or found.verdict not in UNJUDGED:
        return found
    with_all = judge_by(claim, ClaimData(claim, evidence, substitutes, with_suspects=True))
    if not with_all.numbers:
        return found
    says = f"they say {with_all.verdict}" if with_all.verdict in DECIDED else "they tell nothing"
    return replace(
        with_all,
        verdict=ClaimVerdict.UNDECIDED,
        because=f"Suspect values decide nothing alone, and {says}. {with_all.because}",
        p_supported=nan,
        p_contradicted=nan,
        is_suspect=True,
    )


def _judge_without_suspects(claim: Claim, evidence: Evidence, by_all: Judgement) -> Judgement:
    """Keep a verdict on the agreement of estimators if it is the same without the estimators with suspect values."""
    if by_all.verdict not in DECIDED:
        return by_all
    data = ClaimData(claim, evidence)
    evaluate_statistic(claim, data)
    trusted = [name for name in claim.estimators if name not in {e for _, e in data.suspects}]
    verdict = ClaimVerdict.UNDECIDED
    if len(trusted) > 1:
        without = replace(claim, estimators=trusted)
        verdict = judge_by(without, ClaimData(without, evidence)).verdict
    if verdict == by_all.verdict:
        return by_all
    reason = (
        f"It is {by_all.verdict} with suspect values, which decide nothing alone, and not by "
        f"{list_names(trusted) or 'any other estimator'}. {by_all.because}"
    )
    return replace(by_all, verdict=ClaimVerdict.UNDECIDED, because=reason, is_suspect=True)


def _join_verdicts(by_paper: Judgement, by_all: Mapping[str, Judgement]) -> Judgement:
    """Return the verdict of the paper's estimator, unless others contradict it or decide in its place."""
    named = {
        verdict: list_names(
            [name for name, judgement in by_all.items() if judgement.verdict == verdict]
        )
        for verdict in DECIDED
    }
    if all(named.values()):
        supported, contradicted = named.values()
        reason = f"Supported by {supported}, contradicted by {contradicted}."
        return replace(by_paper, verdict=ClaimVerdict.DEPENDS, because=reason)
    other = next((judgement for judgement in by_all.values() if judgement.verdict in DECIDED), None)
    if by_paper.is_suspect and other is not None:
        which = list_names(
            [name for name, judgement in by_all.items() if judgement.verdict == other.verdict]
        )
        whose = list_names([name for name, judgement in by_all.items() if judgement is other])
        return replace(
            other,
            because=f"{capitalise(other.verdict)} by {which}. By {whose}, whose numbers are shown: "
            f"{uncapitalise(other.because)} By `{next(iter(by_all))}`, {by_paper.verdict}: {by_paper.because}",
        )
    return by_paper


def _compare_with_controls(claim: Claim, evidence: Evidence, by_paper: Judgement) -> dict[str, str]:
    """Tell for each measured control whether the model meets the criteria of a supported claim by more."""
    if by_paper.verdict != ClaimVerdict.SUPPORTED or not claim.estimators:  # no controls of tables
        return {}
    condition = criteria.drop_hurdles(claim.supported)
    units, families = group_units(claim, ClaimData(claim, evidence))
    found = {}
    for control in dict.fromkeys(key[-1] for key in evidence.controls):
        if control == UNTRAINED_CONTROL and claim.checkpoints == "training":
            continue  # untrained weights at each step are a flat curve, which supports no claim on a training
        try:
            controls, _ = group_units(claim, ClaimData(claim, evidence, control=control))
        except NotMeasured:
            continue
        common = [unit for unit in units if unit in controls]
        if not common or (common == [ALL_TOGETHER] and criteria.list_units(units)):
            continue
        of_models, of_control = (
            criteria.margin(condition, {unit: both[unit] for unit in common}, families)
            for both in (units, controls)
        )
        low, high = subtract_numbers(of_models, of_control).bounds(TAIL, TAIL)
        is_met_by_control = of_control.bounds(TAIL, TAIL)[0] > 0
        if low > 0:
            found[control] = "yes"
        elif is_met_by_control or high < 0:
            found[control] = "no"
        else:
            found[control] = "not told" if isfinite(high - low) else "no interval"
    return found


def judge_by(claim: Claim, data: ClaimData) -> Judgement:
    """Judge a claim by one set of values alone; raises as :func:`judge`."""
    try:
        units, families = group_units(claim, data)
        units, left_out = _select_defined(claim, units)
        numbers = {
            (unit, name): _read_unit_number(unit, name, number)
            for unit, of_unit in units.items()
            for name, number in of_unit.items()
        }
    except NotMeasured as reason:
        suspects = _describe_suspects(data)
        because = f"{capitalise(reason)}{f'; {suspects}' if suspects else ''}."
        return Judgement(reason.verdict, because, suspects=suspects)
    shown = [verdict for verdict, is_shown in decide(claim, units, families).items() if is_shown]
    verdict = shown[0] if len(shown) == 1 else ClaimVerdict.UNDECIDED
    because = _explain_verdict(claim, verdict, units, families)
    withheld = _describe_withheld(data)
    if withheld and verdict not in DECIDED:
        because = f"{capitalise(withheld)}. {because}"
    if data.outside:
        because += f" Outside the claim: {group_models(data.outside)}; {describe_scope(claim)}."
    if data.suspects:
        because += f" {capitalise(_describe_suspects(data))}."
    because += f" Left out, since {left_out}." if left_out else ""
    if undefined := sum(curve.undefined for curve in data.curves_read.values()):
        because += f" Left out as undefined: {undefined:,} layer{'s' * (undefined > 1)}."
    to_contradict = {}
    for criterion in criteria.list_criteria(claim.contradicted):
        name = criterion.number or "value"
        margin = criteria.margin(criteria.select_number(claim.contradicted, name), units, families)
        to_contradict[name] = float(margin.estimate - margin.bounds(TAIL, TAIL)[0])
    if to_contradict and not any(to_contradict.values()):
        because += " No number that decides has an interval."
    curves = data.curves_read.values()
    results = [
        CriterionResult(
            numbers[unit, criteria.find_number(criterion, units[unit])],
            criterion.comparison,
            criterion.bound,
            is_met,
            of_verdict,
        )
        for of_verdict in (DECIDED if verdict not in DECIDED else [verdict])
        for (_, criterion, unit), is_met in criteria.find_met(
            claim.find_condition(of_verdict), units, families
        ).items()
    ]
    estimate, low, high, visible = _estimate_margin(claim.supported, units, families)
    return Judgement(
        verdict,
        because,
        tuple(data.substitutes.get(name, name) for name in claim.estimators),
        len(criteria.list_units(units)),
        estimate,
        low,
        high,
        visible,
        models=tuple(dict.fromkeys(model for model, _ in data.checkpoints)),
        revisions=tuple(f"{model}@{revision}" for model, revision in data.checkpoints),
        n=tuple(f"{n:,.0f}" for n in sorted({n for curve in curves for n in curve.n})),
        selections=tuple(sorted({curve.selection for curve in curves})),
        p_supported=criteria.p_value(claim.supported, units, families),
        p_contradicted=criteria.p_value(claim.contradicted, units, families),
        to_contradict=to_contradict,
        numbers=tuple(numbers.values()),
        results=tuple(dict.fromkeys(results)),
        deciding=_find_deciding(claim, verdict, units, families),
        curves=data.curves_read,
        withheld=withheld,
        suspects=_describe_suspects(data),
    )


def _find_deciding(
    claim: Claim, verdict: ClaimVerdict, units: Units, families: Families
) -> tuple[str, ...]:
    """Return the numbers that decide a verdict, as :class:`Judgement` says."""
    found: list[str] = []
    for rule in claim.find_condition(verdict) if verdict in DECIDED else ():
        if not criteria.is_shown([rule], units, families):
            continue
        single = [Rule((criterion,), rule.share) for criterion in rule.criteria]
        shown = [of for of in single if rule.is_any and criteria.is_shown([of], units, families)]
        found += [of.criteria[0].number for of in shown or single if not of.criteria[0].is_hurdle]
    return tuple(dict.fromkeys(found))


def _describe_withheld(data: ClaimData) -> str:
    """Say which values have no interval, and why; empty if all have one."""
    reasons: dict[str, list[str]] = {}
    for (model, estimator), (count, reason) in data.withheld.items():
        reasons.setdefault(reason, []).append(f"{count} of `{estimator}` of `{model}`")
    sentences = [
        f"{', '.join(values)} have no interval, {reason}" for reason, values in reasons.items()
    ]
    if not sentences:
        return ""
    return f"{'; '.join(sentences)}; nor has a mean or a difference with one of them"


def _describe_suspects(data: ClaimData) -> str:
    """Say how many values of which estimator are suspect, and why; empty if no value is."""
    by_estimator: dict[str, dict[str, str]] = {}
    for (model, estimator), count in data.suspects.items():
        by_estimator.setdefault(estimator, {})[model] = count
    whose = "; ".join(
        f"by `{estimator}` {group_models(models)}" for estimator, models in by_estimator.items()
    )
    if not whose:
        return ""
    causes = f"{COPIES.cause}, or {NEAR_THE_WIDTH.cause}"
    return f"suspect values ({causes}): {whose}"


def group_units(claim: Claim, data: ClaimData) -> tuple[Units, dict[str, str]]:
    """Evaluate the statistic, average units that differ only in seeds, and return the family of each."""
    units = evaluate_statistic(claim, data)
    models = data.evidence.models
    together: dict[tuple[str, ...], list[str]] = {}
    for unit in units:
        of_unit = [models[name] for name in unit.split(PAIR) if name in models]
        key = tuple(model.training or model.name for model in of_unit) or (unit,)
        together.setdefault(key, []).append(unit)
    found: dict[str, Mapping[str, BoundedNumber]] = {}
    families: dict[str, str] = {}
    for members in together.values():
        pairs = [unit.split(PAIR) for unit in members]
        # Of pairs, as many are independent as there are of the rarer one.
        counts = [len(set(names)) for names in zip(*pairs, strict=True)]
        count = min((count for count in counts if count > 1), default=1)
        name, numbers = name_seeds(members[0], count), units[members[0]]
        if count > 1:
            numbers = {
                key: average_seeds([units[member][key] for member in members], count)
                for key in numbers
            }
        found[name] = numbers
        known = [models[model] for model in pairs[0] if model in models]
        families[name] = PAIR.join(model.family or model.name for model in known) or name
    return found, families


def name_seeds(first: str, count: int) -> str:
    """Name the seeds of a training, or pairs of them, by the first one."""
    return first if count == 1 else f"{first}{OTHER_SEEDS} ({count})"


def evaluate_statistic(claim: Claim, data: ClaimData) -> Units:
    """Evaluate the statistic of a claim, which several papers have or its own."""
    estimators = {"estimators": claim.estimators} if claim.estimators else {}
    statistic = getattr(statistics, claim.statistic, None)
    if statistic is None:
        statistic = getattr(import_module(f"papers.{claim.paper}.statistics"), claim.statistic)
    units: Units = statistic(data, **estimators, **claim.arguments)
    if not units:
        raise NotMeasured(f"the run has no values for `{claim.statistic}`")
    return units


def decide(
    claim: Claim, units: Units, families: Families | None = None
) -> dict[ClaimVerdict, np.ndarray]:
    """Return whether the conditions of both verdicts are shown, of each draw; raises as :func:`judge`."""
    try:
        return {
            verdict: criteria.is_shown(claim.find_condition(verdict), units, families)
            for verdict in DECIDED
        }
    except InputError as error:
        raise InputError(f"claim `{claim.name}`: {error}") from None


def _select_defined(claim: Claim, units: Units) -> tuple[Units, str]:
    """Return units whose numbers are all defined, and why others are not; raises if the claim needs these."""
    found: dict[str, Mapping[str, BoundedNumber]] = {}
    reasons = []
    for unit, numbers in units.items():
        try:
            for name, number in numbers.items():
                _read_unit_number(unit, name, number)
            found[unit] = numbers
        except NotMeasured as reason:
            reasons.append(reason)
    are_all_needed = not isinstance(claim.models, str) and not claim.min_models
    least = max(claim.min_models, 1)
    if reasons and (are_all_needed or len(criteria.list_units(found)) < least):
        raise reasons[0]
    return found, "; ".join(map(str, reasons))


def _read_unit_number(unit: str, name: str, number: BoundedNumber) -> UnitNumber:
    named = f"`{name}`" + (f" of `{unit}`" if unit else "")
    ends = number.bounds(TAIL, TAIL)
    # A number with infinite bounds is unknown, and decides nothing.
    if np.isnan(number.estimate) and not np.isinf(ends).all():
        raise NotMeasured(f"{named} is undefined")
    if np.isnan(ends).any():
        raise NotMeasured(
            f"{named} has no interval, which needs values without each of 16 groups of windows, or of two "
            "seeds at least"
        )
    return UnitNumber(unit, name, *_read_interval(number))


def _read_interval(number: BoundedNumber) -> tuple[float, float, float]:
    """Return the estimate and the interval; NaN if it has none. One end may be infinite, but not both."""
    ends = number.bounds(TAIL, TAIL)
    low, high = (float(np.clip(end, *number.limits)) for end in ends)
    has_interval = low < high and not np.isinf(ends).all()
    return float(number.estimate), *((low, high) if has_interval else (nan, nan))


def _estimate_margin(
    condition: Condition, units: Units, families: Families
) -> tuple[float, float, float, float]:
    """Return estimate, interval and smallest visible effect, in the units of the bound if there is only one."""
    margin = criteria.margin(criteria.drop_hurdles(condition), units, families)
    estimate, low, high = _read_interval(margin)
    low, high = (end if np.isfinite(end) else nan for end in (low, high))
    is_upwards, bound = criteria.find_only_bound(condition) or (True, 0)
    if is_upwards:
        return bound + estimate, bound + low, bound + high, estimate - low
    return bound - estimate, bound - high, bound - low, estimate - low


def _explain_verdict(claim: Claim, verdict: ClaimVerdict, units: Units, families: Families) -> str:
    """Say in how many units which criteria are met, or what support and a contradiction lack."""

    def explain(decided: ClaimVerdict, *, lacking: bool) -> str:
        condition = claim.find_condition(decided)
        met = criteria.find_met(condition, units, families)
        rules = []
        for place, rule in enumerate(condition):
            of_rule = {(c, unit): is_met for (at, c, unit), is_met in met.items() if at == place}
            groups = [_explain_group(claim, group, of_rule, families) for group in rule.groups]
            if lacking:
                rules.append([words for words, is_enough in groups if not is_enough])
            elif all(is_enough for _, is_enough in groups):
                rules.append([words for words, _ in groups])
        return " or ".join(" and ".join(groups) for groups in rules if groups)

    supported, contradicted = DECIDED
    if verdict in DECIDED:
        return f"{capitalise(explain(verdict, lacking=False))}."
    if all(decide(claim, units, families).values()):
        support = explain(supported, lacking=False)
        contradiction = explain(contradicted, lacking=False)
        return f"Both are shown: support ({support}) and a contradiction ({contradiction})."
    support = explain(supported, lacking=True)
    contradiction = explain(contradicted, lacking=True)
    return f"The condition for support is met {support}. The condition for a contradiction is met {contradiction}."


def _explain_group(
    claim: Claim, group: Rule, met: Mapping[tuple[Criterion, str], bool], families: Families
) -> tuple[str, bool]:
    """Say in how many units criteria that are counted together are met, and return whether these are enough."""
    names = list(dict.fromkeys(unit for criterion, unit in met if criterion in group.criteria))
    join = any if group.is_any else all
    is_met = [join(met[criterion, name] for criterion in group.criteria) for name in names]
    shown = [c for c in group.criteria if not group.is_any or any(met[c, name] for name in names)]
    missed = [c for c in group.criteria if not all(met[c, name] for name in names)]
    if group.share == TOGETHER:
        is_enough, count = is_met[0], "in all cases together"
    else:
        weight, weights = criteria.find_needed_weight(group.share, names, families)
        reached = sum(part for part, is_shown in zip(weights, is_met, strict=True) if is_shown)
        is_enough, total = bool(reached >= weight - ROUNDING), weights.sum()
        what = "cases" if total == len(names) else f"families ({len(names)} cases)"
        share = f"{100 * group.share:g} %" if isinstance(group.share, float) else f"{weight:g}"
        needed = "more than half" if group.share == "most" else share
        count = f"in {reached:.3g} of {total:.3g} {what}, {needed} needed"
    if is_enough:
        return f"{count}: {claim.format_criteria(shown, is_any=group.is_any)}", True
    numbers = ", ".join(dict.fromkeys(claim.name_number(c.number) for c in missed))
    return (count if group.is_any else f"{count}; not met: {numbers}"), False
