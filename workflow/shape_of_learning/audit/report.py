"""What an audit prints and writes: a table, JSON, and Markdown for an issue of the suite."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.table import Table

from shape_of_learning import __version__
from shape_of_learning.checkpoints.atlas import NOT_YET_MOVED, OK, UNKNOWN, AtlasRow
from shape_of_learning.files import atomic_write

MOST_NAMED = 8
KINDS = {
    "same as": "holding the weights of another",
    "mixed shards": "with files of another",
    "mixed tensors": "with matrices of another",
    "missing": "missing, or without some of their weights",
    "broken": "with an impossible loss",
    "suspicious": "with an unlikely loss",
    "not of this training": "from which the others do not descend",
    UNKNOWN: "of which nothing is known",
    NOT_YET_MOVED: "equal to step 0 at the very start, which is right",
    OK: "with weights of their own",
}
Group = tuple[AtlasRow, list[list[AtlasRow]]]


def group_rows(rows: Sequence[AtlasRow]) -> list[Group]:
    """Put together what is said of several revisions, faults first: one, and all in runs that follow each other."""
    groups: dict[tuple[str, ...], list[list[AtlasRow]]] = {}
    last: tuple[str, ...] = ()
    for row in rows:
        said = row.repository, row.verdict, row.reason
        runs = groups.setdefault(said, [])
        if said == last:
            runs[-1].append(row)
        else:
            runs.append([row])
        last = said
    order = list(KINDS)
    found = [(runs[0][0], runs) for runs in groups.values()]
    return sorted(found, key=lambda group: order.index(_kind(group[0].verdict)))


def revision_table(rows: Sequence[AtlasRow]) -> Table:
    """A line for all revisions of which the same is said."""
    table = Table(box=None, pad_edge=False)
    for column in ("verdict", "revisions", "reason", "reported in"):
        table.add_column(column, overflow="fold")
    for row, runs in group_rows(rows):
        threads = _format_threads(runs) if row.verdict != OK else ""
        table.add_row(row.verdict, _format_revisions(runs), row.reason, threads)
    return table


def count_table(rows: Sequence[AtlasRow]) -> str:
    """How many revisions there are of each kind."""
    counts = Counter(_kind(row.verdict) for row in rows)
    said = [f"{counts[kind]:,} {words}" for kind, words in KINDS.items() if counts[kind]]
    return f"{len(rows):,} revisions: {', '.join(said)}"


def write_json(path: Path, rows: Iterable[AtlasRow]) -> None:
    """Write a list of objects."""
    objects = [row.model_dump(mode="json") for row in rows]
    with atomic_write(path) as partial:
        partial.write_text(json.dumps(objects, indent=1) + "\n", encoding="utf-8")


def write_markdown(
    path: Path, name: str, command: str, rows: Sequence[AtlasRow], notes: Sequence[str]
) -> None:
    """Write what the maintainers of a suite need to know: what is wrong, how sure it is, how to check it."""
    faults = sum(row.is_fault for row in rows)
    day = next((f"{row.checked}" for row in rows if row.checked), "")
    wrong = "are not what their names say" if faults != 1 else "is not what its name says"
    lines = [f"## `{name}`: {faults} of {len(rows)} training revisions {wrong}", ""]
    lines += [f"Checked {day} (UTC). {count_table(rows)}.", ""]
    groups = group_rows(rows)
    several = len({row.repository for row in rows}) > 1
    bad = [(row, runs) for row, runs in groups if row.is_fault]
    if bad:
        lines += ["| revisions | what they are | evidence | known from |", "|---|---|---|---|"]
        lines += [
            f"| {_format_revisions(runs, '`', several)} | {row.verdict} | {_escape_cell(row.reason)} "
            f"| {_format_threads(runs)} |"
            for row, runs in bad
        ]
    for row, runs in groups:
        if not row.is_fault:
            words = {OK: "Nothing speaks against", UNKNOWN: "Nothing is known of"}.get(
                row.verdict, "Right, since training had not begun to move:"
            )
            lines += ["", f"{words} {_format_revisions(runs, '`', several)}: {row.reason}."]
    lines += ["", *(f"{note}  " for note in notes)]
    if bad:
        is_on_the_hub = any(row.commit for row in rows)
        stored = ", as the Hub's API lists it" if is_on_the_hub else ""
        lines += [
            "",
            f"**How sure:** where the evidence is a SHA-256, it is that of the stored file{stored}, so the bytes are "
            "equal. Training changes weights, so at most one name of a group is right. That no other step has a file "
            "does not show that it belongs to its name.",
        ]
        if is_on_the_hub:
            lines += [
                "",
                "**Asked for:** could the right checkpoints be uploaded, or these revisions be listed in the model "
                "card if they are lost?",
            ]
    lines += [
        "",
        f"By shape-of-learning {__version__}: `shape-of-learning {command}`.",
        *_describe_commits(rows),
    ]
    with atomic_write(path) as partial:
        partial.write_text("\n".join([*lines, ""]), encoding="utf-8")


def _describe_commits(rows: Sequence[AtlasRow]) -> list[str]:
    """Which commits were compared, folded up."""
    known = [f"{row.revision} {row.commit}" for row in rows if row.commit]
    if not known:
        return []
    head = "<details><summary>Commits that were compared</summary>"
    return ["", head, "", "```", *known, "```", "", "</details>"]


def _kind(verdict: str) -> str:
    return "same as" if verdict.startswith("same as") else verdict


def _escape_cell(words: str) -> str:
    return words.replace("|", r"\|")


def _format_revisions(
    runs: Sequence[Sequence[AtlasRow]], quote: str = "", with_repository: bool = False
) -> str:
    """Of each run the revision, or its ends and the number in it."""
    said = []
    for run in runs:
        first, last = (f"{quote}{row.revision}{quote}" for row in (run[0], run[-1]))
        many = f"{first} to {last} ({len(run)})"
        said.append(first if len(run) == 1 else f"{first}, {last}" if len(run) == 2 else many)
    return ", ".join(said) + (f" of {runs[0][0].repository}" if with_repository else "")


def _format_threads(runs: Sequence[Sequence[AtlasRow]]) -> str:
    """Reports on any of them, as GitHub writes them: organisation/name#number."""
    said = {}
    for source in (source for run in runs for row in run for source in row.source.split()):
        parts = source.removeprefix("https://").split("/")
        if parts[0] == "github.com" and parts[3:4] == ["issues"]:
            said[f"{parts[1]}/{parts[2]}#{parts[4]}"] = None
        elif source.startswith("http"):
            said[source] = None
    return ", ".join(said)
