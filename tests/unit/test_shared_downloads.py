"""Several processes that want the same file: one makes it, the others wait and take it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hub_fetching import (
    FILES,
    WEIGHTS,
    assert_same_files,
    command,
    environment,
    fetch,
    names,
    whole_and_large,
)
from hub_server import Proxy, proxied

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "workflow")}
# Adds a line that it has read before: lines are lost if two do so at a time.
MAKER = """
import sys, time
from pathlib import Path
from shape_of_learning.storage.file_lock import made_by_one_process
final = Path(sys.argv[1])
for _ in range(20):
    with made_by_one_process(final):
        lines = final.read_text() if final.exists() else ""
        time.sleep(0.002)
        final.write_text(lines + "x")
"""
HOLDER = """
import sys, time
from pathlib import Path
from shape_of_learning.storage.file_lock import made_by_one_process
with made_by_one_process(Path(sys.argv[1])):
    print("begun", flush=True)
    time.sleep(600)
"""


def test_one_process_at_a_time_makes_a_file(tmp_path):
    final = tmp_path / "file"
    makers = [
        subprocess.Popen([sys.executable, "-c", MAKER, final], env=ENVIRONMENT) for _ in range(4)
    ]
    assert [maker.wait(60) for maker in makers] == [0] * 4
    assert final.read_text() == "x" * 80
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_process_that_is_ended_keeps_nobody_waiting(tmp_path, number):
    final = tmp_path / "file"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, final],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as holder:
        holder.stdout.readline()
        holder.send_signal(number)
    subprocess.run([sys.executable, "-c", MAKER, final], env=ENVIRONMENT, check=True, timeout=60)
    assert names(tmp_path) == ["file"]


def test_a_checkpoint_that_two_runs_fetch_is_downloaded_once(tmp_path, hub_program):
    output = tmp_path / "shared" / "main"
    output.parent.mkdir()
    with whole_and_large(tmp_path / "hub", hub_program) as hub:
        proxy = Proxy(hub.endpoint, stalled=WEIGHTS)
        with proxied(proxy) as endpoint:
            settings = environment(endpoint, tmp_path)
            first = subprocess.Popen(
                command(hub, output, "org/whole", "main", log=tmp_path / "first.log"), env=settings
            )
            assert proxy.reached.wait(60)
            second = subprocess.Popen(
                command(hub, output, "org/whole", "main", log=tmp_path / "second.log"),
                env=settings,
                stderr=subprocess.PIPE,
                text=True,
            )
            waits = second.stderr.readline()
            proxy.released.set()
            assert (first.wait(60), second.wait(60)) == (0, 0)
            assert f"waiting for process {first.pid} on " in waits
            assert str(output) in waits
            assert [len(proxy.ranges_of(name)) for name in FILES] == [1] * len(FILES)
            assert_same_files(output, hub.sources / "whole", FILES)
            assert names(output.parent) == ["main", "main.lock.yaml"]
            made = output.stat().st_ino
            fetch(hub, output, "org/whole", endpoint=endpoint)  # by a third run, when all is there
            assert output.stat().st_ino == made


@pytest.mark.parametrize("answer", ["raise OSError(errno.ENOSYS, 'no flock')", "pass"])
def test_processes_without_locks_both_end_with_the_listed_bytes(tmp_path, hub_program, answer):
    """Where the file system says that it has no locks, and where it says that everybody has one."""
    lockless = f"import errno, fcntl\ndef flock(*_): {answer}\nfcntl.flock = flock\n"
    output = tmp_path / "shared" / "main"
    output.parent.mkdir()
    with whole_and_large(tmp_path / "hub", hub_program) as hub:
        proxy = Proxy(hub.endpoint, stalled=WEIGHTS)
        with proxied(proxy) as endpoint:
            settings = environment(endpoint, tmp_path)
            both = []
            for number in range(2):
                python, option, program, *arguments = command(
                    hub, output, "org/whole", "main", log=tmp_path / f"{number}.log"
                )
                lacking = [python, option, lockless + program, *arguments]
                both.append(subprocess.Popen(lacking, env=settings))
            deadline = time.monotonic() + 60
            while len(proxy.ranges_of(WEIGHTS)) < 2:  # both are amid the same file
                assert time.monotonic() < deadline
                time.sleep(0.05)
            proxy.released.set()
            assert [process.wait(60) for process in both] == [0, 0]
        assert_same_files(output, hub.sources / "whole", FILES)
        assert names(output.parent) == ["main", "main.lock.yaml"]
