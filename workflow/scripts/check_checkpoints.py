"""Write the files that a lock lists for each revision of a model, and the verdicts on them, before any download."""

from pathlib import Path

from shape_of_learning.checkpoints.job import ListingJob
from shape_of_learning.checkpoints.verdict import format_verdict
from shape_of_learning.errors import InputError
from shape_of_learning.files import write_table
from shape_of_learning.job import run_job

COLUMNS = ("step", "tokens", "revision", "commit", "files", "bytes", "hash", "verdict")


def main(job: ListingJob, output: Path) -> None:
    """Write one row per checkpoint; refuse a model with revisions that its lock does not pin."""
    if any(checkpoint.commit is None for checkpoint in job.checkpoints):
        raise InputError(
            f"model `{job.model}` has revisions that are not pinned, because the Hub could not be reached when the "
            "run was planned; check the network, HF_ENDPOINT and HF_HUB_OFFLINE, and run the same command again"
        )
    rows = []
    for revision, step, tokens, commit, files, verdict in job.checkpoints:
        size = sum(file.bytes for file in files.values()) if files else None
        hashes = " ".join(file.hash for file in files.values())
        listing = [" ".join(files), size, hashes]
        rows.append([step, tokens, revision, commit, *listing, format_verdict(verdict)])
    write_table(output, COLUMNS, rows)


if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        main(snakemake.params.job, Path(snakemake.output[0]))
