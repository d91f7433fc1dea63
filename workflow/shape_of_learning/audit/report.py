"""The results of an audit: a table for the terminal, JSON, and Markdown for an issue of the suite."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from rich.table import Table

from shape_of_learning import __version__
from shape_of_learning.checkpoints.atlas import AtlasRow
from shape_of_learning.checkpoints.verdict import Kind
from shape_of_learning.files import atomic_write
from shape_of_learning.words import escape_cell

# In the order of the table: faults first.
KINDS = {
    Kind.SAME_AS_STEP: "holding the weights of another",
    Kind.SAME_AS_MAIN: "holding the weights of another",
    Kind.SAME_RESULTS: "with the results of another",
    Kind.MIXED_SHARDS: "with files of another",
    Kind.MIXED_TENSORS: "with matrices of another",
    Kind.MISSING: "missing, or without some of their weights",
    Kind.CHANGED: "with other weights than were saved",
    Kind.BROKEN: "with an impossible loss",
    Kind.SUSPICIOUS: "with an unlikely loss",
    Kind.APART: "apart from its neighbours",
    Kind.NOT_OF_THIS_TRAINING: "not an ancestor of the others",
    Kind.UNKNOWN: "unverified",
    Kind.NOT_YET_MOVED: "equal to step 0 at the very start, which is right",
    Kind.OK: "with weights of their own",
}
OWN_RESULTS = "with results of their own"
DESCRIPTIONS = (*dict.fromkeys(KINDS.values()), OWN_RESULTS)  # without duplicates
Group = tuple[AtlasRow, list[list[AtlasRow]]]


def group_rows(rows: Sequence[AtlasRow]) -> list[Group]:
    """Group rows by verdict and reason, faults first; a group is its first row and all its rows, in runs of steps."""
    groups: dict[tuple[str, ...], list[list[AtlasRow]]] = {}
    last: tuple[str, ...] = ()
    for row in rows:
        key = row.repository, row.verdict, row.reason
        runs = groups.setdefault(key, [])
        if key == last:
            runs[-1].append(row)
        else:
            runs.append([row])
        last = key
    pairs = [(runs[0][0], runs) for runs in groups.values()]
    return sorted(pairs, key=lambda pair: DESCRIPTIONS.index(_describe_kind(pair[0])))


def _describe_kind(row: AtlasRow) -> str:
    kind = row.parse_verdict().kind
    return OWN_RESULTS if kind is Kind.OK and row.is_by_results else KINDS[kind]


def make_revision_table(rows: Sequence[AtlasRow]) -> Table:
    """Make a table with one line per verdict and reason."""
    table = Table(box=None, pad_edge=False)
    for column in ("verdict", "revisions", "reason", "reported in"):
        table.add_column(column, overflow="fold")
    for row, runs in group_rows(rows):
        threads = _format_threads(runs) if row.parse_verdict().kind is not Kind.OK else ""
        table.add_row(row.verdict, _format_revisions(runs), row.reason, threads)
    return table


def count_kinds(rows: Sequence[AtlasRow]) -> str:
    """Count the revisions of each kind."""
    counts = Counter(map(_describe_kind, rows))
    numbers = [f"{counts[words]:,} {words}" for words in DESCRIPTIONS if counts[words]]
    return f"{len(rows):,} revisions: {', '.join(numbers)}"


def write_json(path: Path, rows: Iterable[AtlasRow]) -> None:
    """Write the rows as a list of objects."""
    objects = [row.model_dump(mode="json") for row in rows]
    with atomic_write(path) as partial:
        partial.write_text(json.dumps(objects, indent=1) + "\n", encoding="utf-8")


def write_markdown(
    path: Path, name: str, command: str, rows: Sequence[AtlasRow], notes: Sequence[str]
) -> None:
    """Write a page for the maintainers of a suite: the faults, how sure they are, and how to check them."""
    faults = sum(row.is_fault for row in rows)
    day = next((f"{row.checked}" for row in rows if row.checked), "")
    wrong = "are not what their names say" if faults != 1 else "is not what its name says"
    if any(row.is_by_results for row in rows):
        wrong = (
            "have results that cannot be theirs"
            if faults != 1
            else "has results that cannot be its own"
        )
    lines = [f"## `{name}`: {faults} of {len(rows)} training revisions {wrong}", ""]
    lines += [f"Checked {day} (UTC). {count_kinds(rows)}.", ""]
    groups = group_rows(rows)
    several = len({row.repository for row in rows}) > 1
    bad = [(row, runs) for row, runs in groups if row.is_fault]
    if bad:
        lines += ["| revisions | what they are | evidence | known from |", "|---|---|---|---|"]
        lines += [
            f"| {_format_revisions(runs, '`', several)} | {row.verdict} | {escape_cell(row.reason)} "
            f"| {_format_threads(runs)} |"
            for row, runs in bad
        ]
    for row, runs in groups:
        if not row.is_fault:
            words = {
                Kind.OK: "Nothing speaks against",
                Kind.UNKNOWN: "Nothing is known of",
                Kind.NOT_YET_MOVED: "Right, since training had not begun to move:",
            }[row.parse_verdict().kind]
            lines += ["", f"{words} {_format_revisions(runs, '`', several)}: {row.reason}."]
    lines += ["", *(f"{note}  " for note in notes)]
    if bad:
        lines += _describe_certainty([row for row, _ in bad])
    lines += [
        "",
        f"By shape-of-learning {__version__}: `shape-of-learning {command}`.",
        *_describe_commits(rows),
    ]
    with atomic_write(path) as partial:
        partial.write_text("\n".join([*lines, ""]), encoding="utf-8")


def _describe_certainty(faults: Sequence[AtlasRow]) -> list[str]:
    """Say how sure the faults are, and ask the maintainers for new uploads or evaluations."""
    if any(row.is_by_results for row in faults):
        kinds = {row.parse_verdict().kind for row in faults}
        words = ["**How sure:**"]
        if Kind.SAME_RESULTS in kinds:
            words.append(
                "equal results are equal to the last digit. Either both names hold the same weights, or one "
                "checkpoint was evaluated under the name of the other; hashes of the files tell which is the case."
            )
        if Kind.APART in kinds:
            words.append(
                "A loss this far above its neighbours may also be a mistake of the evaluation."
            )
        words.append(
            "Different results do not show that the weights are those of their step today."
        )
        request = "could the weights of these steps be compared, and the right ones be uploaded, or the evaluations be"
        return ["", " ".join(words), "", f"**Asked for:** {request} made again?"]
    is_on_the_hub = any(row.commit for row in faults)
    origin = ", as the Hub's API lists it" if is_on_the_hub else ""
    lines = [
        "",
        f"**How sure:** where the evidence is a SHA-256, it is that of the stored file{origin}, so the bytes are "
        "equal. Training changes weights, so at most one name of a group is right. A file that no other step has may "
        "still belong to another name.",
    ]
    if is_on_the_hub:
        lines += [
            "",
            "**Asked for:** could the right checkpoints be uploaded, or these revisions be listed in the model "
            "card if they are lost?",
        ]
    return lines


def _describe_commits(rows: Sequence[AtlasRow]) -> list[str]:
    """List the commits that were compared, folded up."""
    commits = [f"{row.revision} {row.commit}" for row in rows if row.commit]
    if not commits:
        return []
    head = "<details><summary>Commits that were compared</summary>"
    return ["", head, "", "```", *commits, "```", "", "</details>"]


def _format_revisions(
    runs: Sequence[Sequence[AtlasRow]], quote: str = "", has_repository: bool = False
) -> str:
    """Name the revisions of all runs, of a long run its ends and their number."""
    names = []
    for run in runs:
        first, last = f"{quote}{run[0].revision}{quote}", f"{quote}{run[-1].revision}{quote}"
        if len(run) == 1:
            names.append(first)
        elif len(run) == 2:
            names.append(f"{first}, {last}")
        else:
            names.append(f"{first} to {last} ({len(run)})")
    return ", ".join(names) + (f" of {runs[0][0].repository}" if has_repository else "")


def _format_threads(runs: Sequence[Sequence[AtlasRow]]) -> str:
    """Name the reports on the rows in GitHub's spelling, organisation/name#number."""
    threads = {}
    for address in (address for run in runs for row in run for address in row.reports):
        parts = urlsplit(address)
        issue = re.fullmatch(r"/([^/]+/[^/]+)/issues/([^/]+).*", parts.path)
        if issue and parts.netloc == "github.com":
            address = f"{issue[1]}#{issue[2]}"
        threads[address] = None
    return ", ".join(threads)
