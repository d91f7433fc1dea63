"""Margins of the criteria of a claim: how far numbers lie beyond their bounds.

A statistic returns *units*, such as models, each with named numbers that have bounds. A *criterion* compares a number:

``{number: NAME, above: X}``
    Also `below`, `at_least`, `at_most`. `number` may be left out if the statistic has only one number.
``{number: NAME, not_above: X}``
    Also `not_below`: the interval does not lie beyond X. This criterion restricts others and shows nothing alone.

A *rule* has one criterion or a list of criteria. All criteria of a list `all_of` must hold in the same unit. Of a list
`any_of`, at least one must hold. The key `in` states the number of units in which the rule must hold:

    `all` (the default), `any`, a number of units, or a share of the units: `most` (more than half) or a number such as
    0.75. A share counts families, and the members of a family share its weight equally: five models of one suite are
    not five independent witnesses.
    `together`: each number describes all units together.

A criterion within `all_of` may have an `in` of its own. A list of rules holds if at least one rule holds.

The *margin* of a criterion is the distance of the number from the bound. The margin of `all_of` is the least margin,
that of `any_of` the largest, and that of a rule for k units the k-th largest (:mod:`shape_of_learning.claims.bounds`).
A rule holds if the interval of its margin lies above zero. So a rule with many criteria is wrong as rarely as a rule
with a single criterion.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from shape_of_learning.claims.bounds import (
    TAIL,
    BoundedNumber,
    count_fewest,
    make_undecided,
    stack_bounds,
)
from shape_of_learning.claims.claim import INCLUSIVE, TOGETHER, Condition, Criterion, Rule, Share
from shape_of_learning.errors import InputError

ALL_TOGETHER = ""  # the unit whose numbers describe all units together
PAIR = " / "  # joins the names of two models to the name of their pair
LEAST_CHANCE = 1e-8

Units = Mapping[str, Mapping[str, BoundedNumber]]
Families = Mapping[str, str]  # unit -> family; a unit that is missing here is a family of its own


def margin(condition: Condition, units: Units, families: Families | None = None) -> BoundedNumber:
    """Return the margin of a condition: its lower bound is positive if the condition holds.

    Raises
    ------
    InputError
        If a criterion names a number that the statistic does not have, or if a rule counts units although the statistic
        has none.
    """
    rules = []
    for rule in condition:
        groups = [_margin_of_group(group, units, families or {}) for group in rule.groups]
        rules.append(_join(groups, is_any=rule.is_any))
    return _join(rules, is_any=True)


def _margin_of_group(rule: Rule, units: Units, families: Families) -> BoundedNumber:
    if rule.share == TOGETHER:
        if ALL_TOGETHER not in units:
            raise InputError(
                "the rule describes all units together, but its statistic describes each unit; leave `in: together` out"
            )
        return _margin_of_unit(rule, units[ALL_TOGETHER])
    names = list_units(units)
    if not names:
        raise InputError(
            "the rule counts units, but its numbers describe all units together; write `in: together`"
        )
    margins = stack_bounds([_margin_of_unit(rule, units[name]) for name in names])
    weight, weights = find_needed_weight(rule.share, names, families)
    if weight > len(names):
        return make_undecided(margins.least())
    return margins.weighted_largest(weight, weights)


def find_number(criterion: Criterion, numbers: Mapping[str, BoundedNumber]) -> str:
    """Return the name of a criterion's number in a unit; InputError if the unit lacks the number."""
    if criterion.number in numbers:
        return criterion.number
    if not criterion.number and len(numbers) == 1:
        return next(iter(numbers))
    problem = f"needs the number `{criterion.number}`" if criterion.number else "names no number"
    names = ", ".join(f"`{name}`" for name in numbers)
    raise InputError(
        f"the rule {problem}, but the statistic has the numbers {names}; correct `number`"
    )


def _margin_of_criterion(
    criterion: Criterion, numbers: Mapping[str, BoundedNumber]
) -> BoundedNumber:
    """Return how far the number of a unit lies beyond the bound."""
    number = numbers[find_number(criterion, numbers)]
    sign = 1 if criterion.is_upwards else -1
    bound = criterion.bound
    if criterion.comparison in INCLUSIVE:
        bound = float(np.nextafter(bound, -sign * math.inf))

    def bounds(lower_tail: float, upper_tail: float) -> tuple[np.ndarray, np.ndarray]:
        if criterion.is_hurdle:
            lower_tail = upper_tail = TAIL
        ends = (
            number.bounds(lower_tail, upper_tail)
            if sign > 0
            else number.bounds(upper_tail, lower_tail)[::-1]
        )
        low, high = (sign * (end - bound) for end in ends)
        # The upper end decides whether a hurdle is met; a number without an interval decides nothing.
        is_known = ~(np.isinf(low) & np.isinf(high))
        return (np.where(is_known, high, low), high) if criterion.is_hurdle else (low, high)

    return BoundedNumber(sign * (number.estimate - bound), bounds)


