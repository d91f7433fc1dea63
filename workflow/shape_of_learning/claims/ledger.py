"""The ledger of a paper's claims, the page that people read, and all verdicts as one family."""

from collections.abc import Sequence
from math import isnan
from pathlib import Path

import numpy as np
import pandas as pd

from shape_of_learning.claims import rules
from shape_of_learning.claims.claim import Claim
from shape_of_learning.claims.judging import (
    CONTRADICTED,
    SUPPORTED,
    UNJUDGED,
    VERDICTS,
    Judgement,
    capitalise,
)
from shape_of_learning.claims.reading import describe_scope
from shape_of_learning.files import atomic_write, write_table
from shape_of_learning.metrics.tidy import CLAIM_COLUMNS

FALSE_SHARE = 0.05  # of the verdicts of a run, at most
MOST_PARTS = 20  # of a claim, that are shown to people
Judged = Sequence[tuple[Claim, Judgement]]


def write_ledger(path: Path, judged: Judged) -> None:
    """Write the CSV file, lists joined by ``;``."""
    rows = []
    for claim, of in judged:
        found = [getattr(of, column) for column in CLAIM_COLUMNS[4:]]
        distances = [f"{part}: {distance:.6g}" for part, distance in of.to_contradict.items()]
        found[CLAIM_COLUMNS[4:].index("to_contradict")] = tuple(distances)
        lists_joined = [";".join(each) if isinstance(each, tuple) else each for each in found]
        rows.append(
            [claim.name, claim.sentence, claim.where, format_statistic(claim), *lists_joined]
        )
    write_table(path, CLAIM_COLUMNS, rows)


def write_page(path: Path, title: str, judged: Judged) -> None:
    """Write the Markdown file: verdicts, each claim with its numbers, and those that cannot be judged, folded."""
    with_data = [pair for pair in judged if pair[1].verdict not in UNJUDGED]
    without_data = [pair for pair in judged if pair[1].verdict in UNJUDGED]
    lines = [
        f"# Claims of: {title}",
        "",
        f"{count_verdicts([of.verdict for _, of in judged])}.",
        "",
    ]
    if with_data:
        lines += [*_count_verdicts(with_data), ""]
    for claim, of in with_data:
        lines += [*_write_section(claim, of), ""]
    lines += _fold_missing_data(without_data)
    with atomic_write(path) as partial:
        partial.write_text("\n".join(lines), encoding="utf-8")


def write_family(ledgers: Sequence[Path], table: Path, page: Path) -> None:
    """Take the verdicts of all papers as one family of tests.

    Benjamini and Yekutieli, The control of the false discovery rate in multiple testing under dependency, Annals
    of Statistics 29 (2001): `q` is the least share of false ones among verdicts that are as clear as this one,
    whatever they have in common.
    """
    from scipy.stats import false_discovery_control

    tested = []
    for ledger in ledgers:
        of = pd.read_csv(ledger, keep_default_na=False, na_values=[""])
        for verdict in (SUPPORTED, CONTRADICTED):
            own = of[["claim", "verdict"]].assign(tested=verdict, p=of[f"p_{verdict}"])
            tested.append(own.rename(columns={"verdict": "decided"}).dropna(subset="p"))
    rows = pd.concat(tested, ignore_index=True)
    rows["q"] = false_discovery_control(rows["p"], method="by") if len(rows) else []
    write_table(table, rows.columns, rows.itertuples(index=False))
    decided = rows[rows["decided"] == rows["tested"]]
    doubtful = decided[decided["q"] > FALSE_SHARE]
    also = ", ".join(f"`{each}`" for each in doubtful["claim"]) or "none"
    family = [
        f"{len(rows)} verdicts on {rows['claim'].nunique()} claims could be tested, since each claim can be supported "
        f"or contradicted; {len(decided)} were reached, and those without an interval have no p and are not here. "
        "p is over windows of text, or seeds, of these models, and not over models. "
        f"Of verdicts whose q is {FALSE_SHARE:g} at most, no more than "
        f"{100 * FALSE_SHARE:g} % are expected to be false. Verdicts with a larger q, which may be chance: {also}.",
        "",
        "| Claim | Tested | p | q | Decided |",
        "| :-- | :-- | --: | --: | :-- |",
        *(
            f"| {each.claim} | {each.tested} | {each.p:.2g} | {each.q:.2g} | {each.decided} |"
            for each in rows.sort_values("q").itertuples()
        ),
    ]
    if rows.empty:  # a table without rows is none to the pages that show it
        family = ["No verdict of this run could be tested: none has an interval."]
    lines = ["# All verdicts as one family", "", *family, ""]
    with atomic_write(page) as partial:
        partial.write_text("\n".join(lines), encoding="utf-8")


def format_statistic(claim: Claim) -> str:
    """The statistic with what it is of, such as "flatter(anisotropy)"."""
    return f"{claim.statistic}({', '.join([*claim.estimators, *claim.reads])})"


