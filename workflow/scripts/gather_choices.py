"""Gather the choices that flip the verdicts on all claims in one table and on one page."""

from collections.abc import Sequence
from pathlib import Path

from shape_of_learning.claims.specifications import FLIP_COLUMNS, format_flip_page
from shape_of_learning.files import atomic_write, read_rows, write_table
from shape_of_learning.job import run_job


def main(flips: Sequence[Path], table: Path, page: Path) -> None:
    """Write a table of the rows of all claims, and a page with a matrix of claims and choices."""
    rows = [row for path in flips for row in read_rows(path, FLIP_COLUMNS)]
    write_table(table, FLIP_COLUMNS, rows)
    with atomic_write(page) as partial:
        cells = [dict(zip(FLIP_COLUMNS, row, strict=True)) for row in rows]
        partial.write_text(format_flip_page(cells), encoding="utf-8")


if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        main(
            [Path(path) for path in snakemake.input],
            Path(snakemake.output.csv),
            Path(snakemake.output.markdown),
        )
