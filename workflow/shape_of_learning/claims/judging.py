"""The verdict on a claim, what it rests on, and the ledger of a paper's claims."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan
from pathlib import Path

import numpy as np

from shape_of_learning.claims import layer_statistics, rules, table_statistics, training_statistics
from shape_of_learning.claims.claim import Claim
from shape_of_learning.claims.evidence import Evidence, NotMeasured, Reading
from shape_of_learning.claims.rules import TAIL, Bounded
from shape_of_learning.errors import InputError
from shape_of_learning.files import atomic_write, write_table
from shape_of_learning.metrics.tidy import CLAIM_COLUMNS

SUPPORTED, CONTRADICTED, UNDECIDED = "supported", "contradicted", "undecided"
NOT_MEASURED = "not measured"
VERDICTS = (SUPPORTED, CONTRADICTED, UNDECIDED, NOT_MEASURED)
MOST_PARTS = 20  # of a claim, that are shown to people
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
    models, revisions, n, selections : tuple of str
        What it rests on; revisions as ``MODEL@REVISION``.
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
    parts: tuple[PartOfUnit, ...] = ()


def judge(claim: Claim, evidence: Evidence) -> Judgement:
    """Judge a claim by its statistic and its rule.

    Parameters
    ----------
    claim : Claim
        With another `average_over` (:func:`dataclasses.replace`) it is judged by other layers.
    evidence : Evidence
        Of one draw. Others may stand for the estimators that the claim names (:class:`.MeasuredChoices`).

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
    known = _without_suspects(units, reading)
    verdict = _verdict(claim, known)
    because = _because(claim, verdict, known)
    if reading.suspects:
        whose = ", ".join(f"{number:,} of `{model}`" for model, number in reading.suspects.items())
        suspect = f"values that are suspect, for near-duplicates, decide nothing: {whose}."
        by_numbers = _verdict(claim, units)
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
        else {name: rules.unknown(part) for name, part in parts.items()}
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


def _headline(condition: rules.Condition, units: rules.Units) -> tuple[float, float, float, float]:
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


def _count(condition: rules.Condition, units: rules.Units) -> str:
    """In how many units a condition on a number of them is shown, each by its share of the errors."""
    if "holds" not in condition:
        return ""
    names = rules.units_of(units)
    needed = rules.how_many(condition["in"], len(names))
    tail = TAIL / max(len(names) - needed + 1, 1)  # as of :meth:`.Bounded.ranked`
    low = [rules.margin(condition["holds"], units, name).bounds(tail, TAIL)[0] for name in names]
    return f"in {sum(bool(each > 0) for each in low)} of {len(names)} cases, {needed} needed"


# --- The ledger: one row per claim, and the same for people to read.

Judged = Sequence[tuple[Claim, Judgement]]


def write_ledger(path: Path, judged: Judged) -> None:
    """Write the CSV file, lists joined by ``;``."""
    rows = []
    for claim, of in judged:
        found = [getattr(of, column) for column in CLAIM_COLUMNS[4:]]
        lists_joined = [";".join(each) if isinstance(each, tuple) else each for each in found]
        rows.append([claim.name, claim.sentence, claim.where, statistic_of(claim), *lists_joined])
    write_table(path, CLAIM_COLUMNS, rows)


def write_page(path: Path, title: str, judged: Judged) -> None:
    """Write the Markdown file: the verdicts, then each claim with its numbers."""
    lines = [f"# Claims of: {title}", "", *_verdicts(judged), ""]
    for claim, of in judged:
        lines += [*_section(claim, of), ""]
    with atomic_write(path) as partial:
        partial.write_text("\n".join(lines), encoding="utf-8")


def statistic_of(claim: Claim) -> str:
    """The statistic with what it is of, such as "flatter(anisotropy)"."""
    return f"{claim.statistic}({', '.join([*claim.estimators, *claim.reads])})"


def _verdicts(judged: Judged) -> list[str]:
    counts = [(verdict, sum(of.verdict == verdict for _, of in judged)) for verdict in VERDICTS]
    said = ", ".join(f"{count} {verdict}" for verdict, count in counts if count)
    number = "1 claim" if len(judged) == 1 else f"{len(judged)} claims"
    return [
        f"{number}: {said}. Rules were written down before results were looked at. A bound is "
        "passed only by a whole 95 % interval, from 16 groups of windows or from seeds, that allows for all "
        "models, layers and steps among which a rule might choose; what has no interval is compared as it is."
        " `Visible` is the smallest distance from the bound that could have been seen.",
        "",
        "| Claim | Verdict | Estimate | 95 % interval | Visible |",
        "| :-- | :-- | --: | --: | --: |",
        *(
            f"| {_cell(claim.sentence)} | **{of.verdict}** | {_number(of.estimate)} "
            f"| {_interval(of.low, of.high)} | {_number(of.smallest_visible)} |"
            for claim, of in judged
        ),
    ]


def _section(claim: Claim, of: Judgement) -> list[str]:
    lines = [
        f"## {claim.name}",
        "",
        f"{claim.sentence} ({claim.where})",
        "",
        f"**{_capitalised(of.verdict)}.** {of.because}",
        "",
        f"- Statistic: `{statistic_of(claim)}`",
        f"- Supported: {rules.in_words(claim.rule[SUPPORTED])}",
        f"- Contradicted: {rules.in_words(claim.rule[CONTRADICTED])}",
    ]
    if of.models:
        checkpoints = f"{len(of.revisions)} checkpoint{'s' if len(of.revisions) > 1 else ''}"
        named = {"n = ": of.n, "selection: ": of.selections}
        rests = [what + ", ".join(which) for what, which in named.items() if which]
        said = [", ".join(of.models), checkpoints, *rests]
        lines.append(f"- Rests on: {'; '.join(said)}")
    if of.parts:
        lines += ["", "| Of | Number | Estimate | 95 % interval |", "| :-- | :-- | --: | --: |"]
        lines += [
            f"| {_cell(each.unit) or 'all together'} | {each.part} | {_number(each.estimate)} "
            f"| {_interval(each.low, each.high)} |"
            for each in of.parts[:MOST_PARTS]
        ]
        if (more := len(of.parts) - MOST_PARTS) > 0:
            lines += ["", f"And {more:,} more."]
    return lines


def _cell(words: str) -> str:
    """Words that a table may hold, on one line and in one column."""
    return " ".join(words.split()).replace("|", r"\|")


def _number(value: float) -> str:
    return "" if isnan(value) else f"{value:.3g}"


def _interval(low: float, high: float) -> str:
    return "" if isnan(low) else f"{low:.3g} to {high:.3g}"
