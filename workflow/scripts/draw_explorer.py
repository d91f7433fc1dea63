"""Put all results of a run into one page that needs no server and no network."""

from pathlib import Path

from shape_of_learning.explorer.explorer_page import format_page, read_content, read_table
from shape_of_learning.explorer.job import ExplorerJob
from shape_of_learning.files import atomic_write
from shape_of_learning.job import run_job


def main(
    job: ExplorerJob,
    estimates: Path,
    findings: Path,
    verdicts: list[Path],
    tables: list[Path],
    claims: list[Path],
    choices: list[Path],
    output: Path,
) -> None:
    """Read the tables and write the page; parameters as in :func:`.read_content`."""
    sentences = findings.read_text(encoding="utf-8").splitlines()
    rows = read_table(estimates)
    content = read_content(job, rows, sentences, verdicts, tables, claims, choices)
    with atomic_write(output) as partial:
        partial.write_text(format_page(content), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        main(
            snakemake.params.job,
            estimates=Path(snakemake.input.estimates),
            findings=Path(snakemake.input.findings),
            verdicts=[Path(path) for path in snakemake.input.verdicts],
            tables=[Path(path) for path in snakemake.input.tables],
            claims=[Path(path) for path in snakemake.input.claims],
            choices=[Path(path) for path in snakemake.input.choices],
            output=Path(snakemake.output[0]),
        )
