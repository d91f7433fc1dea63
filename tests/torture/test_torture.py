"""Runs that are killed at random moments, and what they leave: a small chain, or the whole demo.

Unfinished: it has not yet been seen to end.
"""

import filecmp
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from checkouts import Checkout, check_out

MOMENTS = int(os.environ.get("TORTURE_MOMENTS", "3"))
WHOLE_DEMO = "TORTURE_WHOLE_DEMO" in os.environ
# Made anew at each run, with times or paths in it.
UNCOMPARED = ("logs", "benchmarks")
RECIPE = {
    "attention_heads": 2,
    "vocabulary": 400,
    "context": 96,
    "batch_size": 4,
    "learning_rate": 0.003,
    "warmup_steps": 1,
    "last_step": 2,
    "threads": 1,
}


def prepare(checkout: Checkout) -> list[str]:
    """Write the configuration and return the arguments that a run takes."""
    if WHOLE_DEMO:
        return ["--configfile", "config/demo.yaml", "--cores", "2"]
    shape = {"layers": 2, "hidden_size": 32}
    small = {
        "small-decoder": {
            "role": "decoder",
            **shape,
            "pretraining": {**RECIPE, "architecture": "gpt_neox"},
        },
        "small-encoder": {
            "role": "encoder",
            **shape,
            "pretraining": {**RECIPE, "architecture": "bert"},
        },
    }
    checkout.write("config/models/small.yaml", small)
    settings = {
        "models": list(small),
        "sampling": {"windows": 32, "window_characters": 96},
        "measurement": {"batch_vectors": 600},
        "figures": {"figure_2": ["small-decoder"], "figure_3": ["small-encoder"]},
    }
    checkout.write("changes.yaml", settings)
    return ["--configfile", "config/demo.yaml", "changes.yaml", "--cores", "2"]


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


class Run:
    """A run of Snakemake, in a process group of its own, with all its jobs."""

    def __init__(self, checkout: Checkout, arguments: list[str]):
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "snakemake", *arguments],
            cwd=checkout.folder,
            env={**os.environ, "PATH": path},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def end(self, how: str) -> None:
        """End it the way `how` says, or find that it has ended."""
        if how == "SIGKILL to all":  # the power fails
            self._signal_all(signal.SIGKILL)
        elif how == "SIGKILL":  # its jobs go on
            self.process.kill()
        elif how == "SIGTERM":
            self.process.terminate()
        elif how == "Ctrl-C":
            self._signal_all(signal.SIGINT)
        self.process.wait(timeout=300)

    def outlived(self, seconds: float = 300) -> None:
        """Wait until the jobs that it has left are gone, too."""
        for _ in range(int(seconds * 10)):
            try:
                os.killpg(self.process.pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.1)
        raise TimeoutError("a job outlives its run")

    def _signal_all(self, number: int) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Checkout, float]:
    """A run that nobody disturbs, with all temporary files kept, and how long it took."""
    checkout = check_out(tmp_path_factory.mktemp("undisturbed") / "checkout")
    arguments = prepare(checkout)
    began = time.monotonic()
    checkout.snakemake(*arguments, "--notemp")
    return checkout, time.monotonic() - began


def test_a_run_that_is_killed_again_and_again_ends_as_if_nothing_had_happened(
    checkout: Checkout, undisturbed
):
    reference, duration = undisturbed
    expected = results(reference.folder)
    arguments = prepare(checkout)
    moments = random.Random(MOMENTS)
    ways = ["SIGKILL to all", "SIGKILL", "SIGTERM", "Ctrl-C"]
    runs = []
    for number in range(MOMENTS):
        checkout.snakemake(*arguments, "--unlock")
        run = Run(checkout, arguments)
        runs.append(run)
        # On the whole they go through the run once, each a little farther than the one before.
        time.sleep(2 + moments.uniform(0.5, 2) * duration / MOMENTS)
        run.end(ways[number % len(ways)])
        if ways[number % len(ways)] != "SIGKILL":
            for inside, path in results(checkout.folder).items():
                assert filecmp.cmp(path, expected[inside], shallow=False), f"{inside} is not whole"
    for run in runs:
        run.outlived()
    checkout.snakemake(*arguments, "--unlock")
    checkout.snakemake(*arguments)
    found = results(checkout.folder)
    temporary = ("embeddings", "neighbours")
    assert {p for p in expected if p.parts[1] not in temporary} == {
        p for p in found if p.parts[1] not in temporary
    }
    for inside, path in found.items():
        assert filecmp.cmp(path, expected[inside], shallow=False), inside
    assert not checkout.partial_files()
