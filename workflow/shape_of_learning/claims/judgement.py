"""The verdict on a claim, with the numbers behind it."""

from collections.abc import Iterator, Mapping, Sequence
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
    EvidenceModel,
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
    """A number of a statistic for a unit, such as a model, with its 95 % interval."""

    unit: str
    name: str
    estimate: float
    low: float
    high: float


class CriterionResult(NamedTuple):
    """A criterion of the condition for `verdict`, applied to the number of a unit."""

    number: UnitNumber
    comparison: str
    bound: float
    is_met: bool
    verdict: ClaimVerdict


@dataclass(frozen=True)
class Judgement:
    """The verdict of the evidence on a claim, with the numbers behind it.

    Attributes
    ----------
    verdict : ClaimVerdict
    because : str
        The reason, in a sentence.
    estimators : tuple of str
        The estimators of the numbers, which may replace the estimators that the claim names.
    cases : int
        The number of units: models, pairs of models, or all seeds of a training.
    estimate, low, high : float
        The number that decides whether the claim is supported, over all units, with its 95 % interval. If the criteria
        of `supported` share one direction and one bound, it is compared with this bound. Otherwise it is the margin of
        the condition, positive if the condition is met. Criteria with `not_above` and `not_below` do not count. NaN if
        nothing is measured.
    smallest_visible : float
        The least distance at which the interval of an estimate excludes the bound.
    models, revisions, n, selections : tuple of str
        The models and data of the verdict; revisions are ``MODEL@REVISION``.
    p_supported, p_contradicted : float
        The least tails at which the conditions are shown; NaN without an interval.
    to_contradict : dict of str to float
        Number -> the least distance beyond its bound for `contradicted` at which it would contradict the claim;
        infinite if these data could not have contradicted the claim, 0 if the number is known exactly.
    other_verdicts : mapping of str to ClaimVerdict
        Verdicts by the paper's and other estimators and on other selections, by the names of these.
    control_comparisons : mapping of str to {"yes", "no", "undecided", "no interval"}
        Control, such as ``untrained`` -> whether the models meet the claim by more than their null models do.
    numbers : tuple of UnitNumber
        All numbers of the statistic.
    results : tuple of CriterionResult
        The results of the condition that is shown; if no single condition is shown, the results of both.
    deciding_numbers : tuple of str
        The numbers that decide a verdict. Of a rule that needs only one criterion, they are the numbers of the criteria
        that are shown alone; of another rule, the numbers of all its criteria but `not_above` and `not_below`.
    null_numbers : mapping of str to tuple of UnitNumber
        Control -> the numbers of the null models that criteria use.
    equal_values : tuple of str
        The keys of `robustness` whose values equal those of the claim's estimators and so add no evidence.
    curves : mapping of (str, str) to LayerValues
        The values that were read, by model and estimator.
    withheld : str
        The number of values without an interval, and the reason; empty if all values have an interval.
    suspects : str
        The number of suspect values, and the reason; empty if no value is suspect.
    is_suspect : bool
        Whether the verdict rests on suspect values, which decide nothing alone.
    labels, trainings : mapping of str to str
        Name of a model -> its label in figures, and the name that it shares with the other seeds of its training.
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
    control_comparisons: Mapping[str, str] = field(default_factory=dict)
    numbers: tuple[UnitNumber, ...] = ()
    results: tuple[CriterionResult, ...] = ()
    deciding_numbers: tuple[str, ...] = ()
    null_numbers: Mapping[str, tuple[UnitNumber, ...]] = field(default_factory=dict)
    equal_values: tuple[str, ...] = ()
    curves: Mapping[tuple[str, str], LayerValues] = field(default_factory=dict)
    withheld: str = ""
    suspects: str = ""
    is_suspect: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    trainings: Mapping[str, str] = field(default_factory=dict)

    def label_unit(self, unit: str) -> str:
        """Name a model, the models of a pair, or the seeds of a training by their labels in figures."""
        names, _, seeds = unit.partition(OTHER_SEEDS)
        labels = [self.labels.get(name) or name for name in names.split(PAIR)]
        if not seeds:
            return PAIR.join(labels)
        trainings = (label.rpartition(", seed")[0] or label for label in labels)
        return f"{PAIR.join(trainings)} ({seeds.strip(' ()')} seeds)"


def judge(claim: Claim, evidence: Evidence) -> Judgement:
    """Judge a claim by its statistic and its criteria, with the estimators of the paper and with other estimators.

    Parameters
    ----------
    claim : Claim
        A claim with another `average_over` is judged by other layers (:func:`dataclasses.replace`).
    evidence : Evidence
        Values of one draw; the values under an estimator's name may be those of another estimator
        (:class:`.MeasuredChoices`).

    Returns
    -------
    Judgement
        The judgement by the paper's estimators. If two estimators of the same quantity decide opposite verdicts, the
        claim `depends on the estimator`. If too many values of the paper's estimators are suspect, the other estimators
        decide; if they do not, the claim is undecided.

    Raises
    ------
    InputError
        If a criterion names a number that the statistic does not have.
    """
    paper_claim = claim
    claim = paper_claim.restrict_to_run(evidence.models)

    def judge_estimators(names: Sequence[str]) -> Judgement:
        substitutes = dict(zip(claim.estimators, names, strict=True))
        return _judge_reliable_values(claim, evidence, substitutes)

    paper_judgement = judge_estimators(claim.estimators)
    if claim.on_estimators and paper_judgement.suspects:
        paper_judgement = _require_reliable_agreement(claim, evidence, paper_judgement)
    other_judgements = {
        " and ".join(names): judge_estimators(names) for names in claim.other_estimators
    }
    robustness_judgements = {
        name: judge_estimators(names) for name, names in claim.robustness.items()
    }
    judgements = {" and ".join(claim.estimators): paper_judgement, **other_judgements}
    joint_judgement = _join_verdicts(paper_judgement, judgements)
    if claim is not paper_claim and joint_judgement.verdict != ClaimVerdict.NOT_MEASURED:
        note = f" Judged by this run's models ({claim.models}), since the run has no model that the claim names."
        joint_judgement = replace(joint_judgement, because=joint_judgement.because + note)
    other_verdicts: dict[str, ClaimVerdict] = {
        name: judgement.verdict
        for name, judgement in (judgements if other_judgements else {}).items()
        if judgement.verdict != ClaimVerdict.NOT_MEASURED
    }
    equal_values = []
    for name, judgement in robustness_judgements.items():
        if _has_equal_values(paper_judgement, judgement):
            equal_values.append(name)
        else:
            other_verdicts[name] = judgement.verdict
    return replace(
        joint_judgement,
        other_verdicts=other_verdicts,
        equal_values=tuple(equal_values),
        control_comparisons=_compare_with_controls(claim, evidence, paper_judgement),
        null_numbers=_read_null_numbers(claim, evidence, joint_judgement),
        labels={model.name: model.label for model in evidence.models.values()},
        trainings={m.name: m.training or m.name for m in evidence.models.values()},
    )


def _has_equal_values(judgement: Judgement, other: Judgement) -> bool:
    """Return whether two judgements rest on equal values, such as with and without massive tokens if there are none."""
    pairs = zip(judgement.curves.items(), other.curves.items(), strict=False)
    return 0 < len(judgement.curves) == len(other.curves) and all(
        model == other_model and np.array_equal(curve.values, values.values, equal_nan=True)
        for ((model, _), curve), ((other_model, _), values) in pairs
    )


def _read_null_numbers(
    claim: Claim, evidence: Evidence, judgement: Judgement
) -> dict[str, tuple[UnitNumber, ...]]:
    """Return the numbers of null models, by control, that the criteria of a decided verdict use."""
    if judgement.verdict not in DECIDED or claim.checkpoints != "last" or not claim.estimators:
        return {}  # other tables have no null models, and null models have no training
    names = {result.number.name for result in judgement.results}
    substitutes = dict(zip(claim.estimators, judgement.estimators, strict=True))
    numbers_by_control: dict[str, tuple[UnitNumber, ...]] = {}
    for control in dict.fromkeys(key[-1] for key in evidence.controls):
        try:
            units, _ = group_units(claim, ClaimData(claim, evidence, substitutes, control=control))
            numbers_by_control[control] = tuple(
                UnitNumber(unit, name, *_read_interval(number))
                for unit, numbers in units.items()
                for name, number in numbers.items()
                if name in names and not np.isnan(number.estimate)
            )
        except NotMeasured:
            continue
    return numbers_by_control


def _judge_reliable_values(
    claim: Claim, evidence: Evidence, substitutes: Mapping[str, str]
) -> Judgement:
    """Judge without suspect values; if too few are left, use them for the numbers, and leave the claim undecided."""
    data = ClaimData(claim, evidence, substitutes)
    judgement = judge_data(claim, data)
    if not data.suspects or judgement.verdict not in UNJUDGED:
        return judgement
    full_judgement = judge_data(
        claim, ClaimData(claim, evidence, substitutes, counts_suspects=True)
    )
    if not full_judgement.numbers:
        return judgement
    return replace(
        full_judgement,
        verdict=ClaimVerdict.UNDECIDED,
        because=f"Suspect values decide nothing alone; with them, the verdict would be {full_judgement.verdict}. "
        f"{full_judgement.because}",
        p_supported=nan,
        p_contradicted=nan,
        is_suspect=True,
    )


def _require_reliable_agreement(
    claim: Claim, evidence: Evidence, judgement: Judgement
) -> Judgement:
    """Make a verdict on agreement undecided unless estimators without suspect values give the same verdict."""
    if judgement.verdict not in DECIDED:
        return judgement
    data = ClaimData(claim, evidence)
    evaluate_statistic(claim, data)
    reliable_estimators = [
        name for name in claim.estimators if name not in {e for _, e in data.suspects}
    ]
    verdict = ClaimVerdict.UNDECIDED
    if len(reliable_estimators) > 1:
        reliable_claim = replace(claim, estimators=reliable_estimators)
        verdict = judge_data(reliable_claim, ClaimData(reliable_claim, evidence)).verdict
    if verdict == judgement.verdict:
        return judgement
    reason = (
        f"It is {judgement.verdict} with suspect values, which decide nothing alone, and not by "
        f"{list_names(reliable_estimators) or 'any other estimator'}. {judgement.because}"
    )
    return replace(judgement, verdict=ClaimVerdict.UNDECIDED, because=reason, is_suspect=True)


def _join_verdicts(paper_judgement: Judgement, judgements: Mapping[str, Judgement]) -> Judgement:
    """Join the judgement by the paper's estimators with those by other estimators, as :func:`judge` describes."""
    names_by_verdict = {
        verdict: list_names(
            [name for name, judgement in judgements.items() if judgement.verdict == verdict]
        )
        for verdict in DECIDED
    }
    if all(names_by_verdict.values()):
        supporters, opponents = names_by_verdict.values()
        reason = f"Supported by {supporters}, contradicted by {opponents}."
        return replace(paper_judgement, verdict=ClaimVerdict.DEPENDS, because=reason)
    other = next(
        (judgement for judgement in judgements.values() if judgement.verdict in DECIDED), None
    )
    if paper_judgement.is_suspect and other is not None:
        deciders = list_names(
            [name for name, judgement in judgements.items() if judgement.verdict == other.verdict]
        )
        shown_name = list_names(
            [name for name, judgement in judgements.items() if judgement is other]
        )
        reason = (
            f"{capitalise(other.verdict)} by {deciders}. By {shown_name}, whose numbers are shown: "
            f"{uncapitalise(other.because)} By `{next(iter(judgements))}`, {paper_judgement.verdict}: "
            f"{paper_judgement.because}"
        )
        return replace(other, because=reason)
    return paper_judgement


