"""Runs that share a folder download each file once: one at a time, and the others wait for it."""

import errno
import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from shape_of_learning.storage.files import HOST

logger = logging.getLogger(__name__)

# Of file systems without locks, such as Lustre where it is mounted so.
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


@contextmanager
def made_by_one_process(final: Path) -> Iterator[None]:
    """Let one process at a time make `final`; another one waits, and says for whom.

    Parameters
    ----------
    final : Path
        File or folder. Whoever has waited should look whether it is there now.

    Notes
    -----
    ``.{name}.lock`` beside it holds the host and the number of the process; it is removed at the end. What
    counts is not that file but the lock on it (`flock`), which ends with its process, however that ends. On
    NFS it holds between hosts too. Where a file system has no locks nobody waits, and the log says so.
    """
    path = final.with_name(f".{final.name}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    file = _locked(path, final)
    try:
        yield
    finally:
        # In this order: removed by nobody but its owner.
        path.unlink(missing_ok=True)
        file.close()


def _locked(path: Path, final: Path) -> TextIO:
    while True:
        file = path.open("a+")
        try:
            _lock(file, final)
            # The process that had it has removed it; then this lock is on a file without a name.
            if _is_still(path, file):
                file.truncate(0)
                print(f"process {os.getpid()} on {HOST}", file=file, flush=True)
                return file
        except BaseException:
            file.close()
            raise
        file.close()


def _lock(file: TextIO, final: Path) -> None:
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            who = file.read().strip() or "another process"
            logger.warning("waiting for %s, which is making %s", who, final)
            fcntl.flock(file, fcntl.LOCK_EX)
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        logger.info("%s: no lock, other runs may download it too: %s", final, error.strerror)


def _is_still(path: Path, file: TextIO) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
