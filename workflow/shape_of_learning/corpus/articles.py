"""Articles of an export, cleaned by several processes, in the order of the file."""

import os
import threading
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context, parent_process

from shape_of_learning.corpus.export import Export
from shape_of_learning.corpus.wikitext import clean_page, is_redirect

# Some tenths of a second of work: long against the hand-over, short against the whole.
BATCH_CHARACTERS = 1 << 19
# Batches per process that wait or are done out of turn; with their size, this bounds the memory.
BATCHES_AHEAD = 3


@dataclass
class PageCounts:
    """What became of the pages.

    Attributes
    ----------
    kept : int
        Articles with text.
    empty : int
        Articles of which cleaning leaves nothing.
    redirects, other_namespaces : int
        Pages that are no articles.
    in_pieces : int
        Articles, of either kind, that had to be parsed by paragraphs; see
        :class:`~shape_of_learning.corpus.wikitext.CleanedPage`.
    left_out : int
        Paragraphs of these that were beyond the parser, too.
    truncated : int
        1 if the file ends within a page, whose text up to there is used.
    """

    kept: int = 0
    empty: int = 0
    redirects: int = 0
    other_namespaces: int = 0
    in_pieces: int = 0
    left_out: int = 0
    truncated: int = 0


@dataclass(frozen=True)
class CleanedBatch:
    """Cleaned text of some articles in a row.

    Attributes
    ----------
    text : str
        Articles that have text, separated by a blank line; the last one ends with a newline.
    characters : Counter of str
        How often each character occurs in `text`.
    kept, empty, in_pieces, left_out : int
        As in :class:`PageCounts`.
    """

    text: str
    characters: Counter[str]
    kept: int
    empty: int
    in_pieces: int
    left_out: int


def clean_articles(
    export: Export, counts: PageCounts, *, processes: int
) -> Iterator[tuple[str, Counter[str]]]:
    """Yield the text of all articles, piece by piece, with the count of its characters.

    Parameters
    ----------
    export : Export
        Read as it is consumed.
    counts : PageCounts
        Updated along the way.
    processes : int
        Number of processes that parse; with 1, this one does. The result does not depend on it.
    """
    first = True
    for batch in _in_order(_batches(export, counts), processes):
        counts.kept += batch.kept
        counts.empty += batch.empty
        counts.in_pieces += batch.in_pieces
        counts.left_out += batch.left_out
        if not batch.text:
            continue
        if not first:
            yield "\n", Counter("\n")
        first = False
        yield batch.text, batch.characters


def _batches(export: Export, counts: PageCounts) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for page in export.pages():
        counts.truncated += not page.whole
        if not export.is_article(page.title):
            counts.other_namespaces += 1
        elif is_redirect(page.text):
            counts.redirects += 1
        else:
            batch.append(page.text)
            size += len(page.text)
        if size >= BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _clean_batch(pages: list[str]) -> CleanedBatch:
    cleaned = [clean_page(page) for page in pages]
    articles = [page.text + "\n" for page in cleaned if page.text]
    text = "\n".join(articles)
    return CleanedBatch(
        text,
        Counter(text),
        kept=len(articles),
        empty=len(pages) - len(articles),
        in_pieces=sum(page.in_pieces for page in cleaned),
        left_out=sum(page.left_out for page in cleaned),
    )


def _in_order(batches: Iterator[list[str]], processes: int) -> Iterator[CleanedBatch]:
    if processes == 1:
        yield from map(_clean_batch, batches)
        return
    # Spawned, since a fork of a process with threads (a progress bar's) may deadlock.
    spawn = get_context("spawn")
    with ProcessPoolExecutor(processes, spawn, initializer=_end_with_parent) as pool:
        waiting: deque[Future[CleanedBatch]] = deque()
        for batch in batches:
            waiting.append(pool.submit(_clean_batch, batch))
            if len(waiting) >= BATCHES_AHEAD * processes:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _end_with_parent() -> None:
    """Let this worker end with the process that it works for; if that is killed it would wait for ever."""

    def end() -> None:
        if parent := parent_process():
            parent.join()
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()
