"""What a corpus file has to be, and whether it is."""

import hashlib
import json
import urllib.parse
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from shape_of_learning.errors import InputError
from shape_of_learning.storage.digests import BLOCK, git_blob_name
from shape_of_learning.storage.files import atomic_write

# What a file is judged by, as in `Expected`: in words, and the key of the configuration.
QUALITIES = {
    "size": ("its size in bytes", "bytes"),
    "sha256": ("its SHA-256", "sha256"),
    "git_blob": ("its git blob", "git_blob"),
    "distinct_bytes": ("its number of distinct byte values", "distinct_bytes"),
}


class Unusable(Exception):
    """A file that is all there, but not the one expected.

    Parameters
    ----------
    reason : str
        Completes ``<file>: …``.
    entry : str
        Key of the source's configuration that the file does not agree with.
    """

    def __init__(self, reason: str, entry: str = "urls"):
        super().__init__(reason)
        self.entry = entry


@dataclass(frozen=True)
class Expected:
    r"""Properties of the unpacked file; what is None is not checked.

    Attributes
    ----------
    size : int, optional
        Bytes.
    sha256 : str, optional
        Hexadecimal digest of the content.
    git_blob : str, optional
        Hexadecimal name that git gives to the content: SHA-1 of ``blob SIZE\0`` and the content.
    distinct_bytes : int, optional
        Number of byte values that occur.
    """

    size: int | None = None
    sha256: str | None = None
    git_blob: str | None = None
    distinct_bytes: int | None = None

    def has_digest(self) -> bool:
        """Whether any two different files would be told apart."""
        return self.sha256 is not None or self.git_blob is not None


@dataclass(frozen=True)
class Found:
    """The same properties, of a file that was read; see :class:`Expected`.

    And what it came from, if that was a file of this machine: its fingerprint.
    """

    size: int
    sha256: str
    git_blob: str
    distinct_bytes: int
    origin: str = ""


def local_path(url: str) -> Path | None:
    """The file that a file URL or a path names; None for other URLs."""
    if url.lower().startswith("file:"):
        return Path(urllib.request.url2pathname(urllib.parse.urlsplit(url).path))
    return None if "://" in url else Path(url)


def copy_verified(stream: IO[bytes], copy: Path, expected: Expected) -> Found:
    """Copy a stream to a file and check the content on its way.

    Parameters
    ----------
    stream : file object
        Unpacked content.
    copy : Path
        Written in any case; to be removed by the caller after an error.
    expected : Expected
        What to check.

    Returns
    -------
    Found
        What was read.

    Raises
    ------
    Unusable
        At the first property that differs. Of a stream longer than expected, no more is written
        than shows it.
    """
    with copy.open("wb") as target:
        sha256, size, distinct = _read(stream, expected, target)
    return _judged(Found(size, sha256, git_blob_name(copy), distinct), expected)


def write_receipt(receipt: Path, found: Found) -> None:
    """Write down, as JSON, what a corpus file is; a run depends on this in the place of the file."""
    with atomic_write(receipt) as partial:
        partial.write_text(json.dumps(asdict(found), indent=2) + "\n", encoding="utf-8")


def read_receipt(receipt: Path) -> dict[str, Any]:
    """Read what :func:`write_receipt` wrote, fields of :class:`Found` by name.

    Raises
    ------
    InputError
        If it is damaged.
    FileNotFoundError
        If it is missing.
    """
    try:
        return asdict(Found(**json.loads(receipt.read_text(encoding="utf-8"))))
    except (ValueError, TypeError):
        raise InputError(
            f"{receipt} is damaged; delete it, and the corpus is fetched anew"
        ) from None


def require_received(path: Path, receipt: Path) -> None:
    """Make sure that a corpus file is still the one that was fetched.

    Parameters
    ----------
    path : Path
        The file.
    receipt : Path
        What :func:`write_receipt` wrote down when it was fetched.

    Raises
    ------
    InputError
        If it is missing or another one since; the message says which file to delete.
    """
    content = read_receipt(receipt)
    try:
        verified(path, Expected(content["size"], content["sha256"]))
    except (FileNotFoundError, Unusable) as error:
        reason = "it is missing" if isinstance(error, FileNotFoundError) else str(error)
        raise InputError(
            f"{path} is not what was fetched ({reason}); delete {receipt} and run again to fetch it anew"
        ) from error


def verified(path: Path, expected: Expected) -> Found:
    """Check a file that is there already, as :func:`copy_verified` does."""
    with path.open("rb") as stream:
        sha256, size, distinct = _read(stream, expected)
    return _judged(Found(size, sha256, git_blob_name(path), distinct), expected)


def _read(
    stream: IO[bytes], expected: Expected, target: IO[bytes] | None = None
) -> tuple[str, int, int]:
    """SHA-256, bytes and number of distinct byte values of a stream, written to `target`."""
    sha256 = hashlib.sha256()
    missing = set(range(256))
    size = 0
    while chunk := stream.read(BLOCK):
        size += len(chunk)
        if expected.size is not None and size > expected.size:
            raise Unusable(f"it has more than the expected {expected.size:,} bytes", "bytes")
        sha256.update(chunk)
        missing = {value for value in missing if value not in chunk}
        if target is not None:
            target.write(chunk)
    return sha256.hexdigest(), size, 256 - len(missing)


def _judged(found: Found, expected: Expected) -> Found:
    for name, (quality, entry) in QUALITIES.items():
        has, wanted = getattr(found, name), getattr(expected, name)
        if wanted is not None and has != wanted:
            raise Unusable(f"{quality} is {has} where {wanted} is expected", entry)
    return found
