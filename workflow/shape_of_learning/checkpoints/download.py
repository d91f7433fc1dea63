"""Downloads of checkpoints from the Hub: the files that are needed, compared with their listed hashes."""

import re
import shutil
from collections.abc import Iterable, Mapping
from functools import partial
from glob import escape
from pathlib import Path
from typing import Any

from filelock import FileLock
from huggingface_hub import constants, snapshot_download

from shape_of_learning.checkpoints import hub
from shape_of_learning.checkpoints.job import DownloadJob
from shape_of_learning.checkpoints.lock import Files, LockedRevision, Place
from shape_of_learning.checkpoints.record import find_changed_file, read_record, write_record
from shape_of_learning.checkpoints.shapes import (
    CONFIGURATION,
    WEIGHT_FILES,
    list_tokenizer_paths,
    parse_shape,
    read_configuration_file,
    refuse_contradiction,
    refuse_listed_adapter,
    refuse_quantised,
)
from shape_of_learning.errors import InputError
from shape_of_learning.file_hashes import remember_sha256
from shape_of_learning.files import atomic_write, compute_git_blob, remove

# Seconds between tries; a download continues where it broke off.
DOWNLOAD_PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 64.0, 64.0)


def fetch(job: DownloadJob, destination: Path) -> None:
    """Download a checkpoint that a lock pins: configuration, weights and tokenizer, side by side in one folder.

    Parameters
    ----------
    job : DownloadJob
        The lock pins all bytes. If it has no hashes of a tokenizer in another repository, it pins only its commit.
        The shape is compared with ``config.json`` before any weights are downloaded.
    destination : Path
        Folder that appears at the end, when it is complete, with a ``checkpoint.json`` beside the files. An
        interrupted download stays in ``.{name}.download`` for the next run. Another process that fetches the same
        checkpoint waits, and takes the folder of this process.

    Raises
    ------
    InputError
        If the entry, the lock, the Hub or the network is wrong.
    """
    where = f"model `{job.model}`"
    weights = job.weights
    if weights is None:
        raise InputError(
            f"{where}: `{job.revision}` cannot be fetched, because the Hub could not be reached when the run was "
            "planned; check the network, HF_ENDPOINT and HF_HUB_OFFLINE, and run the same command again"
        )
    tokenizer = job.tokenizer or weights
    provenance = {"source": "hub", "model": job.model, **_describe_commit(weights)}
    provenance |= {"subfolder": weights.subfolder, "tokenizer": _describe_commit(tokenizer)}
    destination.parent.mkdir(parents=True, exist_ok=True)
    download_folder = destination.with_name(f".{destination.name}.download")
    with FileLock(destination.with_name(f".{destination.name}.lock")):
        record = read_record(destination)
        if record and record | provenance == record and not find_changed_file(destination, record):
            return  # another run has made it
        tokenizer_files = tokenizer.small_files or hub.list_files(
            tokenizer.repository, tokenizer.revision, tokenizer.commit, where=where
        )
        paths = list_tokenizer_paths(tokenizer_files, tokenizer.subfolder)
        if not paths:
            raise InputError(
                f"{where}: `{tokenizer.repository}` at revision `{tokenizer.revision}` has no tokenizer; name a "
                "repository that has it under `tokenizer` in the entry"
            )
        files = _download(weights, weights.settings_paths(), download_folder / "weights", where)
        config = read_configuration_file(files[0].parent)
        refuse_quantised(config, where)
        refuse_contradiction(job.shape, parse_shape(config, where), where)
        files += _download(tokenizer, paths, download_folder / "tokenizer", where)
        files += _download(
            weights, map(weights.path, weights.files), download_folder / "weights", where
        )
        with atomic_write(destination) as folder:
            folder.mkdir()
            for file in files:
                shutil.move(file, folder / file.name)
            write_record(folder, **provenance)
        remove(download_folder)


def _describe_commit(revision: LockedRevision) -> dict[str, Any]:
    return {
        "repository": revision.repository,
        "revision": revision.revision,
        "commit": revision.commit,
    }


