"""What a file on the disk holds, in a few digits."""

import hashlib
from pathlib import Path

BLOCK = 1 << 20  # bytes read at once; larger ones hash no faster


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
