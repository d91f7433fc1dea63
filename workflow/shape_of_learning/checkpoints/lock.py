"""``config/locks/{model}.yaml``: which commit and which files each revision stood for."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Annotated, Any, NamedTuple

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from shape_of_learning.checkpoints.shapes import (
    CONFIGURATION,
    WEIGHTS,
    Shape,
    is_file_name,
    is_inside,
    join_path,
)
from shape_of_learning.errors import InputError
from shape_of_learning.files import atomic_write, read_yaml
from shape_of_learning.validation import cut

MISSING = "missing"
NO_WEIGHTS = "no weights"
MIXED_SHARDS = "mixed shards"
MAIN = "main"
MOST_STEPS = 2**63 - 1  # in a column of whole numbers
HEADER = """\
# Which commit and which weights each revision stood for when it was first resolved. Later runs use the same
# bytes, or say why they cannot. Commit this file; delete it, or an entry, to resolve anew.
"""


def _make_validator(is_good: Any, what: str) -> AfterValidator:
    def check(value: str) -> str:
        if not is_good(value):
            raise ValueError(f"{value!r:.80} is no {what}")
        return value

    return AfterValidator(check)


Empty = Annotated[str, Field(max_length=0)]
Commit = Annotated[str, Field(pattern="^[0-9a-f]{40}$")]
# `git:` is the SHA-1 by which git names a content, for small files outside LFS.
Hash = Annotated[str, Field(pattern="^(sha256:[0-9a-f]{64}|git:[0-9a-f]{40})$")]
Repository = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)?$")
]
FileName = Annotated[str, _make_validator(is_file_name, "file of one folder")]
Inside = Annotated[str, _make_validator(is_inside, "path inside a repository")]


class _Locked(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Place(NamedTuple):
    """Where a revision is on the Hub."""

    repository: str
    revision: str
    subfolder: str = ""


@dataclass(frozen=True)
class Checkpoint:
    """One set of weights.

    Attributes
    ----------
    name : str
        Its name within the model: the `revision` column of tables and a folder under ``results``.
    revision : str
        Branch, tag or commit on the Hub; the folder's name for weights that are not from the Hub.
    repository : str
        ``organisation/name`` on the Hub; empty for weights that are not from there.
    subfolder : str
        Folder inside the repository; empty for its top.
    step, tokens : int or None
        Optimiser steps and tokens of training; None where the model has no training curve.
    path : str
        The folder of weights that lie on the disk already; else empty.
    """

    name: str
    revision: str
    repository: str = ""
    subfolder: str = ""
    step: int | None = None
    tokens: int | None = None
    path: str = ""

    def __post_init__(self) -> None:
        for key, value in (("step", self.step), ("number of tokens", self.tokens)):
            if (value or 0) > MOST_STEPS:
                raise InputError(
                    f"checkpoint `{cut(self.path or self.revision)}`: its {key} {cut(value)} is more than tables can "
                    f"hold, {MOST_STEPS}; rename it, or correct the entry"
                )


class WeightFile(_Locked):
    """Size in bytes and hash of a file, ``sha256:...`` or, outside LFS, ``git:...``."""

    bytes: Annotated[int, Field(ge=0, strict=True)]
    hash: Hash


class Listing(_Locked):
    """The weight files of one revision, as the Hub lists them.

    Attributes
    ----------
    commit : str
        What the revision resolves to; empty if it is missing.
    problem : str
        Why these files cannot be used, in the words of a verdict; empty if they can.
    files : mapping of str to WeightFile
        The weights that are downloaded, without the index of shards.
    other_format : mapping of str to WeightFile
        The same weights in the format that is not, where the revision has both.
    """

    commit: Commit | Empty = ""
    problem: str = ""
    files: Mapping[FileName, WeightFile] = {}
    other_format: Mapping[FileName, WeightFile] = {}

    @model_validator(mode="after")
    def _is_of_a_commit(self) -> "Listing":
        if not self.commit and (self.files or not self.problem):
            raise ValueError("it lacks `commit`")
        return self


class LockedRevision(Listing):
    """A revision: where it is on the Hub, and what is listed there.

    Attributes
    ----------
    repository, revision, subfolder : str
        Its place.
    small_files : mapping of str to str
        Configuration, index of shards and tokenizer: path in the repository -> hash.
    """

    repository: Repository
    revision: Inside
    subfolder: Inside | Empty = ""
    small_files: Mapping[Inside, Hash] = {}

    @property
    def place(self) -> Place:
        """Where it is."""
        return Place(self.repository, self.revision, self.subfolder)

    def path(self, name: str) -> str:
        """Path of a file of it in its repository."""
        return join_path(self.subfolder, name)

    def settings_paths(self) -> list[str]:
        """Paths of its configuration and, if its weights are in shards, of their index."""
        names, suffixes = [CONFIGURATION], {PurePath(name).suffix for name in self.files}
        for whole, index in WEIGHTS:
            if whole not in self.files and suffixes == {PurePath(whole).suffix}:
                names.append(index)
        return [self.path(name) for name in names]

    def listing(self) -> Listing:
        """What is listed, without the place."""
        return Listing(**{key: getattr(self, key) for key in Listing.model_fields})


class Lock(_Locked):
    """What the Hub said of one model.

    Attributes
    ----------
    shape : Shape
        What ``config.json`` says.
    chosen : mapping of str to list of str
        Steps by rule: the rule in words -> the names that it chose.
    revisions : mapping of str to LockedRevision
        By name within the model; also those of earlier plans, lest another choice of steps forgets them.
    mains : mapping of str to Listing
        The main branch of each repository that was asked for it, whether it has weights or not.
    tokenizer : LockedRevision or None
        The repository of the tokenizer, where it is another one.
    """

    shape: Shape = Shape()
    chosen: Mapping[str, list[str]] = {}
    revisions: Mapping[FileName, LockedRevision]
    mains: Mapping[Repository, Listing] = {}
    tokenizer: LockedRevision | None = None


EMPTY = Lock(revisions={})


def read_lock(path: Path) -> Lock | None:
    """Read a lock, None if there is none; InputError if it is not what :func:`write_lock` writes."""
    if not path.exists():
        return None
    try:
        return Lock.model_validate(read_yaml(path))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        reason = f"{place}: {first['msg']}, not {first['input']!r:.80}"
        raise InputError(
            f"{path} is no lock file ({reason}); restore it from version control, or delete it to resolve "
            "the revisions anew"
        ) from error


def write_lock(path: Path, lock: Lock) -> None:
    """Write a lock without what is empty; equal locks give equal bytes."""
    content = lock.model_dump(exclude_defaults=True)
    with atomic_write(path) as partial:
        text = yaml.safe_dump(content, sort_keys=False, width=120)
        partial.write_text(HEADER + text, encoding="utf-8")
