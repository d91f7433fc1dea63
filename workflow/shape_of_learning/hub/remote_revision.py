"""A revision as the Hub lists it: a commit, and files with sizes and hashes."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from shape_of_learning.storage.digests import git_blob_name, sha256_of


@dataclass(frozen=True)
class RemoteFile:
    """One file of a revision, as the Hub or a lock lists it.

    Attributes
    ----------
    path : str
        Inside the repository.
    bytes : int
        Size of the content.
    listed_hash : str
        ``sha256:`` and hexadecimal digits; or ``git:`` and those of git's identifier of the content, for
        small files, which are outside LFS. Empty where nobody says it.
    copy : Path or None
        A file of the user's cache that is hashed where nobody says the hash.
    """

    path: str
    bytes: int
    listed_hash: str = ""
    copy: Path | None = None

    @cached_property
    def hash(self) -> str:
        """The hash that is listed, or that of the copy; empty if there is neither."""
        if self.listed_hash or self.copy is None:
            return self.listed_hash
        return f"sha256:{sha256_of(self.copy)}"

    def hash_at(self, path: Path) -> str:
        """Hash a file of the disk as this one is."""
        is_git = self.hash.startswith("git:")
        return f"git:{git_blob_name(path)}" if is_git else f"sha256:{sha256_of(path)}"

    def is_at(self, path: Path) -> bool:
        """Tell whether a file of the disk has this size and hash; it is read for that."""
        return path.stat().st_size == self.bytes and self.hash_at(path) == self.hash


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