def _compare_with_controls(
    claim: Claim, evidence: Evidence, judgement: Judgement
) -> dict[str, str]:
    """Return for each measured control whether the models meet a supported claim by more than the null models do."""
    if judgement.verdict != ClaimVerdict.SUPPORTED or not claim.estimators:
        return {}  # other tables have no null models
    condition = criteria.drop_hurdles(claim.supported)
    units, families = group_units(claim, ClaimData(claim, evidence))
    results = {}
    for control in dict.fromkeys(key[-1] for key in evidence.controls):
        if control == UNTRAINED_CONTROL and claim.checkpoints == "training":
            continue  # untrained weights give a flat curve, which supports no claim on a training
        try:
            control_units, _ = group_units(claim, ClaimData(claim, evidence, control=control))
        except NotMeasured:
            continue
        common = [unit for unit in units if unit in control_units]
        if not common or (common == [ALL_TOGETHER] and criteria.list_units(units)):
            continue
        model_margin, control_margin = (
            criteria.margin(condition, {unit: both[unit] for unit in common}, families)
            for both in (units, control_units)
        )
        low, high = subtract_numbers(model_margin, control_margin).bounds(TAIL, TAIL)
        is_met_by_control = control_margin.bounds(TAIL, TAIL)[0] > 0
        if low > 0:
            results[control] = "yes"
        elif is_met_by_control or high < 0:
            results[control] = "no"
        else:
            results[control] = "undecided" if isfinite(high - low) else "no interval"
    return results


