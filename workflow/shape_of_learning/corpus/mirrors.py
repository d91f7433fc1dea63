"""A corpus from the first of its mirrors that has the right one."""

import hashlib
import logging
import time
import urllib.parse
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from shape_of_learning.corpus.corpus_file import Expected, Found, Unusable, copy_verified, verified
from shape_of_learning.corpus.download import Partial, Unavailable, download
from shape_of_learning.corpus.unpacking import unpacked
from shape_of_learning.errors import InputError
from shape_of_learning.storage.file_lock import made_by_one_process
from shape_of_learning.storage.files import atomic_write

logger = logging.getLogger(__name__)

ROUNDS = 4  # times that the list of mirrors is gone through


@dataclass(frozen=True)
class CorpusSource:
    """An entry of ``corpus.sources``.

    Attributes
    ----------
    name : str
        Key of the entry, for messages.
    urls : sequence of str
        http, https and file URLs and paths, tried in order.
    member : str, optional
        File inside, where a URL leads to a zip archive.
    expected : Expected
        What the unpacked file is checked against.
    """

    name: str
    urls: Sequence[str]
    member: str | None = None
    expected: Expected = field(default_factory=Expected)


def fetch(source: CorpusSource, output: Path, *, pause: float = 1.0) -> Found:
    """Get the unpacked file of a source, verified, under its final name.

    Parameters
    ----------
    source : CorpusSource
        Where from and what.
    output : Path
        Final name. A download is kept beside it as ``.NAME.MIRROR.partial`` until it is complete
        and judged; a later call, also of another process, goes on from there. Where another process is
        at it, this one waits and, if there is a digest to know it by, takes what it has made.
    pause : float
        Seconds before a broken connection is taken up again, and before the second round through
        the mirrors; doubled before each round that follows.

    Returns
    -------
    Found
        Size and digests of the file.

    Raises
    ------
    InputError
        Where no mirror has the file. The message has one reason for each.
    """
    with made_by_one_process(output):
        if (found := _made_meanwhile(source, output)) is not None:
            logger.info("%s: another run has made %s", source.name, output)
            return found
        return _fetch_from_any(source, output, pause)


def _made_meanwhile(source: CorpusSource, output: Path) -> Found | None:
    """What another process has put under the final name, if a digest says that it is the right file."""
    if source.expected.has_digest() and output.exists():
        with suppress(Unusable):
            return verified(output, source.expected)
    return None


def _fetch_from_any(source: CorpusSource, output: Path, pause: float) -> Found:
    failures: dict[str, Unavailable | Unusable] = {}
    hopeless: set[str] = set()
    for turn in range(ROUNDS):
        mirrors = [url for url in source.urls if url not in hopeless]
        if turn and mirrors:
            time.sleep(pause * 2 ** (turn - 1))
        for url in mirrors:
            try:
                found = _fetch_from(url, source, output, pause)
            except (Unavailable, Unusable) as error:
                failures[url] = error
                if isinstance(error, Unusable) or error.for_good:
                    hopeless.add(url)
                logger.info("%s: %s", url, error)
            else:
                for left_over in output.parent.glob(f".{output.name}.*.partial*"):
                    left_over.unlink()  # of mirrors that were given up
                _report(source, url, found)
                return found
    raise InputError(_failure(source, failures))


def _fetch_from(url: str, source: CorpusSource, output: Path, pause: float) -> Found:
    local = _local_path(url)
    if local is not None:
        if not local.is_file():
            raise Unavailable("there is no such file", for_good=True)
        return _unpack(local, source, output)
    output.parent.mkdir(parents=True, exist_ok=True)
    mirror = hashlib.sha256(url.encode()).hexdigest()[:8]
    partial = Partial(output.with_name(f".{output.name}.{mirror}.partial"))
    try:
        found = _download_and_unpack(url, partial, source, output, pause)
    except Unusable:
        partial.remove()
        raise
    partial.remove()
    return found


def _download_and_unpack(
    url: str, partial: Partial, source: CorpusSource, output: Path, pause: float
) -> Found:
    several_connections = _download_on(url, partial, pause)
    try:
        return _unpack(partial.path, source, output)
    except Unusable:
        if not several_connections:
            raise
        # The parts may be of different files: judge only what came in one go.
        logger.info("%s: put together from parts, and not the file expected; starting over", url)
        partial.remove()
        _download_on(url, partial, pause)
        return _unpack(partial.path, source, output)


def _download_on(url: str, partial: Partial, pause: float) -> bool:
    """Download, taking up the connection again as long as each brings the end nearer."""
    several = False
    while True:
        furthest = partial.size
        try:
            return download(url, partial) or several
        except Unavailable as error:
            if partial.size <= furthest:
                raise
            logger.info("%s: %s; going on", url, error)
            several = True
            time.sleep(pause)


def _unpack(packed: Path, source: CorpusSource, output: Path) -> Found:
    with atomic_write(output) as copy, unpacked(packed, source.member) as stream:
        return copy_verified(stream, copy, source.expected)


def _local_path(url: str) -> Path | None:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme in ("http", "https"):
        return None
    if parts.scheme == "file":
        return Path(urllib.request.url2pathname(parts.path))
    if "://" in url:
        raise Unavailable(f"{parts.scheme} is not among http, https and file", for_good=True)
    return Path(url)


def _failure(source: CorpusSource, failures: dict[str, Unavailable | Unusable]) -> str:
    key = f"corpus.sources.{source.name}"
    reasons = "; ".join(f"{url}: {error}" for url, error in failures.items())
    entries = {error.entry for error in failures.values() if isinstance(error, Unusable)} - {"urls"}
    remedy = f"give a mirror that works, or the path of a file, in {key}.urls"
    if entries:
        named = " and ".join(f"{key}.{entry}" for entry in sorted(entries))
        remedy += f", or correct {named} if this is the file you mean"
    return f"corpus {source.name!r} could not be had ({reasons}): {remedy}"


def _report(source: CorpusSource, url: str, found: Found) -> None:
    logger.info("%s: %s, %s", source.name, url, found)
    if not source.expected.has_digest():
        logger.warning(
            "corpus %r from %s was accepted without a check of its content; "
            "set corpus.sources.%s.sha256 to %s",
            source.name,
            url,
            source.name,
            found.sha256,
        )
