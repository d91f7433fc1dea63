"""``config/locks/{model}.yaml``: which commit and which files each revision stood for."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from shape_of_learning.checkpoints.model_entry import Shape
from shape_of_learning.checkpoints.weight_listing import WeightFile, WeightListing
from shape_of_learning.errors import InputError
from shape_of_learning.hub.given_names import is_commit, is_file_name, is_hash, is_inside
from shape_of_learning.storage.files import atomic_write
from shape_of_learning.storage.yaml_file import parsed_yaml

_Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

_REPOSITORY = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)?")
HEADER = """\
# Which commit and which weights each revision stood for when it was first resolved. Later runs use the same
# bytes, or say why they cannot. Commit this file; delete it, or an entry, to resolve anew.
"""


@dataclass(frozen=True)
class LockedRevision:
    """Where a revision is, what it is called, and what was listed there.

    Attributes
    ----------
    repository, revision, subfolder : str
        Its place on the Hub.
    listed : WeightListing
        The commit, and the weights.
    small_files : mapping of str to str
        What goes with the weights, configuration, index of shards and tokenizer: path in the repository ->
        hash. Empty in locks that were written before it was pinned.
    """

    repository: str
    revision: str
    subfolder: str = ""
    listed: WeightListing = field(default_factory=WeightListing)
    small_files: Mapping[str, str] = field(default_factory=dict)


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
        content = _mapping(parsed_yaml(path.read_text(encoding="utf-8")), "it")
        revisions = _mapping(content["revisions"], "revisions")
        if bad := [name for name in revisions if not is_file_name(name)]:
            raise ValueError(f"it calls a revision {bad[0]!r}")
        tokenizer = content.get("tokenizer")
        return Lock(
            chosen={rule: _names(each) for rule, each in _entries(content, "chosen").items()},
            revisions={name: _revision(each, name) for name, each in revisions.items()},
            mains={name: _listed(each, name) for name, each in _entries(content, "mains").items()},
            tokenizer=None if tokenizer is None else _revision(tokenizer, "tokenizer"),
            shape=_shape(_entries(content, "shape")),
        )
    except KeyError as error:
        raise _damaged(path, f"it lacks `{error.args[0]}`") from error
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as error:
        raise _damaged(path, " ".join(str(error).split())[:200]) from error


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


def _damaged(path: Path, reason: str) -> InputError:
    return InputError(
        f"{path} is no lock file ({reason}); restore it from version control, or delete it to resolve the "
        "revisions anew"
    )


def _mapping(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise TypeError(f"`{name}` maps no names" if name != "it" else "it maps no names")
    return value


def _entries(written: Mapping[str, Any], key: str) -> dict[str, Any]:
    return _mapping(written.get(key, {}), key)


def _names(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise TypeError("`chosen` lists no names")
    return value


def _text(written: Mapping[str, Any], key: str, default: str | None = None) -> str:
    value = written[key] if default is None else written.get(key, default)
    if not isinstance(value, str):
        raise TypeError(f"`{key}` is {value!r:.60}, which is no text")
    return value


def _shape(written: Mapping[str, Any]) -> Shape:
    shape = Shape(**written)
    for key, value in vars(shape).items():
        if type(value) is not type(getattr(Shape(), key)):
            raise TypeError(f"`shape.{key}` is {value!r:.60}")
    return shape


def _revision(written: Any, name: str) -> LockedRevision:
    each = _mapping(written, name)
    repository, revision = _text(each, "repository"), _text(each, "revision")
    subfolder = _text(each, "subfolder", "")
    if not _REPOSITORY.fullmatch(repository) or ".." in repository:
        raise ValueError(f"`{repository}` is no repository")
    if not is_inside(revision):
        raise ValueError(f"`{revision}` is no revision")
    if subfolder and not is_inside(subfolder):
        raise ValueError(f"`{subfolder}` is no folder of a repository")
    small_files = _entries(each, "small_files")
    for path, digest in small_files.items():
        if not is_inside(path):
            raise ValueError(f"`{path}` is no file of a repository")
        _require_hash(digest, path)
    return LockedRevision(repository, revision, subfolder, _listed(each, name), small_files)


def _listed(written: Any, name: str) -> WeightListing:
    each = _mapping(written, name)
    commit, problem = _text(each, "commit", ""), _text(each, "problem", "")
    files, other_format = _files(each, "files"), _files(each, "other_format")
    if commit and not is_commit(commit):
        raise ValueError(f"`{commit}` is no commit, 40 hexadecimal digits")
    if not commit and (files or not problem):
        raise KeyError("commit")
    return WeightListing(commit, files, other_format, problem)


def _files(written: Mapping[str, Any], key: str) -> dict[str, WeightFile]:
    files = {}
    for name, entry in _entries(written, key).items():
        file = _mapping(entry, name)
        size, digest = file["bytes"], file["hash"]
        if not is_file_name(name):
            raise ValueError(f"`{name}` is no file of one folder")
        if type(size) is not int or size < 0:
            raise ValueError(f"`{name}` has {size!r:.60} bytes")
        _require_hash(digest, name)
        files[name] = WeightFile(size, digest)
    return files


def _require_hash(digest: Any, name: str) -> None:
    if not is_hash(digest):
        raise ValueError(
            f"`{name}` has the hash {digest!r:.80}, not `sha256:` and 64 or `git:` and 40 digits"
        )


def _written(locked: LockedRevision) -> dict[str, Any]:
    where: dict[str, Any] = {"repository": locked.repository, "revision": locked.revision}
    if locked.subfolder:
        where["subfolder"] = locked.subfolder
    listed = where | _written_listed(locked.listed)
    return listed | ({"small_files": dict(locked.small_files)} if locked.small_files else {})


def _written_listed(listed: WeightListing) -> dict[str, Any]:
    content: dict[str, Any] = {"commit": listed.commit} if listed.commit else {}
    if listed.problem:
        content["problem"] = listed.problem
    for key in ("files", "other_format"):
        if files := getattr(listed, key):
            content[key] = {name: vars(file).copy() for name, file in files.items()}
    return content
