"""The page of a paper's claims, their ledger as CSV, and the page of all verdicts as a family of tests."""

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

FALSE_SHARE = 0.05  # the largest expected share of false verdicts
MOST_ROWS = 20  # in a table of a claim
MOST_CURVES = 2  # that a sentence describes
# The peak of a profile holds the values that lie below its highest value by at most this share of its range. A profile
# whose range is at most the share FLAT of its highest value has no peak.
PLATEAU = 0.1
FLAT = 0.05
BARS = "▁▂▃▄▅▆▇█"
WIDE_RANGE = 30  # the highest value over the lowest, from which bars have a logarithmic scale
NOT_OF_ALL_TEXT = (
    "{names}: the intervals are for this number of windows. They leave out a bias, which more windows would lessen, so "
    "they may not contain the value of all text."
)
HOW_TO_READ = (
    "A bound counts as passed only if the whole 95 % interval lies beyond it; a number without an interval is compared "
    "as it is. The interval of a model covers the choice of windows, that of several seeds the choice of seeds and "
    "windows, that of twins and fine-tunings the choice of seeds.",
    "*Met* is decided by a wider interval than the one shown, because the criteria may pick the best of several "
    "models, layers, steps or alternatives. So a criterion may not be met although the interval shown lies beyond the "
    "bound.",
    "A case is a model, a pair of models, or all seeds of one training; a family is one or several cases, such as the "
    "sizes of one suite.",
    "p is the chance that newly drawn windows or seeds give this verdict although the truth lies at the bound. Of "
    "many verdicts some have a small p by chance: `family.md` says how many of all verdicts of the run may be false.",
    "*Support over all cases* is the number on which a supported claim rests: the quantity itself if all criteria "
    "share one bound and one direction, otherwise the margin by which the criteria are met, negative if they are not.",
    "A verdict in brackets uses another score, or leaves out some tokens.",
    "A claim is *beyond* a null model, such as *untrained* weights, if the model meets the claim by more than the null "
    "model does. *No*: the null model meets the claim by itself, or by as much. *Undecided*: the interval of the "
    "difference contains 0. *No interval*: the interval of the null model is withheld. Step 0 of a pretraining also "
    "counts as *untrained*.",
)
JudgedClaims = Sequence[tuple[Claim, Judgement]]


def write_ledger(path: Path, judged_claims: JudgedClaims) -> None:
    """Write the verdicts and their numbers as a CSV file, with lists joined by ``;``."""
    rows = []
    for claim, judgement in judged_claims:
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
        values = (cells[column] for column in CLAIM_COLUMNS)
        rows.append([";".join(cell) if isinstance(cell, tuple) else cell for cell in values])
    write_table(path, CLAIM_COLUMNS, rows)


def write_page(path: Path, title: str, judged_claims: JudgedClaims) -> None:
    """Write the page in Markdown: the verdicts, a section for each claim, and, folded, the claims without data."""
    measured_claims = [pair for pair in judged_claims if pair[1].verdict not in UNJUDGED]
    unmeasured_claims = [pair for pair in judged_claims if pair[1].verdict in UNJUDGED]
    verdicts = [judgement.verdict for _, judgement in judged_claims]
    lines = [f"# Claims of: {title}", "", f"{count_verdicts(verdicts)}.", ""]
    if measured_claims:
        rows = [
            [claim.sentence, f"**{judgement.verdict}**{_name_differing_verdicts(judgement)}"]
            for claim, judgement in measured_claims
        ]
        lines += [*format_table(("Claim", "Verdict"), rows), ""]
        lines += _fold("How to read the tables", [f"- {words}" for words in HOW_TO_READ])
    for claim, judgement in measured_claims:
        lines += _write_section(claim, judgement)
    if unmeasured_claims:
        claims = "1 claim" if len(unmeasured_claims) == 1 else f"{len(unmeasured_claims)} claims"
        reasons = [
            f"- {claim.sentence} ({claim.where}) {capitalise(judgement.verdict)}: {judgement.because}"
            for claim, judgement in unmeasured_claims
        ]
        lines += _fold(f"This run cannot judge {claims}.", reasons)
    with atomic_write(path) as partial:
        partial.write_text("\n".join(lines), encoding="utf-8")


def _fold(summary: str, lines: Sequence[str]) -> list[str]:
    return [f"<details><summary>{summary}</summary>", "", *lines, "", "</details>", ""]


def _write_section(claim: Claim, judgement: Judgement) -> list[str]:
    """Write the finding on a claim with its curves and criteria, and, folded, its definitions and data."""
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
    biased_labels = [measure.label for measure in measures if not measure.has_interval]
    if biased_labels and rows:
        lines += [NOT_OF_ALL_TEXT.format(names=" and ".join(biased_labels)), ""]
    return lines + _fold(
        "Definitions, conditions, other estimators, and the data behind the verdict",
        _list_details(claim, judgement),
    )


