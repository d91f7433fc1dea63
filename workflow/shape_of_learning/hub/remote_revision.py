"""A revision as the Hub lists it: a commit, and files with sizes and hashes."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from shape_of_learning.storage.digests import git_blob_name, sha256_of


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
        Git's own identifier: of the content, or of the pointer to it where there is a SHA-256. Empty
        where nobody knows it: a cache on a file system without symbolic links does not tell.
    """

    path: str
    bytes: int
    sha256: str | None
    git_blob: str

    def is_at(self, path: Path) -> bool:
        """Tell whether a file of the disk has the listed size and hash; it is read for that."""
        if path.stat().st_size != self.bytes:
            return False
        if self.sha256 is not None:
            return sha256_of(path) == self.sha256
        return self.git_blob in ("", git_blob_name(path))


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
