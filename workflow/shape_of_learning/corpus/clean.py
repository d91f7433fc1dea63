"""From a corpus file to the text that models read, and its alphabet."""

import codecs
import hashlib
import json
import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path
from typing import Literal

from shape_of_learning.corpus.mediawiki import Export, clean_page, is_redirect
from shape_of_learning.errors import InputError
from shape_of_learning.files import atomic_write

logger = logging.getLogger(__name__)

CorpusFormat = Literal["mediawiki", "text"]
BLOCK_BYTES = 1 << 20
# That a process cleans in a row: work that is long against the hand-over, and short against the whole.
PAGES_AT_A_TIME = 32


def clean(
    source: Path,
    text: Path,
    alphabet: Path,
    *,
    format: CorpusFormat,
    alphabet_size: int,
    processes: int = 1,
    first_bytes: int | None = None,
) -> dict:
    """Clean a corpus file and reduce it to its most frequent characters.

    Parameters
    ----------
    source : Path
        A MediaWiki XML export, which may be cut off anywhere, or UTF-8 text that needs no cleaning.
    text : Path
        Written: UTF-8, lines ended by LF. Of an export: one paragraph a line, articles separated by
        a blank line.
    alphabet : Path
        Written: JSON with the characters kept and dropped, their counts, the digests of `source`
        and `text`, and what became of the pages.
    format : {"mediawiki", "text"}
        Of `source`.
    alphabet_size : int
        Number of characters to keep; the others are dropped, wherever they occur. Of equally frequent ones
        that of the lower code point is kept.
    processes : int
        Number of processes that clean. The output does not depend on it.
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
    read, pages = hashlib.sha256(), Counter[str]()
    chunks = _chunks(source, first_bytes, read)
    if format == "mediawiki":
        pieces = list(_articles(Export(chunks, str(source)), pages, processes))
    else:
        pieces = [_decoded(b"".join(chunks), source)]
    counts: Counter[str] = Counter()
    for piece in pieces:
        counts.update(piece)
    if not counts:
        raise InputError(f"{source} holds no text: give another file in corpus.sources")
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    kept, dropped = dict(ranked[:alphabet_size]), dict(ranked[alphabet_size:])
    unwanted = re.compile("[" + "".join(map(re.escape, dropped)) + "]+" if dropped else r"(?!)")
    written, size = hashlib.sha256(), 0
    with atomic_write(text) as text_file, atomic_write(alphabet) as alphabet_file:
        with text_file.open("wb") as target:
            for piece in pieces:
                content = unwanted.sub("", piece).encode()
                size += target.write(content)
                written.update(content)
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
                "bytes": size,
                "sha256": written.hexdigest(),
            },
            "alphabet": _spelt_out(kept),
            "dropped": {
                "distinct": len(dropped),
                "characters": sum(dropped.values()),
                "each": _spelt_out(dropped),
            },
            **({"pages": dict(pages)} if format == "mediawiki" else {}),
        }
        alphabet_file.write_text(
            json.dumps(description, ensure_ascii=False, indent=1) + "\n", "utf-8"
        )
    logger.info("%s: %s; pages: %s", text.name, description["text"], dict(pages))
    return description


def _chunks(path: Path, limit: int | None, digest: "hashlib._Hash") -> Iterator[bytes]:
    left = path.stat().st_size if limit is None else limit
    with path.open("rb") as file:
        while chunk := file.read(min(BLOCK_BYTES, left)):
            left -= len(chunk)
            digest.update(chunk)
            yield chunk


def _decoded(content: bytes, path: Path) -> str:
    """Decode, with LF at the end of each line; a sequence that the end of the file cuts is lost."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(content)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 ({error.reason}): convert it, or give another file in corpus.sources"
        ) from error
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if text.endswith("\n") or not text else text + "\n"


def _articles(export: Export, pages: Counter[str], processes: int) -> Iterator[str]:
    """Yield the text of all articles, piece by piece in their order, and count the pages."""
    pages.update(kept=0, empty=0, redirects=0, other_namespaces=0, in_pieces=0, truncated=0)
    texts = _wikitexts(export, pages)
    # Spawned, since a fork of a process with threads may deadlock.
    with get_context("spawn").Pool(processes) if processes > 1 else nullcontext() as pool:
        cleaned = pool.imap(clean_page, texts, PAGES_AT_A_TIME) if pool else map(clean_page, texts)
        for page in cleaned:
            if page.text:
                yield f"\n{page.text}\n" if pages["kept"] else f"{page.text}\n"
            pages["kept" if page.text else "empty"] += 1
            pages["in_pieces"] += page.in_pieces


def _wikitexts(export: Export, pages: Counter[str]) -> Iterator[str]:
    """Yield the wikitext of all articles, and count the other pages."""
    for page in export.pages():
        pages["truncated"] += not page.whole
        if not export.is_article(page.title):
            pages["other_namespaces"] += 1
        elif is_redirect(page.text):
            pages["redirects"] += 1
        else:
            yield page.text


def _spelt_out(counts: Mapping[str, int]) -> list[dict[str, str | int]]:
    """Characters for a JSON file, where many would be hard to tell apart by sight."""
    return [
        {"character": character, "code_point": f"U+{ord(character):04X}", "count": count}
        for character, count in counts.items()
    ]
