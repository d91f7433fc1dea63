"""The page of a paper's claims that people read, its ledger, and all verdicts as one family."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf, isnan, nan
from pathlib import Path

import numpy as np
import pandas as pd

from shape_of_learning.claims.claim import (
    DECIDED,
    UNJUDGED,
    Claim,
    ClaimVerdict,
    format_bound,
    name_criteria_columns,
)
from shape_of_learning.claims.criteria import LEAST_CHANCE, list_criteria
from shape_of_learning.claims.evidence import LayerValues, describe_scope
from shape_of_learning.claims.judgement import CriterionResult, Judgement, name_seeds
from shape_of_learning.files import atomic_write, write_table
from shape_of_learning.findings import name_blocks
from shape_of_learning.metrics.registry import find_measure, list_measure_names
from shape_of_learning.metrics.tidy import CLAIM_COLUMNS
from shape_of_learning.words import capitalise, escape_cell, format_range, uncapitalise

FALSE_SHARE = 0.05  # of the verdicts of a run, at most
MOST_ROWS = 20  # of a table of one claim
MOST_CURVES = 2  # that one sentence describes
PLATEAU = 0.1  # of the range of a profile, below its highest value
FLAT = 0.05  # range over the highest value, up to which a profile is told by its range alone
BARS = "▁▂▃▄▅▆▇█"
WIDE_RANGE = 30  # of positive values, above which a picture of them has a logarithmic scale
NOT_OF_ALL_TEXT = (
    "{names}: the intervals are for this number of windows. They leave out a bias, which more windows would lessen, so "
    "they may not hold the value of all text."
)
HOW_TO_READ = (
    "A bound counts as passed only if the whole 95 % interval lies beyond it; a number without an interval is compared "
    "as it is. Intervals of a model are over its windows, of several seeds over seeds and windows, of twins and "
    "fine-tunings over seeds.",
    "*Met* uses an interval that is widened for every model, layer, step or alternative that the criteria could pick, "
    "so a number whose own interval lies beyond its bound may not meet it.",
    "A case is a model, a pair of models, or all seeds of one training; a family is one or several cases, such as the "
    "sizes of one suite.",
    "p is the chance that windows or seeds drawn anew give such a verdict although the truth lies at the bound. Of "
    "many verdicts some have a small p by chance: `family.md` says how many of all verdicts of the run may be false.",
    "*Support over all cases* is the number that a supported claim rests on, over all of them: the quantity itself if "
    "all bounds are equal, else its least distance to a bound, positive where the bound is met.",
    "A verdict in brackets is that by another score, or without some tokens.",
    "*Beyond* a null model, such as *untrained* weights, is a claim that the model meets by more than the null model "
    "does. *No*: the null model meets the claim by itself, or by as much. *Not told*: the interval of the difference "
    "holds 0. *No interval*: that of the null model is withheld. Step 0 of a pretraining is *untrained*, too.",
)
Judged = Sequence[tuple[Claim, Judgement]]


def write_ledger(path: Path, judged: Judged) -> None:
    """Write the CSV file, lists joined by ``;``."""
    rows = []
    for claim, judgement in judged:
        distances = [
            f"{name}: {distance:.6g}" for name, distance in judgement.to_contradict.items()
        ]
        cells = vars(judgement) | {
            "claim": claim.name,
            "sentence": claim.sentence,
            "where": claim.where,
            "statistic": format_statistic(claim),
            "summary": describe_finding(claim, judgement),
            "to_contradict": tuple(distances),
            "besides": tuple(_list_other_verdicts(claim, judgement)),
            "criteria": json.dumps(tabulate_criteria(claim, judgement), ensure_ascii=False),
        }
        listed = (cells[column] for column in CLAIM_COLUMNS)
        rows.append([";".join(cell) if isinstance(cell, tuple) else cell for cell in listed])
    write_table(path, CLAIM_COLUMNS, rows)


def write_page(path: Path, title: str, judged: Judged) -> None:
    """Write the Markdown file: verdicts, each claim with its numbers, and those that cannot be judged, folded."""
    with_data = [pair for pair in judged if pair[1].verdict not in UNJUDGED]
    without_data = [pair for pair in judged if pair[1].verdict in UNJUDGED]
    verdicts = [judgement.verdict for _, judgement in judged]
    lines = [f"# Claims of: {title}", "", f"{count_verdicts(verdicts)}.", ""]
    if with_data:
        rows = [
            [claim.sentence, f"**{judgement.verdict}**{_name_differing_verdicts(judgement)}"]
            for claim, judgement in with_data
        ]
        lines += [*format_table(("Claim", "Verdict"), rows), ""]
        lines += _fold("How to read the tables", [f"- {words}" for words in HOW_TO_READ])
    for claim, judgement in with_data:
        lines += _write_section(claim, judgement)
    if without_data:
        claims = "1 claim" if len(without_data) == 1 else f"{len(without_data)} claims"
        reasons = [
            f"- {claim.sentence} ({claim.where}) {capitalise(judgement.verdict)}: {judgement.because}"
            for claim, judgement in without_data
        ]
        lines += _fold(f"This run cannot judge {claims}.", reasons)
    with atomic_write(path) as partial:
        partial.write_text("\n".join(lines), encoding="utf-8")


def _fold(summary: str, lines: Sequence[str]) -> list[str]:
    return [f"<details><summary>{summary}</summary>", "", *lines, "", "</details>", ""]


def _write_section(claim: Claim, judgement: Judgement) -> list[str]:
    """Write the finding, its curves and criteria; definitions and data are folded."""
    lines = [
        f"## {claim.sentence}",
        "",
        f"**{capitalise(judgement.verdict)}{_format_p(judgement)}.** {describe_finding(claim, judgement)}",
        "",
    ]
    if pictures := _draw_curves(claim, judgement):
        lines += [*pictures, ""]
    if rows := tabulate_criteria(claim, judgement):
        lines += [*format_table(name_criteria_columns(judgement.verdict), rows), ""]
    measures = [find_measure(name) for name in claim.estimators if name in list_measure_names()]
    biased = [measure.label for measure in measures if not measure.has_interval]
    if biased and rows:
        lines += [NOT_OF_ALL_TEXT.format(names=" and ".join(biased)), ""]
    return lines + _fold(
        "Definitions, what would have contradicted it, other estimators, and what it rests on",
        _list_details(claim, judgement),
    )


def _format_p(judgement: Judgement) -> str:
    """Write the chance of a decided verdict where its bound is just missed, in brackets; empty without intervals."""
    p = {
        ClaimVerdict.SUPPORTED: judgement.p_supported,
        ClaimVerdict.CONTRADICTED: judgement.p_contradicted,
    }.get(judgement.verdict, nan)
    if isnan(p):
        return ""
    return f" (p < {LEAST_CHANCE:g})" if p <= LEAST_CHANCE else f" (p = {p:.2g})"


def _list_details(claim: Claim, judgement: Judgement) -> list[str]:
    supported, contradicted = (claim.format_condition(verdict) for verdict in DECIDED)
    lines = [
        f"- Claim `{claim.name}`, {claim.where}. Statistic: `{format_statistic(claim)}`",
        f"- Reason: {judgement.because}",
        *(f"- *{name}*: {definition}" for name, definition in _define_numbers(claim)),
        f"- Supported if {supported}",
        f"- Contradicted if {contradicted}"
        + (f"; {_describe_contradiction(claim, judgement)}" if judgement.to_contradict else ""),
    ]
    if not isnan(judgement.estimate) and judgement.verdict != ClaimVerdict.CONTRADICTED:
        value = _format_value(judgement.estimate, judgement.low, judgement.high)
        distance = judgement.smallest_visible
        visible = (
            "" if isnan(distance) else f"; a distance of {distance:.3g} from the bound would show"
        )
        lines.append(f"- Support over all cases: {value}{visible}")
    lines += [f"- Smaller effects: {claim.matters}"] if claim.matters else []
    lines += [f"- Scope: {describe_scope(claim)}"] if claim.seen else []
    if others := _list_other_verdicts(claim, judgement, name=_name_estimators):
        lines.append(f"- Other estimators, selections and null models: {'; '.join(others)}")
    if judgement.equal_values:
        equal = ", ".join(judgement.equal_values)
        lines.append(f"- Equal values, so no second verdict: {equal}")
    if judgement.models:
        checkpoints = len(judgement.revisions)
        rests_on = [
            ", ".join(judgement.models),
            f"{checkpoints} checkpoint{'s' if checkpoints > 1 else ''}",
            *([f"vectors of a batch: {', '.join(judgement.n)}"] if judgement.n else []),
            *([f"selection: {', '.join(judgement.selections)}"] if judgement.selections else []),
        ]
        lines.append(f"- Rests on: {'; '.join(rests_on)}")
    lines += [
        f"- Changed after results were seen, {day}: {change}"
        for day, change in claim.changed.items()
    ]
    rows = [
        [
            claim.name_number(number.name),
            judgement.label_unit(number.unit) or "all together",
            f"{number.estimate:.3g}",
            _format_interval(number.low, number.high),
        ]
        for number in judgement.numbers
        if number not in {result.number for result in judgement.results}
        and not isnan(number.estimate)
    ]
    if rows:
        lines += ["", *format_table(("Number", "Of", "Value", "95 % interval"), rows)]
    nulls = [
        [
            _name_control(control),
            claim.name_number(number.name),
            judgement.label_unit(number.unit) or "all together",
            f"{number.estimate:.3g}",
            _format_interval(number.low, number.high),
        ]
        for control, numbers in judgement.null_numbers.items()
        for number in numbers
    ]
    if nulls:
        columns = ("Null model", "Number", "Of", "Value", "95 % interval")
        lines += ["", *format_table(columns, nulls)]
    return lines


def _list_other_verdicts(
    claim: Claim, judgement: Judgement, name: Callable[[str], str] = str
) -> list[str]:
    """List the verdicts by other estimators, on other selections, and beyond null models."""
    others = [
        f"{'also ' * (key in claim.robustness)}{name(key)}: {verdict}"
        for key, verdict in judgement.other_verdicts.items()
    ]
    beyond = [
        f"beyond {_name_control(control)}: {told}"
        for control, told in judgement.beyond_controls.items()
    ]
    return others + beyond


def _name_differing_verdicts(judgement: Judgement) -> str:
    """Name the other verdicts that are not the one that counts, in brackets; empty if all are."""
    differing = [
        f"{_name_estimators(name)}: {verdict}"
        for name, verdict in judgement.other_verdicts.items()
        if verdict not in (judgement.verdict, ClaimVerdict.NOT_MEASURED)
    ]
    return f" ({'; '.join(differing)})" if differing else ""


def _define_numbers(claim: Claim) -> list[tuple[str, str]]:
    """Return name and definition of the numbers that have one."""
    named = [(claim.name_number(key), words) for key, words in claim.numbers.items()]
    pairs = [(name, words.removeprefix(f"{name}: ")) for name, words in named]
    return [(name, definition) for name, definition in pairs if definition != name]


def describe_finding(claim: Claim, judgement: Judgement) -> str:
    """Describe the finding in one sentence, with values of the quantity itself; empty if nothing is measured."""
    if not judgement.numbers:
        return ""
    numbers = ""
    if words := _describe_curves(claim, judgement):
        numbers = _name_deciding(claim, judgement)
    else:
        words = _describe_numbers(claim, judgement)
        if judgement.estimators != tuple(claim.estimators):
            words = f"by {_name_estimators(' and '.join(judgement.estimators))}, {words}"
    withheld = f", but {judgement.withheld}" if judgement.withheld else ""
    endings = {
        ClaimVerdict.UNDECIDED: f"{withheld}, which leaves the claim undecided",
        ClaimVerdict.DEPENDS: ", and other estimators say the opposite",
    }
    conclusion = claim.find_conclusion(judgement.verdict, judgement.deciding)
    ending = f", so {conclusion}" if conclusion else endings.get(judgement.verdict, "")
    suspects = f" {capitalise(judgement.suspects)}." if judgement.suspects else ""
    equals = [_name_control(c) for c, told in judgement.beyond_controls.items() if told == "no"]
    null = f" Null models meet the claim as well: {' and '.join(equals)}." if equals else ""
    return f"{capitalise(words)}{ending}{numbers}.{suspects}{null}{_name_cases(claim, judgement)}"


def _name_deciding(claim: Claim, judgement: Judgement) -> str:
    """Name the numbers that meet the criteria of a verdict, in brackets; empty if none does."""
    if judgement.verdict not in DECIDED:
        return ""
    deciding: dict[str, list[float]] = {}
    for result in judgement.results:
        if result.is_met and _has_decided(judgement, result):
            deciding.setdefault(result.number.name, []).append(result.number.estimate)
    parts = (
        f"{claim.name_number(name)}: {format_range(of, '.3g')}" for name, of in deciding.items()
    )
    return f" ({'; '.join(parts)})" if deciding else ""


def _has_decided(judgement: Judgement, result: CriterionResult) -> bool:
    """Return whether a result is of a number that decides; the only number of a statistic may have no name."""
    is_hurdle = result.comparison.startswith("not_")
    return not is_hurdle and bool({result.number.name, ""} & {*judgement.deciding})


def _name_cases(claim: Claim, judgement: Judgement) -> str:
    """Say so if one case was judged, or none of the models that the claim names."""
    is_group = isinstance(claim.models, str)
    is_other = not is_group and not any(model in claim.models for model in judgement.models)
    one = "One case says little of other models." if judgement.cases == 1 else ""
    if is_other:
        return " ".join(filter(None, (" The paper tested other models.", one)))
    return f" {one}" if is_group and one else ""


def _describe_curves(claim: Claim, judgement: Judgement) -> str:
    """Describe profiles over layers or curves over steps, of seeds their mean; empty if there are many or none."""
    curves = _average_seeds(judgement)
    if len(curves) > MOST_CURVES:
        return ""
    parts: list[str] = []
    for (model, estimator), curve in curves.items():
        label = _name_estimator(estimator)
        if parts and label[1:].islower():
            label = uncapitalise(label)
        if claim.checkpoints == "training":
            where = "averaged over layers" if len(curve.layers) > 1 else f"layer {curve.layers[0]}"
            parts.append(
                f"{label} of {judgement.label_unit(model)}, {where}, is {_describe_training(curve)}"
            )
        else:
            parts.append(f"{label} of {judgement.label_unit(model)} is {_describe_profile(curve)}")
    return "; ".join(parts)


def _average_seeds(judgement: Judgement) -> dict[tuple[str, str], LayerValues]:
    """Average the curves of the seeds of each training, by unit and estimator."""
    groups: dict[tuple[str, str], list[tuple[str, LayerValues]]] = {}
    for (model, estimator), curve in judgement.curves.items():
        training = judgement.trainings.get(model, model)
        groups.setdefault((training, estimator), []).append((model, curve))
    averages = {}
    for (_, estimator), seeds in groups.items():
        models, curves = zip(*seeds, strict=True)
        first = curves[0]
        if not all(_has_same_places(curve, first) for curve in curves):
            return dict(judgement.curves)
        unit = name_seeds(models[0], len(models))
        mean = np.mean([curve.values for curve in curves], axis=0)
        averages[unit, estimator] = replace(first, values=mean)
    return averages


def _has_same_places(curve: LayerValues, other: LayerValues) -> bool:
    """Return whether two curves have the same steps and layers."""
    return np.array_equal(curve.steps, other.steps, equal_nan=True) and np.array_equal(
        curve.layers, other.layers
    )


def _describe_profile(curve: LayerValues) -> str:
    """Say where a profile is highest, and its values there and elsewhere."""
    values = dict(zip(curve.layers.tolist(), curve.last[..., 0].tolist(), strict=True))
    low, high = min(values.values()), max(values.values())
    if high - low <= FLAT * abs(high):
        return f"{format_range(values.values(), '.3g')} in {name_blocks([*values])}"
    top = [layer for layer, value in values.items() if value >= high - PLATEAU * (high - low)]
    rest = format_range((value for layer, value in values.items() if layer not in top), ".3g")
    return f"{format_range((values[layer] for layer in top), '.3g')} in {name_blocks(top)} and {rest} elsewhere"


def _describe_training(curve: LayerValues) -> str:
    """Say the mean over layers at the first and the last step, and at the extremes between them."""
    means, steps = curve.means[..., 0].tolist(), curve.steps.tolist()
    marks = {0: "", len(means) - 1: ""}
    for mark, extreme in ((" (highest)", max), (" (lowest)", min)):
        marks.setdefault(means.index(extreme(means)), mark)
    *words, last = (
        f"{means[place]:.3g}{mark} at step {steps[place]:,.0f}"
        for place, mark in sorted(marks.items())
    )
    return f"{', '.join(words)} and {last}"


def _describe_numbers(claim: Claim, judgement: Judgement) -> str:
    """Say the numbers that criteria look at, of several units their range."""
    results = [result for result in judgement.results if not isnan(result.number.estimate)]
    if judgement.verdict == ClaimVerdict.CONTRADICTED:
        results = [r for r in results if r.is_met and _has_decided(judgement, r)]
    else:
        of_support = [result for result in results if result.verdict == ClaimVerdict.SUPPORTED]
        results = of_support or results
    numbers = [result.number for result in results]
    units = list(dict.fromkeys(number.unit for number in numbers))
    parts = []
    for name in dict.fromkeys(number.name for number in numbers):
        values = format_range((number.estimate for number in numbers if number.name == name), ".3g")
        parts.append(f"{claim.name_number(name)} is {values}")
    where = (
        f" in {len(units)} cases"
        if len(units) > 1
        else f" in {judgement.label_unit(units[0])}"
        if any(units)
        else ""
    )
    *others, last = parts or [""]
    return (f"{', '.join(others)} and {last}" if others else last) + where


def _draw_curves(claim: Claim, judgement: Judgement) -> list[str]:
    """Draw each curve as a row of bars, over layers or over steps; those of one measure have one scale."""
    is_training = claim.checkpoints == "training"
    drawn = {}
    for (model, estimator), curve in judgement.curves.items():
        values = curve.means[..., 0] if is_training else curve.last[..., 0]
        if values.size >= 3 and values.ndim == 1:
            drawn[model, estimator] = values
    lines = []
    for (model, estimator), values in drawn.items():
        scaled = np.concatenate([other for (_, name), other in drawn.items() if name == estimator])
        low, high = scaled.min(), scaled.max()
        scale, note = (lambda X: X), ""
        if low > 0 and high > WIDE_RANGE * low:
            scale, note = np.log, ", on a logarithmic scale"
        shares = (scale(values) - scale(low)) / ((scale(high) - scale(low)) or 1)
        places = np.floor(shares * (len(BARS) - 1) + 0.5).astype(int)
        layers = judgement.curves[model, estimator].layers.tolist()
        axis = f"{len(values)} steps" if is_training else name_blocks(layers)
        bars = "".join(BARS[place] for place in places)
        curve_name = f"{_name_estimator(estimator)} of {judgement.label_unit(model)}"
        ends = f"from {values.min():.3g} to {values.max():.3g}"
        lines.append(f"- `{bars}` {curve_name}, {axis}, {ends}{note}")
    if len(lines) > MOST_ROWS:
        return [*lines[:MOST_ROWS], f"- and {len(lines) - MOST_ROWS} more"]
    return lines


def tabulate_criteria(claim: Claim, judgement: Judgement) -> list[list[str]]:
    """Return a row of words for each criterion and case, with the columns of :func:`.name_criteria_columns`."""
    is_undecided = judgement.verdict not in DECIDED
    return [
        [
            claim.name_number(result.number.name),
            judgement.label_unit(result.number.unit) or "all together",
            "" if isnan(result.number.estimate) else f"{result.number.estimate:.3g}",
            _format_interval(result.number.low, result.number.high),
            (
                "to contradict: "
                if is_undecided and result.verdict == ClaimVerdict.CONTRADICTED
                else ""
            )
            + format_bound(result.comparison, result.bound),
            "yes" if result.is_met else "no",
        ]
        for result in judgement.results
    ]


def format_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Write a Markdown table, of many rows the first ones."""
    lines = [f"| {' | '.join(columns)} |", f"|{' :-- |' * len(columns)}"]
    lines += [f"| {' | '.join(map(escape_cell, row))} |" for row in rows[:MOST_ROWS]]
    more = len(rows) - MOST_ROWS
    return [*lines, "", f"And {more:,} more."] if more > 0 else lines


