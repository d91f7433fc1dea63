"""``config/locks/{model}.yaml``: the commit and the files of each revision, as the Hub lists them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Annotated, Any, Final, Literal, NamedTuple

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from shape_of_learning.checkpoints.shapes import (
    CONFIGURATION,
    WEIGHT_FILES,
    Shape,
    is_file_name,
    is_inside,
    join_path,
)
from shape_of_learning.errors import InputError
from shape_of_learning.files import atomic_write, read_yaml
from shape_of_learning.validation import cut

MISSING: Final = "missing"
NO_WEIGHTS: Final = "no weights"
MIXED_SHARDS: Final = "mixed shards"
MAIN = "main"
MOST_STEPS = 2**63 - 1  # in a column of whole numbers
# Names of files of weights, whole or shards, in the order of WEIGHT_FILES.
WEIGHT_FILE_PATTERNS = tuple(
    rf"{stem}(-\d+-of-(?P<total>\d+))?\.{suffix}"
    for stem, suffix in (whole.split(".") for whole, _ in WEIGHT_FILES)
)
HEADER = """\
# Which commit and which weights each revision stood for when it was first resolved. Later runs use the same
# bytes, or say why they cannot. Commit this file; delete it, or an entry, to resolve anew.
"""


def _make_validator(is_good: Any, noun: str) -> AfterValidator:
    def check(value: str) -> str:
        if not is_good(value):
            raise ValueError(f"{value!r:.80} is no {noun}")
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
    """The place of a revision on the Hub."""

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
        Branch, tag or commit on the Hub; the name of a local folder.
    repository : str
        ``organisation/name`` on the Hub; empty for a local folder.
    subfolder : str
        Folder inside the repository; empty for its top.
    step, tokens : int or None
        Optimiser steps and tokens of training; None where the model has no training curve.
    path : str
        The folder of local weights; else empty.
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

    @property
    def digest(self) -> str:
        """Its hash in hexadecimal digits."""
        return self.hash.partition(":")[2]

    @property
    def sha256(self) -> str:
        """Its SHA-256; empty outside LFS."""
        return self.digest if self.hash.startswith("sha256:") else ""


# By path.
Files = Mapping[str, WeightFile]


class Listing(_Locked):
    """The weight files of one revision, as the Hub lists them.

    Attributes
    ----------
    commit : str
        The commit of the revision; empty if it is missing.
    problem : {"", "missing", "no weights", "mixed shards"}
        The reason why these files cannot be used; empty if they can.
    lacking : str
        The part that is missing, such as ``shard 2 of 3``; empty if no file or all files are missing.
    files : mapping of str to WeightFile
        The weights to download, without the index of shards.
    other_format : mapping of str to WeightFile
        The same weights in the other format, if the revision has both.
    """

    commit: Commit | Empty = ""
    problem: Literal["", "missing", "no weights", "mixed shards"] = ""
    lacking: str = ""
    files: Mapping[FileName, WeightFile] = {}
    other_format: Mapping[FileName, WeightFile] = {}

    @model_validator(mode="after")
    def _check_commit(self) -> "Listing":
        if not self.commit and (self.files or not self.problem):
            raise ValueError("it lacks `commit`")
        return self


class LockedRevision(Listing):
    """A revision: its place on the Hub, and its files.

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
        """Its place on the Hub."""
        return Place(self.repository, self.revision, self.subfolder)

    def path(self, name: str) -> str:
        """Return the path of one of its files in the repository."""
        return join_path(self.subfolder, name)

    def settings_paths(self) -> list[str]:
        """List the paths of its configuration and, if its weights are in shards, of their index."""
        names, suffixes = [CONFIGURATION], {PurePath(name).suffix for name in self.files}
        for whole, index in WEIGHT_FILES:
            if whole not in self.files and suffixes == {PurePath(whole).suffix}:
                names.append(index)
        return [self.path(name) for name in names]

    def listing(self) -> Listing:
        """Return the listing without the place."""
        return Listing(**{key: getattr(self, key) for key in Listing.model_fields})


