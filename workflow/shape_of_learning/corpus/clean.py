"""From a corpus file to the text that models read, and its alphabet."""

import codecs
import hashlib
import json
import logging
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Literal

from shape_of_learning.corpus.changes import describe_changes
from shape_of_learning.corpus.mediawiki import CleanedPage, Export, clean_page, is_redirect
from shape_of_learning.corpus.namespaces import InvisibleNamespaces
from shape_of_learning.errors import InputError
from shape_of_learning.files import atomic_write, compute_sha256

logger = logging.getLogger(__name__)

CorpusFormat = Literal["mediawiki", "text"]
BLOCK_BYTES = 1 << 20
# That a process cleans in a row: work that is long against the hand-over, and short against the whole.
PAGES_AT_A_TIME = 32
# Such rows that wait for each process, or for their turn to be written.
ROWS_AHEAD = 2
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def clean(
    source: Path,
    text: Path,
    alphabet: Path,
    *,
    format: CorpusFormat,
    alphabet_size: int | None = None,
    processes: int = 1,
    first_bytes: int | None = None,
    origin: str = "",
) -> dict:
    """Clean a corpus file, and reduce it to its most frequent characters where a size is given.

    The file is read as a stream: memory does not grow with it.

    Parameters
    ----------
    source : Path
        A MediaWiki XML export, which may be cut off anywhere, or UTF-8 text that needs no cleaning.
    text : Path
        Written: UTF-8, lines ended by LF. Of an export: one paragraph a line, articles separated by
        a blank line.
    alphabet : Path
        Written: JSON with the characters kept and dropped, their counts, what else was changed, the digests of
        `source` and `text`, and what became of the pages.
    format : {"mediawiki", "text"}
        Of `source`.
    alphabet_size : int, optional
        Number of characters to keep; the others are dropped, wherever they occur. Of equally frequent ones
        that of the lower code point is kept. By default all are kept.
    processes : int
        Number of processes that clean. The output does not depend on it.
    first_bytes : int, optional
        Read only so much of `source`, for a quick look.
    origin : str
        What messages call `source`, if not by its path.

    Returns
    -------
    dict
        Content of `alphabet`. Changes of a text are also logged, as a warning.

    Raises
    ------
    InputError
        Where `source` is no file, not of its format or holds no text. Neither file is then written.
    """
    called = origin or str(source)
    _require_file(source, called)
    read, pages, changed = hashlib.sha256(), Counter[str](), Counter[str]()
    changed.update(line_ends=0, byte_order_mark=0, bytes_cut_off=0)
    chunks = _read_chunks(source, first_bytes, read)
    if format == "mediawiki":
        pieces = _extract_articles(Export(chunks, called), pages, processes)
    else:
        pieces = _decode_chunks(chunks, called, changed)
    counts: Counter[str] = Counter()
    with atomic_write(text) as text_file, atomic_write(alphabet) as alphabet_file:
        with text_file.open("wb") as target:
            for piece in pieces:
                counts.update(piece)
                target.write(piece.encode())
        if all(map(str.isspace, counts)):
            what = "nothing but white space" if counts else "no text"
            raise InputError(f"{called} holds {what}: give another file in corpus.sources")
        if first_bytes is not None:
            changed["bytes_cut_off"] = 0  # as asked for
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        kept, dropped = dict(ranked[:alphabet_size]), dict(ranked[len(ranked[:alphabet_size]) :])
        if dropped:
            _leave_out(dropped, text_file)
        description = {
            "source": {
                "file": source.name,
                "format": format,
                "bytes": min(source.stat().st_size, first_bytes or source.stat().st_size),
                "sha256": read.hexdigest(),
            },
            "text": {
                "file": text.name,
                "characters": sum(kept.values()),
                "bytes": text_file.stat().st_size,
                "sha256": compute_sha256(text_file),
            },
            "alphabet": _spell_out(kept),
            "dropped": {
                "distinct": len(dropped),
                "characters": sum(dropped.values()),
                "each": _spell_out(dropped),
            },
            "changed": dict(changed),
            **({"pages": dict(pages)} if format == "mediawiki" else {}),
        }
        alphabet_file.write_text(
            json.dumps(description, ensure_ascii=False, indent=1) + "\n", "utf-8"
        )
    logger.info("%s: %s; pages: %s", text.name, description["text"], dict(pages))
    if said := describe_changes(description, called):
        logger.warning("%s", said)
    return description


def _require_file(source: Path, called: str) -> None:
    """Refuse what cannot be read as often as needed, or at all."""
    if source.is_file():
        return
    what = "is missing"
    if source.exists():
        what = "is a folder" if source.is_dir() else "is a pipe or a device, not a file"
    raise InputError(f"{called} {what}: give the path of a text in corpus.sources")


