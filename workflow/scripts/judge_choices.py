"""Judge a claim under every specification of its analysis, and draw the curve."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from shape_of_learning.claims import specifications
from shape_of_learning.claims.claim import SpecificationsJob
from shape_of_learning.figures.output import save
from shape_of_learning.figures.specification_curve import draw_specification_curve
from shape_of_learning.figures.style import use_theme
from shape_of_learning.files import write_table
from shape_of_learning.job import run_job

logger = logging.getLogger("shape_of_learning")


def main(
    job: SpecificationsJob,
    choice_tables: Sequence[Path],
    verdicts: Sequence[Path],
    flips: Path,
    figure: Mapping[str, Path],
) -> None:
    """Write the choices that flip the verdict, and draw the curve of the claim into the files of a figure."""
    values = specifications.MeasuredChoices(
        job.models, job.near_duplicate_limits, choice_tables, verdicts
    )
    judgements = specifications.judge_specifications(job.grid, values)
    rows = specifications.find_flips(job.grid, judgements)
    with use_theme():
        drawing = draw_specification_curve(job.grid, judgements, job.sample)
        save(drawing, **figure)
    logger.info("%s", drawing.caption)
    write_table(flips, specifications.FLIP_COLUMNS, (row.values() for row in rows))


if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        output = {name: Path(path) for name, path in snakemake.output.items()}
        main(
            snakemake.params.job,
            choice_tables=[Path(path) for path in snakemake.input.measurements],
            verdicts=[Path(path) for path in snakemake.input.verdicts],
            flips=output.pop("flips"),
            figure=output,
        )
