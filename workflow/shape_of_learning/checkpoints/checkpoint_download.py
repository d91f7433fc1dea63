"""Checkpoints from the Hugging Face Hub: the commit that a lock pins, only the files that are needed."""

import logging
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from huggingface_hub import constants

from shape_of_learning.checkpoints.checkpoint_files import CONFIGURATION, index_of, tokenizer_paths
from shape_of_learning.checkpoints.checkpoint_record import (
    changed_file,
    read_record,
    write_record,
)
from shape_of_learning.checkpoints.lock import Lock, LockedRevision, read_lock
from shape_of_learning.checkpoints.model_entry import (
    Shape,
    read_configuration_file,
    refuse_contradiction,
    shape_of,
)
from shape_of_learning.errors import InputError
from shape_of_learning.hub.hub_cache import cached_revision
from shape_of_learning.hub.hub_errors import RevisionMissingError, lacking
from shape_of_learning.hub.hub_file import bytes_to_write, take_file
from shape_of_learning.hub.listing import inside, list_files
from shape_of_learning.hub.remote_revision import RemoteFile, RemoteRevision
from shape_of_learning.storage.digests import sha256_of
from shape_of_learning.storage.file_lock import made_by_one_process
from shape_of_learning.storage.files import atomic_write, require_space

logger = logging.getLogger(__name__)

Files = list[tuple[RemoteRevision, RemoteFile]]
Pinned = list[tuple[LockedRevision, str]]  # paths in the repository


@dataclass(frozen=True)
class PinnedCheckpoint:
    """A checkpoint as a lock describes it.

    Attributes
    ----------
    model : str
        Name of the model's entry.
    lock : Path
        The file that pins it, for errors.
    weights : LockedRevision
        Where configuration and weights are, and what was listed there.
    tokenizer : LockedRevision
        Where the tokenizer is: the same, or another repository.
    """

    model: str
    lock: Path
    weights: LockedRevision
    tokenizer: LockedRevision

    @classmethod
    def read(cls, model: str, name: str, lock: Path) -> "PinnedCheckpoint":
        """Find the revision `name` in a lock.

        Raises
        ------
        InputError
            If there is no such lock, it does not have the revision, or pins no weights for it.
        """
        known = read_lock(lock) or Lock()
        weights = known.revisions.get(name)
        if weights is None or not weights.listed.files:
            said = "does not have it" if weights is None else f"calls it {weights.listed.problem!r}"
            raise InputError(
                f"model `{model}`: `{name}` cannot be fetched, since {lock} {said}; run `snakemake "
                "resolve`, or correct the model's entry"
            )
        return cls(model, lock, weights, known.tokenizer or weights)

    @property
    def where(self) -> str:
        """How errors and the log name the model's entry."""
        return f"model `{self.model}`"

    def provenance(self) -> dict[str, Any]:
        """What ``checkpoint.json`` says beside the files."""
        return {
            "source": "hub",
            "model": self.model,
            **_place(self.weights),
            "subfolder": self.weights.subfolder,
            "tokenizer": _place(self.tokenizer),
        }


def fetch(pinned: PinnedCheckpoint, destination: Path, entry: Shape) -> None:
    """Download a checkpoint: configuration, weights and tokenizer, side by side in one folder.

    Parameters
    ----------
    pinned : PinnedCheckpoint
        What to fetch. All bytes must be those that the lock lists; of what an old lock does not list, those
        that the Hub lists for the commit.
    destination : Path
        Folder that appears, whole, at the end, with a ``checkpoint.json`` beside the files. Until then
        complete files are kept in ``.{name}.download`` for a run after this one. Where another process
        fetches the same, this one waits for it and takes what it has made.
    entry : Shape
        What the model's entry says, which ``config.json`` is compared with before any weights are downloaded.

    Raises
    ------
    InputError
        With one sentence for all that can be wrong with the entry, the Hub or the network.
    """
    with made_by_one_process(destination):
        if _is_pinned_checkpoint(destination, pinned):
            _check(destination, pinned, entry)
            logger.info("%s: another run has fetched %s", pinned.where, destination)
            return
        kept = destination.with_name(f".{destination.name}.download")
        with atomic_write(destination) as folder:
            folder.mkdir()
            _fill(folder, kept, pinned, entry)
        # Without locks another process may be at it, too; then the last one leaves nothing.
        shutil.rmtree(kept, ignore_errors=True)


def _is_pinned_checkpoint(folder: Path, pinned: PinnedCheckpoint) -> bool:
    """Whether a folder holds the very bytes that are pinned, and no others."""
    record = read_record(folder)
    if record is None or {k: v for k, v in record.items() if k != "files"} != pinned.provenance():
        return False
    other = changed_file(folder, record) or _unpinned_file(folder, record["files"], pinned)
    if other:
        logger.warning(
            "%s: %s in %s is not what %s pins; all of it is fetched anew",
            *(pinned.where, other, folder, pinned.lock),
        )
    return not other


