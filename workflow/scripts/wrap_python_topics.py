"""Write the language reference that CPython ships as a MediaWiki export, for runs without network.

Its text depends on the version of Python, and on nothing else.
"""

import argparse
from pathlib import Path

from shape_of_learning.corpus.corpus_file import Expected, verified, write_receipt
from shape_of_learning.corpus.python_topics import pages, write_export
from shape_of_learning.script_arguments.running import run
from shape_of_learning.storage.files import atomic_write


def main(output: Path, receipt: Path | None = None) -> None:
    """Write the export to `output`."""
    with atomic_write(output) as partial:
        write_export(partial, dict(pages()))
    if receipt is not None:
        write_receipt(receipt, verified(output, Expected()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="written: MediaWiki XML export")
    parser.add_argument("--receipt", type=Path, help="written last: its size and digests")
    run(main, parser)
