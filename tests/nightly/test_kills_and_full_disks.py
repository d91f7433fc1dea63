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
# Files with the times of jobs.
PLACES_WITH_TIMES = {"logs", "benchmarks", "provenance", "ro-crate-metadata.json"}


def set_up(folder: Path) -> Checkout:
    checkout = check_out(folder)
    settings = tiny_runs.set_up(checkout)
    checkout.write("tiny.yaml", {**settings, "embeddings": {"keep": True}})
    return checkout


def compute_digests(checkout: Checkout) -> dict[str, str]:
    """Compute the SHA-256 of all results, without files with times and hidden partial files."""
    results = checkout.folder / "results"
    files = (path for path in sorted(results.rglob("*")) if path.is_file())
    return {
        str(path.relative_to(results)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if path.relative_to(results).parts[0] not in PLACES_WITH_TIMES
        and not any(part.startswith(".") for part in path.relative_to(results).parts)
    }


@pytest.fixture(scope="module")
def undisturbed_digests(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    checkout = set_up(tmp_path_factory.mktemp("undisturbed_digests") / "checkout")
    checkout.snakemake(*RUN)
    file_digests = compute_digests(checkout)
    assert len(file_digests) > 50
    return file_digests


def start_run(checkout: Checkout) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "snakemake", *RUN],
        cwd=checkout.folder,
        env=checkout.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # so that jobs are killed with it
    )


def count_files(checkout: Checkout) -> int:
    """Count the files of the results, with partial files."""
    return sum(1 for _ in checkout.folder.joinpath("results").rglob("*"))


def test_a_run_that_is_killed_again_and_again_ends_in_the_same_bytes(tmp_path, undisturbed_digests):
    """Kills come some files after each start, at a random moment, by SIGKILL or SIGTERM."""
    draw, checkout = random.Random(0), set_up(tmp_path / "checkout")
    (checkout.folder / "results").mkdir()
    kills = 0
    while kills < KILLS:
        files_before, more = count_files(checkout), draw.randint(1, 8)
        run = start_run(checkout)
        while run.poll() is None and count_files(checkout) < files_before + more:
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
    assert compute_digests(checkout) == undisturbed_digests
    print(f"\n{kills} kills, {len(undisturbed_digests)} files equal")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", folder], capture_output=True
    )
    if not mount or mount.returncode:
        pytest.skip("this user cannot mount a small disk")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_run_whose_disk_is_full_again_and_again_ends_in_the_same_bytes(
    tmp_path, small_disk, undisturbed_digests
):
    draw, checkout = random.Random(1), set_up(tmp_path / "checkout")
    (checkout.folder / "results").symlink_to(small_disk)
    full, sentences, kilobytes = 0, 0, 200
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
        sentences += "the disk is full" in run.stdout
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
    assert sentences > full / 2
    assert compute_digests(checkout) == undisturbed_digests
    print(f"\n{full} full disks, {sentences} sentences, {len(undisturbed_digests)} files equal")


# Python imports this file when it starts. Once a job opens its log, it gets little more memory than it has. OpenBLAS is
# loaded before, since without memory it would retry for ever while it is loaded.
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


def test_a_run_whose_memory_is_exhausted_again_and_again_ends_in_the_same_bytes(
    tmp_path, undisturbed_digests
):
    draw, checkout = random.Random(2), set_up(tmp_path / "checkout")
    (tmp_path / "start").mkdir()
    (tmp_path / "start/sitecustomize.py").write_text(LITTLE_MEMORY)
    failures, failures_with_sentence, sentences = 0, 0, set()
    while failures < MEMORIES:
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
        failures += 1
        failures_with_sentence += "memory is exhausted" in run.stdout
        sentences |= {line for line in run.stdout.splitlines() if line.startswith("ERROR")}
        assert not re.search(r'File ".*(scripts/|shape_of_learning)', run.stdout), run.stdout[
            -3000:
        ]
        assert not checkout.find_partial_files()
    checkout.snakemake(*RUN)
    assert failures_with_sentence > failures / 2, sentences
    assert compute_digests(checkout) == undisturbed_digests
    equal_files = f"{len(undisturbed_digests)} files equal"
    print(f"\n{failures} times without memory, {failures_with_sentence} sentences, {equal_files}")
