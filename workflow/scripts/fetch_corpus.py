"""Get a corpus file: download, unpack, verify.

Mirrors are tried in order, a broken download goes on where it stopped, and the file has its final
name only once its size and digest are those expected.
"""

import argparse
from pathlib import Path

from shape_of_learning.corpus.corpus_file import Expected, write_receipt
from shape_of_learning.corpus.mirrors import CorpusSource, fetch
from shape_of_learning.script_arguments.running import run


def main(
    urls: list[str],
    output: Path,
    source: str = "NAME",
    member: str | None = None,
    size: int | None = None,
    sha256: str | None = None,
    git_blob: str | None = None,
    distinct_bytes: int | None = None,
    receipt: Path | None = None,
) -> None:
    """Fetch to `output` what :func:`~shape_of_learning.corpus.mirrors.fetch` finds."""
    expected = Expected(size, sha256, git_blob, distinct_bytes)
    found = fetch(CorpusSource(source, urls, member, expected), output)
    if receipt is not None:
        write_receipt(receipt, found)


def parser() -> argparse.ArgumentParser:
    """Arguments of :func:`main`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--urls", nargs="+", required=True, help="http(s) or file URLs, or paths")
    parser.add_argument("--output", type=Path, required=True, help="unpacked file")
    parser.add_argument("--receipt", type=Path, help="written last: its size and digests")
    parser.add_argument("--source", default="NAME", help="key in corpus.sources, for messages")
    parser.add_argument("--member", help="file to take from a zip archive")
    parser.add_argument("--bytes", type=int, dest="size", help="size of the unpacked file")
    digest = parser.add_mutually_exclusive_group()
    digest.add_argument("--sha256", help="SHA-256 of the unpacked file")
    digest.add_argument("--git-blob", help="git's SHA-1 name of the unpacked file")
    parser.add_argument("--distinct-bytes", type=int, help="number of byte values that occur")
    return parser


if __name__ == "__main__":
    run(main, parser())
