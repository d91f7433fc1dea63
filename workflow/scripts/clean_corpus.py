"""Turn a corpus file into plain text of a limited alphabet.

A MediaWiki export is cleaned to the running text of its articles; text is taken as it is. Then only
the most frequent characters are kept.
"""

from pathlib import Path

from shape_of_learning.corpus.clean import CorpusFormat, clean
from shape_of_learning.job import job


def main(
    raw: Path,
    format: CorpusFormat,
    alphabet_size: int,
    first_bytes: int | None,
    processes: int,
    text: Path,
    alphabet: Path,
) -> None:
    """Write `text` and `alphabet`; see :func:`~shape_of_learning.corpus.clean.clean`."""
    clean(
        raw,
        format,
        alphabet_size=alphabet_size,
        processes=processes,
        text=text,
        alphabet=alphabet,
        first_bytes=first_bytes,
    )


if __name__ == "__main__":
    with job(snakemake.log[0]):
        main(
            Path(snakemake.input.raw),
            **{key: snakemake.params[key] for key in ("format", "alphabet_size", "first_bytes")},
            processes=snakemake.threads,
            text=Path(snakemake.output.text),
            alphabet=Path(snakemake.output.alphabet),
        )