def write_family(ledgers: Sequence[Path], table: Path, page: Path) -> None:
    """Take the verdicts of all papers as one family of tests.

    Benjamini and Yekutieli, The control of the false discovery rate in multiple testing under dependency, Annals
    of Statistics 29 (2001): `q` is the least share of false ones among verdicts that are as clear as this one,
    whatever they have in common.
    """
    from scipy.stats import false_discovery_control

    tested = []
    for ledger in ledgers:
        verdicts = pd.read_csv(ledger, keep_default_na=False, na_values=[""])
        for verdict in DECIDED:
            rows = verdicts[["claim", "verdict"]].assign(tested=verdict, p=verdicts[f"p_{verdict}"])
            tested.append(rows.rename(columns={"verdict": "decided"}).dropna(subset="p"))
    rows = pd.concat(tested, ignore_index=True)
    rows["q"] = false_discovery_control(rows["p"], method="by") if len(rows) else []
    write_table(table, rows.columns, rows.itertuples(index=False))
    decided = rows[rows["decided"] == rows["tested"]]
    doubtful = decided[decided["q"] > FALSE_SHARE]
    named = ", ".join(f"`{claim}`" for claim in doubtful["claim"]) or "none"
    family = [
        f"A claim can be supported or contradicted. {len(rows)} such verdicts on {rows['claim'].nunique()} claims have "
        f"an interval and so a p; {len(decided)} of them were reached. Of a decided claim, the table lists only the "
        "verdict that was reached. p is the chance of such a verdict where the claim's bound is just missed, over "
        "windows of text, or seeds, of these models, and not over models. Of scores that have an interval for this "
        f"number of windows only, such as linearity, it leaves out a bias. {LEAST_CHANCE:g} stands for all that is "
        "smaller. q is p adjusted for the number of verdicts (Benjamini and Yekutieli): of the verdicts whose q is at "
        f"most {FALSE_SHARE:g}, no more than {100 * FALSE_SHARE:g} % are expected to be false. Verdicts with a larger "
        f"q, which may be chance: {named}.",
        "",
        "| Claim | Tested | p | q | Decided |",
        "| :-- | :-- | --: | --: | :-- |",
        *(
            f"| {row.claim} | {row.tested} | {row.p:.2g} | {row.q:.2g} | {row.decided} |"
            for row in rows.sort_values("q").itertuples()
            if row.decided == row.tested or row.decided not in DECIDED
        ),
    ]
    if rows.empty:  # pages do not show a table without rows
        family = ["No verdict of this run could be tested: none has an interval."]
    lines = ["# All verdicts as one family", "", *family, ""]
    with atomic_write(page) as partial:
        partial.write_text("\n".join(lines), encoding="utf-8")


