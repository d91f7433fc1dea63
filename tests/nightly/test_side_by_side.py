"""Runs side by side, in two folders that share their downloads."""

import hashlib
import subprocess
import sys
import threading
import time
from pathlib import Path

from checkouts import Checkout
from mirrors import Mirror, served

TEXT = "".join(f"the shape of learning, line {number}\n" for number in range(20_000)).encode()
TARGET = "results/corpus/mine/text.txt"
RUN = ("--configfile", "config/demo.yaml", "changes.yaml", "--cores", "1")


def start(checkout: Checkout, folder: Path, address: str) -> subprocess.Popen:
    """A run in the background, which writes what it says to ``run.log``."""
    source = {
        "urls": [address.replace(".zip", ".txt")],
        "format": "text",
        "sha256": hashlib.sha256(TEXT).hexdigest(),
    }
    checkout.write("changes.yaml", {"corpus": {"source": "mine", "sources": {"mine": source}}})
    with (folder / "run.log").open("w") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "snakemake", *RUN, "--directory", folder, "--", TARGET],
            cwd=checkout.folder,
            env=checkout.environment(NO_PROXY="127.0.0.1"),
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def wait_for(holds) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_runs_in_two_folders_that_share_resources_download_once(checkout, tmp_path):
    mirror = Mirror(TEXT, stall=threading.Event())  # hangs half-way until `stall` is set
    shared, folders = tmp_path / "shared", (tmp_path / "one", tmp_path / "two")
    shared.mkdir()
    for folder in folders:
        folder.mkdir()
        (folder / "resources").symlink_to(shared)
    with served(mirror) as address:
        first = start(checkout, folders[0], address)
        wait_for(lambda: mirror.asked)
        second = start(checkout, folders[1], address)
        wait_for(lambda: "Fetching the corpus mine" in (folders[1] / "run.log").read_text())
        time.sleep(5)  # the job has begun
        mirror.stall.set()
        assert (first.wait(60), second.wait(60)) == (0, 0)
    assert mirror.asked == 1, "it was downloaded twice"
    for folder in folders:
        assert (folder / TARGET).read_bytes() == TEXT
