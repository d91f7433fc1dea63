"""Judge claims under every specification of their analysis, and draw the curves."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shape_of_learning.claims import specifications
from shape_of_learning.claims.claim import Claim, ClaimGrid
from shape_of_learning.figures.output import save
from shape_of_learning.figures.specification_curve import draw_specification_curve
from shape_of_learning.figures.style import use_theme
from shape_of_learning.files import atomic_write, write_table
from shape_of_learning.job import read_parameters, run_job

logger = logging.getLogger("shape_of_learning")


def main(
    claims: Sequence[Mapping[str, Any]],
    models: Sequence[Mapping[str, Any]],
    suspect_above: Mapping[str, float],
    sample: str,
    measured: Sequence[Path],
    verdicts: Sequence[Path],
    output: tuple[Path, Path],
    curves: Sequence[Path],
) -> None:
    """Write which choice flips which verdict, and of each claim a figure; `curves` are its PNG files."""
    values = specifications.MeasuredChoices(models, suspect_above, measured, verdicts)
    rows = []
    for each, png in zip(claims, curves, strict=True):
        of = ClaimGrid(**{**each, "claim": Claim(**each["claim"])})
        judged = specifications.judge_specifications(of, values)
        rows += specifications.find_flips(of, judged)
        with use_theme():
            drawing = draw_specification_curve(of, judged, sample)
            save(drawing, *(png.with_suffix(f".{kind}") for kind in ("pdf", "png", "csv", "md")))
        logger.info("%s", drawing.caption)
    matrix, page = output
    write_table(matrix, specifications.FLIP_COLUMNS, (row.values() for row in rows))
    with atomic_write(page) as partial:
        partial.write_text(specifications.write_flip_page(rows), encoding="utf-8")


if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        main(
            **read_parameters(snakemake),
            measured=[Path(path) for path in snakemake.input.measured],
            verdicts=[Path(path) for path in snakemake.input.verdicts],
            output=(Path(snakemake.output.matrix), Path(snakemake.output.page)),
            curves=[Path(path) for path in snakemake.output.curves],
        )
