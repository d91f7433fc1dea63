"""A checkpoint of the Hub as a lock pins it, on its way to a folder: what is needed, and no other bytes."""

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock
from huggingface_hub import constants

from shape_of_learning.checkpoints.hub import MissingError, list_files
from shape_of_learning.checkpoints.hub_snapshot import download_as_listed
from shape_of_learning.checkpoints.lock import LockedRevision
from shape_of_learning.checkpoints.record import find_changed_file, read_record, write_record
from shape_of_learning.checkpoints.shapes import (
    Shape,
    list_tokenizer_paths,
    parse_shape,
    read_configuration_file,
    refuse_contradiction,
    refuse_quantised,
)
from shape_of_learning.errors import InputError
from shape_of_learning.files import atomic_write, remove

# Seconds between tries; a download goes on where it broke off.
DOWNLOAD_PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 64.0, 64.0)


def fetch(
    destination: Path,
    model: str,
    revision: str,
    pinned: Mapping[str, Any] | None,
    tokenizer: Mapping[str, Any] | None,
    shape: Mapping[str, Any],
) -> None:
    """Download a checkpoint: configuration, weights and tokenizer, side by side in one folder.

    Parameters
    ----------
    destination : Path
        Folder that appears, whole, at the end, with a ``checkpoint.json`` beside the files. What has come so
        far is kept in ``.{name}.download`` for a run after this one. Another process that fetches the same
        waits, and takes what this one has made.
    model, revision : str
        Names of the model and, within it, of the checkpoint.
    pinned, tokenizer : mapping or None
        What to fetch, entries of the model's lock; None for a tokenizer that lies beside the weights. All bytes
        must be those that are pinned; of a tokenizer elsewhere that a lock has no hashes of, only the commit is.
    shape : mapping
        What the model's entry says, which ``config.json`` is compared with before any weights are downloaded.

    Raises
    ------
    InputError
        With one sentence for all that can be wrong with the entry, the lock, the Hub or the network.
    """
    where = f"model `{model}`"
    if not pinned:
        raise InputError(
            f"{where}: `{revision}` cannot be fetched, because the Hub could not be reached when the run was "
            "planned; check the network, HF_ENDPOINT and HF_HUB_OFFLINE, and run the same command again"
        )
    weights = LockedRevision(**pinned)
    words = LockedRevision(**tokenizer) if tokenizer else weights
    provenance = {"source": "hub", "model": model, **_place(weights)}
    provenance |= {"subfolder": weights.subfolder, "tokenizer": _place(words)}
    destination.parent.mkdir(parents=True, exist_ok=True)
    kept = destination.with_name(f".{destination.name}.download")
    with FileLock(destination.with_name(f".{destination.name}.lock")):
        record = read_record(destination)
        if record and record | provenance == record and not find_changed_file(destination, record):
            return  # another run has made it
        at = words.repository, words.revision, words.commit
        listed = words.small_files or list_files(*at, where=where)
        paths = list_tokenizer_paths(listed, words.subfolder)
        if not paths:
            raise InputError(
                f"{where}: `{words.repository}` at revision `{words.revision}` has no tokenizer; name a "
                "repository that has it under `tokenizer` in the entry"
            )
        came = _download(weights, weights.settings_paths(), kept / "weights", where)
        config = read_configuration_file(came[0].parent)
        refuse_quantised(config, where)
        refuse_contradiction(Shape(**shape), parse_shape(config, where), where)
        came += _download(words, paths, kept / "tokenizer", where)
        came += _download(weights, map(weights.path, weights.files), kept / "weights", where)
        with atomic_write(destination) as folder:
            folder.mkdir()
            for file in came:
                shutil.move(file, folder / file.name)
            write_record(folder, **provenance)
        remove(kept)


def _place(locked: LockedRevision) -> dict[str, Any]:
    return {"repository": locked.repository, "revision": locked.revision, "commit": locked.commit}


def _download(place: LockedRevision, paths: Iterable[str], folder: Path, where: str) -> list[Path]:
    """Bring files of a commit into a folder; what is pinned of them must be what comes."""
    pins = {**place.small_files, **{place.path(n): each.hash for n, each in place.files.items()}}
    hashes = {path: pins.get(path, "") for path in paths}
    offline = constants.is_offline_mode()
    local: dict[str, Any] = {} if offline else {"local_dir": folder}
    came = download_as_listed(
        *(place.place, place.commit, hashes),
        where=where,
        source="the lock",
        pauses=DOWNLOAD_PAUSES,
        **local,
    )
    for path in hashes:
        if not (came / path).exists():
            raise MissingError(
                f"{where}: `{place.repository}` at revision `{place.revision}` has no {path}; correct "
                "`repository`, `revision` or `subfolder` in the entry"
            )
        if offline:  # it is in the user's cache
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(came / path, folder / path)
    return [folder / path for path in hashes]
