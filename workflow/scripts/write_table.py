"""Write one table of a paper, as CSV and as Markdown."""

import argparse
import json
from pathlib import Path

from shape_of_learning.figures.output import paper_function
from shape_of_learning.figures.table_reader import read_further_tables
from shape_of_learning.script_arguments.running import named_path, run
from shape_of_learning.storage.files import atomic_write


def main(
    function: str, entries: str, tables: list[tuple[str, Path]], csv: Path, markdown: Path
) -> None:
    """Write both files from a JSON list of entries, and from tables if there are any."""
    further = [read_further_tables(tables)] if tables else []
    table, text = paper_function(function)(json.loads(entries), *further)
    with atomic_write(csv) as partial:
        table.to_csv(partial, index=False, lineterminator="\n")
    with atomic_write(markdown) as partial:
        partial.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--function", required=True, metavar="PAPER:NAME")
    parser.add_argument(
        "--entries", required=True, metavar="JSON", help="one object for each model"
    )
    parser.add_argument("--tables", type=named_path, nargs="*", default=[], metavar="NAME=CSV")
    parser.add_argument("--csv", type=Path, required=True, metavar="OUT")
    parser.add_argument("--markdown", type=Path, required=True, metavar="OUT")
    run(main, parser)
