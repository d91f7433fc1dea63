"""Judge claims under every specification of their analysis, and draw the curves."""

import argparse
import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shape_of_learning.claims.claim_choices import ClaimChoices
from shape_of_learning.claims.evidence_tables import VERDICTS, read_evidence
from shape_of_learning.claims.measured_choices import MeasuredChoices
from shape_of_learning.claims.specifications import (
    FLIP_COLUMNS,
    flip_page,
    flips,
    judged_specifications,
)
from shape_of_learning.figures.output import save
from shape_of_learning.figures.specification_curve import specification_curve
from shape_of_learning.figures.style import theme
from shape_of_learning.script_arguments.running import run
from shape_of_learning.storage.csv_table import write_table
from shape_of_learning.storage.files import atomic_write

logger = logging.getLogger("shape_of_learning")


def main(
    judged: Mapping[str, Any],
    measured: Sequence[Path],
    verdicts: Sequence[Path],
    places: tuple[Path, Path],
    matrix: Path,
    page: Path,
    figures: Sequence[Path],
) -> None:
    """Write which choice flips which verdict, and of each claim a figure."""
    frame = read_evidence(
        judged["models"],
        judged["suspect_above"],
        left_out=[],
        tables=[(VERDICTS, path) for path in verdicts],
        places=places,
    )
    tables: dict[str, list[Path]] = {}
    for path in measured:
        tables.setdefault(path.parent.name, []).append(path)
    values = MeasuredChoices(frame, tables, judged["steps"], {path.stem for path in verdicts})
    rows = []
    drawn = iter(figures)
    for each in judged["claims"]:
        of = ClaimChoices.from_json(each)
        specified = judged_specifications(of, values)
        rows += flips(of, specified)
        with theme():
            drawing = specification_curve(of, specified, judged["protocol"])
            save(drawing, *(next(drawn) for _ in range(4)))
        logger.info("%s", drawing.caption)
    write_table(matrix, FLIP_COLUMNS, rows)
    with atomic_write(page) as partial:
        partial.write_text(flip_page(rows), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--judged", type=json.loads, required=True, metavar="JSON")
    parser.add_argument("--measured", type=Path, nargs="*", default=[], metavar="CSV")
    parser.add_argument("--verdicts", type=Path, nargs="*", default=[], metavar="CSV")
    parser.add_argument("--places", type=Path, nargs=2, required=True, metavar=("FOLDER", "JSON"))
    parser.add_argument("--matrix", type=Path, required=True, metavar="CSV")
    parser.add_argument("--page", type=Path, required=True, metavar="MARKDOWN")
    parser.add_argument("--figures", type=Path, nargs="*", default=[])
    run(main, parser)
