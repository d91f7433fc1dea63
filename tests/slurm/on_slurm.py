"""Runs through the committed profile, watched and disturbed from outside."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from checkouts import Checkout
from one_host_slurm import OneHostSlurm, Submitted

PROFILE = ("--profile", "workflow/profiles/slurm", "--configfile", "small.yaml")
# A cluster's pace would make every test a minute longer.
PACE = ("--slurm-init-seconds-before-status-checks", "3")
PATIENCE = 480


@dataclass(frozen=True, kw_only=True)
class SlurmCheckout(Checkout):
    """A checkout that is run on a cluster.

    Attributes
    ----------
    with_plugin : Path
        The interpreter that has Snakemake and the plugin.
    slurm : OneHostSlurm
        The cluster.
    """

    with_plugin: Path
    slurm: OneHostSlurm

    def jobs(self) -> list[Submitted]:
        """What has been submitted from this checkout, in the order of submission."""
        return [job for job in self.slurm.jobs() if Path(job.log).is_relative_to(self.folder)]

    def start(self, *arguments: str, targets: tuple[str, ...] = ()) -> subprocess.Popen:
        """Start Snakemake, its output in ``run.log``."""
        # Snakemake is the plugin's; the `python` of the jobs is the one that has the dependencies.
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        with (self.folder / "run.log").open("w") as log:
            return subprocess.Popen(
                [self.with_plugin, "-m", "snakemake", *targets, *PROFILE, *PACE, *arguments],
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
            raise AssertionError(f"Snakemake does not end:\n{self.printed()[-5000:]}") from None
        assert (code == 0) == succeeds, self.printed()[-5000:]
        return self.printed()

    def run(self, *arguments: str, targets: tuple[str, ...] = (), succeeds: bool = True) -> str:
        """Run Snakemake to its end."""
        return self.finish(self.start(*arguments, targets=targets), succeeds=succeeds)

    def printed(self) -> str:
        return (self.folder / "run.log").read_text()

    def wait_for(self, holds: Callable[[Submitted], bool]) -> Submitted:
        """Wait for a job of which `holds` is true."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if found := next(filter(holds, self.jobs()), None):
                return found
            time.sleep(0.2)
        raise AssertionError(f"waited in vain; jobs: {self.jobs()}\n{self.printed()[-3000:]}")
