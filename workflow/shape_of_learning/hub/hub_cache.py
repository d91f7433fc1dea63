"""The user's Hugging Face cache, read and never written to.

Its layout is documented: ``refs/{revision}`` holds a commit, ``snapshots/{commit}/{path}`` is a link to
``blobs/{hash}``, named by SHA-256 for large files and by git's identifier for the others. On a file system
without symbolic links, or where it was copied without them, it is the file itself, and nothing says its hash.
"""

from pathlib import Path

from huggingface_hub import constants, try_to_load_from_cache
from huggingface_hub.file_download import repo_folder_name

from shape_of_learning.errors import InputError
from shape_of_learning.hub.given_names import is_commit, is_hash, is_inside
from shape_of_learning.hub.remote_revision import RemoteFile, RemoteRevision


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

    Raises
    ------
    InputError
        If what the cache takes for the commit of the revision is none.
    """
    folder = Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=repository, repo_type="model")
    commit = _commit(folder / "refs", revision)
    if commit is None:
        return None
    snapshot = folder / "snapshots" / commit
    # exists() follows the link: a blob that was deleted is not listed.
    paths = [path for path in snapshot.rglob("*") if path.exists() and not path.is_dir()]
    if not paths:
        return None
    files = [_listed(path, path.relative_to(snapshot).as_posix(), folder) for path in paths]
    return RemoteRevision(repository, revision, commit, {file.path: file for file in files})


def cached_file(source: RemoteRevision, path: str) -> Path | None:
    """Find one file of a commit in the cache; the blob itself and not the link to it."""
    found = try_to_load_from_cache(source.repository, path, revision=source.commit)
    return Path(found).resolve() if isinstance(found, str) else None


def _commit(references: Path, revision: str) -> str | None:
    """Look up the commit of a revision, which may be one itself."""
    if is_commit(revision):
        return revision
    reference = references / revision
    if not is_inside(revision) or not reference.is_file():
        return None
    commit = reference.read_bytes()[:200].decode(errors="replace").strip()
    if not is_commit(commit):
        raise InputError(
            f"{reference} in the Hugging Face cache holds {commit!r:.60}, which is no commit, 40 hexadecimal "
            "digits; delete it and run once without HF_HUB_OFFLINE"
        )
    return commit


def _listed(file: Path, path: str, folder: Path) -> RemoteFile:
    target = file.resolve()
    # Only what lies among the blobs has a hash for its name.
    is_blob = file.is_symlink() and target.parent == (folder / "blobs").resolve()
    kind = "sha256" if len(target.name) == 64 else "git"
    named = f"{kind}:{target.name}" if is_blob else ""
    return RemoteFile(path, file.stat().st_size, named if is_hash(named) else "", copy=file)
