"""Describe a run as an RO-Crate: what it was computed from and by, and the digest of each of its results."""

import argparse
from pathlib import Path

from shape_of_learning.provenance.crate import WrittenFiles, write_crate
from shape_of_learning.provenance.described_run import DescribedRun
from shape_of_learning.provenance.job_list import read_jobs
from shape_of_learning.script_arguments.running import run


def main(
    run: DescribedRun,
    results: Path,
    outputs: list[Path],
    locks: list[Path],
    jobs: tuple[Path, Path],
    output: Path,
) -> None:
    """Write the folder of the description."""
    snakefile = Path(__file__).parents[1] / "Snakefile"
    written = WrittenFiles(results, outputs, locks, snakefile)
    own = Path(__file__).stem  # which an earlier run may have left
    write_crate(output, written, run, [job for job in read_jobs(*jobs) if job.rule != own])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=DescribedRun.from_json, required=True)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--outputs", type=Path, nargs="+", required=True)
    parser.add_argument("--locks", type=Path, nargs="*", default=[])
    parser.add_argument("--jobs", type=Path, nargs=2, required=True, metavar=("LOGS", "BENCHMARKS"))
    parser.add_argument("--output", type=Path, required=True)
    run(main, parser)
