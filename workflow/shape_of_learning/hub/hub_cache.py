"""The user's Hugging Face cache, read and never written to.

Its layout is documented: ``refs/{revision}`` holds a commit, ``snapshots/{commit}/{path}`` is a link to
``blobs/{hash}``, named by SHA-256 for large files and by git's identifier for the others.
"""

import logging
import os
from pathlib import Path

from huggingface_hub import constants, try_to_load_from_cache
from huggingface_hub.file_download import repo_folder_name

from shape_of_learning.hub.fingerprint import BLOCK, Fingerprint
from shape_of_learning.hub.part import Part
from shape_of_learning.hub.remote_revision import RemoteFile, RemoteRevision

logger = logging.getLogger(__name__)

SHA256_DIGITS, GIT_DIGITS = 64, 40


def cached_revision(repository: str, revision: str) -> RemoteRevision | None:
    """List what the cache holds of a revision, without asking anybody.

    Parameters
    ----------
    repository : str
        ``organisation/name``.
    revision : str
        A branch or tag that the cache knows the commit of, or a commit.

    Returns
    -------
    RemoteRevision or None
        None if the cache has nothing of it. Files that were never downloaded are missing.
    """
    folder = Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=repository, repo_type="model")
    reference = folder / "refs" / revision
    commit = reference.read_text(encoding="utf-8").strip() if reference.is_file() else revision
    snapshot = folder / "snapshots" / commit
    # exists() follows the link: a blob that was deleted is not listed.
    paths = [path for path in snapshot.rglob("*") if path.exists() and not path.is_dir()]
    if not paths:
        return None
    files = [_listed(path, path.relative_to(snapshot).as_posix()) for path in paths]
    return RemoteRevision(repository, revision, commit, {file.path: file for file in files})


def cached_file(source: RemoteRevision, path: str) -> Path | None:
    """Find one file of a commit in the cache; the blob itself and not the link to it."""
    found = try_to_load_from_cache(source.repository, path, revision=source.commit)
    return Path(found).resolve() if isinstance(found, str) else None


def can_be_linked(cached: Path, folder: Path) -> bool:
    """Tell whether a file can be had in `folder`, which exists, without another copy of its bytes."""
    return cached.stat().st_dev == folder.stat().st_dev


def adopt(cached: Path, final: Path, listed: RemoteFile) -> dict[str, int | str] | None:
    """Link a cached file to `final`, or copy it where it cannot be linked, if it is what is listed.

    Returns
    -------
    dict or None
        Size and SHA-256 for ``checkpoint.json``; None, and no `final`, if the cached file is damaged.
    """
    final.parent.mkdir(parents=True, exist_ok=True)
    # Not the name of a part, to which a later run would append: this one is the cache's own file.
    link = final.with_name(f"{final.name}.cached")
    link.unlink(missing_ok=True)
    try:
        os.link(cached, link)
    except OSError:  # another file system, or one without hard links
        return _copy(cached, final, listed)
    fingerprint = Fingerprint.of(link, listed)
    if not fingerprint.agrees():
        link.unlink()
        return None
    link.rename(final)
    return fingerprint.entry()


def _copy(cached: Path, final: Path, listed: RemoteFile) -> dict[str, int | str] | None:
    with Part(final, listed) as part, cached.open("rb") as stream:
        part.clear()
        while block := stream.read(BLOCK):
            part.append(block)
        return part.finish()


def _listed(file: Path, path: str) -> RemoteFile:
    # Without symbolic links the cache keeps the files themselves, and no hash of them.
    blob = file.resolve().name if file.is_symlink() else ""
    return RemoteFile(
        path,
        file.stat().st_size,
        sha256=blob if len(blob) == SHA256_DIGITS else None,
        git_blob=blob if len(blob) == GIT_DIGITS else "",
    )
