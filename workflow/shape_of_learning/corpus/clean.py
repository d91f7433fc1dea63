"""Clean a corpus file, and count its alphabet."""

import codecs
import hashlib
import json
import logging
import os
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

from shape_of_learning.corpus.changes import describe_changes
from shape_of_learning.corpus.job import CorpusFormat
from shape_of_learning.corpus.mediawiki import CleanedPage, Export, clean_page, is_redirect
from shape_of_learning.corpus.namespaces import InvisibleNamespaces
from shape_of_learning.errors import InputError
from shape_of_learning.files import atomic_write, compute_sha256

logger = logging.getLogger(__name__)

BLOCK_BYTES = 1 << 20
# Pages that a process cleans at a time: so many that cleaning takes longer than their transfer.
PAGES_AT_A_TIME = 32
BATCHES_AHEAD = 2  # batches of pages that wait for each process
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
    """Clean a corpus file, and reduce it to its most frequent characters if a size is set.

    The file is read as a stream, so memory does not grow with it.

    Parameters
    ----------
    source : Path
        A MediaWiki XML export, which may end anywhere, or UTF-8 text that needs no cleaning.
    text : Path
        Output: UTF-8 text with LF at line ends. From an export: one paragraph a line, and a blank line between
        articles.
    alphabet : Path
        Output: JSON with the counts of kept and of dropped characters, other changes, the digests of `source` and
        `text`, and the counts of pages.
    format : {"mediawiki", "text"}
        Format of `source`.
    alphabet_size : int, optional
        Number of distinct characters to keep; other characters are dropped. Equally frequent characters are ranked by
        code point. By default all characters are kept.
    processes : int
        Number of processes that clean. The output does not depend on it.
    first_bytes : int, optional
        Read only this many bytes of `source`, for a quick look.
    origin : str
        Name of `source` in messages; by default its path.

    Returns
    -------
    dict
        Content of `alphabet`. A warning in the log also describes the changes of the text.

    Raises
    ------
    InputError
        If `source` is not a file, or has another format or no text. No output is then written.
    """
    label = origin or str(source)
    if not source.is_file():
        problem = "is missing"
        if source.exists():
            problem = "is a folder" if source.is_dir() else "is a pipe or a device, not a file"
        raise InputError(f"{label} {problem}: give the path of a text in corpus.sources")
    digest, pages, changes = hashlib.sha256(), Counter[str](), Counter[str]()
    changes.update(line_ends=0, byte_order_mark=0, bytes_cut_off=0)
    chunks = _read_chunks(source, first_bytes, digest)
    if format == "mediawiki":
        pieces = _extract_articles(Export(chunks, label), pages, processes)
    else:
        pieces = _decode_chunks(chunks, label, changes)
    counts: Counter[str] = Counter()
    with atomic_write(text) as text_file, atomic_write(alphabet) as alphabet_file:
        with text_file.open("wb") as target:
            for piece in pieces:
                counts.update(piece)
                target.write(piece.encode())
        if all(map(str.isspace, counts)):
            content = "nothing but white space" if counts else "no text"
            raise InputError(f"{label} holds {content}: give another file in corpus.sources")
        if first_bytes is not None:
            changes["bytes_cut_off"] = 0  # the user wants the cut
        ranking = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        size = len(ranking) if alphabet_size is None else alphabet_size
        alphabet_counts, dropped_counts = dict(ranking[:size]), dict(ranking[size:])
        if dropped_counts:
            _remove_characters(dropped_counts, text_file)
        record = {
            "source": {
                "file": os.fsencode(source.name).decode(errors="replace"),
                "format": format,
                "bytes": min(source.stat().st_size, first_bytes or source.stat().st_size),
                "sha256": digest.hexdigest(),
            },
            "text": {
                "file": text.name,
                "characters": sum(alphabet_counts.values()),
                "bytes": text_file.stat().st_size,
                "sha256": compute_sha256(text_file),
            },
            "alphabet": _describe_characters(alphabet_counts),
            "dropped": {
                "distinct": len(dropped_counts),
                "characters": sum(dropped_counts.values()),
                "each": _describe_characters(dropped_counts),
            },
            "changed": dict(changes),
        }
        if format == "mediawiki":
            record["pages"] = dict(pages)
        alphabet_file.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", "utf-8")
    logger.info("%s: %s; pages: %s", text.name, record["text"], dict(pages))
    if sentence := describe_changes(record, label):
        logger.warning("%s", sentence)
    return record


def _read_chunks(path: Path, limit: int | None, digest: "hashlib._Hash") -> Iterator[bytes]:
    remaining = path.stat().st_size if limit is None else limit
    with path.open("rb") as file:
        while chunk := file.read(min(BLOCK_BYTES, remaining)):
            remaining -= len(chunk)
            digest.update(chunk)
            yield chunk


