"""Revisions of the Hub: the commit that each resolves to, and its files with sizes and hashes."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from huggingface_hub import HfApi
from huggingface_hub.hf_api import RepoFile

from shape_of_learning.checkpoints.hub_errors import explained

ANSWER_SECONDS = 30  # the client would wait for ever


@dataclass(frozen=True)
class RemoteFile:
    """One file of a revision, as the Hub lists it.

    Attributes
    ----------
    path : str
        Inside the repository.
    bytes : int
        Size of the content.
    sha256 : str or None
        Hexadecimal SHA-256 of the content; None for small files, which are outside LFS.
    git_blob : str
        Git's own identifier: of the content, or of the pointer to it where there is a SHA-256.
    """

    path: str
    bytes: int
    sha256: str | None
    git_blob: str


@dataclass(frozen=True)
class RemoteRevision:
    """A revision resolved to the commit that everything is then taken from."""

    repository: str
    revision: str
    commit: str
    files: Mapping[str, RemoteFile]

    def names_in(self, folder: str) -> set[str]:
        """Names of the files directly inside a folder, ``""`` for the top."""
        paths = map(PurePosixPath, self.files)
        return {path.name for path in paths if path.parent == PurePosixPath(folder)}


def resolve_and_list(
    repository: str, revision: str, *, where: str, key: str = "revision"
) -> RemoteRevision:
    """Resolve a branch, tag or commit and list its files with sizes and hashes; downloads nothing.

    Parameters
    ----------
    repository : str
        ``organisation/name``.
    revision : str
        What to resolve.
    where, key : str
        How an error names the model's entry and the key to correct.

    Raises
    ------
    InputError
        If the Hub cannot be reached, does not have it, or wants a licence accepted first.
    """
    api = HfApi()
    with explained(repository, revision, where=where, key=key):
        commit = api.model_info(repository, revision=revision, timeout=ANSWER_SECONDS).sha
        listed = [
            RemoteFile(item.path, item.size, item.lfs.sha256 if item.lfs else None, item.blob_id)
            for item in api.list_repo_tree(repository, revision=commit, recursive=True)
            if isinstance(item, RepoFile)
        ]
    return RemoteRevision(repository, revision, commit, {file.path: file for file in listed})
