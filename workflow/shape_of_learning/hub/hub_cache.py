"""The user's Hugging Face cache, read and never written to.

Its layout is documented: ``refs/{revision}`` holds a commit, ``snapshots/{commit}/{path}`` is a link to
``blobs/{hash}``, named by SHA-256 for large files and by git's identifier for the others.
"""

from pathlib import Path

from huggingface_hub import constants, try_to_load_from_cache
from huggingface_hub.file_download import repo_folder_name

from shape_of_learning.hub.remote_revision import RemoteFile, RemoteRevision

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


def _listed(file: Path, path: str) -> RemoteFile:
    # Without symbolic links the cache keeps the files themselves, and no hash of them.
    blob = file.resolve().name if file.is_symlink() else ""
    return RemoteFile(
        path,
        file.stat().st_size,
        sha256=blob if len(blob) == SHA256_DIGITS else None,
        git_blob=blob if len(blob) == GIT_DIGITS else "",
    )
