"""The atlas: what is known of the revisions of published trainings, one table per model.

``atlas/{suite}/{model}.csv`` has the columns of :class:`AtlasRow`; ``atlas/schema.json`` describes them.
"""

import csv
from collections.abc import Collection, Iterable
from datetime import date
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from shape_of_learning.checkpoints.lock import MAIN, MISSING, Commit
from shape_of_learning.checkpoints.verdicts import Mistake
from shape_of_learning.errors import InputError
from shape_of_learning.files import write_table
from shape_of_learning.validation import suggest_name

VERSION = 1  # of the columns and their meaning
ATLAS = Path(__file__).parents[1] / "atlas"
OK, NOT_YET_MOVED, UNKNOWN = "ok", "not yet moved", "unknown"
SAME_AS, SAME_AS_MAIN = "same as step ", f"same as {MAIN}"
VERDICT = (
    rf"^(ok|not yet moved|{SAME_AS_MAIN}|{SAME_AS}\d+|mixed shards|mixed tensors|missing|broken|suspicious|"
    r"not of this training|unknown)$"
)


def _empty_is_none(value: object) -> object:
    return None if value == "" else value


Number = Annotated[Annotated[int, Field(ge=0)] | None, BeforeValidator(_empty_is_none)]


class AtlasRow(BaseModel):
    """One revision of a model.

    Attributes
    ----------
    repository, revision
        where it is on the Hub; of an audit of folders no repository
    step, tokens
        of training, as its name or the publisher says; empty if neither does
    commit
        what the revision stood for when it was checked; empty if nobody has written it down
    sha256
        of its files of weights, shards in their order, as the Hub lists them; empty if not recorded
    verdict
        `ok`; `not yet moved`, equal to step 0 at the very start, which is right; `same as main` or `same as step N`;
        `mixed shards`, `mixed tensors`: parts are those of another step; `missing`: weights, or some of them;
        `broken`, `suspicious`: by its loss; `not of this training`; `unknown`
    reason
        what that rests on, in a sentence
    source
        `audit`, `lock`, or the address of a report; several with blanks between
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
    verdict: str = Field(UNKNOWN, pattern=VERDICT)
    reason: str = ""
    source: str = ""
    checked: Annotated[date | None, BeforeValidator(_empty_is_none)] = None

    @property
    def reports(self) -> list[str]:
        """Addresses of what was reported of it."""
        return [each for each in self.source.split() if each.startswith("http")]

    @property
    def is_fault(self) -> bool:
        """Whether it is not what its name says."""
        return self.verdict not in (OK, NOT_YET_MOVED, UNKNOWN)


COLUMNS = tuple(AtlasRow.model_fields)


def read_atlas(path: Path) -> list[AtlasRow]:
    """Read the table of a model; InputError, with the line, if it is none."""
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        rows = csv.DictReader(file)
        if tuple(rows.fieldnames or ()) != COLUMNS:
            raise InputError(f"{path} lacks the columns {', '.join(COLUMNS)}; restore it")
        found = []
        for row in rows:
            try:
                found.append(AtlasRow.model_validate(row))
            except ValidationError as error:
                first = error.errors()[0]
                what = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
                raise InputError(f"{path}, line {rows.line_num}: {what}; correct it") from None
    return found


def write_atlas(path: Path, rows: Iterable[AtlasRow]) -> None:
    """Write the table of a model, by repository, stage and step."""
    in_order = sorted(
        rows, key=lambda row: (row.step is None, row.step or 0, row.repository, row.revision)
    )
    write_table(path, COLUMNS, [list(row.model_dump(mode="json").values()) for row in in_order])


def merge_rows(old: Iterable[AtlasRow], new: Iterable[AtlasRow]) -> list[AtlasRow]:
    """Put what was found in the place of what was known; what somebody reported stays beside it."""
    rows = {(row.repository, row.revision): row for row in old}
    for row in new:
        known = rows.get((row.repository, row.revision))
        if known and row.verdict == UNKNOWN:
            continue
        if known and row.tokens is None:
            row = row.model_copy(update={"tokens": known.tokens})
        if known and known.reports:
            sources = dict.fromkeys([*row.source.split(), *known.reports])
            row = row.model_copy(update={"source": " ".join(sources)})
        rows[row.repository, row.revision] = row
    return list(rows.values())


def find_model(repository: str) -> str:
    """The model of the atlas whose table has a repository; empty if there is none."""
    paths = (path for path in ATLAS.glob("*/*.csv"))
    return next((p.stem for p in paths if find_rows(p.stem)[0].repository == repository), "")


def find_suite(model: str) -> str:
    """The folder that a model of the atlas is in; empty if it has no such model."""
    return next((path.parent.name for path in ATLAS.glob(f"*/{model}.csv")), "")


@cache
def find_rows(model: str) -> tuple[AtlasRow, ...]:
    """What the atlas has of a model, by the name of its file; nothing if there is none."""
    suite = find_suite(model)
    return tuple(read_atlas(ATLAS / suite / f"{model}.csv")) if suite else ()


@cache
def _index_atlas() -> dict[tuple[str, str], AtlasRow]:
    return {
        (row.repository, row.revision): row
        for path in sorted(ATLAS.glob("*/*.csv"))
        for row in find_rows(path.stem)
    }


def find_row(repository: str, revision: str) -> AtlasRow | None:
    """What the atlas has of a revision; None if it has nothing."""
    return _index_atlas().get((repository, revision))


def list_reported_mistakes(repositories: Collection[str], last_step: int | None) -> list[Mistake]:
    """What the atlas says is wrong with the steps of some repositories, as an entry would say it.

    What the Hub's listing tells by itself, such as missing weights, is left to that.
    """
    steps: dict[tuple[str, str, str], list[int]] = {}
    for (repository, _), row in _index_atlas().items():
        is_listed = row.verdict == MISSING
        if repository in repositories and row.is_fault and not is_listed and row.step is not None:
            steps.setdefault((row.verdict, row.reason, row.source), []).append(row.step)
    found = []
    for (verdict, reason, source), of in steps.items():
        owner = last_step if verdict == SAME_AS_MAIN else None
        if verdict.startswith(SAME_AS):
            owner = int(verdict.removeprefix(SAME_AS))
        because = None if owner is not None else f"{verdict}, {reason}" if reason else verdict
        found.append(Mistake(steps=sorted(of), same_as=owner, because=because, source=source))
    return found


def find(model: str, step: int) -> AtlasRow:
    """Find a step of a published training.

    Parameters
    ----------
    model : str
        As the atlas calls it, such as ``pythia-2.8b``.
    step : int

    Raises
    ------
    InputError
        If the atlas has no such model, or no such step of it; it names the nearest ones.

    Examples
    --------
    >>> find("pythia-2.8b", step=66000).verdict
    'ok'
    """
    models = [path.stem for path in sorted(ATLAS.glob("*/*.csv"))]
    names = {find_rows(each)[0].repository.rpartition("/")[2]: each for each in models}
    model = names.get(model, model)  # also as its repository calls it
    if model not in models:
        raise InputError(f"the atlas has no model `{model}`; {suggest_name(model, models)}")
    steps = {row.step: row for row in find_rows(model) if row.step is not None}
    if step not in steps:
        near = sorted(steps, key=lambda each: abs(each - step))[:4]
        some = ", ".join(f"{each:,}" for each in sorted(near)) or "none"
        raise InputError(f"the atlas has no step {step:,} of `{model}`; near it are {some}")
    return steps[step]


def schema() -> dict[str, Any]:
    """Describe the columns as JSON schema."""
    return {"version": VERSION, **AtlasRow.model_json_schema(mode="validation")}
