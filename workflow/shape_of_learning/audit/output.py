"""What an audit prints and writes: a table, CSV, JSON, and Markdown for an issue of the suite."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.table import Table

from shape_of_learning.checkpoints.atlas import NOT_YET_MOVED, OK, UNKNOWN, AtlasRow
from shape_of_learning.files import atomic_write

SHOWN_COMMIT = 10
MEANINGS = {
    OK: "no other revision holds these weights",
    NOT_YET_MOVED: "equal to step 0 at the very start, which is right: a first update at learning rate 0",
    "same as": "the weights of another revision",
    "mixed shards": "some of its files are those of another revision",
    "mixed tensors": "some of its matrices are those of another step",
    "missing": "there is no such revision, or it lacks weights",
    "broken": "its loss is impossible",
    "suspicious": "its loss is possible, but unlikely",
    "not of this training": "the steps after it do not descend from it",
    UNKNOWN: "nothing tells",
}


def said_together(rows: Sequence[AtlasRow]) -> list[tuple[AtlasRow, list[list[AtlasRow]]]]:
    """Put together what is said of several revisions: one of them, and the runs that follow each other."""
    groups: dict[tuple[str, ...], list[list[AtlasRow]]] = {}
    last: tuple[str, ...] = ()
    for row in rows:
        said = row.repository, row.verdict, row.reason, row.source
        runs = groups.setdefault(said, [])
        if said == last:
            runs[-1].append(row)
        else:
            runs.append([row])
        last = said
    return [(runs[0][0], runs) for runs in groups.values()]


def printed(rows: Sequence[AtlasRow]) -> Table:
    """A line for all revisions of which the same is said."""
    table = Table(box=None, pad_edge=False)
    for column in ("verdict", "revisions", "reason", "source"):
        table.add_column(column, overflow="fold")
    for row, runs in said_together(rows):
        table.add_row(row.verdict, _revisions(runs), row.reason, _threads(row) or row.source)
    return table


def counted(rows: Iterable[AtlasRow]) -> str:
    """How many revisions have which verdict."""
    counts = Counter(_kind(row.verdict) for row in rows)
    return ", ".join(f"{counts[each]:,} {each}" for each in MEANINGS if counts[each])


def write_json(path: Path, rows: Iterable[AtlasRow]) -> None:
    """Write a list of objects."""
    objects = [row.model_dump(mode="json") for row in rows]
    with atomic_write(path) as partial:
        partial.write_text(json.dumps(objects, indent=1) + "\n", encoding="utf-8")


def write_markdown(path: Path, name: str, rows: Sequence[AtlasRow], others: Sequence[str]) -> None:
    """Write what the maintainers of a suite need to know: what is wrong, how it was found, how to check it."""
    faults = [row for row in rows if row.is_fault]
    unknown = [row for row in rows if row.verdict == UNKNOWN]
    day = next((f"{row.checked}" for row in rows if row.checked), "")
    lines = [
        f"## Revisions of `{name}` that are not what their names say",
        "",
        f"{len(rows):,} revisions were compared on {day}: {counted(rows)}."
        + ("" if faults else " **No fault was found.**"),
        "",
        "Each file of weights that the Hub stores has a SHA-256, which its API lists. Training changes weights, so "
        "two steps with the same hashes hold the same checkpoint. No weights were downloaded unless a reason below "
        "says that tensors or losses were compared.",
        "",
    ]
    if faults:
        lines += ["| revisions | what they are | why | reported in |", "|---|---|---|---|"]
        lines += [
            f"| {_revisions(runs, '`')} | {row.verdict} | {row.reason} | {_threads(row)} |"
            for row, runs in said_together(rows)
            if row.is_fault
        ]
        lines += ["", *_commits(faults), "### What the words mean", ""]
        kinds = dict.fromkeys(_kind(row.verdict) for row in rows)
        lines += [f"- *{kind}*: {MEANINGS[kind]}" for kind in MEANINGS if kind in kinds]
        first = faults[0]
        if first.commit:
            lines += [
                "",
                "### To check one",
                "",
                f"`https://huggingface.co/api/models/{first.repository}/tree/{first.commit}?recursive=true` lists "
                f"the files of `{first.revision}` with their hashes (`lfs.oid`). All of it again: "
                f"`shape-of-learning audit {name}`.",
            ]
    if unknown:
        lines += ["", f"Nothing is known of {_revisions([unknown], '`')}: {unknown[0].reason}."]
    if others:
        named = ", ".join(f"`{each}`" for each in others[:8])
        more = f" and {len(others) - 8} more" if others[8:] else ""
        lines += [
            "",
            f"Branches and tags that were not compared, since their names are no steps: {named}{more}.",
        ]
    with atomic_write(path) as partial:
        partial.write_text("\n".join([*lines, ""]), encoding="utf-8")


def _commits(faults: Sequence[AtlasRow]) -> list[str]:
    known = [row for row in faults if row.commit]
    if not known:
        return []
    lines = ["<details><summary>Their commits</summary>", "", "| revision | commit |", "|---|---|"]
    lines += [f"| `{row.revision}` | `{row.commit[:SHOWN_COMMIT]}` |" for row in known]
    return [*lines, "", "</details>", ""]


def _kind(verdict: str) -> str:
    return "same as" if verdict.startswith("same as") else verdict


def _revisions(runs: Sequence[Sequence[AtlasRow]], quote: str = "") -> str:
    """Of each run the revision, or its ends and the number in it."""
    said = []
    for run in runs:
        first, last = (f"{quote}{row.revision}{quote}" for row in (run[0], run[-1]))
        many = f"{first} to {last} ({len(run)})"
        said.append(first if len(run) == 1 else f"{first}, {last}" if len(run) == 2 else many)
    return ", ".join(said)


def _threads(row: AtlasRow) -> str:
    """Reports as GitHub writes them, organisation/name#number."""
    said = []
    for source in row.source.split():
        parts = source.removeprefix("https://").split("/")
        is_issue = parts[0] == "github.com" and parts[3:4] == ["issues"]
        if is_issue:
            said.append(f"{parts[1]}/{parts[2]}#{parts[4]}")
        elif source.startswith("http"):
            said.append(source)
    return ", ".join(said)