def _format_p(judgement: Judgement) -> str:
    """Write the p-value of a decided verdict in brackets; empty without intervals."""
    p = {
        ClaimVerdict.SUPPORTED: judgement.p_supported,
        ClaimVerdict.CONTRADICTED: judgement.p_contradicted,
    }.get(judgement.verdict, nan)
    if isnan(p):
        return ""
    return f" (p < {LEAST_CHANCE:g})" if p <= LEAST_CHANCE else f" (p = {p:.2g})"


def _list_details(claim: Claim, judgement: Judgement) -> list[str]:
    support_rule, contradiction_rule = (claim.format_condition(verdict) for verdict in DECIDED)
    lines = [
        f"- Claim `{claim.name}`, {claim.where}. Statistic: `{format_statistic(claim)}`",
        f"- Reason: {judgement.because}",
        *(f"- *{name}*: {definition}" for name, definition in _define_numbers(claim)),
        f"- Supported if {support_rule}",
        f"- Contradicted if {contradiction_rule}"
        + (f"; {_describe_contradiction(claim, judgement)}" if judgement.to_contradict else ""),
    ]
    if not isnan(judgement.estimate) and judgement.verdict != ClaimVerdict.CONTRADICTED:
        value = _format_value(judgement.estimate, judgement.low, judgement.high)
        distance = judgement.smallest_visible
        distance_words = (
            "" if isnan(distance) else f"; a distance of {distance:.3g} from the bound would show"
        )
        lines.append(f"- Support over all cases: {value}{distance_words}")
    if claim.matters:
        lines.append(f"- Smaller effects: {claim.matters}")
    if claim.seen:
        lines.append(f"- Scope: {describe_scope(claim)}")
    if other_verdicts := _list_other_verdicts(claim, judgement, name=_name_estimators):
        lines.append(f"- Other estimators, selections and null models: {'; '.join(other_verdicts)}")
    if judgement.equal_values:
        equal_values = ", ".join(judgement.equal_values)
        lines.append(f"- Equal values, so no second verdict: {equal_values}")
    if judgement.models:
        checkpoints = len(judgement.revisions)
        basis = [
            ", ".join(judgement.models),
            f"{checkpoints} checkpoint{'s' if checkpoints > 1 else ''}",
        ]
        if judgement.n:
            basis.append(f"vectors of a batch: {', '.join(judgement.n)}")
        if judgement.selections:
            basis.append(f"selection: {', '.join(judgement.selections)}")
        lines.append(f"- Rests on: {'; '.join(basis)}")
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
    """List the verdicts by other estimators and on other selections, and the comparisons with null models."""
    verdicts = [
        f"{'also ' * (key in claim.robustness)}{name(key)}: {verdict}"
        for key, verdict in judgement.other_verdicts.items()
    ]
    comparisons = [
        f"beyond {_name_control(control)}: {result}"
        for control, result in judgement.control_comparisons.items()
    ]
    return verdicts + comparisons


def _name_differing_verdicts(judgement: Judgement) -> str:
    """Write the verdicts of other estimators that differ from the claim's, in brackets; empty if none differs."""
    differing_verdicts = [
        f"{_name_estimators(name)}: {verdict}"
        for name, verdict in judgement.other_verdicts.items()
        if verdict not in (judgement.verdict, ClaimVerdict.NOT_MEASURED)
    ]
    return f" ({'; '.join(differing_verdicts)})" if differing_verdicts else ""


def _define_numbers(claim: Claim) -> list[tuple[str, str]]:
    """Return the name and the definition of each number that has a definition."""
    names_with_words = [(claim.name_number(key), words) for key, words in claim.numbers.items()]
    pairs = [(name, words.removeprefix(f"{name}: ")) for name, words in names_with_words]
    return [(name, definition) for name, definition in pairs if definition != name]