def _margin_of_unit(rule: Rule, numbers: Mapping[str, BoundedNumber]) -> BoundedNumber:
    margins = [_margin_of_criterion(criterion, numbers) for criterion in rule.criteria]
    return _join(margins, is_any=rule.is_any)


def _join(margins: Sequence[BoundedNumber], *, is_any: bool) -> BoundedNumber:
    if len(margins) == 1:
        return margins[0]
    stack = stack_bounds(margins)
    if not is_any:
        return stack.least()
    # fmax ignores NaN, so that an unknown alternative does not hide the others.
    return replace(stack.greatest(), estimate=np.fmax.reduce(stack.estimate, axis=-1))


def is_shown(condition: Condition, units: Units, families: Families | None = None) -> np.ndarray:
    """Return whether a condition is shown to hold; an array if the numbers have several draws."""
    low, _ = margin(condition, units, families).bounds(TAIL, TAIL)
    return low > 0


def p_value(condition: Condition, units: Units, families: Families | None = None) -> float:
    """Return the p-value, the least tail at which a condition is shown; NaN if numbers have no interval."""
    condition_margin = margin(condition, units, families)

    def end(tail: float) -> float:
        return float(condition_margin.bounds(tail, TAIL)[0])

    low_tail, high_tail = LEAST_CHANCE, 0.5
    if end(low_tail) == end(high_tail) or not np.isfinite([end(low_tail), end(high_tail)]).all():
        return np.nan
    if end(high_tail) <= 0:
        return 1.0
    while end(low_tail) <= 0 and high_tail / low_tail > 1.01:
        middle = math.sqrt(low_tail * high_tail)
        low_tail, high_tail = (low_tail, middle) if end(middle) > 0 else (middle, high_tail)
    return low_tail if end(low_tail) > 0 else high_tail


def list_units(units: Units) -> list[str]:
    """Return the names of the units that rules count."""
    return [name for name in units if name != ALL_TOGETHER]


def find_needed_weight(
    share: Share, names: Sequence[str], families: Families | None = None
) -> tuple[float, np.ndarray]:
    """Return the weight that a share needs, which may exceed the weight of all units, and the weight of each unit."""
    unit_families = [(families or {}).get(name, name) for name in names]
    if isinstance(share, float) or share == "most":
        weights = np.array([1 / unit_families.count(family) for family in unit_families])
        total = weights.sum()
        # The small term makes exactly half of the weight too little.
        return (total / 2 + 1e-6 if share == "most" else max(float(share) * total, 1e-6)), weights
    counts = {"all": len(names), "any": 1}
    return counts[share] if isinstance(share, str) else share, np.ones(len(names))


def drop_hurdles(condition: Condition) -> Condition:
    """Remove hurdles, criteria that show nothing alone."""
    kept_criteria = [[c for c in rule.criteria if not c.is_hurdle] for rule in condition]
    pairs = zip(condition, kept_criteria, strict=True)
    return [rule._replace(criteria=tuple(criteria)) for rule, criteria in pairs if criteria]


def list_criteria(condition: Condition) -> list[Criterion]:
    """Return all criteria but hurdles, each once."""
    return list(dict.fromkeys(c for rule in drop_hurdles(condition) for c in rule.criteria))


def find_only_bound(condition: Condition) -> tuple[bool, float] | None:
    """Return the direction and the bound that all criteria share, (is_upwards, bound); None if criteria differ."""
    bounds = {(criterion.is_upwards, criterion.bound) for criterion in list_criteria(condition)}
    return bounds.pop() if len(bounds) == 1 else None


def select_number(condition: Condition, number: str) -> Condition:
    """Keep the criteria of one number.

    A kept criterion also replaces each dropped alternative, so that the error is divided by the same count.
    """
    rules = []
    for rule in drop_hurdles(condition):
        kept_criteria = [c for c in rule.criteria if (c.number or "value") == number]
        if kept_criteria and rule.is_any:
            kept_criteria += kept_criteria[:1] * (len(rule.criteria) - len(kept_criteria))
        if kept_criteria:
            rules.append(rule._replace(criteria=tuple(kept_criteria)))
    return rules + rules[:1] * (len(condition) - len(rules))


def check_criteria(
    condition: Condition, units: Units, families: Families | None = None
) -> dict[tuple[int, Criterion, str], bool]:
    """Return whether each criterion is met in each unit, with its share of the error of the condition.

    The keys are the place of the rule in the condition, the criterion and the unit.
    """
    met = {}
    for place, rule in enumerate(condition):
        for group in rule.groups:
            names = [ALL_TOGETHER] if group.share == TOGETHER else list_units(units)
            tail = TAIL / len(condition)
            if group.share != TOGETHER:
                # The tail is divided as in :meth:`.BoundedNumber.weighted_largest`.
                weight, weights = find_needed_weight(group.share, names, families)
                tail /= max(len(names) - count_fewest(weight, weights) + 1, 1)
            if group.is_any:
                tail /= len(group.criteria)
            for criterion in group.criteria:
                for name in names:
                    low, _ = _margin_of_criterion(criterion, units[name]).bounds(tail, TAIL)
                    met[place, criterion, name] = bool(low > 0)
    return met
