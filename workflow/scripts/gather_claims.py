"""Gather the verdicts on the claims of all papers, and estimate how many may be false."""

from pathlib import Path

from shape_of_learning.claims.page import write_family
from shape_of_learning.job import run_job

if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        write_family([Path(path) for path in snakemake.input], *map(Path, snakemake.output))