def _read_chunks(path: Path, limit: int | None, digest: "hashlib._Hash") -> Iterator[bytes]:
    left = path.stat().st_size if limit is None else limit
    with path.open("rb") as file:
        while chunk := file.read(min(BLOCK_BYTES, left)):
            left -= len(chunk)
            digest.update(chunk)
            yield chunk


def _decode_chunks(chunks: Iterable[bytes], called: str, changed: Counter[str]) -> Iterator[str]:
    """Decode text, whose lines then end with LF, and count what is changed.

    A sequence that the end of the file cuts is lost.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    place, held = 0, ""
    for chunk in chunks:
        if not place and chunk.startswith(UTF_16):
            raise InputError(_format_encoding_error(called, "it begins as UTF-16 does", "UTF-16"))
        waiting = len(decoder.getstate()[0])
        try:
            piece = held + decoder.decode(chunk)
        except UnicodeDecodeError as error:
            where = place - waiting + error.start + 1
            said = f"{error.reason} at byte {where:,}"
            raise InputError(_format_encoding_error(called, said, "ENCODING")) from error
        if "\0" in piece:
            said = "it has NUL characters, as UTF-16 and files that are no text have"
            raise InputError(_format_encoding_error(called, said, "UTF-16"))
        if not place and piece.startswith("\ufeff"):
            changed["byte_order_mark"] += 1
            piece = piece[1:]
        place += len(chunk)
        held = "\r" if piece.endswith("\r") else ""  # may be half of an end of line
        piece = piece[: len(piece) - len(held)]
        if "\r" in piece:
            changed["line_ends"] += piece.count("\r")
            piece = piece.replace("\r\n", "\n").replace("\r", "\n")
        if piece:
            yield piece
    changed["bytes_cut_off"] += len(decoder.getstate()[0])
    if held:
        changed["line_ends"] += 1
        yield "\n"


def _format_encoding_error(called: str, said: str, encoding: str) -> str:
    return (
        f"{called} is not UTF-8 text ({said}): convert it, such as by "
        f"`iconv -f {encoding} -t UTF-8 FILE > NEW_FILE`, or give another file in corpus.sources"
    )


def _leave_out(dropped: Iterable[str], text: Path) -> None:
    """Take characters out of a file."""
    unwanted = re.compile("[" + "".join(map(re.escape, dropped)) + "]+")
    with (
        text.open(encoding="utf-8", newline="") as whole,
        atomic_write(text) as reduced,
        reduced.open("w", encoding="utf-8", newline="") as target,
    ):
        while piece := whole.read(BLOCK_BYTES):
            target.write(unwanted.sub("", piece))


def _extract_articles(export: Export, pages: Counter[str], processes: int) -> Iterator[str]:
    """Yield the text of all articles, piece by piece in their order, and count the pages."""
    pages.update(kept=0, empty=0, redirects=0, other_namespaces=0, in_pieces=0, truncated=0)
    for page in _clean_in_processes(export, _extract_wikitexts(export, pages), processes):
        if page.text:
            yield f"\n{page.text}\n" if pages["kept"] else f"{page.text}\n"
        pages["kept" if page.text else "empty"] += 1
        pages["in_pieces"] += page.in_pieces


def _clean_in_processes(
    export: Export, texts: Iterator[str], processes: int
) -> Iterator[CleanedPage]:
    """Clean the texts in processes, of which few wait at a time: an export is larger than memory."""
    rows = iter(lambda: list(islice(texts, PAGES_AT_A_TIME)), [])
    if processes == 1:
        for row in rows:
            yield from _clean_pages(row, export.invisible)
        return
    # Spawned, since a fork of a process with threads may deadlock.
    with get_context("spawn").Pool(processes) as pool:
        waiting: deque = deque()
        for row in rows:
            waiting.append(pool.apply_async(_clean_pages, (row, export.invisible)))
            if len(waiting) > ROWS_AHEAD * processes:
                yield from waiting.popleft().get()
        while waiting:
            yield from waiting.popleft().get()


def _clean_pages(texts: list[str], invisible: InvisibleNamespaces) -> list[CleanedPage]:
    return [clean_page(text, invisible) for text in texts]


def _extract_wikitexts(export: Export, pages: Counter[str]) -> Iterator[str]:
    """Yield the wikitext of all articles, and count the other pages."""
    for page in export.read_pages():
        pages["truncated"] += not page.whole
        if not export.is_article(page):
            pages["other_namespaces"] += 1
        elif page.redirect or is_redirect(page.text):
            pages["redirects"] += 1
        else:
            yield page.text


def _spell_out(counts: Mapping[str, int]) -> list[dict[str, str | int]]:
    """Characters for a JSON file, where many would be hard to tell apart by sight."""
    return [
        {"character": character, "code_point": f"U+{ord(character):04X}", "count": count}
        for character, count in counts.items()
    ]