def judge_data(claim: Claim, data: ClaimData) -> Judgement:
    """Judge a claim by one set of values; errors are those of :func:`judge`."""
    try:
        units, families = group_units(claim, data)
        units, left_out = _drop_undefined_units(claim, units)
        numbers = {
            (unit, name): _read_unit_number(unit, name, number)
            for unit, unit_numbers in units.items()
            for name, number in unit_numbers.items()
        }
    except NotMeasured as reason:
        suspects = _describe_suspects(data)
        because = f"{capitalise(reason)}{f'; {suspects}' if suspects else ''}."
        return Judgement(reason.verdict, because, suspects=suspects)
    verdict = _decide_verdict(claim, units, families)
    distances = _measure_distances(claim, units, families)
    sentences = [
        _explain_verdict(claim, verdict, units, families),
        *_describe_left_out(claim, data, left_out),
    ]
    withheld = _describe_withheld(data)
    if withheld and verdict not in DECIDED:
        sentences.insert(0, f"{capitalise(withheld)}.")
    if distances and not any(distances.values()):
        sentences.append("No number that decides has an interval.")
    curves = data.curves_read.values()
    estimate, low, high, smallest_visible = _estimate_margin(claim.supported, units, families)
    return Judgement(
        verdict,
        " ".join(sentences),
        tuple(data.substitutes.get(name, name) for name in claim.estimators),
        len(criteria.list_units(units)),
        estimate,
        low,
        high,
        smallest_visible,
        models=tuple(dict.fromkeys(model for model, _ in data.checkpoints)),
        revisions=tuple(f"{model}@{revision}" for model, revision in data.checkpoints),
        n=tuple(f"{n:,.0f}" for n in sorted({n for curve in curves for n in curve.n})),
        selections=tuple(sorted({curve.selection for curve in curves})),
        p_supported=criteria.p_value(claim.supported, units, families),
        p_contradicted=criteria.p_value(claim.contradicted, units, families),
        to_contradict=distances,
        numbers=tuple(numbers.values()),
        results=_list_results(claim, verdict, units, families, numbers),
        deciding_numbers=_find_deciding_numbers(claim, verdict, units, families),
        curves=data.curves_read,
        withheld=withheld,
        suspects=_describe_suspects(data),
    )


