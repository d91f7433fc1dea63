"""Define the jobs that fetch and clean a text.

This module imports nothing heavy, because the Snakefile reads it at every start.
"""

from typing import Literal, NamedTuple

CorpusFormat = Literal["mediawiki", "text"]


class SourceJob(NamedTuple):
    r"""A corpus file that is downloaded.

    Attributes
    ----------
    source : str
        Key in ``corpus.sources``.
    member : str, optional
        Name of the file in a zip archive.
    sha256 : str, optional
        Hexadecimal digest of the unpacked file.
    git_blob : str, optional
        The name of its content in git: SHA-1 of ``blob SIZE\0`` and the content.
    """

    source: str
    member: str | None = None
    sha256: str | None = None
    git_blob: str | None = None


class CleaningJob(NamedTuple):
    """A corpus file that becomes plain text; the fields are arguments of :func:`.clean`."""

    format: CorpusFormat
    alphabet_size: int | None
    first_bytes: int | None
