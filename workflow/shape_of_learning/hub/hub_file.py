"""One file of a commit, from where it is nearest: an earlier run, the user's cache, the Hub."""

import logging
import os
import shutil
from contextlib import suppress
from pathlib import Path

from huggingface_hub import constants, hf_hub_download

from shape_of_learning.errors import InputError
from shape_of_learning.hub.hub_cache import cached_file
from shape_of_learning.hub.hub_client import downloading
from shape_of_learning.hub.hub_errors import explained
from shape_of_learning.hub.remote_revision import RemoteFile, RemoteRevision
from shape_of_learning.hub.retries import with_retries

logger = logging.getLogger(__name__)


def take_file(
    source: RemoteRevision, listed: RemoteFile, target: Path, *, kept: Path, where: str
) -> None:
    """Put a file of a commit under a name on the disk, with the bytes that are listed.

    Parameters
    ----------
    source : RemoteRevision
        Where it is from.
    listed : RemoteFile
        Which file, its size and its hash. They are compared with what lies on the disk in the end.
    target : Path
        Its name, in a folder of this process alone.
    kept : Path
        Where an earlier run may have left it, and this one leaves it for a later one.
    where : str
        How errors and the log name the model's entry.

    Raises
    ------
    InputError
        If the bytes are others, or the Hub refuses or cannot be reached.
    """
    cached = cached_file(source, listed.path)
    if _taken(kept, target, listed):
        logger.info("%s: %s is complete from an earlier run", where, listed.path)
    elif cached is not None and _taken(cached, target, listed):
        logger.info("%s: %s is taken from the Hugging Face cache, %s", where, listed.path, cached)
    elif cached is not None and constants.is_offline_mode():
        raise InputError(
            f"{where}: {listed.path} of `{source.repository}` is damaged in the Hugging Face cache, "
            f"{cached}: {_difference(listed, cached)}; delete it and run once without HF_HUB_OFFLINE"
        )
    else:
        logger.info("%s: %s begins, %.1f MB", where, listed.path, listed.bytes / 1e6)
        _download(source, listed, target, where)
        _keep(target, kept)
        logger.info("%s: %s is complete", where, listed.path)


def bytes_to_write(source: RemoteRevision, listed: RemoteFile, *, kept: Path, folder: Path) -> int:
    """How much a file will take of the disk that holds `folder`, which exists; 0 if it can be linked."""
    near = cached_file(source, listed.path)
    linked = kept.exists() or (near is not None and near.stat().st_dev == folder.stat().st_dev)
    return 0 if linked else listed.bytes


def _taken(file: Path, target: Path, listed: RemoteFile) -> bool:
    """Link a file to `target`, or copy it where it cannot be linked, if it is what is listed."""
    try:
        os.link(file, target)
    except FileNotFoundError:
        return False
    except OSError:  # another file system, or one without hard links
        shutil.copyfile(file, target)
    if listed.is_at(target):
        return True
    target.unlink()
    return False


def _download(source: RemoteRevision, listed: RemoteFile, target: Path, where: str) -> None:
    own = target.with_name(".hub")

    def attempt() -> str:
        with (
            explained(source.repository, source.revision, where=where, key="revision"),
            downloading(listed.bytes),
        ):
            return hf_hub_download(
                source.repository,
                listed.path,
                revision=source.commit,
                local_dir=own,
                cache_dir=own,  # what the user's cache holds has been looked at, and was damaged
            )

    arrived = Path(with_retries(attempt))
    if not listed.is_at(arrived):
        raise InputError(
            f"{where}: {listed.path} of `{source.repository}` arrived damaged: for commit "
            f"{source.commit[:10]} {_difference(listed, arrived)}; run again, and if it stays so check "
            "HF_ENDPOINT: a mirror with other files cannot be used"
        )
    arrived.rename(target)
    shutil.rmtree(own)


def _difference(listed: RemoteFile, path: Path) -> str:
    """Say what was expected, by the lock or the Hub's listing, and what was found."""
    expected = f"{listed.bytes} bytes with the hash {listed.hash or 'that nobody says'}"
    return f"expected {expected}, found {path.stat().st_size} with {listed.hash_at(path)}"


def _keep(target: Path, kept: Path) -> None:
    with target.open("rb") as file:
        os.fsync(file.fileno())  # else a power cut could leave the name on an empty file
    with suppress(OSError):  # a file system without hard links: then a later run downloads it again
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.unlink(missing_ok=True)
        os.link(target, kept)
