"""Describe a run: the digests of its results, what each job took, and an RO-Crate of it all."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shape_of_learning.job import job
from shape_of_learning.provenance import workflow_version, write_crate, write_digests, write_jobs


def main(
    outputs: Sequence[Path],
    locks: Sequence[Path],
    benchmarks: Path,
    run: Mapping[str, Any],
    crate: Path,
) -> None:
    """Write the crate into the folder of the results, and what it refers to into ``provenance/`` there."""
    results, workflow = crate.parent, Path(__file__).parents[1]
    folder = results / "provenance"
    (folder / "locks").mkdir(parents=True, exist_ok=True)
    shutil.copyfile(workflow / "Snakefile", folder / "Snakefile")
    copies = [
        Path(shutil.copyfile(lock, folder / "locks" / lock.name)) for lock in locks if lock.exists()
    ]
    digests = write_digests(folder / "outputs.sha256", results, outputs)
    write_jobs(folder / "jobs.csv", benchmarks)
    described_by = [folder / "outputs.sha256", folder / "jobs.csv", *copies]
    write_crate(crate, {**run, "version": workflow_version(workflow)}, digests, described_by)


if __name__ == "__main__":
    with job(snakemake.log[0]):
        main(
            outputs=[Path(file) for file in snakemake.input.results],
            locks=[Path(file) for file in snakemake.params.locks],
            benchmarks=Path(snakemake.params.results, "benchmarks"),
            run=snakemake.params.run,
            crate=Path(snakemake.output.crate),
        )
