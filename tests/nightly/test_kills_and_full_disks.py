"""A run that is killed, or whose disk or memory is full, ends with the bytes of an undisturbed one once resumed."""

import hashlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import tiny_runs
from checkouts import Checkout, check_out

KILLS = int(os.environ.get("KILLS", "15"))
DISKS = int(os.environ.get("FULL_DISKS", "12"))
MEMORIES = int(os.environ.get("FULL_MEMORIES", "12"))
RUN = ("--configfile", "tiny.yaml", "--cores", "2")
# What says how long jobs took.
OF_TIME = {"logs", "benchmarks", "provenance", "ro-crate-metadata.json"}


def set_up(folder: Path) -> Checkout:
    checkout = check_out(folder)
    settings = tiny_runs.set_up(checkout)
    checkout.write("tiny.yaml", {**settings, "embeddings": {"keep": True}})
    return checkout


def digests(checkout: Checkout) -> dict[str, str]:
    """Each file of the results and its SHA-256; what holds times, or is half-written and hidden, does not count."""
    results = checkout.folder / "results"
    found = (path for path in sorted(results.rglob("*")) if path.is_file())
    return {
        str(path.relative_to(results)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in found
        if path.relative_to(results).parts[0] not in OF_TIME
        and not any(part.startswith(".") for part in path.relative_to(results).parts)
    }


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    checkout = set_up(tmp_path_factory.mktemp("undisturbed") / "checkout")
    checkout.snakemake(*RUN)
    found = digests(checkout)
    assert len(found) > 50
    return found


def begin(checkout: Checkout) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "snakemake", *RUN],
        cwd=checkout.folder,
        env=checkout.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # so that jobs are killed with it
    )


def made(checkout: Checkout) -> int:
    """How many files there are, half-written ones included."""
    return sum(1 for _ in checkout.folder.joinpath("results").rglob("*"))


def test_a_run_that_is_killed_again_and_again_ends_in_the_same_bytes(tmp_path, undisturbed):
    """Kills come some files after each start, at a random moment, by SIGKILL or SIGTERM."""
    draw, checkout = random.Random(0), set_up(tmp_path / "checkout")
    (checkout.folder / "results").mkdir()
    kills = 0
    while kills < KILLS:
        before, more = made(checkout), draw.randint(1, 8)
        run = begin(checkout)
        while run.poll() is None and made(checkout) < before + more:
            time.sleep(0.02)
        time.sleep(draw.uniform(0, 1))
        if run.poll() is not None:
            break
        os.killpg(run.pid, draw.choice([signal.SIGKILL, signal.SIGTERM]))
        run.wait()
        kills += 1
        checkout.snakemake("--unlock", *RUN)
    checkout.snakemake(*RUN)
    assert kills >= min(KILLS, 5), "the run ended before it was killed often"
    assert digests(checkout) == undisturbed
    print(f"\n{kills} kills, {len(undisturbed)} files equal")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", folder], capture_output=True
    )
    if not mounted or mounted.returncode:
        pytest.skip("this user cannot mount a small disk")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_run_whose_disk_is_full_again_and_again_says_so_and_ends_in_the_same_bytes(
    tmp_path, small_disk, undisturbed
):
    draw, checkout = random.Random(1), set_up(tmp_path / "checkout")
    (checkout.folder / "results").symlink_to(small_disk)
    full, told, kilobytes = 0, 0, 200
    while full < DISKS:
        run = subprocess.run(
            [sys.executable, "-m", "snakemake", *RUN],
            cwd=checkout.folder,
            env=checkout.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if run.returncode == 0:
            break
        full += 1
        told += "the disk is full" in run.stdout
        # Snakemake itself may find no room for its benchmarks; our jobs have a sentence.
        assert not re.search(r'File ".*(scripts/|shape_of_learning)', run.stdout), run.stdout[
            -3000:
        ]
        used = shutil.disk_usage(small_disk).used // 1024
        kilobytes = max(kilobytes, used) + draw.randint(50, 1200)
        remount = ["mount", "-o", f"remount,size={kilobytes}k", small_disk]
        subprocess.run(remount, check=True)
    subprocess.run(["mount", "-o", "remount,size=500m", small_disk], check=True)
    checkout.snakemake(*RUN)
    assert told > full / 2
    assert digests(checkout) == undisturbed
    print(f"\n{full} full disks, {told} sentences, {len(undisturbed)} files equal")


# Python imports this file when it starts. Once a job opens its log, it gets little more memory than it has. OpenBLAS is
# loaded before, since it tries for ever where there is no memory while it is loaded.
LITTLE_MEMORY = """
import os, resource, sys

def limit_memory(event, arguments):
    if event == "open" and str(arguments[0]).endswith(".log") and arguments[1] == "w":
        pages = int(open("/proc/self/statm").read().split()[0])
        limit = pages * resource.getpagesize() + int(os.environ["MORE_MEMORY"])
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

if ".snakemake/scripts/" in " ".join(sys.orig_argv):
    import numpy.linalg, scipy.linalg
    sys.addaudithook(limit_memory)
"""


def test_a_run_whose_memory_is_exhausted_again_and_again_says_so_and_ends_in_the_same_bytes(
    tmp_path, undisturbed
):
    draw, checkout = random.Random(2), set_up(tmp_path / "checkout")
    (tmp_path / "start").mkdir()
    (tmp_path / "start/sitecustomize.py").write_text(LITTLE_MEMORY)
    failed, told, sentences = 0, 0, set()
    while failed < MEMORIES:
        more = str(draw.randint(0, 2 ** draw.randint(10, 30)))
        environment = checkout.environment(MORE_MEMORY=more)
        environment["PYTHONPATH"] = str(tmp_path / "start")
        run = subprocess.run(
            [sys.executable, "-m", "snakemake", *RUN],
            cwd=checkout.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if run.returncode == 0:
            break
        failed += 1
        told += "memory is exhausted" in run.stdout
        sentences |= {line for line in run.stdout.splitlines() if line.startswith("ERROR")}
        assert not re.search(r'File ".*(scripts/|shape_of_learning)', run.stdout), run.stdout[
            -3000:
        ]
        assert not checkout.partial_files()
    checkout.snakemake(*RUN)
    assert told > failed / 2, sentences
    assert digests(checkout) == undisturbed
    print(f"\n{failed} times without memory, {told} sentences, {len(undisturbed)} files equal")