def _decide_verdict(claim: Claim, units: Units, families: Families) -> ClaimVerdict:
    """Return the verdict whose condition is shown; undecided if neither or both are."""
    shown_verdicts = [
        verdict for verdict, is_shown in decide(claim, units, families).items() if is_shown
    ]
    return shown_verdicts[0] if len(shown_verdicts) == 1 else ClaimVerdict.UNDECIDED


def _measure_distances(claim: Claim, units: Units, families: Families) -> dict[str, float]:
    """Measure how far beyond its bound each number would have to lie to contradict the claim."""
    distances = {}
    for criterion in criteria.list_criteria(claim.contradicted):
        name = criterion.number or "value"
        margin = criteria.margin(criteria.select_number(claim.contradicted, name), units, families)
        distances[name] = float(margin.estimate - margin.bounds(TAIL, TAIL)[0])
    return distances


def _describe_left_out(claim: Claim, data: ClaimData, left_out: str) -> Iterator[str]:
    """Say which models are outside the claim, and which units, values and layers are left out."""
    if data.outside:
        yield f"Outside the claim: {group_models(data.outside)}; {describe_scope(claim)}."
    if data.suspects:
        yield f"{capitalise(_describe_suspects(data))}."
    if left_out:
        yield f"Left out, since {left_out}."
    if layers := sum(curve.undefined_layers for curve in data.curves_read.values()):
        yield f"Left out as undefined: {layers:,} layer{'s' * (layers > 1)}."


