"""Turn a corpus file into plain text of a limited alphabet.

A MediaWiki export is cleaned to the running text of its articles; text is taken as it is. Then only
the most frequent characters are kept.
"""

import argparse
from pathlib import Path

from shape_of_learning.corpus.corpus_file import require_received
from shape_of_learning.corpus.preparation import FORMATS, CorpusFormat, prepare
from shape_of_learning.script_arguments.running import run


def main(
    input: Path,
    format: CorpusFormat,
    alphabet_size: int,
    processes: int,
    text: Path,
    alphabet: Path,
    first_bytes: int | None = None,
    receipt: Path | None = None,
) -> None:
    """Write `text` and `alphabet`; see :func:`~shape_of_learning.corpus.preparation.prepare`.

    With a `receipt`, only if `input` is still the file that was fetched.
    """
    if receipt is not None:
        require_received(input, receipt)
    prepare(
        input,
        format,
        alphabet_size=alphabet_size,
        processes=processes,
        text=text,
        alphabet=alphabet,
        first_bytes=first_bytes,
    )


def at_least_one(value: str) -> int:
    """Parse a positive integer."""
    number = int(value)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", type=Path, required=True, help="unpacked corpus file")
    parser.add_argument("--receipt", type=Path, help="what the file was when it was fetched")
    parser.add_argument("--format", choices=FORMATS, required=True, help="what the file holds")
    parser.add_argument("--alphabet-size", type=at_least_one, default=205)
    parser.add_argument("--first-bytes", type=at_least_one, help="default: all")
    parser.add_argument("--processes", type=at_least_one, default=1)
    parser.add_argument("--text", type=Path, required=True, help="written: UTF-8 text")
    parser.add_argument("--alphabet", type=Path, required=True, help="written: JSON")
    run(main, parser)
