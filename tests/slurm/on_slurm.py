"""Runs through the committed profile, which tests watch and disturb."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from checkouts import Checkout
from one_host_slurm import OneHostSlurm, SubmittedJob

PROFILE = ("--profile", "workflow/profiles/slurm", "--configfile", "small.yaml")
# A cluster's pace would make every test a minute longer.
PACE = ("--slurm-init-seconds-before-status-checks", "3")
PATIENCE = 480


@dataclass(frozen=True, kw_only=True)
class SlurmCheckout(Checkout):
    """A checkout that is run on a cluster.

    Attributes
    ----------
    plugin_python : Path
        The interpreter that has Snakemake and the plugin.
    slurm : OneHostSlurm
        The cluster.
    """

    plugin_python: Path
    slurm: OneHostSlurm

    def list_jobs(self) -> list[SubmittedJob]:
        """Return the jobs of this checkout in the order of submission."""
        return [job for job in self.slurm.list_jobs() if Path(job.log).is_relative_to(self.folder)]

    def start(self, *arguments: str, targets: tuple[str, ...] = ()) -> subprocess.Popen:
        """Start Snakemake, its output in ``run.log``."""
        # Snakemake is the plugin's; the `python` of the jobs is the one that has the dependencies.
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        with (self.folder / "run.log").open("w") as log:
            return subprocess.Popen(
                [self.plugin_python, "-m", "snakemake", *targets, *PROFILE, *PACE, *arguments],
                cwd=self.folder,
                env={**os.environ, "PATH": path},
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def finish(self, process: subprocess.Popen, *, succeeds: bool = True) -> str:
        """Wait for Snakemake and return all that it printed."""
        try:
            code = process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise AssertionError(f"Snakemake does not end:\n{self.read_log()[-5000:]}") from None
        assert (code == 0) == succeeds, self.read_log()[-5000:]
        return self.read_log()

    def run(self, *arguments: str, targets: tuple[str, ...] = (), succeeds: bool = True) -> str:
        """Run Snakemake to its end."""
        return self.finish(self.start(*arguments, targets=targets), succeeds=succeeds)

    def read_log(self) -> str:
        return (self.folder / "run.log").read_text()

    def wait_for(self, holds: Callable[[SubmittedJob], bool]) -> SubmittedJob:
        """Wait for a job for which `holds` is true."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if job := next(filter(holds, self.list_jobs()), None):
                return job
            time.sleep(0.2)
        raise AssertionError(f"waited in vain; jobs: {self.list_jobs()}\n{self.read_log()[-3000:]}")