def _list_results(
    claim: Claim,
    verdict: ClaimVerdict,
    units: Units,
    families: Families,
    numbers: Mapping[tuple[str, str], UnitNumber],
) -> tuple[CriterionResult, ...]:
    """List the results of the condition that is shown; if no single condition is, those of both."""
    results = [
        CriterionResult(
            numbers[unit, criteria.find_number(criterion, units[unit])],
            criterion.comparison,
            criterion.bound,
            is_met,
            condition_verdict,
        )
        for condition_verdict in (DECIDED if verdict not in DECIDED else [verdict])
        for (_, criterion, unit), is_met in criteria.check_criteria(
            claim.find_condition(condition_verdict), units, families
        ).items()
    ]
    return tuple(dict.fromkeys(results))


def _find_deciding_numbers(
    claim: Claim, verdict: ClaimVerdict, units: Units, families: Families
) -> tuple[str, ...]:
    """Return the numbers that decide a verdict; :class:`Judgement` describes them."""
    names: list[str] = []
    for rule in claim.find_condition(verdict) if verdict in DECIDED else ():
        if not criteria.is_shown([rule], units, families):
            continue
        single_rules = [Rule((criterion,), rule.share) for criterion in rule.criteria]
        if rule.is_any:
            shown_rules = [r for r in single_rules if criteria.is_shown([r], units, families)]
            single_rules = shown_rules or single_rules
        for single_rule in single_rules:
            [criterion] = single_rule.criteria
            if not criterion.is_hurdle:
                names.append(criterion.number)
    return tuple(dict.fromkeys(names))


def _describe_withheld(data: ClaimData) -> str:
    """Describe the values without an interval, and the reason; empty if all values have an interval."""
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
    """Describe how many values of each estimator are suspect, and why; empty if no value is suspect."""
    counts_by_estimator: dict[str, dict[str, str]] = {}
    for (model, estimator), count in data.suspects.items():
        counts_by_estimator.setdefault(estimator, {})[model] = count
    counts_in_words = "; ".join(
        f"by `{estimator}` {group_models(models)}"
        for estimator, models in counts_by_estimator.items()
    )
    if not counts_in_words:
        return ""
    causes = f"{COPIES.cause}, or {NEAR_THE_WIDTH.cause}"
    return f"suspect values ({causes}): {counts_in_words}"


