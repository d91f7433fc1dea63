"""Whether a content is the one that the Hub lists."""

import hashlib
from pathlib import Path

from shape_of_learning.hub.remote_revision import RemoteFile

BLOCK = 1 << 20  # bytes read at once; larger ones hash no faster


class Fingerprint:
    """Size and hashes of a content, gathered block by block so that it is read only once.

    Parameters
    ----------
    listed : RemoteFile
        What the Hub says of the content.

    Attributes
    ----------
    bytes : int
        How much has been added so far.

    Notes
    -----
    Where the Hub lists no SHA-256 there is the identifier of git, the SHA-1 of the word ``blob``, a
    space, the size in decimal digits, a zero byte and the content (Git, "Git Objects").
    """

    def __init__(self, listed: RemoteFile) -> None:
        self.listed = listed
        self.bytes = 0
        self._sha256 = hashlib.sha256()
        self._git = hashlib.sha1(f"blob {listed.bytes}\0".encode(), usedforsecurity=False)

    @classmethod
    def of(cls, path: Path, listed: RemoteFile) -> "Fingerprint":
        """Read a file and take its fingerprint."""
        fingerprint = cls(listed)
        with path.open("rb") as stream:
            while block := stream.read(BLOCK):
                fingerprint.add(block)
        return fingerprint

    def add(self, block: bytes) -> None:
        """Go on with the next block of the content."""
        self.bytes += len(block)
        self._sha256.update(block)
        if self.listed.sha256 is None:
            self._git.update(block)

    def agrees(self) -> bool:
        """Tell whether size and hash are those that the Hub lists."""
        if self.bytes != self.listed.bytes:
            return False
        if self.listed.sha256 is not None:
            return self._sha256.hexdigest() == self.listed.sha256
        # A cache on a file system without symbolic links does not tell the identifier.
        return self.listed.git_blob in ("", self._git.hexdigest())

    def entry(self) -> dict[str, int | str]:
        """What ``checkpoint.json`` says of the file."""
        return {"bytes": self.bytes, "sha256": self._sha256.hexdigest()}
