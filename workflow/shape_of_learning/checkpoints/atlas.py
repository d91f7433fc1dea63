"""The atlas: verdicts on the revisions of published trainings, one table per model.

``atlas/{suite}/{model}.csv`` has the columns of :class:`AtlasRow`. ``atlas/atlas.json`` has all tables, for programs,
and ``atlas/schema.json`` describes it.
"""

import csv
import json
from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict
from datetime import date
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from shape_of_learning.checkpoints.lock import Commit
from shape_of_learning.checkpoints.published_revisions import NO_FAULTS, read_trainings
from shape_of_learning.checkpoints.verdict import Kind, Mistake, Verdict, parse_atlas_verdict
from shape_of_learning.errors import InputError
from shape_of_learning.files import atomic_write, write_table

VERSION = 2  # of the columns and their meaning
VERDICT = (
    r"^(ok|not yet moved|same as main|same as step \d+|same results as step \d+|mixed shards|mixed tensors|missing|"
    r"changed|broken|suspicious|apart|not of this training|unknown)$"
)
HASHES, TENSORS, LOSSES, PUBLISHED, REPORT = (
    "hashes",
    "tensors",
    "losses",
    "published results",
    "report",
)
KNOWN_BY = f"({'|'.join((HASHES, TENSORS, LOSSES, PUBLISHED, REPORT))})"


def _empty_is_none(value: object) -> object:
    return None if value == "" else value


Number = Annotated[Annotated[int, Field(ge=0)] | None, BeforeValidator(_empty_is_none)]


