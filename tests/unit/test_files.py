import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shape_of_learning.errors import InputError
from shape_of_learning.storage.files import HOST, atomic_write

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "workflow")}


def test_a_file_appears_only_when_it_is_whole(tmp_path):
    final = tmp_path / "deep" / "result.csv"
    with atomic_write(final) as partial:
        partial.write_text("all of it")
        assert not final.exists()
    assert final.read_text() == "all of it"
    assert list(final.parent.iterdir()) == [final]


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_failure_leaves_nothing_new_and_keeps_what_was_there(tmp_path, kind):
    final = tmp_path / "result"
    for content in ("old", "new"):
        try:
            with atomic_write(final) as partial:
                target = partial if kind == "file" else partial / "inside"
                target.parent.mkdir(exist_ok=True)
                target.write_text(content)
                if content == "new":
                    raise RuntimeError("the power fails")
        except RuntimeError:
            pass
    kept = final if kind == "file" else final / "inside"
    assert kept.read_text() == "old"
    assert list(tmp_path.iterdir()) == [final]


def test_a_folder_replaces_an_older_one_entirely(tmp_path):
    final = tmp_path / "folder"
    for name in ("old", "new"):
        with atomic_write(final) as partial:
            partial.mkdir()
            (partial / name).touch()
    assert [path.name for path in final.iterdir()] == ["new"]


def ended_process() -> int:
    """Number of a process that is no more."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_what_a_killed_run_left_is_removed(tmp_path):
    left = tmp_path / f".result.{HOST}-{ended_process()}.partial"
    left.mkdir()
    with atomic_write(tmp_path / "result") as partial:
        partial.write_text("fresh")
    assert list(tmp_path.iterdir()) == [tmp_path / "result"]


def test_a_process_that_is_alive_keeps_what_it_writes(tmp_path):
    writing = tmp_path / f".result.{HOST}-{os.getppid()}.partial"
    writing.write_text("half of it")
    with atomic_write(tmp_path / "result") as partial:
        partial.write_text("fresh")
    assert writing.read_text() == "half of it"


def test_what_another_host_writes_is_left_alone_for_a_day(tmp_path):
    recent, old = (tmp_path / f".result.elsewhere-{number}.partial" for number in (1, 2))
    for path in (recent, old):
        path.touch()
    os.utime(old, (0, 0))
    with atomic_write(tmp_path / "result") as partial:
        partial.touch()
    assert {path.name for path in tmp_path.iterdir()} == {"result", recent.name}


def test_other_files_with_similar_names_are_left_alone(tmp_path):
    others = {".result.csv.host-1.partial", ".result.mirror.partial", ".result.partial"}
    for name in others:
        (tmp_path / name).touch()
    with atomic_write(tmp_path / "result") as partial:
        partial.touch()
    assert {path.name for path in tmp_path.iterdir()} == others | {"result"}


def test_content_is_synced_before_it_has_its_name_and_the_name_thereafter(tmp_path, monkeypatch):
    """Of which a file system may show nothing: ext4 writes down all names with any one."""
    done = []
    sync, rename = os.fsync, Path.rename

    def watched_sync(descriptor: int) -> None:
        done.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        sync(descriptor)

    def watched_rename(path: Path, target: Path) -> Path:
        done.append(f"{path} -> {target}")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", watched_sync)
    monkeypatch.setattr(Path, "rename", watched_rename)
    final = tmp_path / "new" / "newer" / "folder"
    with atomic_write(final) as partial:
        (partial / "inside").mkdir(parents=True)
        (partial / "inside" / "file").write_text("all of it")
    named = done.index(f"{partial} -> {final}")
    within = [str(partial / "inside" / "file"), str(partial / "inside"), str(partial)]
    assert done[:named] == within
    assert done[named + 1 :] == [
        str(tmp_path / "new" / "newer"),
        str(tmp_path / "new"),
        str(tmp_path),
    ]


@pytest.mark.parametrize(
    "reason",
    [
        "Error while serializing: I/O error: No space left on device (os error 28)",
        "Unable to write (file write failed: errno = 28, error message = 'No space left on device')",
    ],
)
def test_a_full_disk_is_one_sentence_whoever_says_so(tmp_path, reason):
    def write() -> None:
        with atomic_write(tmp_path / "result"):
            raise RuntimeError(reason)

    with pytest.raises(InputError, match=r"the disk is full: .*result could not be written"):
        write()
    assert not list(tmp_path.iterdir())


WRITER = """
import sys, time
from pathlib import Path
from shape_of_learning.storage.files import atomic_write
with atomic_write(Path(sys.argv[1])) as partial:
    partial.mkdir()
    for i in range(200):
        (partial / str(i)).write_text("x" * 1000)
"""


def test_a_folder_is_whole_or_absent_whenever_its_writer_is_killed(tmp_path):
    """Also while an older one is replaced."""
    final = tmp_path / "folder"
    moments = random.Random(0)
    for _ in range(12):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(final)], env=ENVIRONMENT)
        time.sleep(moments.uniform(0.02, 0.2))
        writer.kill()
        writer.wait()
        if final.exists():
            assert len(list(final.iterdir())) == 200
    subprocess.run([sys.executable, "-c", WRITER, str(final)], env=ENVIRONMENT, check=True)
    assert list(tmp_path.iterdir()) == [final]
    assert len(list(final.iterdir())) == 200


REPLACERS = """
import sys
from pathlib import Path
from shape_of_learning.storage.files import atomic_write
for _ in range(100):
    with atomic_write(Path(sys.argv[1])) as partial:
        partial.mkdir()
        (partial / "inside").touch()
"""


def test_processes_that_replace_the_same_folder_do_not_make_each_other_fail(tmp_path):
    """As a job that outlives its run, and the one that a new run starts."""
    final = tmp_path / "folder"
    command = [sys.executable, "-c", REPLACERS, str(final)]
    processes = [subprocess.Popen(command, env=ENVIRONMENT) for _ in range(4)]
    assert [process.wait(60) for process in processes] == [0] * 4
    assert list(tmp_path.iterdir()) == [final]
    assert [path.name for path in final.iterdir()] == ["inside"]
