"""Draw one figure of a paper."""

import argparse
import logging
from pathlib import Path

from shape_of_learning.figures.inputs import figure_inputs
from shape_of_learning.figures.output import paper_function, save
from shape_of_learning.figures.style import theme
from shape_of_learning.figures.table_reader import (
    CHANGES,
    ESTIMATES,
    VERDICTS,
    read_further_tables,
    read_table,
)
from shape_of_learning.script_arguments.running import named_path, run

logger = logging.getLogger("shape_of_learning")


def main(
    function: str,
    figure: str,
    caption: str,
    estimates: list[Path],
    changes: list[Path],
    verdicts: list[Path],
    tables: list[tuple[str, Path]],
    output: list[Path],
) -> None:
    """Read the tables, draw and save."""
    inputs, options = figure_inputs(
        figure,
        caption,
        estimates=read_table(estimates, ESTIMATES) if estimates else None,
        changes=read_table(changes, CHANGES) if changes else None,
        verdicts=read_table(verdicts, VERDICTS) if verdicts else None,
        tables=read_further_tables(tables),
    )
    with theme():
        drawing = paper_function(function)(inputs, **options)
        save(drawing, *output)
    logger.info("%s", drawing.caption)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--function", required=True, metavar="PAPER:NAME")
    parser.add_argument("--figure", required=True, metavar="JSON", help="models, measures, options")
    parser.add_argument("--caption", required=True, help="what is known before the tables are read")
    for tables in ("estimates", "changes", "verdicts"):
        parser.add_argument(f"--{tables}", type=Path, nargs="*", default=[], metavar="CSV")
    parser.add_argument("--tables", type=named_path, nargs="*", default=[], metavar="NAME=CSV")
    parser.add_argument(
        "--output", type=Path, nargs=3, required=True, metavar=("PDF", "PNG", "CSV")
    )
    run(main, parser)
