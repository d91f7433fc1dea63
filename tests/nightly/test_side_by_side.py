"""Runs side by side: in one checkout, and in two folders that share their downloads."""

import hashlib
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from checkouts import Checkout
from mirrors import Mirror, served

TEXT = "".join(f"the shape of learning, line {number}\n" for number in range(20_000)).encode()
SHA256 = hashlib.sha256(TEXT).hexdigest()
TARGET = "results/corpus/mine/text.txt"


class Running:
    """A run of Snakemake in the background."""

    def __init__(self, checkout: Checkout, folder: Path, url: str, sha256: str = SHA256):
        folder.mkdir(exist_ok=True)
        source = {
            "urls": [url],
            "format": "text",
            "sha256": sha256,
        }
        changes = checkout.write(
            "changes.yaml", {"corpus": {"source": "mine", "sources": {"mine": source}}}
        )
        self.log = folder / "run.log"
        with self.log.open("w") as stream:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "snakemake", "--cores", "1", "--directory", folder),
                    *("--configfile", "config/demo.yaml", changes, "--", TARGET),
                ],
                cwd=checkout.folder,
                env=checkout.environment(NO_PROXY="127.0.0.1"),
                stdout=stream,
                stderr=subprocess.STDOUT,
            )

    def wait_for(self, what) -> None:
        deadline = time.monotonic() + 60
        while not what():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)

    def end(self) -> str:
        """Wait for its end and return what it has said."""
        self.process.wait(60)
        return self.log.read_text()


@pytest.fixture
def mirror() -> Mirror:
    """Hangs half-way through a download, until `stall` is set."""
    return Mirror(TEXT, stall=threading.Event())


def sharing(folder: Path) -> tuple[Path, tuple[Path, Path]]:
    """Make two folders that share their downloads; return the shared one and both."""
    shared, folders = folder / "shared", (folder / "one", folder / "other")
    shared.mkdir()
    for each in folders:
        each.mkdir()
        (each / "resources").symlink_to(shared)
    return shared, folders


def test_a_second_run_in_one_checkout_ends_at_once_and_does_the_first_no_harm(checkout, mirror):
    with served(mirror) as url:
        first = Running(checkout, checkout.folder, url)
        first.wait_for(lambda: mirror.asked)
        said = checkout.snakemake(
            *("--configfile", "config/demo.yaml", "changes.yaml", "--cores", "1", "--", TARGET),
            succeeds=False,
        )
        assert "LockException" in said
        assert "no other Snakemake process is trying to create the same files" in said
        assert "Traceback" not in said
        assert first.process.poll() is None, "the first has ended, too"
        mirror.stall.set()
        said = first.end()
    assert first.process.returncode == 0, said
    assert (checkout.folder / TARGET).read_bytes() == TEXT


def test_runs_in_two_folders_that_share_resources_download_once(checkout, mirror, tmp_path):
    shared, folders = sharing(tmp_path)
    with served(mirror) as url:
        first = Running(checkout, folders[0], url)
        first.wait_for(lambda: mirror.asked)
        second = Running(checkout, folders[1], url)
        second.wait_for(lambda: "waiting for process" in second.log.read_text())
        mirror.stall.set()
        said = first.end() + second.end()
    assert (first.process.returncode, second.process.returncode) == (0, 0), said
    assert mirror.asked == 1, "it was downloaded twice"
    for folder in folders:
        assert (folder / TARGET).read_bytes() == TEXT
    assert [path.name for path in (shared / "corpus").iterdir()] == ["mine.raw"]


def test_a_run_that_fails_takes_nothing_from_another(checkout, mirror, tmp_path):
    shared, folders = sharing(tmp_path)
    mirror.stall.set()
    with served(mirror) as url:
        assert "100%" in Running(checkout, folders[0], url).end()
        raw = shared / "corpus" / "mine.raw"
        before = raw.stat()
        again = Running(checkout, folders[1], url)
        assert "100%" in again.end()
        assert mirror.asked == 1, "it was downloaded twice"
        (tmp_path / "third").mkdir()
        (tmp_path / "third" / "resources").symlink_to(shared)
        wrong = Running(checkout, tmp_path / "third", url, sha256="0" * 64)
        assert "SHA-256" in wrong.end()
        assert wrong.process.returncode == 1
        Running(checkout, folders[0], url).end()  # writes the right configuration again
    assert (raw.stat().st_mtime_ns, raw.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    arguments = ("--cores", "1", "--directory", str(folders[0]))
    configuration = ("--configfile", "config/demo.yaml", "changes.yaml")
    assert checkout.planned(TARGET, *arguments, *configuration) == {}