def group_units(claim: Claim, data: ClaimData) -> tuple[Units, dict[str, str]]:
    """Evaluate the statistic, average units that differ only in seeds, and return the units and their families."""
    units = evaluate_statistic(claim, data)
    models = data.evidence.models
    units_by_training: dict[tuple[str, ...], list[str]] = {}
    for unit in units:
        unit_models = [models[name] for name in split_unit(unit, models) if name in models]
        key = tuple(model.training or model.name for model in unit_models) or (unit,)
        units_by_training.setdefault(key, []).append(unit)
    averages: dict[str, Mapping[str, BoundedNumber]] = {}
    families: dict[str, str] = {}
    for members in units_by_training.values():
        pairs = [split_unit(unit, models) for unit in members]
        # Pairs share models: only as many are independent as the rarer model of the pair has seeds.
        counts = [len(set(names)) for names in zip(*pairs, strict=True)]
        count = min((count for count in counts if count > 1), default=1)
        name, numbers = name_seeds(members[0], count), units[members[0]]
        if count > 1:
            numbers = {
                key: average_seeds([units[member][key] for member in members], count)
                for key in numbers
            }
        averages[name] = numbers
        known_models = [models[model] for model in pairs[0] if model in models]
        families[name] = PAIR.join(model.family or model.name for model in known_models) or name
    return averages, families


def split_unit(unit: str, models: Mapping[str, EvidenceModel]) -> list[str]:
    """Split a unit into its models; two of the same role are sorted, so that the order of the run decides nothing."""
    names = unit.split(PAIR)
    known_models = [models[name] for name in names if name in models]
    if len(known_models) == len(names) and len({model.role for model in known_models}) == 1:
        names.sort(key=lambda name: (models[name].family, models[name].training, name))
    return names


def name_seeds(first: str, count: int) -> str:
    """Name the seeds of a training, or pairs of seeds, by the first of them."""
    return first if count == 1 else f"{first}{OTHER_SEEDS} ({count})"


def evaluate_statistic(claim: Claim, data: ClaimData) -> Units:
    """Evaluate the statistic of a claim, which is in :mod:`.statistics` or in the folder of the paper."""
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
    """Return whether the condition of each verdict is shown, for each draw; errors are those of :func:`judge`."""
    try:
        return {
            verdict: criteria.is_shown(claim.find_condition(verdict), units, families)
            for verdict in DECIDED
        }
    except InputError as error:
        raise InputError(f"claim `{claim.name}`: {error}") from None


def _drop_undefined_units(claim: Claim, units: Units) -> tuple[Units, str]:
    """Return the units whose numbers are all defined, and why other units are left out.

    Raises
    ------
    NotMeasured
        If the claim needs a unit with an undefined number.
    """
    defined_units: dict[str, Mapping[str, BoundedNumber]] = {}
    reasons = []
    for unit, numbers in units.items():
        try:
            for name, number in numbers.items():
                _read_unit_number(unit, name, number)
            defined_units[unit] = numbers
        except NotMeasured as reason:
            reasons.append(reason)
    are_all_needed = not isinstance(claim.models, str) and not claim.min_models
    minimum = max(claim.min_models, 1)
    if reasons and (are_all_needed or len(criteria.list_units(defined_units)) < minimum):
        raise reasons[0]
    return defined_units, "; ".join(map(str, reasons))


def _read_unit_number(unit: str, name: str, number: BoundedNumber) -> UnitNumber:
    label = f"`{name}`" + (f" of `{unit}`" if unit else "")
    ends = number.bounds(TAIL, TAIL)
    # A number with infinite bounds is unknown, and decides nothing.
    if np.isnan(number.estimate) and not np.isinf(ends).all():
        raise NotMeasured(f"{label} is undefined")
    if np.isnan(ends).any():
        raise NotMeasured(
            f"{label} has no interval, which needs values without each of 16 groups of windows, or values of at least "
            "two seeds"
        )
    return UnitNumber(unit, name, *_read_interval(number))


def _read_interval(number: BoundedNumber) -> tuple[float, float, float]:
    """Return the estimate and both ends of the interval; the ends are NaN if there is no interval.

    One end may be infinite, but not both.
    """
    ends = number.bounds(TAIL, TAIL)
    low, high = (float(np.clip(end, *number.limits)) for end in ends)
    has_interval = low < high and not np.isinf(ends).all()
    return float(number.estimate), *((low, high) if has_interval else (nan, nan))


