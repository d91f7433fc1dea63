"""Write down what a lock lists of each revision of a model, and the verdict on it, before any download."""

from pathlib import Path
from typing import Any

from shape_of_learning.errors import InputError
from shape_of_learning.files import write_table
from shape_of_learning.job import run_job

COLUMNS = ("step", "tokens", "revision", "commit", "files", "bytes", "hash", "verdict")


def main(model: str, rows: list[list[Any]], output: Path) -> None:
    """Write one row per checkpoint; none has a commit if the lock does not pin it."""
    if any(row[COLUMNS.index("commit")] is None for row in rows):
        raise InputError(
            f"model `{model}`: not all its revisions are pinned, because the Hub could not be reached when the "
            "run was planned; check the network, HF_ENDPOINT and HF_HUB_OFFLINE, and run the same command again"
        )
    write_table(output, COLUMNS, rows)


if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        main(snakemake.wildcards.model, snakemake.params.rows, Path(snakemake.output[0]))
