"""Describe a run: its configuration, the digests of its results, what each job took, and an RO-Crate of it all."""

from pathlib import Path

from shape_of_learning.job import run_job
from shape_of_learning.provenance import describe_run

if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        describe_run(
            outputs=[Path(file) for file in snakemake.input.results],
            locks=[Path(file) for file in snakemake.params.locks],
            benchmarks=Path(snakemake.params.results, "benchmarks"),
            run=snakemake.params.run,
            configuration=snakemake.params.configuration,
            crate_file=Path(snakemake.output.crate),
        )