def _unpinned_file(folder: Path, recorded: Mapping[str, Any], pinned: PinnedCheckpoint) -> str:
    """Name a file that is not what the lock says, or that one of the two lacks; empty if there is none."""
    pins = {
        name: RemoteFile(name, file.bytes, file.hash)
        for name, file in pinned.weights.listed.files.items()
    }
    beside, tokenizer = _beside(pinned), _pinned_tokenizer(pinned)
    for locked, path in [*beside, *tokenizer]:
        if digest := locked.small_files.get(path):
            name = Path(path).name
            pins[name] = RemoteFile(name, recorded.get(name, {}).get("bytes", 0), digest)
    whole = tokenizer and all(path in locked.small_files for locked, path in beside)
    for name in sorted(pins.keys() | recorded.keys() if whole else pins):
        if name not in pins or name not in recorded or not pins[name].is_at(folder / name):
            return name
    return ""


def _check(folder: Path, pinned: PinnedCheckpoint, entry: Shape) -> None:
    refuse_contradiction(
        entry, shape_of(read_configuration_file(folder), pinned.where), pinned.where
    )


def _fill(folder: Path, kept: Path, pinned: PinnedCheckpoint, entry: Shape) -> None:
    source = _listed(pinned.weights, pinned)
    words = source if pinned.tokenizer is pinned.weights else _listed(pinned.tokenizer, pinned)
    take = partial(_take, folder=folder, kept=kept, where=pinned.where)
    configuration, *index = [(source, _file(source, *each, pinned)) for each in _beside(pinned)]
    take([configuration])
    _check(folder, pinned, entry)
    weights = [inside(pinned.weights.subfolder, name) for name in pinned.weights.listed.files]
    others = [
        *_tokenizer(words, pinned),
        *index,
        *((source, _file(source, pinned.weights, path, pinned)) for path in sorted(weights)),
    ]
    take(others)
    files = {}
    for _, listed in [configuration, *others]:
        path = folder / Path(listed.path).name
        kind, _, digest = listed.hash.partition(":")
        files[path.name] = {
            "bytes": listed.bytes,
            "sha256": digest if kind == "sha256" else sha256_of(path),
        }
    write_record(folder, files, **pinned.provenance())


def _take(files: Files, *, folder: Path, kept: Path, where: str) -> None:
    places = [kept / source.commit / listed.path for source, listed in files]
    needed = sum(
        bytes_to_write(*file, kept=place, folder=folder)
        for file, place in zip(files, places, strict=True)
    )
    try:
        require_space(folder.parent, needed)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    for (source, listed), place in zip(files, places, strict=True):
        take_file(source, listed, folder / Path(listed.path).name, kept=place, where=where)


def _place(locked: LockedRevision) -> dict[str, str]:
    return {
        "repository": locked.repository,
        "revision": locked.revision,
        "commit": locked.listed.commit,
    }


def _listed(locked: LockedRevision, pinned: PinnedCheckpoint) -> RemoteRevision:
    """What the Hub lists at the pinned commit; offline, what the user's cache holds of it."""
    repository, commit = locked.repository, locked.listed.commit
    key = "revision" if locked is pinned.weights else "tokenizer"
    if constants.is_offline_mode() and (cached := cached_revision(repository, commit)) is not None:
        return replace(cached, revision=locked.revision)
    try:
        return list_files(repository, locked.revision, commit, where=pinned.where, key=key)
    except RevisionMissingError as error:
        raise InputError(
            f"{pinned.where}: `{repository}` no longer has commit {commit}, which {pinned.lock} pins for "
            f"revision `{locked.revision}`; delete its entry there to take what the revision holds now"
        ) from error


def _beside(pinned: PinnedCheckpoint) -> Pinned:
    """The configuration, and the index where the weights are in shards."""
    weights = pinned.weights
    index = index_of(weights.listed.files)
    return [(weights, inside(weights.subfolder, name)) for name in (CONFIGURATION, index) if name]


def _pinned_tokenizer(pinned: PinnedCheckpoint) -> Pinned:
    """The tokenizer, if the lock says what it is."""
    words = pinned.tokenizer
    return [(words, path) for path in tokenizer_paths(words.small_files, words.subfolder)]


def _tokenizer(source: RemoteRevision, pinned: PinnedCheckpoint) -> Files:
    words = pinned.tokenizer
    paths = [path for _, path in _pinned_tokenizer(pinned)]
    paths = paths or tokenizer_paths(source.files, words.subfolder)
    if not paths:
        raise lacking(
            source.repository,
            source.revision,
            "no tokenizer; name a repository that has it under `tokenizer` in the entry",
            where=pinned.where,
        )
    return [(source, _file(source, words, path, pinned)) for path in paths]


def _file(
    source: RemoteRevision, locked: LockedRevision, path: str, pinned: PinnedCheckpoint
) -> RemoteFile:
    """A file of the Hub's listing, with the hash that the lock pins, or else the one that is listed."""
    if path not in source.files:
        raise lacking(source.repository, source.revision, f"no {path}", where=pinned.where)
    listed = source.files[path]
    name = path.removeprefix(inside(locked.subfolder, ""))
    if weights := locked.listed.files.get(name):
        return replace(listed, bytes=weights.bytes, listed_hash=weights.hash)
    return replace(listed, listed_hash=locked.small_files.get(path, listed.listed_hash))
