"""Rule table_1: the models whose training is followed, as CSV and as Markdown."""

import argparse
from pathlib import Path

from shape_of_learning.figures.table_1 import read_entries, write_table
from shape_of_learning.script_arguments.running import run


def main(entries: str, csv: Path, markdown: Path) -> None:
    """Write both files from a JSON list of entries, or from a file that holds one."""
    write_table(read_entries(entries), csv, markdown)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--entries", required=True, metavar="JSON", help="list of entries, or a file of it"
    )
    parser.add_argument("--csv", type=Path, required=True, metavar="OUT")
    parser.add_argument("--markdown", type=Path, required=True, metavar="OUT")
    run(main, parser)