def format_statistic(claim: Claim) -> str:
    """Write the statistic with its estimators and tables, such as "flatter(anisotropy)"."""
    return f"{claim.statistic}({', '.join([*claim.estimators, *claim.reads])})"


def count_verdicts(verdicts: Sequence[str]) -> str:
    """Count all claims of a paper, then each verdict.

    Examples
    --------
    >>> count_verdicts(["undecided", "supported", "not measured", "undecided"])
    '4 claims: 1 supported, 2 undecided, 1 not measured'
    """
    counts = [f"{number} {v}" for v in ClaimVerdict if (number := verdicts.count(v))]
    number = "1 claim" if len(verdicts) == 1 else f"{len(verdicts)} claims"
    return ": ".join(filter(None, (number, ", ".join(counts))))


def _describe_contradiction(claim: Claim, judgement: Judgement) -> str:
    """Say how far numbers must have been beyond the bounds to contradict a claim."""
    distances: Mapping[str, float] = judgement.to_contradict
    if not any(distances.values()):
        return (
            "the distance beyond a bound that would have shown it is unknown, since no number that decides has an "
            "interval"
        )
    known = {name: distance for name, distance in distances.items() if 0 < distance < np.inf}
    if not known:
        return "these data could not have shown it"
    is_single = len(list_criteria(claim.contradicted)) == 1
    words = [
        f"by {distance:.2g} or more" + ("" if is_single else f" ({claim.name_number(name)})")
        for name, distance in known.items()
    ]
    return f"these data would have shown it beyond the bound {', or '.join(words)}"


def _name_estimator(estimator: str) -> str:
    return find_measure(estimator).label if estimator in list_measure_names() else f"`{estimator}`"


def _name_control(control: str) -> str:
    """Write the name of a null model in words."""
    return control.replace("_", " ")


def _name_estimators(names: str) -> str:
    """Name estimators as figures do; other keys of verdicts, such as "held out", are words already."""
    keys = names.split(" and ")
    is_known = {*keys} <= {*list_measure_names()}
    return " and ".join(find_measure(key).label for key in keys) if is_known else names


def _format_value(estimate: float, low: float, high: float) -> str:
    """Write a number, and its interval if it has one."""
    interval = "" if isnan(low) else f" (95 % interval {low:.3g} to {high:.3g})"
    return f"{estimate:.3g}{interval}"


def _format_interval(low: float, high: float) -> str:
    """Write an interval; one end may be unknown, where a value that could decide it has no interval."""
    if isnan(low):
        return ""
    if low == -inf:
        return f"up to {high:.3g}"
    return f"from {low:.3g}" if high == inf else f"{low:.3g} to {high:.3g}"
