"""The ledger of a paper's claims: one row each, and the same for people to read."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from shape_of_learning.claims.claim import Claim
from shape_of_learning.claims.judging import CONTRADICTED, SUPPORTED, VERDICTS, Judgement
from shape_of_learning.claims.rules import in_words
from shape_of_learning.files import atomic_write, write_table
from shape_of_learning.metrics.tidy import CLAIM_COLUMNS

MOST_PARTS = 20  # of a claim, that are shown to people
Judged = Sequence[tuple[Claim, Judgement]]


def write_ledger(path: Path, judged: Judged) -> None:
    """Write the CSV file, lists joined by ``;``."""
    rows = []
    for claim, of in judged:
        numbers = [of.estimate, of.low, of.high, of.smallest_visible]
        lists = [of.models, of.revisions, of.n, of.selections, of.hashes]
        words = [claim.name, claim.sentence, claim.where, statistic_of(claim)]
        rows.append([*words, *numbers, of.verdict, of.because, *map(";".join, lists)])
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
    rule = claim.rule
    lines = [
        f"## {claim.name}",
        "",
        f"{claim.sentence} ({claim.where})",
        "",
        f"**{of.verdict[0].upper()}{of.verdict[1:]}.** {of.because}",
        "",
        f"- Statistic: `{statistic_of(claim)}`",
        f"- Supported: {in_words(rule[SUPPORTED])}",
        f"- Contradicted: {in_words(rule[CONTRADICTED])}",
    ]
    if of.models:
        checkpoints = f"{len(of.revisions)} checkpoint{'s' if len(of.revisions) > 1 else ''}"
        named = {"n = ": of.n, "selection: ": of.selections}
        rests = [what + ", ".join(which) for what, which in named.items() if which]
        hashes = ", ".join(f"`{each}`" for each in of.hashes)
        said = [", ".join(of.models), checkpoints, *rests, hashes]
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
    return "" if np.isnan(value) else f"{value:.3g}"


def _interval(low: float, high: float) -> str:
    return "" if np.isnan(low) else f"{low:.3g} to {high:.3g}"
