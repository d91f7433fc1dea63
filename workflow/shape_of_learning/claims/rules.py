"""Decision rules in data: conditions on the parts of a statistic, which are numbers with bounds.

A statistic gives *units*, such as models, and of each some *parts*, numbers with bounds. Conditions are

``{of: PART, above: X}``
    Also `below`, `at_least`, `at_most`. `of` may be left out where there is one part.
``{of: PART, not_above: X}``
    Also `not_below`: the interval does not lie beyond X. It can add to a condition; alone it shows nothing.
``{all_of: [...]}``, ``{any_of: [...]}``
    Of several conditions.
``{in: HOW_MANY, holds: {...}}``
    In how many units: `all`, `any`, a number, or a share of them: `most` (more than half) or such as 0.75. A
    share is one of families, in each of which all members have the same part: five models of one suite are
    no five witnesses. Of fewer units than the number it is not shown.
    A condition outside is on the only unit, or on the parts of the unit ``""``, of all together.

A condition holds where the interval of its margin lies above zero. That is the distance of a number to
its bound, of `all_of` the least one, of `any_of` the largest, of a number of units the k-th largest
(:mod:`shape_of_learning.claims.bounds`). So a rule of many parts errs as rarely as one of a single part.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from shape_of_learning.claims.bounds import (
    TAIL,
    BoundedNumber,
    count_fewest,
    make_undecided,
    stack_bounds,
)
from shape_of_learning.errors import InputError

TOGETHER = ""  # the unit of all units together
PAIR = " / "  # between the models of a unit of two
LEAST_CHANCE = 1e-8  # that is told
UPWARDS = ("above", "at_least", "not_below")
INCLUSIVE = ("at_least", "at_most", "not_above", "not_below")
NUMBERS = {"all": "all cases", "any": "at least one case", "most": "more than half of the families"}

Units = Mapping[str, Mapping[str, BoundedNumber]]
Families = Mapping[str, str]  # of units; one that is not there is a family of its own
Condition = Mapping[str, Any]


def margin(
    condition: Condition, units: Units, unit: str | None = None, families: Families | None = None
) -> BoundedNumber:
    """How far a condition is met: a number whose lower bound is positive where it holds.

    Parameters
    ----------
    condition : mapping
        As above.
    units : mapping of str to mapping of str to Bounded
        The parts of each unit.
    unit : str, optional
        The one that is looked at.
    families : mapping of str to str, optional
        Of each unit.

    Raises
    ------
    InputError
        If it names a part that the statistic does not have, or is outside of `in` where there are several
        units.
    """
    if "all_of" in condition or "any_of" in condition:
        joined = stack_bounds(
            [margin(each, units, unit, families) for each in list_conditions(condition)]
        )
        if "all_of" in condition:
            return joined.least()
        # An alternative that is unknown does not hide what the others come to.
        return replace(joined.greatest(), estimate=np.fmax.reduce(joined.estimate, axis=-1))
    if "in" in condition:
        names = list_units(units)
        if not names:
            raise InputError(
                "the rule counts by `in`, but there is only one of all together; leave it out"
            )
        each = stack_bounds([margin(condition["holds"], units, name) for name in names])
        weight, weights = needed_weight(condition["in"], names, families)
        return (
            each.weighted_largest(weight, weights)
            if weight <= len(names)
            else make_undecided(each.least())
        )
    parts = units[_find_only_unit(units) if unit is None else unit]
    return _margin_beyond(_read_part(condition.get("of"), parts), *read_comparison(condition))


def _margin_beyond(of: BoundedNumber, comparison: str, bound: float) -> BoundedNumber:
    """How far a number lies beyond a bound, in the direction that a comparison asks for."""
    sign = 1 if comparison in UPWARDS else -1
    if comparison in INCLUSIVE:
        bound = np.nextafter(bound, -sign * math.inf)

    def bounds(below: float, above: float) -> tuple[np.ndarray, np.ndarray]:
        is_hurdle = comparison.startswith("not_")
        if is_hurdle:
            below = above = TAIL
        ends = of.bounds(below, above) if sign > 0 else of.bounds(above, below)[::-1]
        low, high = (sign * (end - bound) for end in ends)
        # The better end of the interval decides whether something is not shown.
        return (high, high) if is_hurdle else (low, high)

    return BoundedNumber(sign * (of.estimate - bound), bounds)


def holds(condition: Condition, units: Units, families: Families | None = None) -> np.ndarray:
    """Whether a condition is shown to hold, of each draw where there are several."""
    low, _ = margin(condition, units, families=families).bounds(TAIL, TAIL)
    return low > 0


def chance(condition: Condition, units: Units, families: Families | None = None) -> float:
    """The least tail at which a condition is shown, a p-value; NaN of numbers that have no interval."""
    of = margin(condition, units, families=families)

    def end(tail: float) -> float:
        return float(of.bounds(tail, TAIL)[0])

    least, most = LEAST_CHANCE, 0.5
    if end(least) == end(most) or not np.isfinite([end(least), end(most)]).all():
        return np.nan
    if end(most) <= 0:
        return 1.0
    while end(least) <= 0 and most / least > 1.01:
        middle = math.sqrt(least * most)
        least, most = (least, middle) if end(middle) > 0 else (middle, most)
    return least if end(least) > 0 else most


def list_units(units: Units) -> list[str]:
    """The units that a number of units counts."""
    return [name for name in units if name != TOGETHER]


def needed_weight(
    number: str | float, names: Sequence[str], families: Families | None = None
) -> tuple[float, np.ndarray]:
    """Which weight of units a condition asks for, and that of each; a number may be more than there are."""
    of = [(families or {}).get(name, name) for name in names]
    if isinstance(number, float) or number == "most":
        weights = np.array([1 / of.count(family) for family in of])
        total = weights.sum()
        # More than half is the least weight beyond it that any of the units may add.
        return (total / 2 + 1e-6 if number == "most" else max(number * total, 1e-6)), weights
    counts = {"all": len(names), "any": 1}
    return counts[number] if isinstance(number, str) else number, np.ones(len(names))


def count_errors(
    number: str | float, names: Sequence[str], families: Families | None = None
) -> int:
    """Among how many units the errors of `in` are divided, as in :meth:`.BoundedNumber.weighted_largest`."""
    weight, weights = needed_weight(number, names, families)
    return max(len(names) - count_fewest(weight, weights) + 1, 1)


def read_comparison(condition: Condition) -> tuple[str, float]:
    """The comparison of a condition on one part, and its bound."""
    return next((key, float(value)) for key, value in condition.items() if key != "of")


def list_conditions(condition: Condition) -> Sequence[Condition]:
    """The conditions that a condition is made of; none if it is on a single part."""
    one = [condition["holds"]] if "holds" in condition else []
    return condition.get("all_of") or condition.get("any_of") or one


def find_only_bound(condition: Condition) -> tuple[bool, float] | None:
    """Whether upwards and beyond which bound all parts must lie, but for hurdles; None if bounds differ."""
    found = _list_bounds(condition)
    return found.pop() if len(found) == 1 else None


def _list_bounds(condition: Condition) -> set[tuple[bool, float]]:
    if inside := list_conditions(condition):
        return {bound for each in inside for bound in _list_bounds(each)}
    comparison, bound = read_comparison(condition)
    return set() if comparison.startswith("not_") else {(comparison in UPWARDS, bound)}


def comparisons(condition: Condition) -> list[tuple[str | None, str, float]]:
    """List the part, if it is named, the comparison and the bound of each condition on a single part, each once."""
    if inside := list_conditions(condition):
        return list(dict.fromkeys(found for each in inside for found in comparisons(each)))
    return [(condition.get("of"), *read_comparison(condition))] if condition else []


def drop_hurdles(condition: Condition) -> Condition:
    """Leave out what only something else may add to, `not_above` and `not_below`; {} if nothing is left."""
    if not (inside := list_conditions(condition)):
        return {} if read_comparison(condition)[0].startswith("not_") else condition
    kept = [each for each in map(drop_hurdles, inside) if each]
    if "holds" in condition:
        return {**condition, "holds": kept[0]} if kept else {}
    return {key: kept for key in condition} if kept else {}


def list_parts(condition: Condition) -> list[str]:
    """The parts that a condition asks for, but for hurdles; ``value`` of a single one."""
    if inside := list_conditions(condition):
        return list(dict.fromkeys(part for each in inside for part in list_parts(each)))
    return (
        [] if read_comparison(condition)[0].startswith("not_") else [condition.get("of", "value")]
    )


def select_part(condition: Condition, part: str) -> Condition:
    """Leave out all but one part, which takes the places of other alternatives: it has the same errors."""
    if not (inside := list_conditions(condition)):
        return condition if list_parts(condition) == [part] else {}
    kept = [each for each in (select_part(each, part) for each in inside) if each]
    if not kept:
        return {}
    if "holds" in condition:
        return {**condition, "holds": kept[0]}
    joined = next(iter(condition))
    return {joined: kept + kept[:1] * ((len(inside) - len(kept)) * (joined == "any_of"))}


def find_deciding(
    condition: Condition,
    units: Units,
    families: Families | None = None,
    of: Sequence[str | None] = (None,),
    tail: float = TAIL,
    *,
    is_shown: bool = True,
) -> Condition:
    """What of a condition decides: of a shown one what is shown of each `any_of`, else what lacks of each `all_of`.

    By its share of the errors, of any unit that counts.
    """
    if "holds" in condition:
        names, holds_of = list_units(units), condition["holds"]
        tail /= count_errors(condition["in"], names, families)
        met = [
            n for n in names if (_lower_bound(holds_of, units, n, families, tail) > 0) == is_shown
        ]
        inside = find_deciding(holds_of, units, families, met or names, tail, is_shown=is_shown)
        return {**condition, "holds": inside}
    if not (inside := list_conditions(condition)):
        return condition
    tail /= len(inside) if "any_of" in condition else 1
    where = [
        [unit for unit in of if (_lower_bound(each, units, unit, families, tail) > 0) == is_shown]
        for each in inside
    ]
    if ("any_of" in condition) == is_shown and any(where):
        inside, where = zip(*((c, w) for c, w in zip(inside, where, strict=True) if w), strict=True)
    kept = [
        find_deciding(each, units, families, its or of, tail, is_shown=is_shown)
        for each, its in zip(inside, where, strict=True)
    ]
    # Of one unit, all that are left are met.
    joined = "all_of" if len(of) == 1 and is_shown else next(iter(condition))
    return kept[0] if len(kept) == 1 else {joined: kept}


def _lower_bound(
    condition: Condition, units: Units, unit: str | None, families: Families | None, tail: float
) -> float:
    return float(margin(condition, units, unit, families).bounds(tail, TAIL)[0])


def format_condition(condition: Condition, parts: Mapping[str, str] = MappingProxyType({})) -> str:
    """Say a condition, such as "in at least 75 % of cases the rise is above 0.05", of parts in given words."""
    if "holds" in condition:
        number = condition["in"]
        share = (
            f"{100 * number:g} % of the families"
            if isinstance(number, float)
            else f"{number} cases"
        )
        where = NUMBERS.get(number, f"at least {share}")
        return f"in {where} {format_condition(condition['holds'], parts)}"
    if inside := list_conditions(condition):
        said = [(format_condition(each, parts), _is_joined(each)) for each in inside]
        joined = [f"({words})" if is_joined else words for words, is_joined in said]
        return (" and " if "all_of" in condition else " or ").join(joined)
    comparison, bound = read_comparison(condition)
    part = format_part(condition.get("of", "value"), parts)
    words = comparison.replace("not_", "not_clearly_").replace("_", " ")
    return f"{part} is {words} {bound:g}"


def _is_joined(condition: Condition) -> bool:
    """Whether the words of a condition need brackets beside others."""
    return "holds" in condition or len(list_conditions(condition)) > 1


def format_part(name: str, parts: Mapping[str, str]) -> str:
    """What a part of a statistic is."""
    unnamed = "the statistic" if name == "value" else f"`{name}`"
    return parts.get(name, parts.get("value", unnamed) if len(parts) == 1 else unnamed)


def strip_brackets(words: str) -> str:
    """Leave out what words have in brackets.

    Examples
    --------
    >>> strip_brackets("the rise (of blocks (all)) less the fall (ln)")
    'the rise less the fall'
    """
    while (shorter := re.sub(r" ?\([^()]*\)", "", words)) != words:
        words = shorter
    return words


def _find_only_unit(units: Units) -> str:
    if TOGETHER in units:
        return TOGETHER
    first, *others = units
    if others:
        raise InputError(
            f"the rule has a condition outside of `in`, but there are {len(units)} to judge, such as "
            f"`{first}` and `{others[0]}`; write `{{in: all, holds: ...}}`"
        )
    return first


def _read_part(name: str | None, parts: Mapping[str, BoundedNumber]) -> BoundedNumber:
    if name is None and len(parts) == 1:
        return next(iter(parts.values()))
    if name is None or name not in parts:
        asked = "names no part" if name is None else f"asks for the part `{name}`"
        there_are = ", ".join(f"`{part}`" for part in parts)
        raise InputError(f"the rule {asked}, but there are {there_are}; correct its `of`")
    return parts[name]
