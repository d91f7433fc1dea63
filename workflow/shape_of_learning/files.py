"""Files appear under their final name only when they are whole."""

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


@contextmanager
def written_beside(final: Path) -> Iterator[Path]:
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
    """
    final = Path(final)
    final.parent.mkdir(parents=True, exist_ok=True)
    for abandoned in filter(_is_abandoned, _partials(final)):
        remove(abandoned)
    partial = final.with_name(f".{final.name}.{HOST}-{os.getpid()}.partial")
    try:
        yield partial
        if final.is_dir():  # a folder, unlike a file, cannot be renamed over
            with suppress(FileNotFoundError):
                final.rename(aside := partial.with_suffix(".old.partial"))
            partial.rename(final)
            remove(aside)
        else:
            partial.rename(final)
    except BaseException:
        remove(partial)
        raise


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
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    free = shutil.disk_usage(existing).free
    if free < needed:
        raise InputError(
            f"{folder} needs {needed / 1e6:,.1f} MB, but {free / 1e6:,.1f} MB are free there; free some, "
            "or run in another folder with `--directory`"
        )


def remove(path: Path) -> None:
    """Remove a file or a folder with all it holds; nothing happens if there is none."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