def describe_finding(claim: Claim, judgement: Judgement) -> str:
    """Describe the finding in one sentence, with values of the quantity itself; empty if nothing is measured."""
    if not judgement.numbers:
        return ""
    numbers = ""
    if words := _describe_curves(claim, judgement):
        numbers = _format_deciding_numbers(claim, judgement)
    else:
        words = _describe_numbers(claim, judgement)
        if judgement.estimators != tuple(claim.estimators):
            words = f"by {_name_estimators(' and '.join(judgement.estimators))}, {words}"
    withheld = f", but {judgement.withheld}" if judgement.withheld else ""
    endings = {
        ClaimVerdict.UNDECIDED: f"{withheld}, which leaves the claim undecided",
        ClaimVerdict.DEPENDS: ", and other estimators say the opposite",
    }
    conclusion = claim.find_conclusion(judgement.verdict, judgement.deciding_numbers)
    ending = f", so {conclusion}" if conclusion else endings.get(judgement.verdict, "")
    suspects = f" {capitalise(judgement.suspects)}." if judgement.suspects else ""
    comparisons = judgement.control_comparisons
    controls = [_name_control(name) for name, result in comparisons.items() if result == "no"]
    nulls = f" Null models meet the claim as well: {' and '.join(controls)}." if controls else ""
    return f"{capitalise(words)}{ending}{numbers}.{suspects}{nulls}{_name_cases(claim, judgement)}"


def _format_deciding_numbers(claim: Claim, judgement: Judgement) -> str:
    """Write the numbers that decide a verdict in brackets; empty if the verdict is not decided."""
    if judgement.verdict not in DECIDED:
        return ""
    estimates: dict[str, list[float]] = {}
    for result in judgement.results:
        if result.is_met and _has_decided(judgement, result):
            estimates.setdefault(result.number.name, []).append(result.number.estimate)
    parts = (
        f"{claim.name_number(name)}: {format_range(values, '.3g')}"
        for name, values in estimates.items()
    )
    return f" ({'; '.join(parts)})" if estimates else ""


def _has_decided(judgement: Judgement, result: CriterionResult) -> bool:
    """Return whether the number of a result decides the verdict; a statistic's only number may have no name."""
    is_hurdle = result.comparison.startswith("not_")
    return not is_hurdle and bool({result.number.name, ""} & {*judgement.deciding_numbers})


def _name_cases(claim: Claim, judgement: Judgement) -> str:
    """Warn if only one case was judged, or if no judged model is a model that the claim names."""
    is_group = isinstance(claim.models, str)
    is_other = not is_group and not any(model in claim.models for model in judgement.models)
    sentence = "One case says little of other models." if judgement.cases == 1 else ""
    if is_other:
        return " ".join(filter(None, (" The paper tested other models.", sentence)))
    return f" {sentence}" if is_group and sentence else ""


def _describe_curves(claim: Claim, judgement: Judgement) -> str:
    """Describe profiles over layers or curves over steps, averaged over seeds; empty if there are many or none."""
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
    """Describe where a profile is highest, and its values there and elsewhere."""
    values = dict(zip(curve.layers.tolist(), curve.last[..., 0].tolist(), strict=True))
    low, high = min(values.values()), max(values.values())
    if high - low <= FLAT * abs(high):
        return f"{format_range(values.values(), '.3g')} in {name_blocks([*values])}"
    top = [layer for layer, value in values.items() if value >= high - PLATEAU * (high - low)]
    rest = format_range((value for layer, value in values.items() if layer not in top), ".3g")
    return f"{format_range((values[layer] for layer in top), '.3g')} in {name_blocks(top)} and {rest} elsewhere"


def _describe_training(curve: LayerValues) -> str:
    """Describe the mean over layers at the first and the last step, and at the extremes between them."""
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
    """Describe the numbers that criteria use, or their ranges over several units."""
    results = [result for result in judgement.results if not isnan(result.number.estimate)]
    if judgement.verdict == ClaimVerdict.CONTRADICTED:
        results = [r for r in results if r.is_met and _has_decided(judgement, r)]
    else:
        support_results = [result for result in results if result.verdict == ClaimVerdict.SUPPORTED]
        results = support_results or results
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
    *first_parts, last = parts or [""]
    return (f"{', '.join(first_parts)} and {last}" if first_parts else last) + where


def _draw_curves(claim: Claim, judgement: Judgement) -> list[str]:
    """Draw each curve as a row of bars, over layers or over steps; curves of the same measure have the same scale."""
    is_training = claim.checkpoints == "training"
    values_by_curve = {}
    for (model, estimator), curve in judgement.curves.items():
        values = curve.means[..., 0] if is_training else curve.last[..., 0]
        if values.size >= 3 and values.ndim == 1:
            values_by_curve[model, estimator] = values
    lines = []
    for (model, estimator), values in values_by_curve.items():
        measure_values = np.concatenate(
            [other for (_, name), other in values_by_curve.items() if name == estimator]
        )
        low, high = measure_values.min(), measure_values.max()
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
    """Return a row of cells for each criterion and case, with the columns of :func:`.name_criteria_columns`."""
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
    """Write a Markdown table with at most `MOST_ROWS` rows."""
    lines = [f"| {' | '.join(columns)} |", f"|{' :-- |' * len(columns)}"]
    lines += [f"| {' | '.join(map(escape_cell, row))} |" for row in rows[:MOST_ROWS]]
    more = len(rows) - MOST_ROWS
    return [*lines, "", f"And {more:,} more."] if more > 0 else lines


