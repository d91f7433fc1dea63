"""Files appear under their final name only when they are whole."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shape_of_learning.errors import InputError


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
        ``.{name}.partial`` in the same folder, hence on the same file system, so that the rename is
        atomic. It does not exist yet: the block creates the file or the folder. What an earlier,
        killed run left there is removed first; if the block raises, so is what it wrote.
    """
    final = Path(final)
    final.parent.mkdir(parents=True, exist_ok=True)
    partial = final.with_name(f".{final.name}.partial")
    remove(partial)
    try:
        yield partial
        if final.is_dir():  # a folder, unlike a file, cannot be renamed over
            shutil.rmtree(final)
        partial.rename(final)
    except BaseException:
        remove(partial)
        raise


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
