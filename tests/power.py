"""A disk that a power cut takes everything from that was not synced."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

# What the kernel holds back is lost: nothing is committed but by fsync, and data are in no order with names.
OPTIONS = "loop,noatime,data=writeback,noauto_da_alloc,commit=900"


@contextmanager
def disk_with_a_plug(folder: Path, size: str = "128M") -> Iterator[tuple[Path, Callable[[], Path]]]:
    """A disk of its own; skips the test where none can be mounted.

    Yields
    ------
    tuple of Path and callable
        The folder where it is mounted, and what cuts the power: it returns where the disk is mounted as it
        was found afterwards. That is ext4 on what the kernel has sent to the device so far, of which a copy
        is made. Nobody may write at that moment.
    """
    folder.mkdir()
    disk, live, found = folder / "disk", folder / "live", folder / "found"
    with ExitStack() as mounted:

        def mount(image: Path, place: Path) -> None:
            place.mkdir()
            command = ["mount", "-o", OPTIONS, str(image), str(place)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
            mounted.callback(subprocess.run, ["umount", str(place)], check=True)

        def cut() -> Path:
            subprocess.run(["cp", "--sparse=always", disk, folder / "copy"], check=True)
            mount(folder / "copy", found)
            return found

        try:
            subprocess.run(["truncate", "-s", size, disk], check=True)
            subprocess.run(["mkfs.ext4", "-q", "-F", disk], check=True)
        except FileNotFoundError as error:
            pytest.skip(f"no disk can be made here: {error}")
        mount(disk, live)
        yield live, cut