def _estimate_margin(
    condition: Condition, units: Units, families: Families
) -> tuple[float, float, float, float]:
    """Return the estimate, its interval and the smallest visible effect, relative to 0 or to the only bound."""
    margin = criteria.margin(criteria.drop_hurdles(condition), units, families)
    estimate, low, high = _read_interval(margin)
    low, high = (end if np.isfinite(end) else nan for end in (low, high))
    is_upwards, bound = criteria.find_only_bound(condition) or (True, 0)
    if is_upwards:
        return bound + estimate, bound + low, bound + high, estimate - low
    return bound - estimate, bound - high, bound - low, estimate - low


def _explain_verdict(claim: Claim, verdict: ClaimVerdict, units: Units, families: Families) -> str:
    """Describe in how many units criteria are met, or which criteria are not met if there is no verdict."""

    def explain(condition_verdict: ClaimVerdict, *, lacking: bool) -> str:
        condition = claim.find_condition(condition_verdict)
        results = criteria.check_criteria(condition, units, families)
        rules = []
        for place, rule in enumerate(condition):
            rule_results = {
                (criterion, unit): is_met
                for (rule_place, criterion, unit), is_met in results.items()
                if rule_place == place
            }
            groups = [_explain_group(claim, group, rule_results, families) for group in rule.groups]
            if lacking:
                rules.append([words for words, is_enough in groups if not is_enough])
            elif all(is_enough for _, is_enough in groups):
                rules.append([words for words, _ in groups])
        return " or ".join(" and ".join(groups) for groups in rules if groups)

    if verdict in DECIDED:
        return f"{capitalise(explain(verdict, lacking=False))}."
    if all(decide(claim, units, families).values()):
        support = explain(ClaimVerdict.SUPPORTED, lacking=False)
        contradiction = explain(ClaimVerdict.CONTRADICTED, lacking=False)
        return f"Both are shown: support ({support}) and a contradiction ({contradiction})."
    support = explain(ClaimVerdict.SUPPORTED, lacking=True)
    contradiction = explain(ClaimVerdict.CONTRADICTED, lacking=True)
    return f"The condition for support is met {support}. The condition for a contradiction is met {contradiction}."


def _explain_group(
    claim: Claim, group: Rule, results: Mapping[tuple[Criterion, str], bool], families: Families
) -> tuple[str, bool]:
    """Describe in how many units the criteria of a group are met, and return whether these units are enough."""
    names = list(dict.fromkeys(unit for criterion, unit in results if criterion in group.criteria))
    join = any if group.is_any else all
    is_met = [join(results[criterion, name] for criterion in group.criteria) for name in names]
    met_criteria = [
        c for c in group.criteria if not group.is_any or any(results[c, name] for name in names)
    ]
    missed_criteria = [c for c in group.criteria if not all(results[c, name] for name in names)]
    if group.share == TOGETHER:
        is_enough, count = is_met[0], "in all cases together"
    else:
        weight, weights = criteria.find_needed_weight(group.share, names, families)
        met_weight = weights[is_met].sum()
        total = weights.sum()
        is_enough = bool(met_weight >= weight - ROUNDING)
        cases = "cases" if total == len(names) else f"families ({len(names)} cases)"
        share = f"{100 * group.share:g} %" if isinstance(group.share, float) else f"{weight:g}"
        needed_words = "more than half" if group.share == "most" else share
        count = f"in {met_weight:.3g} of {total:.3g} {cases}, {needed_words} needed"
    if is_enough:
        return f"{count}: {claim.format_criteria(met_criteria, is_any=group.is_any)}", True
    numbers = ", ".join(dict.fromkeys(claim.name_number(c.number) for c in missed_criteria))
    return (count if group.is_any else f"{count}; not met: {numbers}"), False