def count_verdicts(verdicts: Sequence[str]) -> str:
    """Count all claims of a paper, then each verdict.

    Examples
    --------
    >>> count_verdicts(["undecided", "supported", "not measured", "undecided"])
    '4 claims: 1 supported, 2 undecided, 1 not measured'
    """
    counts = [f"{number} {each}" for each in VERDICTS if (number := verdicts.count(each))]
    number = "1 claim" if len(verdicts) == 1 else f"{len(verdicts)} claims"
    return ": ".join(filter(None, (number, ", ".join(counts))))


def _count_verdicts(judged: Judged) -> list[str]:
    return [
        "A bound counts as passed only if the whole 95 % interval lies beyond it. The interval that "
        "decides is widened for every model, layer, step or condition joined by `or` that the rule could pick; "
        "those of single numbers below are not widened for models and conditions, so that one may lie beyond its "
        "bound and yet not decide. What has no interval is compared as it is, and what is unknown is left blank. "
        "Intervals of a model are over its windows, of several seeds over seeds and windows, of twins and "
        "fine-tunings over seeds. Where a rule has several bounds, the estimate says how far it is met: the least "
        "distance to bounds joined by `and`, the largest to those joined by `or`; negative if it is missed. A case "
        "is a model, a pair of models, or all seeds of one training; a family is one or several cases. `Visible` "
        "is the smallest distance from the bound for support that could have been seen. `family.md` says how many "
        "of all verdicts of the run may be false.",
        "",
        "| Claim | Verdict | Estimate | 95 % interval | Visible |",
        "| :-- | :-- | --: | --: | --: |",
        *(
            f"| {_escape_cell(claim.sentence)} | **{of.verdict}** | {_format_number(of.estimate)} "
            f"| {_format_interval(of.low, of.high)} | {_format_number(of.smallest_visible)} |"
            for claim, of in judged
        ),
    ]


def _fold_missing_data(without_data: Judged) -> list[str]:
    if not without_data:
        return []
    claims = "1 claim" if len(without_data) == 1 else f"{len(without_data)} claims"
    reasons = [
        f"- {claim.sentence} ({claim.where}) {capitalise(of.verdict)}: {of.because}"
        for claim, of in without_data
    ]
    summary = f"<details><summary>This run cannot judge {claims}.</summary>"
    return [summary, "", *reasons, "", "</details>", ""]


def _write_section(claim: Claim, of: Judgement) -> list[str]:
    lines = [
        f"## {claim.name}",
        "",
        f"{claim.sentence} ({claim.where})",
        "",
        " ".join(filter(None, (f"**{capitalise(of.verdict)}.**", of.summary, of.because))),
        "",
        f"- Statistic: `{format_statistic(claim)}`",
        f"- Supported if {rules.format_condition(claim.rule[SUPPORTED], claim.parts)}",
        f"- Contradicted if {rules.format_condition(claim.rule[CONTRADICTED], claim.parts)}"
        + (f"; {_describe_contradiction(claim, of)}" if of.to_contradict else ""),
    ]
    lines += [f"- What matters: {claim.matters}"] if claim.matters else []
    lines += [f"- Scope: {describe_scope(claim)}"] if claim.seen else []
    lines += [f"- Besides: {'; '.join(of.besides)}"] if of.besides else []
    if of.models:
        checkpoints = f"{len(of.revisions)} checkpoint{'s' if len(of.revisions) > 1 else ''}"
        named = {"vectors of a batch: ": of.n, "selection: ": of.selections}
        rests = [what + ", ".join(which) for what, which in named.items() if which]
        said = [", ".join(of.models), checkpoints, *rests]
        lines.append(f"- Rests on: {'; '.join(said)}")
    lines += [
        f"- Changed after results were seen, {day}: {what}" for day, what in claim.changed.items()
    ]
    if of.parts:
        lines += ["", "| Of | Number | Estimate | 95 % interval |", "| :-- | :-- | --: | --: |"]
        lines += [
            f"| {_escape_cell(part.unit) or 'all together'} "
            f"| {_escape_cell(rules.format_part(part.part, claim.parts))} "
            f"| {_format_number(part.estimate)} | {_format_interval(part.low, part.high)} |"
            for part in of.parts[:MOST_PARTS]
        ]
        if (more := len(of.parts) - MOST_PARTS) > 0:
            lines += ["", f"And {more:,} more."]
    return lines


def _describe_contradiction(claim: Claim, of: Judgement) -> str:
    """How far numbers must have been beyond the bounds to contradict a claim."""
    distances = of.to_contradict
    if not any(distances.values()):
        return "nothing tells what these data could have shown, since what decides has no interval"
    seen = [
        f"by {distance:.2g} or more"
        + (f" ({rules.format_part(part, claim.parts)})" if len(distances) > 1 else "")
        for part, distance in distances.items()
        if 0 < distance < np.inf
    ]
    if not seen:
        return "these data could not have shown it"
    return f"these data would have shown it beyond the bound {', or '.join(seen)}"


def _escape_cell(words: str) -> str:
    """Words that a table may hold, on one line and in one column."""
    return " ".join(words.split()).replace("|", r"\|")


def _format_number(value: float) -> str:
    return "" if isnan(value) else f"{value:.3g}"


def _format_interval(low: float, high: float) -> str:
    return "" if isnan(low) else f"{low:.3g} to {high:.3g}"
