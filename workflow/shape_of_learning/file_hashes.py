"""SHA-256 of a user's files, computed again only when a file changes.

The user's cache has the hashes, since a folder of weights may be read-only.
"""

import hashlib
import os
import re
import time
from contextlib import suppress
from pathlib import Path

from shape_of_learning.errors import InputError
from shape_of_learning.files import atomic_write, compute_sha256

SMALL_BYTES = 1 << 16  # hashing a smaller file takes less time than reading its record
RECORD = re.compile(r"([0-9 ]+)\n([0-9a-f]{64})\n")
# Two changes of a file within one tick of the file system's clock leave the same time.
TICK_SECONDS, COARSE_TICK_SECONDS = 0.1, 2.0


def remember_sha256(file: Path) -> str:
    """Return the hash of a file, from the cache if its size, times and inode have not changed.

    A program can restore a file's modification time after a change, but not the time at which the inode changed
    (``ctime``).

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
    stamp = _stamp_file(file.stat())
    if file.stat().st_size <= SMALL_BYTES:
        return compute_sha256(file)
    record = _find_record(file)
    if record is not None:
        with suppress(OSError, ValueError):
            match = RECORD.fullmatch(record.read_text(encoding="utf-8"))
            if match and match[1] == stamp:
                return match[2]
    digest = compute_sha256(file)
    status = file.stat()
    if _stamp_file(status) != stamp:
        raise InputError(
            f"{file} changed while it was read; run again when no program writes to it"
        )
    if record is not None and _is_settled(status):
        with suppress(OSError), atomic_write(record) as partial:
            partial.write_text(f"{stamp}\n{digest}\n", encoding="utf-8")
    return digest


def _stamp_file(stat: os.stat_result) -> str:
    return f"{stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns} {stat.st_ino}"


def _is_settled(stat: os.stat_result) -> bool:
    """Return whether a later change of the file would get another time."""
    is_coarse = stat.st_ctime_ns % 1_000_000_000 == 0
    return time.time() - stat.st_ctime > (COARSE_TICK_SECONDS if is_coarse else TICK_SECONDS)


def _find_record(file: Path) -> Path | None:
    """Return the path of a file's record in the cache; None if the cache cannot be used."""
    from huggingface_hub import cached_assets_path

    try:
        folder = cached_assets_path("shape-of-learning", namespace="sha256")
    except OSError:
        return None
    return folder / hashlib.sha256(os.fsencode(file)).hexdigest()