def _download(
    revision: LockedRevision, paths: Iterable[str], folder: Path, where: str
) -> list[Path]:
    """Download pinned files of a commit into a folder, or copy them from the user's cache if offline."""
    pins = {revision.path(name): file.hash for name, file in revision.files.items()}
    pins = {**revision.small_files, **pins}
    hashes = {path: pins.get(path, "") for path in paths}
    is_offline = constants.is_offline_mode()
    snapshot = download_as_listed(
        revision.place,
        revision.commit,
        hashes,
        where=where,
        source="the lock",
        pauses=DOWNLOAD_PAUSES,
        local_dir=None if is_offline else folder,
    )
    for path in hashes:
        if not (snapshot / path).exists():
            raise hub.MissingError(
                f"{where}: `{revision.repository}` at revision `{revision.revision}` has no {path}; correct "
                "`repository`, `revision` or `subfolder` in the entry"
            )
        if is_offline:  # the file is in the user's cache
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(snapshot / path, folder / path)
    return [folder / path for path in hashes]


def download_snapshot(model: str, revision: str) -> Path:
    """Download configuration, weights and tokenizer of a revision into the user's cache.

    Raises
    ------
    InputError
        If there is no such revision, the revision has no weights, or as :func:`download_as_listed`.
    """
    where = f"model `{model}`, which is no folder here"
    # The branch may move between the listing and the download.
    commit = hub.find_commit(model, revision, where=where) or revision
    files = hub.list_files(model, revision, commit, where=where)
    hashes = {
        path: files[path].hash if path in files else ""
        for path in _choose_files(files, where, revision)
    }
    return download_as_listed(Place(model, revision), commit, hashes, where=where)


def _choose_files(files: Files, where: str, revision: str) -> list[str]:
    """Choose the files of a checkpoint at the top of a repository, with the weights in one format."""
    refuse_listed_adapter(files, "", where)
    for whole, index in WEIGHT_FILES:
        if whole in files or index in files:
            stem, suffix = whole.split(".")
            pattern = rf"{stem}.*\.{suffix}(\.index\.json)?"
            weights = [path for path in files if re.fullmatch(pattern, path)]
            return [CONFIGURATION, *list_tokenizer_paths(files, ""), *weights]
    raise InputError(f"{where}: revision `{revision}` has no weights; choose another revision")


def download_as_listed(
    place: Place,
    commit: str,
    hashes: Mapping[str, str],
    *,
    where: str,
    source: str = "the Hub",
    pauses: tuple[float, ...] = hub.QUESTION_PAUSES,
    local_dir: Path | None = None,
) -> Path:
    """Download files of a commit, and compare them with their listed hashes.

    Files that are already there are compared, too. A file that differs is removed and downloaded once more.

    Parameters
    ----------
    place : Place
        The place of the commit, for error messages.
    commit : str
    hashes : mapping of str to str
        The hash of each path, ``sha256:...`` or git's ``git:...``; empty if no hash is listed.
    where, pauses
        As for :func:`.ask_hub`.
    source : str
        The source of the hashes, for error messages.
    local_dir : Path, optional
        Folder for the files, in place of the user's cache.

    Returns
    -------
    Path
        The folder of the repository's files; a file without a listed hash may be missing.

    Raises
    ------
    InputError
        If the Hub cannot be reached, or a file still differs from its hash.
    """
    download = partial(
        snapshot_download,
        place.repository,
        revision=commit,
        allow_patterns=[escape(path) for path in hashes],
        local_dir=local_dir,
    )
    is_offline = constants.is_offline_mode()  # a removed file could not be downloaded again
    for _ in range(1 if is_offline else 2):
        folder = Path(
            hub.ask_hub(download, place.repository, place.revision, where=where, pauses=pauses)
        )
        file_hashes = {
            path: _hash_like(folder / path, hashes[path]) for path in hashes if hashes[path]
        }
        changed_paths = [path for path in file_hashes if file_hashes[path] != hashes[path]]
        if not changed_paths:
            return folder
        for path in () if is_offline else changed_paths:
            (folder / path).resolve().unlink(missing_ok=True)
            (folder / path).unlink(missing_ok=True)
    path = changed_paths[0]
    raise InputError(
        f"{where}: {path} of `{place.repository}` at revision `{place.revision}` is not what {source} lists for "
        f"commit {commit[:10]}: expected {hashes[path]}, found {file_hashes[path]}; check the network, HF_ENDPOINT "
        "and the Hugging Face cache"
    )


def _hash_like(file: Path, listed_hash: str) -> str:
    """Hash a file with the function of a listed hash."""
    if not file.is_file():
        return "no file"
    if listed_hash.startswith("git:"):
        return f"git:{compute_git_blob(file)}"
    return f"sha256:{remember_sha256(file)}"
