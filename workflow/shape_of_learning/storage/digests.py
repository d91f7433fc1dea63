"""What a file on the disk holds, in a few digits, and whether it is still what was written.

Beside a file that is compared with what was written lies ``{name}.sha256``, as sha256sum checks it.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shape_of_learning.errors import InputError
from shape_of_learning.storage.files import atomic_write

BLOCK = 1 << 20  # bytes read at once; larger ones hash no faster
RUN_AGAIN = "delete it and run again"


def sha256_of(path: Path) -> str:
    """Hexadecimal SHA-256 of a file, which is read in blocks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def git_blob_name(path: Path) -> str:
    r"""Name of a file's content in a git repository: SHA-1 of ``blob SIZE\0`` and the content."""
    # Not a matter of security: a collision would have to be in the authors' repository.
    digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def digest_file(path: Path) -> Path:
    """Return where the digest of a file lies."""
    return path.with_name(f"{path.name}.sha256")


def recorded_digest(path: Path) -> str | None:
    """Return the SHA-256 beside a file, which may be gone; None if there is no digest."""
    try:
        return digest_file(path).read_text(encoding="ascii").partition(" ")[0] or None
    except (FileNotFoundError, UnicodeDecodeError):
        return None


def recorded_digests(folder: Path) -> Iterator[tuple[Path, str]]:
    """Find the files of a folder and below that have a SHA-256 beside them, and yield both."""
    for file in sorted(folder.rglob("*.sha256")):
        path = file.with_suffix("")
        if path.is_file() and (digest := recorded_digest(path)) is not None:
            yield path, digest


@contextmanager
def write_with_digest(final: Path) -> Iterator[Path]:
    """Write a file as :func:`.atomic_write` does, and its digest beside it.

    Who finds the file finds the digest, which has its name first.
    """
    with atomic_write(final) as partial:
        yield partial
        with atomic_write(digest_file(final)) as digest:
            digest.write_text(_digest_line(partial, final), encoding="utf-8")


def add_digest(written: Path, final: Path | None = None) -> None:
    """Put beside a file its digest.

    Parameters
    ----------
    written : Path
        The file.
    final : Path, optional
        The name that it will have, if that is another one. The last two folders of it are written down, too,
        and say whose file it is: they are those of a model and a revision, or of a kind of table and a model.
    """
    digest_file(written).write_text(_digest_line(written, final or written), encoding="utf-8")


def _digest_line(written: Path, final: Path) -> str:
    return f"{sha256_of(written)}  {_owner(final)}\n"


def require_unchanged(path: Path, remedy: str = RUN_AGAIN) -> None:
    """Make sure that a file is what was written under this name, to the last bit.

    Parameters
    ----------
    path : Path
        A file beside which there is a digest.
    remedy : str
        End of the message.

    Raises
    ------
    InputError
        If it or its digest is missing, or it has changed, or is another one's.
    """
    with _explained(path, remedy):
        _compare(path, sha256_of(path), remedy)


def read_unchanged(path: Path) -> bytes:
    """Read a file whole; raises as :func:`require_unchanged`."""
    with _explained(path, RUN_AGAIN):
        content = path.read_bytes()
        _compare(path, hashlib.sha256(content).hexdigest(), RUN_AGAIN)
    return content


@contextmanager
def _explained(path: Path, remedy: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        missing = "is missing" if error.filename == str(path) else "has no .sha256 beside it"
        raise InputError(f"{path} {missing}; {remedy}") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); {remedy}") from error


def _compare(path: Path, digest: str, remedy: str) -> None:
    with digest_file(path).open(encoding="utf-8", errors="replace") as file:
        written, _, owner = file.read().removesuffix("\n").partition("  ")
    if digest != written:
        raise InputError(f"{path} is not what was written, its .sha256 says; {remedy}")
    if owner != _owner(path):
        raise InputError(f"{path} is a copy of {owner}, its .sha256 says; {remedy}")


def _owner(path: Path) -> str:
    return "/".join(Path(os.path.abspath(path)).parts[-3:])  # noqa: PTH100, links stay as they are
