"""Decision rules in data: conditions on the parts of a statistic.

A statistic gives *units*, such as models, and of each some *parts*, numbers with bounds. Conditions are

``{of: PART, above: X}``
    Also `below`, `at_least`, `at_most`. `of` may be left out where there is one part.
``{of: PART, not_above: X}``
    Also `not_below`: the interval does not lie beyond X. It can add to a condition; alone it shows nothing.
``{all_of: [...]}``, ``{any_of: [...]}``
    Of several conditions.
``{in: HOW_MANY, holds: {...}}``
    In how many units: `all`, `any`, `most` (more than half), a number, or a share of them such as 0.75. Of
    fewer units than the number it is not shown.
    A condition outside is on the only unit, or on the parts of the unit ``""``, of all together.

A condition holds where the interval of its margin lies above zero. That is the distance of a number to
its bound, of `all_of` the least one, of `any_of` the largest, of a number of units the k-th largest. So a
rule of many parts errs as rarely as one of a single part (:mod:`.bounds`).
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from shape_of_learning.claims.bounds import TAIL, Bounded, greatest, least, ranked, stacked, unknown
from shape_of_learning.errors import InputError

Units = Mapping[str, Mapping[str, Bounded]]
TOGETHER = ""  # the unit of all units together
PAIR = " / "  # between the models of a unit of two
UPWARDS = ("above", "at_least", "not_below")
INCLUSIVE = ("at_least", "at_most", "not_above", "not_below")
NUMBERS = {"all": "all cases", "any": "at least one case", "most": "most cases"}


def margin(condition: Mapping[str, Any], units: Units, unit: str | None = None) -> Bounded:
    """How far a condition is met: a number whose lower bound is positive where it holds.

    Parameters
    ----------
    condition : mapping
        As above.
    units : mapping of str to mapping of str to Bounded
        The parts of each unit.
    unit : str, optional
        The one that is looked at.

    Raises
    ------
    InputError
        If it names a part that the statistic does not have, or is outside of `in` where there are several
        units.
    """
    if "all_of" in condition or "any_of" in condition:
        joined = stacked([margin(each, units, unit) for each in next(iter(condition.values()))])
        return least(joined) if "all_of" in condition else greatest(joined)
    if "in" in condition:
        names = units_of(units)
        if not names:
            raise InputError(
                "the rule counts by `in`, but there is only one of all together; leave it out"
            )
        each = stacked([margin(condition["holds"], units, name) for name in names])
        number = how_many(condition["in"], len(names))
        return ranked(each, number) if number <= len(names) else unknown(least(each))
    parts = units[_only_unit(units) if unit is None else unit]
    return _beyond(_part(condition.get("of"), parts), *comparison_of(condition))


def _beyond(of: Bounded, comparison: str, bound: float) -> Bounded:
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

    return Bounded(sign * (of.estimate - bound), bounds)


def holds(condition: Mapping[str, Any], units: Units) -> np.ndarray:
    """Whether a condition is shown to hold, of each draw where there are several."""
    low, _ = margin(condition, units).bounds(TAIL, TAIL)
    return low > 0


def units_of(units: Units) -> list[str]:
    """The units that a number of units counts."""
    return [name for name in units if name != TOGETHER]


def how_many(number: str | float, of: int) -> int:
    """Which number of units a condition asks for, at least 1; a number of them may be more than there are."""
    if isinstance(number, str):
        return {"all": of, "any": 1, "most": of // 2 + 1}[number]
    return max(math.ceil(number * of - 1e-9), 1) if isinstance(number, float) else number


def comparison_of(condition: Mapping[str, Any]) -> tuple[str, float]:
    """The comparison of a condition on one part, and its bound."""
    return next((key, float(value)) for key, value in condition.items() if key != "of")


def leaves(condition: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """List the conditions on single parts that a condition is made of."""
    if "holds" in condition:
        yield from leaves(condition["holds"])
    elif "all_of" in condition or "any_of" in condition:
        for each in next(iter(condition.values())):
            yield from leaves(each)
    else:
        yield condition


def only_bound(condition: Mapping[str, Any]) -> tuple[bool, float] | None:
    """Whether upwards and beyond which bound all parts must lie, but for hurdles; None if bounds differ."""
    compared = [comparison_of(each) for each in leaves(condition)]
    found = {(how in UPWARDS, bound) for how, bound in compared if not how.startswith("not_")}
    return found.pop() if len(found) == 1 else None


def without_hurdles(condition: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what only something else may add to, `not_above` and `not_below`; {} if nothing is left."""
    if "holds" in condition:
        held = without_hurdles(condition["holds"])
        return {**condition, "holds": held} if held else {}
    for key in ("all_of", "any_of"):
        if key in condition:
            kept = [each for each in map(without_hurdles, condition[key]) if each]
            return {key: kept} if kept else {}
    return {} if {"not_above", "not_below"} & condition.keys() else dict(condition)


def in_words(condition: Mapping[str, Any]) -> str:
    """Say a condition, such as "in at least 75 % of cases `rise` is above 0.05"."""
    if "holds" in condition:
        number = condition["in"]
        share = f"{100 * number:g} % of" if isinstance(number, float) else number
        where = NUMBERS.get(number, f"at least {share} cases")
        return f"in {where} {in_words(condition['holds'])}"
    for key, word in (("all_of", " and "), ("any_of", " or ")):
        if key in condition:
            parts = [in_words(each) for each in condition[key]]
            # Brackets around what is joined by the other word.
            return word.join(
                f"({part})" if " or " in part or " and " in part else part for part in parts
            )
    comparison, bound = comparison_of(condition)
    part = f"`{condition['of']}`" if "of" in condition else "the statistic"
    words = comparison.replace("not_", "not_shown_to_be_").replace("_", " ")
    return f"{part} is {words} {bound:g}"


def _only_unit(units: Units) -> str:
    if TOGETHER in units:
        return TOGETHER
    first, *others = units
    if others:
        raise InputError(
            f"the rule has a condition outside of `in`, but there are {len(units)} to judge, such as "
            f"`{first}` and `{others[0]}`; write `{{in: all, holds: ...}}`"
        )
    return first


def _part(name: str | None, parts: Mapping[str, Bounded]) -> Bounded:
    if name is None and len(parts) == 1:
        return next(iter(parts.values()))
    if name is None or name not in parts:
        asked = "names no part" if name is None else f"asks for the part `{name}`"
        there_are = ", ".join(f"`{each}`" for each in parts)
        raise InputError(f"the rule {asked}, but there are {there_are}; correct its `of`")
    return parts[name]
