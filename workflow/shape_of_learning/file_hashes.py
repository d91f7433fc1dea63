"""The SHA-256 of a user's files: each is read once, and again when it is no longer the same file.

What is remembered lies in the user's cache, since a folder of weights may be read-only.
"""

import hashlib
import os
import re
import time
from contextlib import suppress
from pathlib import Path

from shape_of_learning.errors import InputError
from shape_of_learning.files import atomic_write, compute_sha256

SMALL_BYTES = 1 << 16  # up to which reading a file costs no more than remembering it
RECORD = re.compile(r"([0-9 ]+)\n([0-9a-f]{64})\n")
# A file may change once more without another time within one tick of its file system's clock.
TICK_SECONDS, COARSE_TICK_SECONDS = 0.1, 2.0


def remember_sha256(file: Path) -> str:
    """Hash all bytes of a file, or remember their hash if its size, times and inode are what they were then.

    The time of the last change of the inode (``ctime``) is among them, which no program can set back, so that a file
    is read anew that was changed in place and given its old time.

    Returns
    -------
    str
        Hexadecimal SHA-256.

    Raises
    ------
    InputError
        If the file changes while it is read.
    """
    file = file.resolve()
    before = _stamp_file(file.stat())
    if file.stat().st_size <= SMALL_BYTES:
        return compute_sha256(file)
    record = _record_of(file)
    if record is not None:
        with suppress(OSError, ValueError):
            known = RECORD.fullmatch(record.read_text(encoding="utf-8"))
            if known and known[1] == before:
                return known[2]
    digest = compute_sha256(file)
    after = file.stat()
    if _stamp_file(after) != before:
        raise InputError(f"{file} changed while it was read; run again when nobody writes to it")
    if record is not None and _is_settled(after):
        with suppress(OSError), atomic_write(record) as partial:
            partial.write_text(f"{before}\n{digest}\n", encoding="utf-8")
    return digest


def _stamp_file(stat: os.stat_result) -> str:
    return f"{stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns} {stat.st_ino}"


def _is_settled(stat: os.stat_result) -> bool:
    """Return whether a further change would have another time."""
    is_coarse = stat.st_ctime_ns % 1_000_000_000 == 0
    return time.time() - stat.st_ctime > (COARSE_TICK_SECONDS if is_coarse else TICK_SECONDS)


def _record_of(file: Path) -> Path | None:
    """Return where the hash of a file is remembered; None if nothing can be kept there."""
    from huggingface_hub import cached_assets_path

    try:
        folder = cached_assets_path("shape-of-learning", namespace="sha256")
    except OSError:
        return None
    return folder / hashlib.sha256(os.fsencode(file)).hexdigest()