class AtlasRow(BaseModel):
    """One revision of a model.

    Attributes
    ----------
    repository, revision
        its place on the Hub; the repository is empty in an audit of folders
    step, tokens
        the step and the tokens of the training, as the name of the revision or the publisher states them; empty if
        neither does
    commit
        the commit of the revision when it was checked; empty if not recorded
    sha256
        the SHA-256 of its files of weights, shards in their order, as the Hub lists them; empty if not recorded
    verdict
        `ok`; `not yet moved`, equal to step 0 at the very start, which is right; `same as main` or `same as step N`;
        `mixed shards`, `mixed tensors`: parts are those of another step; `missing`: weights, or some of them;
        `broken`, `suspicious`: by its loss; `not of this training`; `same results as step N`, `apart`: by the results
        that somebody published; `unknown`
    reason
        the evidence for the verdict, in a sentence
    known_by
        `hashes`, `tensors`, `losses`, `published results` or `report`, several with commas between; empty if unknown
    source
        `audit`, `lock`, or the address of a report or of published results, with their commit; several with blanks
        between
    checked
        day on which the Hub was asked, or the report was written; empty if not recorded
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    repository: str = Field(pattern=r"^([\w.-]+/[\w.-]+)?$")
    revision: str = Field(min_length=1)
    step: Number = None
    tokens: Number = None
    commit: Commit | Literal[""] = ""
    sha256: str = Field("", pattern=r"^([0-9a-f]{64}( [0-9a-f]{64})*)?$")
    verdict: str = Field(Kind.UNKNOWN.value, pattern=VERDICT)
    reason: str = ""
    known_by: str = Field("", pattern=rf"^({KNOWN_BY}(, {KNOWN_BY})*)?$")
    source: str = ""
    checked: Annotated[date | None, BeforeValidator(_empty_is_none)] = None

    @property
    def reports(self) -> list[str]:
        """Addresses of the reports on it."""
        return [source for source in self.source.split() if source.startswith("http")]

    @property
    def is_fault(self) -> bool:
        """Whether it is not what its name says."""
        return self.verdict not in NO_FAULTS

    @property
    def is_by_results(self) -> bool:
        """Whether only published results speak for its verdict."""
        return self.known_by == PUBLISHED

    def parse_verdict(self) -> Verdict:
        """Parse the verdict from its words."""
        return parse_atlas_verdict(self.verdict)


COLUMNS = tuple(AtlasRow.model_fields)


def read_atlas(path: Path) -> list[AtlasRow]:
    """Read the table of a model; InputError with the line if the table is damaged."""
    rows = []
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise InputError(f"{path} lacks the columns {', '.join(COLUMNS)}; restore it")
        for row in reader:
            try:
                rows.append(AtlasRow.model_validate(row))
            except ValidationError as error:
                first = error.errors()[0]
                reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
                raise InputError(f"{path}, line {reader.line_num}: {reason}; correct it") from None
    return rows


def write_atlas(path: Path, rows: Iterable[AtlasRow]) -> None:
    """Write the table of a model, by step."""
    sorted_rows = sorted(
        rows, key=lambda row: (row.step is None, row.step or 0, row.repository, row.revision)
    )
    write_table(path, COLUMNS, [list(row.model_dump(mode="json").values()) for row in sorted_rows])


def update_atlas(
    folder: Path,
    suite: str,
    model: str,
    rows: Iterable[AtlasRow],
    merge: Callable[[Iterable[AtlasRow], Iterable[AtlasRow]], list[AtlasRow]],
) -> None:
    """Merge rows into the table of a model, then rewrite ``atlas.json``."""
    path = folder / suite / f"{model}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atlas(path, merge(read_atlas(path) if path.exists() else [], rows))
    with atomic_write(folder / "atlas.json") as partial:
        partial.write_text(join_tables(folder), encoding="utf-8")


def merge_rows(old: Iterable[AtlasRow], new: Iterable[AtlasRow]) -> list[AtlasRow]:
    """Replace old rows by new ones, unless the new verdict is unknown; tokens and addresses of reports stay."""
    rows = {(row.repository, row.revision): row for row in old}
    for row in new:
        old_row = rows.get((row.repository, row.revision))
        if old_row and row.parse_verdict().kind is Kind.UNKNOWN:
            continue
        if old_row and row.tokens is None:
            row = row.model_copy(update={"tokens": old_row.tokens})
        if old_row and old_row.reports:
            sources = dict.fromkeys([*row.source.split(), *old_row.reports])
            row = row.model_copy(update={"source": " ".join(sources)})
        rows[row.repository, row.revision] = row
    return list(rows.values())


def merge_published_rows(old: Iterable[AtlasRow], new: Iterable[AtlasRow]) -> list[AtlasRow]:
    """Add verdicts by published results to old rows that are unknown, or that have the same verdict.

    Different results show nothing about today's weights, so `ok` is not added. Other evidence is never replaced.
    """
    rows = {(row.repository, row.revision): row for row in old}
    for row in new:
        kind = row.parse_verdict().kind
        old_row = rows.get((row.repository, row.revision))
        if kind in (Kind.OK, Kind.UNKNOWN):
            continue
        if old_row is None or old_row.parse_verdict().kind is Kind.UNKNOWN:
            sources = dict.fromkeys([*row.source.split(), *(old_row.reports if old_row else ())])
            tokens = old_row.tokens if old_row and row.tokens is None else row.tokens
            update: dict[str, Any] = {"source": " ".join(sources), "tokens": tokens}
            if old_row:
                update |= {"commit": old_row.commit, "sha256": old_row.sha256}
            rows[row.repository, row.revision] = row.model_copy(update=update)
        elif _is_confirmed(old_row.parse_verdict(), row.parse_verdict()):
            kinds = dict.fromkeys([*filter(None, old_row.known_by.split(", ")), PUBLISHED])
            sources = dict.fromkeys([*old_row.source.split(), *row.source.split()])
            update = {"known_by": ", ".join(kinds), "source": " ".join(sources)}
            update["checked"] = old_row.checked or row.checked
            rows[row.repository, row.revision] = old_row.model_copy(update=update)
    return list(rows.values())


def _is_confirmed(weight_verdict: Verdict, result_verdict: Verdict) -> bool:
    """Return whether the verdict by published results agrees with the verdict by weights."""
    if result_verdict.kind is Kind.SAME_RESULTS:
        same = (Kind.SAME_AS_STEP, Kind.SAME_RESULTS)
        return weight_verdict.kind in same and weight_verdict.steps == result_verdict.steps
    if result_verdict.kind is Kind.APART:
        return weight_verdict.kind in (Kind.BROKEN, Kind.SUSPICIOUS, Kind.APART)
    return weight_verdict == result_verdict


def find_model(repository: str) -> str:
    """Find the model of the atlas whose table has a repository; empty if there is none."""
    for model, training in read_trainings().items():
        if training.revisions[0].repository == repository:
            return model
    return ""


def find_suite(model: str) -> str:
    """Find the folder that a model of the atlas is in; empty if it has no such model."""
    trainings = read_trainings()
    return trainings[model].suite if model in trainings else ""


@cache
def find_rows(model: str) -> tuple[AtlasRow, ...]:
    """Return the rows of a model, by the name of its table; no row if there is no such table."""
    trainings = read_trainings()
    revisions = trainings[model].revisions if model in trainings else ()
    return tuple(AtlasRow.model_validate(asdict(revision)) for revision in revisions)


@cache
def _index_atlas() -> dict[tuple[str, str], AtlasRow]:
    return {
        (row.repository, row.revision): row
        for model in read_trainings()
        for row in find_rows(model)
    }


def find_row(repository: str, revision: str) -> AtlasRow | None:
    """Find the row of a revision; None if there is none."""
    return _index_atlas().get((repository, revision))


def list_reported_mistakes(repositories: Collection[str], last_step: int | None) -> list[Mistake]:
    """List the faults of some repositories in the atlas, in the form of the reports in an entry.

    Missing weights are omitted, since the Hub's listing shows them.
    """
    steps: dict[tuple[str, str, str], list[int]] = {}
    for (repository, _), row in _index_atlas().items():
        is_missing = row.parse_verdict().kind is Kind.MISSING
        if repository in repositories and row.is_fault and not is_missing and row.step is not None:
            steps.setdefault((row.verdict, row.reason, row.source), []).append(row.step)
    mistakes = []
    for (words, reason, source), wrong_steps in steps.items():
        verdict = parse_atlas_verdict(words)
        owner = last_step if verdict.kind is Kind.SAME_AS_MAIN else None
        if verdict.kind in (Kind.SAME_AS_STEP, Kind.SAME_RESULTS):
            owner = verdict.steps[0]
        because = None
        if owner is None:
            because = f"{words}, {reason}" if reason else words
        mistakes.append(
            Mistake(steps=sorted(wrong_steps), same_as=owner, because=because, source=source)
        )
    return mistakes


class AtlasModel(BaseModel):
    """The rows of a model, and the suite that it belongs to."""

    suite: str
    revisions: list[AtlasRow]


class Atlas(BaseModel):
    """All tables of the atlas, as ``atlas.json`` has them; a key is left out where a cell is empty."""

    version: int = Field(ge=VERSION, le=VERSION)
    models: dict[str, AtlasModel]


def join_tables(folder: Path) -> str:
    """Return the text of ``atlas.json``, a line for each revision; raises as :func:`read_atlas`."""
    texts = []
    for path in sorted(folder.glob("*/*.csv")):
        rows = [row.model_dump(mode="json") for row in read_atlas(path)]
        lines = [
            json.dumps({key: value for key, value in row.items() if value not in ("", None)})
            for row in rows
        ]
        suite, revisions = json.dumps(path.parent.name), ",\n".join(lines)
        texts.append(f'"{path.stem}": {{"suite": {suite}, "revisions": [\n{revisions}]}}')
    models = ",\n".join(texts)
    return f'{{"version": {VERSION}, "models": {{\n{models}}}}}\n'


def schema() -> dict[str, Any]:
    """Describe ``atlas.json``, and with it the columns of a table, as JSON schema."""
    return {"version": VERSION, **Atlas.model_json_schema(mode="validation")}
