"""Describe a run: its configuration, the digests of its results, the time and memory of its jobs, and an RO-Crate."""

from pathlib import Path

from shape_of_learning.job import run_job
from shape_of_learning.provenance.crate import describe_run

if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        describe_run(
            snakemake.params.job,
            results=[Path(file) for file in snakemake.input.results],
            crate_file=Path(snakemake.output.crate),
        )
