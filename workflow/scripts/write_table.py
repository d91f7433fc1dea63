"""Write one table of a paper, as CSV and as Markdown."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

from shape_of_learning.figures.captions import escape_markup
from shape_of_learning.figures.inputs import read_tables
from shape_of_learning.figures.job import TableJob
from shape_of_learning.figures.output import save_table
from shape_of_learning.files import atomic_write
from shape_of_learning.job import run_job


def main(job: TableJob, tables: Mapping[str, Sequence[Path]], csv: Path, markdown: Path) -> None:
    """Write both files from the entries of models, and from the tables if there are any."""
    module, _, name = job.function.partition(":")
    arguments = [read_tables(tables)] if tables else []
    table, text = getattr(import_module(module), name)(job.entries, *arguments)
    save_table(table, csv)
    with atomic_write(markdown) as partial:
        partial.write_text(f"{escape_markup(job.caption)}\n\n{text}", encoding="utf-8")


if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        main(
            snakemake.params.job,
            tables=dict(snakemake.input.items()),
            csv=Path(snakemake.output.csv),
            markdown=Path(snakemake.output.markdown),
        )
