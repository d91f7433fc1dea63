"""The processes that clean a corpus, when the one that they work for is killed."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from shape_of_learning.corpus.python_topics import pages, write_export

WORKFLOW = Path(__file__).parents[2] / "workflow"


def children(process: int) -> list[Path]:
    listed = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [Path(f"/proc/{child}") for child in listed]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")
def test_workers_end_with_a_killed_parent(tmp_path):
    topics = dict(pages())
    export = {f"{name} {copy}": text for copy in range(20) for name, text in topics.items()}
    write_export(tmp_path / "export.xml", export)
    arguments = {
        "input": tmp_path / "export.xml",
        "format": "mediawiki",
        "processes": 2,
        "text": tmp_path / "text.txt",
        "alphabet": tmp_path / "alphabet.json",
    }
    script = WORKFLOW / "scripts" / "clean_corpus.py"
    with subprocess.Popen(
        [sys.executable, script, *(f"--{name}={value}" for name, value in arguments.items())],
        env={"PYTHONPATH": str(WORKFLOW)},
        stderr=subprocess.DEVNULL,
    ) as killed:
        while len(workers := children(killed.pid)) < 3:  # two, and Python's resource tracker
            assert killed.poll() is None
            time.sleep(0.05)
        time.sleep(1)  # at work
        assert killed.poll() is None
        killed.kill()
    deadline = time.monotonic() + 30
    while any(worker.exists() for worker in workers):
        assert time.monotonic() < deadline, "a worker waits for work for ever"
        time.sleep(0.05)
    assert not (tmp_path / "text.txt").exists()
