"""Judge claims under every specification of their analysis, and draw the curves."""

import logging
from collections.abc import Sequence
from pathlib import Path

from shape_of_learning.claims import specifications
from shape_of_learning.claims.claim import SpecificationsJob
from shape_of_learning.figures.output import save
from shape_of_learning.figures.specification_curve import draw_specification_curve
from shape_of_learning.figures.style import use_theme
from shape_of_learning.files import atomic_write, write_table
from shape_of_learning.job import run_job

logger = logging.getLogger("shape_of_learning")


def main(
    job: SpecificationsJob,
    measured: Sequence[Path],
    verdicts: Sequence[Path],
    matrix: Path,
    page: Path,
    curves: Sequence[Path],
) -> None:
    """Write which choice flips which verdict, and draw each claim; `curves` are the PNG files of the figures."""
    values = specifications.MeasuredChoices(job.models, job.suspect_above, measured, verdicts)
    rows = []
    for grid, png in zip(job.grids, curves, strict=True):
        judged = specifications.judge_specifications(grid, values)
        rows += specifications.find_flips(grid, judged)
        with use_theme():
            drawing = draw_specification_curve(grid, judged, job.sample)
            save(drawing, *(png.with_suffix(f".{kind}") for kind in ("pdf", "png", "csv", "md")))
        logger.info("%s", drawing.caption)
    write_table(matrix, specifications.FLIP_COLUMNS, (row.values() for row in rows))
    with atomic_write(page) as partial:
        partial.write_text(specifications.write_flip_page(rows), encoding="utf-8")


if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        main(
            snakemake.params.job,
            measured=[Path(path) for path in snakemake.input.measured],
            verdicts=[Path(path) for path in snakemake.input.verdicts],
            matrix=Path(snakemake.output.matrix),
            page=Path(snakemake.output.page),
            curves=[Path(path) for path in snakemake.output.curves],
        )
