"""The workflow's scripts as contenders: whole programs, start-up included, as a job runs them."""

import subprocess
import sys
import time
from collections.abc import Callable

import psutil

from benchmarks.contest import ROOT

SCRIPTS = ROOT / "workflow" / "scripts"
SAMPLING_SECONDS = 0.1


def script(name: str, arguments: list[str]) -> list[str]:
    """Return the command of a script."""
    return [sys.executable, str(SCRIPTS / f"{name}.py"), *arguments]


def with_children(name: str, arguments: list[str]) -> Callable[[], dict[str, float]]:
    """Run a script and add up the memory of all its processes, several times a second."""

    def work() -> dict[str, float]:
        start = time.perf_counter()
        process = subprocess.Popen(script(name, arguments), stdout=subprocess.DEVNULL)
        peak = 0
        while process.poll() is None:
            peak = max(peak, resident(process.pid))
            time.sleep(SAMPLING_SECONDS)
        seconds = time.perf_counter() - start
        if process.returncode:
            raise RuntimeError(f"{name}.py failed")
        return {"seconds": seconds, "all processes, GB": peak / 1e9}

    return work


def resident(pid: int) -> int:
    """Bytes in memory of a process and its descendants; what they share counts for each."""
    try:
        parent = psutil.Process(pid)
        family = [parent, *parent.children(recursive=True)]
    except psutil.Error:
        return 0
    total = 0
    for each in family:
        try:
            total += each.memory_info().rss
        except psutil.Error:  # it has ended
            continue
    return total
