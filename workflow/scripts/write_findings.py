"""Write the findings on the models of a run, a sentence per line."""

from pathlib import Path

from shape_of_learning.files import atomic_write, read_rows
from shape_of_learning.findings import FindingsJob, find_all_sentences
from shape_of_learning.job import run_job
from shape_of_learning.metrics.tidy import ESTIMATE_COLUMNS


def main(job: FindingsJob, estimates: Path, output: Path) -> None:
    """Read the table of estimates and write the sentences on its checkpoints."""
    rows = [
        dict(zip(ESTIMATE_COLUMNS, row, strict=True))
        for row in read_rows(estimates, ESTIMATE_COLUMNS)
    ]
    with atomic_write(output) as partial:
        lines = [f"{sentence}\n" for sentence in find_all_sentences(rows, job.checkpoints)]
        partial.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        main(snakemake.params.job, Path(snakemake.input[0]), Path(snakemake.output[0]))
