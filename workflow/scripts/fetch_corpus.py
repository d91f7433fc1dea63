"""Get a corpus file: download, unpack, verify.

Mirrors are tried in order, and the file has its final name only once its size and digest are those
expected. Which these are is no argument, but in the settings of the workflow: a mirror or a digest more
is no reason to fetch again what has been fetched.
"""

import argparse
from pathlib import Path

from shape_of_learning.corpus.corpus_file import Expected, write_receipt
from shape_of_learning.corpus.mirrors import CorpusSource, fetch
from shape_of_learning.script_arguments.running import run
from shape_of_learning.script_arguments.settings import plumbing_settings


def main(source: str, output: Path, member: str | None, receipt: Path | None) -> None:
    """Fetch to `output` what :func:`~shape_of_learning.corpus.mirrors.fetch` finds."""
    entry = plumbing_settings()["corpus_sources"][source]
    expected = Expected(
        entry.get("bytes"), entry.get("sha256"), entry.get("git_blob"), entry.get("distinct_bytes")
    )
    found = fetch(CorpusSource(source, entry["urls"], member, expected), output)
    if receipt is not None:
        write_receipt(receipt, found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", required=True, help="key in corpus.sources")
    parser.add_argument("--member", help="file to take from a zip archive")
    parser.add_argument("--output", type=Path, required=True, help="unpacked file")
    parser.add_argument("--receipt", type=Path, help="written last: its size and digests")
    run(main, parser)