class Lock(_Locked):
    """The answers of the Hub about one model.

    Attributes
    ----------
    shape : Shape
        As ``config.json`` states it.
    chosen : mapping of str to list of str
        The names of the steps that a rule chose, by the rule in words.
    revisions : mapping of str to LockedRevision
        By name within the model, including revisions of earlier plans, which a new choice of steps may need.
    mains : mapping of str to Listing
        The main branches that the Hub was asked for, by repository, with or without weights.
    tokenizer : LockedRevision or None
        The repository of the tokenizer, if it is another one.
    """

    shape: Shape = Shape()
    chosen: Mapping[str, list[str]] = {}
    revisions: Mapping[FileName, LockedRevision]
    mains: Mapping[Repository, Listing] = {}
    tokenizer: LockedRevision | None = None


EMPTY = Lock(revisions={})


def is_weight_file(path: str) -> bool:
    """Return whether a path ends like a file of weights, whole or a shard."""
    return any(re.fullmatch(pattern, PurePath(path).name) for pattern in WEIGHT_FILE_PATTERNS)


def list_weights(
    files: Files,
    commit: str,
    subfolder: str,
    read_index: Callable[[str], tuple[list[str], float]] | None = None,
) -> Listing:
    """Find the weights among the files of a commit: the format that transformers loads, and the other one.

    Parameters
    ----------
    files : mapping of str to WeightFile
        By path in the repository.
    commit, subfolder : str
    read_index : callable, optional
        Returns the names of the shards in an index, and the bytes of all their tensors. Without it nothing is
        downloaded, and the numbers in the names of shards tell whether all are there.
    """
    formats = []
    for (whole, index), pattern in zip(WEIGHT_FILES, WEIGHT_FILE_PATTERNS, strict=True):
        whole, index = join_path(subfolder, whole), join_path(subfolder, index)
        if whole in files:
            weights = {PurePath(whole).name: files[whole]}
            formats.append(Listing(commit=commit, files=weights))
        elif read_index is None:
            formats += _list_numbered_shards(files, commit, subfolder, pattern)
        elif index in files:
            names, size = read_index(index)
            paths = {name: join_path(subfolder, name) for name in names}
            weights = {name: files[path] for name, path in paths.items() if path in files}
            # Files hold the bytes of all tensors and a little more.
            stored_bytes = sum(file.bytes for file in weights.values())
            is_whole = len(weights) == len(names) and stored_bytes >= size
            problem = "" if is_whole else MIXED_SHARDS
            formats.append(Listing(commit=commit, problem=problem, files=weights))
    if not formats:
        return Listing(commit=commit, problem=NO_WEIGHTS)
    first, *other_formats = formats
    return first.model_copy(
        update={"other_format": other_formats[0].files if other_formats else {}}
    )


def _list_numbered_shards(files: Files, commit: str, subfolder: str, pattern: str) -> list[Listing]:
    """List the first whole set of shards, or else the first set; no listing if there is no shard."""
    sets: dict[str, dict[str, WeightFile]] = {}
    for path, file in files.items():
        name = PurePath(path).name
        match = re.fullmatch(pattern, name)
        if match and join_path(subfolder, name) == path:
            sets.setdefault(match["total"], {})[name] = file
    for total, shards in sets.items():
        if len(shards) == int(total):
            return [Listing(commit=commit, files=shards)]
    for total, shards in sets.items():
        numbers = {int(name.split("-")[-3]) for name in shards}
        missing = [str(number) for number in range(1, int(total) + 1) if number not in numbers]
        lacking = f"shard {', '.join(missing)} of {int(total)}"
        return [Listing(commit=commit, problem=MISSING, lacking=lacking)]
    return []


def read_lock(path: Path) -> Lock | None:
    """Read a lock; None if the file is missing, InputError if :func:`write_lock` cannot have written it."""
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
    """Write a lock without its empty parts; equal locks give equal bytes."""
    content = lock.model_dump(exclude_defaults=True)
    with atomic_write(path) as partial:
        text = yaml.safe_dump(content, sort_keys=False, width=120)
        partial.write_text(HEADER + text, encoding="utf-8")