def _decode_chunks(chunks: Iterable[bytes], label: str, changes: Counter[str]) -> Iterator[str]:
    """Decode text, replace line ends by LF, and count the changes.

    A character that the end of the file cuts off is lost.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    position, line_end = 0, ""
    for chunk in chunks:
        if not position and chunk.startswith(UTF_16):
            raise InputError(_format_encoding_error(label, "it begins as UTF-16 does", "UTF-16"))
        pending = len(decoder.getstate()[0])
        try:
            piece = line_end + decoder.decode(chunk)
        except UnicodeDecodeError as error:
            byte = position - pending + error.start + 1
            reason = f"{error.reason} at byte {byte:,}"
            raise InputError(_format_encoding_error(label, reason, "ENCODING")) from error
        if "\0" in piece:
            reason = "it has NUL characters, like UTF-16 and binary files"
            raise InputError(_format_encoding_error(label, reason, "UTF-16"))
        if not position and piece.startswith("\ufeff"):
            changes["byte_order_mark"] += 1
            piece = piece[1:]
        position += len(chunk)
        line_end = "\r" if piece.endswith("\r") else ""  # the next chunk may begin with LF
        piece = piece[: len(piece) - len(line_end)]
        if "\r" in piece:
            changes["line_ends"] += piece.count("\r")
            piece = piece.replace("\r\n", "\n").replace("\r", "\n")
        if piece:
            yield piece
    changes["bytes_cut_off"] += len(decoder.getstate()[0])
    if line_end:
        changes["line_ends"] += 1
        yield "\n"


def _format_encoding_error(label: str, reason: str, encoding: str) -> str:
    return (
        f"{label} is not UTF-8 text ({reason}): convert it, for example by "
        f"`iconv -f {encoding} -t UTF-8 FILE > NEW_FILE`, or give another file in corpus.sources"
    )


def _remove_characters(characters: Iterable[str], text: Path) -> None:
    """Remove characters from a file."""
    pattern = re.compile("[" + "".join(map(re.escape, characters)) + "]+")
    with (
        text.open(encoding="utf-8", newline="") as source,
        atomic_write(text) as partial,
        partial.open("w", encoding="utf-8", newline="") as target,
    ):
        while piece := source.read(BLOCK_BYTES):
            target.write(pattern.sub("", piece))


def _extract_articles(export: Export, pages: Counter[str], processes: int) -> Iterator[str]:
    """Yield the text of all articles in their order, and count the pages."""
    pages.update(kept=0, empty=0, redirects=0, other_namespaces=0, in_pieces=0, truncated=0)
    for page in _clean_in_processes(export, _extract_wikitexts(export, pages), processes):
        if page.text:
            yield f"\n{page.text}\n" if pages["kept"] else f"{page.text}\n"
        pages["kept" if page.text else "empty"] += 1
        pages["in_pieces"] += page.is_split


def _clean_in_processes(
    export: Export, texts: Iterator[str], processes: int
) -> Iterator[CleanedPage]:
    """Clean texts in processes; few texts wait at a time, since an export may be larger than memory."""
    batches = iter(lambda: list(islice(texts, PAGES_AT_A_TIME)), [])
    if processes == 1:
        for batch in batches:
            yield from _clean_pages(batch, export.invisible)
        return
    # A fork of a process with threads may deadlock.
    with get_context("spawn").Pool(processes) as pool:
        pending: deque = deque()
        for batch in batches:
            pending.append(pool.apply_async(_clean_pages, (batch, export.invisible)))
            if len(pending) > BATCHES_AHEAD * processes:
                yield from pending.popleft().get()
        while pending:
            yield from pending.popleft().get()


def _clean_pages(texts: list[str], invisible: InvisibleNamespaces) -> list[CleanedPage]:
    return [clean_page(text, invisible) for text in texts]


def _extract_wikitexts(export: Export, pages: Counter[str]) -> Iterator[str]:
    """Yield the wikitext of all articles, and count the other pages."""
    for page in export.read_pages():
        pages["truncated"] += not page.is_whole
        if not export.is_article(page):
            pages["other_namespaces"] += 1
        elif page.is_redirect or is_redirect(page.text):
            pages["redirects"] += 1
        else:
            yield page.text


def _describe_characters(counts: Mapping[str, int]) -> list[dict[str, str | int]]:
    """Describe characters with their code points, since many characters look alike."""
    return [
        {"character": character, "code_point": f"U+{ord(character):04X}", "count": count}
        for character, count in counts.items()
    ]