def write_family(ledgers: Sequence[Path], table: Path, page: Path) -> None:
    """Write the table and the page of the verdicts of all papers as a family of tests.

    The value `q` bounds the expected share of false verdicts among the verdicts with a q no larger than this, however
    the verdicts depend on each other (Benjamini and Yekutieli, The control of the false discovery rate in multiple
    testing under dependency, Annals of Statistics 29, 2001).
    """
    from scipy.stats import false_discovery_control

    tables = []
    for ledger in ledgers:
        verdicts = pd.read_csv(ledger, keep_default_na=False, na_values=[""])
        for verdict in DECIDED:
            rows = verdicts[["claim", "verdict"]].assign(tested=verdict, p=verdicts[f"p_{verdict}"])
            tables.append(rows.rename(columns={"verdict": "decided"}).dropna(subset="p"))
    rows = pd.concat(tables, ignore_index=True)
    rows["q"] = false_discovery_control(rows["p"], method="by") if len(rows) else []
    write_table(table, rows.columns, rows.itertuples(index=False))
    decided_rows = rows[rows["decided"] == rows["tested"]]
    doubtful_rows = decided_rows[decided_rows["q"] > FALSE_SHARE]
    names = ", ".join(f"`{claim}`" for claim in doubtful_rows["claim"]) or "none"
    number = rows["claim"].nunique()
    family = [
        f"A claim can be supported or contradicted. {len(rows)} of these verdicts, on {number} "
        f"claim{'s' * (number != 1)}, have an interval and so a p; {len(decided_rows)} of them were reached. For a "
        "decided claim, the table lists "
        "only the verdict that was reached. p is the chance of this verdict if the claim's bound is just missed, over "
        "windows of text, or seeds, of these models, and not over models. For scores whose interval is for this number "
        f"of windows only, such as linearity, p leaves out a bias. {LEAST_CHANCE:g} stands for all smaller values. q "
        "is p adjusted for the number of verdicts (Benjamini and Yekutieli): of the verdicts whose q is at most "
        f"{FALSE_SHARE:g}, no more than {100 * FALSE_SHARE:g} % are expected to be false. Verdicts with a larger "
        f"q, which may be chance: {names}.",
        "",
        "| Claim | Tested | p | q | Decided |",
        "| :-- | :-- | --: | --: | :-- |",
        *(
            f"| {row.claim} | {row.tested} | {row.p:.2g} | {row.q:.2g} | {row.decided} |"
            for row in rows.sort_values("q").itertuples()
            if row.decided == row.tested or row.decided not in DECIDED
        ),
    ]
    if rows.empty:  # a report cannot show a table without rows
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
    """Describe how far beyond the bounds numbers would have contradicted a claim."""
    distances: Mapping[str, float] = judgement.to_contradict
    if not any(distances.values()):
        return (
            "the distance beyond a bound that would have shown a contradiction is unknown, since no number that "
            "decides has an interval"
        )
    known_distances = {
        name: distance for name, distance in distances.items() if 0 < distance < np.inf
    }
    if not known_distances:
        return "these data could not have shown a contradiction"
    is_single = len(list_criteria(claim.contradicted)) == 1
    words = [
        f"by {distance:.2g} or more" + ("" if is_single else f" ({claim.name_number(name)})")
        for name, distance in known_distances.items()
    ]
    return f"these data would have shown a contradiction beyond the bound {', or '.join(words)}"


def _name_estimator(estimator: str) -> str:
    return find_measure(estimator).label if estimator in list_measure_names() else f"`{estimator}`"


def _name_control(control: str) -> str:
    """Write the name of a null model in words."""
    return control.replace("_", " ")


def _name_estimators(names: str) -> str:
    """Name estimators by their labels in figures; other keys of verdicts, such as "held out", are words already."""
    keys = names.split(" and ")
    is_known = {*keys} <= {*list_measure_names()}
    return " and ".join(find_measure(key).label for key in keys) if is_known else names


def _format_value(estimate: float, low: float, high: float) -> str:
    """Write a number, and its interval if it has one."""
    interval = "" if isnan(low) else f" (95 % interval {low:.3g} to {high:.3g})"
    return f"{estimate:.3g}{interval}"


def _format_interval(low: float, high: float) -> str:
    """Write an interval; an end is infinite, and left out, if a value that could decide it has no interval."""
    if isnan(low):
        return ""
    if low == -inf:
        return f"up to {high:.3g}"
    return f"from {low:.3g}" if high == inf else f"{low:.3g} to {high:.3g}"
