"""From a corpus file to the text that models read, and its alphabet."""

import codecs
import hashlib
import json
import logging
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, TextIO

from shape_of_learning.corpus.alphabet import Alphabet, described, most_frequent
from shape_of_learning.corpus.articles import PageCounts, clean_articles
from shape_of_learning.corpus.export import Export
from shape_of_learning.errors import InputError
from shape_of_learning.storage.digests import BLOCK
from shape_of_learning.storage.files import atomic_write

logger = logging.getLogger(__name__)

CorpusFormat = Literal["mediawiki", "text"]
FORMATS: tuple[CorpusFormat, ...] = ("mediawiki", "text")


@dataclass
class _Tally:
    """Size and digest of bytes that pass by."""

    size: int = 0
    digest: "hashlib._Hash" = field(default_factory=hashlib.sha256)

    def add(self, chunk: bytes) -> bytes:
        self.size += len(chunk)
        self.digest.update(chunk)
        return chunk


def prepare(
    source: Path,
    source_format: CorpusFormat,
    *,
    alphabet_size: int,
    processes: int,
    text: Path,
    alphabet: Path,
    first_bytes: int | None = None,
) -> dict:
    """Clean a corpus file and reduce it to its most frequent characters.

    Parameters
    ----------
    source : Path
        A MediaWiki XML export, which may be cut off anywhere, or UTF-8 text that needs no cleaning.
    source_format : {"mediawiki", "text"}
        Which of the two.
    alphabet_size : int
        Number of characters to keep; the others are dropped, wherever they occur.
    processes : int
        Number of processes that clean. The output does not depend on it.
    text : Path
        Written: UTF-8, lines ended by LF. Of an export: one paragraph a line, articles separated by
        a blank line.
    alphabet : Path
        Written: JSON with the characters kept and dropped, their counts, the digests of `source`
        and `text`, and what became of the pages.
    first_bytes : int, optional
        Read only so much of `source`, for a quick look.

    Returns
    -------
    dict
        Content of `alphabet`.

    Raises
    ------
    InputError
        Where `source` is not of its format or holds no text. Neither file is then written.
    """
    read, written, pages = _Tally(), _Tally(), PageCounts()
    chunks = map(read.add, _chunks(source, first_bytes))
    if source_format == "mediawiki":
        pieces = clean_articles(Export(chunks, str(source)), pages, processes=processes)
    else:
        pieces = _counted(_decoded(chunks, source))
    with (
        atomic_write(text) as text_file,
        atomic_write(alphabet) as alphabet_file,
        # The alphabet is known at the end only. Nameless, so that no end of the process leaves it.
        tempfile.TemporaryFile(
            "w+", encoding="utf-8", newline="", dir=text_file.parent
        ) as unreduced,
    ):
        chosen = most_frequent(_spool(pieces, unreduced), alphabet_size)
        if not chosen.kept:
            raise InputError(f"{source} holds no text: give another file in corpus.sources")
        with text_file.open("wb") as target:
            for piece in map(chosen.reducer(), _pieces(unreduced)):
                target.write(written.add(piece.encode()))
        content = _description(source, source_format, text, read, written, chosen)
        if source_format == "mediawiki":
            content["pages"] = asdict(pages)
        alphabet_file.parent.mkdir(parents=True, exist_ok=True)
        alphabet_file.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", "utf-8")
    _report(content)
    return content


def _chunks(path: Path, limit: int | None) -> Iterator[bytes]:
    left = path.stat().st_size if limit is None else limit
    with path.open("rb") as file:
        while chunk := file.read(min(BLOCK, left)):
            left -= len(chunk)
            yield chunk


def _decoded(chunks: Iterable[bytes], path: Path) -> Iterator[str]:
    """Decode, with LF at the end of each line; a sequence that the end of the file cuts is lost."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    ended = True  # with a newline
    held = ""  # a CR whose LF may follow
    for chunk in chunks:
        try:
            piece = held + decoder.decode(chunk)
        except UnicodeDecodeError as error:
            raise InputError(
                f"{path} is not UTF-8 ({error.reason}): convert it, or give another file in "
                "corpus.sources"
            ) from error
        held = "\r" if piece.endswith("\r") else ""
        piece = piece.removesuffix("\r").replace("\r\n", "\n").replace("\r", "\n")
        if piece:
            yield piece
            ended = piece.endswith("\n")
    if held or not ended:
        yield "\n"


def _counted(pieces: Iterable[str]) -> Iterator[tuple[str, Counter[str]]]:
    for piece in pieces:
        yield piece, Counter(piece)


def _spool(pieces: Iterable[tuple[str, Counter[str]]], file: TextIO) -> Counter[str]:
    counts: Counter[str] = Counter()
    for piece, characters in pieces:
        file.write(piece)
        counts.update(characters)
    return counts


def _pieces(file: TextIO) -> Iterator[str]:
    file.seek(0)
    while piece := file.read(BLOCK):
        yield piece


def _description(
    source: Path,
    source_format: CorpusFormat,
    text: Path,
    read: _Tally,
    written: _Tally,
    chosen: Alphabet,
) -> dict:
    return {
        "source": {
            "file": source.name,
            "format": source_format,
            "bytes": read.size,
            "sha256": read.digest.hexdigest(),
        },
        "text": {
            "file": text.name,
            "characters": sum(chosen.kept.values()),
            "bytes": written.size,
            "sha256": written.digest.hexdigest(),
        },
        "alphabet": described(chosen.kept),
        "dropped": {
            "distinct": len(chosen.dropped),
            "characters": sum(chosen.dropped.values()),
            "each": described(chosen.dropped),
        },
    }


def _report(content: dict) -> None:
    text, dropped = content["text"], content["dropped"]
    logger.info(
        "%s: %d characters of %d kinds; dropped %d of %d kinds; pages: %s",
        text["file"],
        text["characters"],
        len(content["alphabet"]),
        dropped["characters"],
        dropped["distinct"],
        content.get("pages", "not told apart"),
    )
    if left_out := content.get("pages", {}).get("left_out"):
        logger.warning(
            "%s lacks %d paragraphs of %d pages, whose markup is too tangled to be parsed",
            text["file"],
            left_out,
            content["pages"]["in_pieces"],
        )
