"""Turn a corpus file into plain text of a limited alphabet.

A MediaWiki export is cleaned to the running text of its articles; text is taken as it is. Then only
the most frequent characters are kept.
"""

from pathlib import Path
from typing import Any

from shape_of_learning.corpus.clean import clean
from shape_of_learning.job import job


def main(raw: Path, text: Path, alphabet: Path, **options: Any) -> None:
    """Write `text` and `alphabet`; see :func:`~shape_of_learning.corpus.clean.clean`."""
    clean(raw, text, alphabet, **options)


if __name__ == "__main__":
    with job(snakemake.log[0]):
        main(
            Path(snakemake.input.raw),
            Path(snakemake.output.text),
            Path(snakemake.output.alphabet),
            processes=snakemake.threads,
            **{key: snakemake.params[key] for key in ("format", "alphabet_size", "first_bytes")},
        )
