"""Files appear under their final name only when they are whole, and on the disk."""

import errno
import os
import platform
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shape_of_learning.errors import InputError

HOST = platform.node().partition(".")[0] or "host"
ABANDONED_SECONDS = 24 * 3600
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
# Of file systems that have nothing to wait for, or no way to: some do not sync folders.
CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)


@contextmanager
def atomic_write(final: Path) -> Iterator[Path]:
    """Yield a path beside `final` to write to, and rename it to `final` once the block succeeds.

    Parameters
    ----------
    final : Path
        File or folder to produce. Its parent is created; an older `final` is replaced.

    Yields
    ------
    Path
        ``.{name}.{host}-{process}.partial`` in the same folder, hence on the same file system, so that the
        rename is atomic. It does not exist yet: the block creates the file or the folder. If the block
        raises, what it wrote is removed. No other process writes to it, even if a killed run has left its
        jobs running; what such processes leave behind is removed once they are gone.

    Notes
    -----
    Content is on the disk before it has its name, and the name is before this returns: a power cut leaves a
    whole file or none.

    Raises
    ------
    InputError
        If the disk is full or read-only.
    """
    final = Path(final)
    partial = final.with_name(f".{final.name}.{HOST}-{os.getpid()}.partial")
    try:
        made = _make_folders(final.parent)
        for abandoned in filter(_is_abandoned, _partials(final)):
            remove(abandoned)
        yield partial
        _sync_whole(partial)
        _give_name(partial, final)
        for folder in (final.parent, *(folder.parent for folder in made)):
            _sync(folder)
    except BaseException as error:
        with suppress(OSError):  # which would hide the reason
            remove(partial)
        if said := disk_is_full_or_read_only(error, final):
            raise InputError(said) from error
        raise


def _make_folders(folder: Path) -> list[Path]:
    """Make a folder and those that it lies in; return the ones that were not there, innermost first."""
    missing = []
    for path in (folder, *folder.absolute().parents):
        if path.exists():
            break
        missing.append(path)
    folder.mkdir(parents=True, exist_ok=True)
    return missing


def _sync_whole(written: Path) -> None:
    """Wait until a file, or a folder with all it holds, is on the disk."""
    if written.is_dir():
        for folder, _, files in os.walk(written, topdown=False):
            for name in files:
                _sync(Path(folder, name))
            _sync(Path(folder))
    else:
        _sync(written)


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in CANNOT_SYNC:
            raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        os.close(descriptor)


def _give_name(partial: Path, final: Path) -> None:
    """Rename; what has the name already, perhaps since a moment ago, goes."""
    aside = partial.with_suffix(".old.partial")
    while True:
        try:
            partial.rename(final)
            break
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        # Onto a folder that holds anything, unlike onto a file, nothing can be renamed.
        remove(aside)
        with suppress(FileNotFoundError):  # another process has moved it away
            final.rename(aside)
    remove(aside)


def _partials(final: Path) -> list[Path]:
    """What processes have written, or are writing, beside a final name."""
    own = re.compile(rf"\.{re.escape(final.name)}\.[^.]+-\d+(\.old)?\.partial")
    return [path for path in final.parent.iterdir() if own.fullmatch(path.name)]


def _is_abandoned(partial: Path) -> bool:
    """Whether the process that wrote it has ended; of another host's, whether it has been still for a day."""
    host, _, process = partial.name.removesuffix(".partial").removesuffix(".old").rpartition("-")
    if host.rpartition(".")[2] != HOST:
        with suppress(FileNotFoundError):
            return time.time() - partial.stat().st_mtime > ABANDONED_SECONDS
        return False
    if int(process) == os.getpid():
        return True  # an earlier process had the same number
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # somebody else's, alive
        return False
    return False


def disk_is_full_or_read_only(error: BaseException, path: Path | str) -> str | None:
    """Say in one sentence why `path` could not be written; None if `error` is of another kind."""
    number = _error_number(error)
    if number in DISK_FULL:
        return (
            f"the disk is full: {path} could not be written; free some space and run again, or run in "
            "another folder with `--directory`"
        )
    if number == errno.EROFS:
        return _not_writable(path, os.strerror(number))
    return None


def _error_number(error: BaseException) -> int | None:
    """The system's number of an error; libraries in Rust and HDF5 have it in their words alone."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    said = re.search(r"(?:\(os error|errno =) (\d+)", str(error))
    return int(said[1]) if said else None


def _not_writable(path: Path | str, reason: str | None) -> str:
    return (
        f"{path} cannot be written to ({reason}); make its folder writable, or run in another with "
        "`--directory`"
    )


def require_writable(folder: Path) -> None:
    """Raise InputError if nothing may be written into a folder, or the one that it would be made in."""
    existing = _existing(folder)
    if not (existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)):
        raise InputError(_not_writable(existing.absolute(), "read-only, or no folder"))


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.absolute().parents) if path.exists())


def require_space(folder: Path, needed: int) -> None:
    """Refuse to start what would fill the disk.

    Parameters
    ----------
    folder : Path
        Where the files will be; need not exist yet.
    needed : int
        Bytes that they will take.

    Raises
    ------
    InputError
        If fewer are free; the message says how many.
    """
    free = shutil.disk_usage(_existing(folder)).free
    if free < needed:
        raise InputError(
            f"{folder} needs {needed / 1e6:,.1f} MB, but {free / 1e6:,.1f} MB are free there; free some, "
            "or run in another folder with `--directory`"
        )


def remove(path: Path) -> None:
    """Remove a file or a folder with all it holds; nothing happens if there is none."""
    if path.is_dir() and not path.is_symlink():
        with suppress(FileNotFoundError):  # another process removes it, too
            shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
