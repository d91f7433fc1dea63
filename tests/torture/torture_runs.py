"""Runs of Snakemake that can be watched and ended, and what they leave."""

import filecmp
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from checkouts import Checkout, check_out

POLL_SECONDS = 0.05
WAYS = ("SIGKILL to all", "SIGTERM", "Ctrl-C", "SIGKILL")
# Made anew at each run, with times or paths in it.
UNCOMPARED = ("logs", "benchmarks", "provenance")


TIMED = Path("tables", "edits")  # whose last column says how long it took


def is_same(one: Path, other: Path) -> bool:
    """Whether two files have the same bytes, apart from when something was done and how long it took."""
    if one.parent.name == "provenance":
        return other.exists()
    if not one.parent.match(f"*/{TIMED}"):
        return filecmp.cmp(one, other, shallow=False)
    if one.suffix == ".sha256":
        return other.exists()
    lines = ([line.rpartition(",")[0] for line in p.read_text().split()] for p in (one, other))
    return next(lines) == next(lines)


@dataclass(frozen=True)
class Moment:
    """When a run is disturbed: some seconds after no more than so many jobs are left."""

    jobs_left: int
    seconds: float


@dataclass(frozen=True)
class Undisturbed:
    """A run that nobody disturbed.

    Attributes
    ----------
    checkout, pristine : Checkout
        Where it ran, and another of the same code for runs that are disturbed.
    arguments : list of str
        What Snakemake was given, and is to be given there.
    seconds : float
        How long it took.
    timeline : list of (float, int)
        Seconds since its start, and how many jobs were left from then on.
    """

    checkout: Checkout
    pristine: Checkout
    arguments: list[str]
    seconds: float
    timeline: list[tuple[float, int]]

    def moment(self, at: float) -> Moment:
        """What this run had done `at` so many seconds: another may need longer for it."""
        since, left = max(item for item in self.timeline if item[0] <= at)
        return Moment(left, at - since)

    def moments(self, number: int, random: random.Random) -> list[Moment]:
        """Moments that are random over the time since the first job began, in their order."""
        began = self.timeline[0][0]
        return [
            self.moment(at)
            for at in sorted(random.uniform(began, self.seconds) for _ in range(number))
        ]


class Run:
    """A run of Snakemake, in a process group of its own, with all its jobs."""

    def __init__(self, checkout: Checkout, arguments: list[str], log: Path):
        self.log = log
        self.began = time.monotonic()
        with log.open("w") as stream:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "snakemake", *arguments],
                cwd=checkout.folder,
                env=checkout.environment(),
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def jobs_left(self) -> int | None:
        """How many jobs it still has to do, as it says itself; None before it has begun."""
        said = self.log.read_text()
        if done := re.findall(r"^(\d+) of (\d+) steps", said, re.MULTILINE):
            return int(done[-1][1]) - int(done[-1][0])
        total = re.search(r"^total\s+(\d+)$", said, re.MULTILINE)
        return int(total[1]) if total else None

    def watched_to_its_end(self) -> list[tuple[float, int]]:
        """The timeline of the run."""
        timeline: list[tuple[float, int]] = []
        while self.process.poll() is None:
            left = self.jobs_left()
            if left is not None and (not timeline or timeline[-1][1] != left):
                timeline.append((time.monotonic() - self.began, left))
            time.sleep(POLL_SECONDS)
        return timeline

    def reaches(self, moment: Moment) -> bool:
        """Wait for a moment; whether the run has not ended before."""
        while (left := self.jobs_left()) is None or left > moment.jobs_left:
            if self.process.poll() is not None:
                return False
            time.sleep(POLL_SECONDS)
        try:
            self.process.wait(moment.seconds)
        except subprocess.TimeoutExpired:
            return True
        return False

    def end(self, way: str) -> None:
        """End it in one of `WAYS`."""
        if way == "SIGKILL to all":  # the power fails
            os.killpg(self.process.pid, signal.SIGKILL)
        elif way == "SIGKILL":  # its jobs go on
            self.process.kill()
        elif way == "SIGTERM":  # it waits for them
            self.process.terminate()
        elif way == "Ctrl-C":
            os.killpg(self.process.pid, signal.SIGINT)
        self.process.wait(timeout=300)

    def outlived(self, seconds: float) -> None:
        """Wait until the jobs that it has left are gone, too; raises TimeoutError if they stay."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                os.killpg(self.process.pid, 0)
            except ProcessLookupError:
                return
            time.sleep(POLL_SECONDS)
        os.killpg(self.process.pid, signal.SIGKILL)
        raise TimeoutError(f"a job outlives its run by {seconds} seconds")


def undisturbed(folder: Path, chain: Callable[[Checkout], list[str]]) -> Undisturbed:
    """Check out into `folder` and run to the end, with all temporary files kept."""
    checkout, pristine = check_out(folder / "checkout"), check_out(folder / "it's pristine")
    arguments = chain(checkout)
    assert chain(pristine) == arguments
    run = Run(checkout, ["--notemp", *arguments], folder / "log")
    timeline = run.watched_to_its_end()
    assert run.process.returncode == 0, run.log.read_text()[-5000:]
    return Undisturbed(checkout, pristine, arguments, time.monotonic() - run.began, timeline)


def results(folder: Path) -> dict[Path, Path]:
    """Everything under a final name: path within the run -> file."""
    found = {}
    for top in ("results", "resources"):
        for path in (folder / top).rglob("*"):
            inside = path.relative_to(folder)
            hidden = any(part.startswith(".") for part in inside.parts)
            if path.is_file() and not hidden and inside.parts[1] not in UNCOMPARED:
                found[inside] = path
    return found
