"""Runs that share a folder make each file once: one at a time, and the others wait for it."""

import errno
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from shape_of_learning.storage.files import HOST

logger = logging.getLogger(__name__)

# Of file systems without locks, such as Lustre where it is mounted so.
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
LOOK_SECONDS = 0.2  # between two looks whether the lock is free


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
    counts is not that file but the lock on it, which ends with its process, however that ends. On NFS it
    holds between hosts too. Where a file system has no locks nobody waits, and the log says so.
    """
    path = final.with_name(f".{final.name}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    # A marker file in the place of the lock would outlive a process that is killed on another host.
    lock = FileLock(path, fallback_to_soft=False)
    try:
        _acquire(lock, path, final)
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        logger.info("%s: no lock, other runs may make it too: %s", final, error.strerror)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)  # before the lock ends: removed by nobody but its owner
        lock.release()


def _acquire(lock: FileLock, path: Path, final: Path) -> None:
    try:
        lock.acquire(blocking=False)
    except Timeout:
        who = path.read_text().strip() if path.exists() else ""
        logger.warning("waiting for %s, which is making %s", who or "another process", final)
        lock.acquire(poll_interval=LOOK_SECONDS)
    path.write_text(f"process {os.getpid()} on {HOST}\n")
