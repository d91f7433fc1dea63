"""``config/locks/{model}.yaml``: which commit and which weights each revision stood for."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from shape_of_learning.checkpoints.model_entry import Shape
from shape_of_learning.checkpoints.weight_listing import WeightFile, WeightListing
from shape_of_learning.errors import InputError
from shape_of_learning.storage.files import atomic_write

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

COMMIT = re.compile("[0-9a-f]{40}")
HEADER = """\
# Which commit and which weights each revision stood for when it was first resolved. Later runs use the same
# bytes, or say why they cannot. Commit this file; delete it, or an entry, to resolve anew.
"""


@dataclass(frozen=True)
class LockedRevision:
    """Where a revision is, what it is called, and what was listed there."""

    repository: str
    revision: str
    subfolder: str = ""
    listed: WeightListing = field(default_factory=WeightListing)


@dataclass(frozen=True)
class Lock:
    """What the Hub said of one model.

    Attributes
    ----------
    chosen : mapping of str to sequence of str
        Steps by rule: the rule in words -> the names that it chose.
    revisions : mapping of str to LockedRevision
        By name within the model; also those of earlier plans, lest another choice of steps forgets them.
    mains : mapping of str to WeightListing
        The main branch of repositories whose other branches are in the curve, for comparison.
    tokenizer : LockedRevision or None
        The repository of the tokenizer, where it is another one.
    shape : Shape
        What ``config.json`` says; empty in locks that were written before it was read.
    """

    chosen: Mapping[str, Sequence[str]] = field(default_factory=dict)
    revisions: Mapping[str, LockedRevision] = field(default_factory=dict)
    mains: Mapping[str, WeightListing] = field(default_factory=dict)
    tokenizer: LockedRevision | None = None
    shape: Shape = field(default_factory=Shape)


def read_lock(path: Path) -> Lock | None:
    """Read a lock; None if there is none.

    Raises
    ------
    InputError
        If the file is not what :func:`write_lock` writes.
    """
    if not path.exists():
        return None
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), _Loader)
        tokenizer = content.get("tokenizer")
        return Lock(
            chosen=content.get("chosen", {}),
            revisions={name: _revision(written) for name, written in content["revisions"].items()},
            mains={name: _listed(written) for name, written in content.get("mains", {}).items()},
            tokenizer=None if tokenizer is None else _revision(tokenizer),
            shape=Shape(**content.get("shape", {})),
        )
    except (yaml.YAMLError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{path} is no lock file ({' '.join(str(error).split())[:200]}); restore it from version "
            "control, or delete it to resolve the revisions anew"
        ) from error


def write_lock(path: Path, lock: Lock) -> None:
    """Write a lock; equal locks give equal bytes."""
    content: dict[str, Any] = {}
    if shape := {key: value for key, value in asdict(lock.shape).items() if value}:
        content["shape"] = shape
    if lock.chosen:
        content["chosen"] = {rule: list(names) for rule, names in lock.chosen.items()}
    content["revisions"] = {name: _written(each) for name, each in lock.revisions.items()}
    if lock.mains:
        content["mains"] = {name: _written_listed(each) for name, each in lock.mains.items()}
    if lock.tokenizer is not None:
        content["tokenizer"] = _written(lock.tokenizer)
    with atomic_write(path) as partial:
        text = yaml.dump(content, Dumper=_Dumper, sort_keys=False, width=120)
        partial.write_text(HEADER + text, encoding="utf-8")


def _revision(written: Mapping[str, Any]) -> LockedRevision:
    return LockedRevision(
        written["repository"],
        written["revision"],
        written.get("subfolder", ""),
        _listed(written),
    )


def _listed(written: Mapping[str, Any]) -> WeightListing:
    commit = written.get("commit", "")
    if commit and not COMMIT.fullmatch(commit):
        raise ValueError(f"`{commit}` is no commit")
    return WeightListing(
        commit,
        _files(written.get("files", {})),
        _files(written.get("other_format", {})),
        written.get("problem", ""),
    )


def _files(written: Mapping[str, Any]) -> dict[str, WeightFile]:
    return {name: WeightFile(int(file["bytes"]), file["hash"]) for name, file in written.items()}


def _written(locked: LockedRevision) -> dict[str, Any]:
    where: dict[str, Any] = {"repository": locked.repository, "revision": locked.revision}
    if locked.subfolder:
        where["subfolder"] = locked.subfolder
    return where | _written_listed(locked.listed)


def _written_listed(listed: WeightListing) -> dict[str, Any]:
    content: dict[str, Any] = {"commit": listed.commit} if listed.commit else {}
    if listed.problem:
        content["problem"] = listed.problem
    for key in ("files", "other_format"):
        if files := getattr(listed, key):
            content[key] = {name: vars(file).copy() for name, file in files.items()}
    return content
