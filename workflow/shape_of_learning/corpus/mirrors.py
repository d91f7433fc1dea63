"""A corpus from the first of its mirrors that has the right one."""

import logging
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

import pooch
import requests
from tqdm import tqdm

from shape_of_learning.corpus.corpus_file import (
    Expected,
    Found,
    Unusable,
    copy_verified,
    local_path,
    verified,
)
from shape_of_learning.corpus.unpacking import unpacked
from shape_of_learning.errors import HIDDEN, InputError, without_secrets
from shape_of_learning.storage.digests import BLOCK, recorded_digest, write_with_digest
from shape_of_learning.storage.file_lock import made_by_one_process
from shape_of_learning.storage.files import atomic_write
from shape_of_learning.files import fingerprint

logger = logging.getLogger(__name__)

ROUNDS = 4  # times that the list of mirrors is gone through
TIMEOUT_SECONDS = 60  # without a byte
# Some mirrors refuse clients without a name; the file as it is, so that its length is known.
HEADERS = {"User-Agent": "shape-of-learning (corpus download)", "Accept-Encoding": "identity"}
PASSING_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})


class Unavailable(Exception):
    """A place from which nothing can be had.

    Parameters
    ----------
    reason : str
        Completes ``<place>: …``.
    for_good : bool
        Whether asking again is pointless.
    """

    def __init__(self, reason: str, *, for_good: bool = False):
        super().__init__(reason)
        self.for_good = for_good


@dataclass(frozen=True)
class CorpusSource:
    """A file to download: an entry of ``corpus.sources``, or an archive of ``tasks``.

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
    section : str
        Section of the configuration that has the entry.
    unpack : bool
        Whether the file inside of a compressed one or an archive is what is meant.
    """

    name: str
    urls: Sequence[str]
    member: str | None = None
    expected: Expected = field(default_factory=Expected)
    section: str = "corpus.sources"
    unpack: bool = True


def fetch(source: CorpusSource, output: Path, *, pause: float = 1.0) -> Found:
    """Get the unpacked file of a source, verified, under its final name.

    Parameters
    ----------
    source : CorpusSource
        Where from and what.
    output : Path
        Final name. Where another process is at it, this one waits and, if there is a digest to know it by,
        takes what it has made.
    pause : float
        Seconds before the second round through the mirrors; doubled before each round that follows. A
        download that broke begins anew.

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
                found = _fetch_from(url, source, output)
            except (Unavailable, Unusable) as error:
                failures[url] = error
                if isinstance(error, Unusable) or error.for_good:
                    hopeless.add(url)
                logger.info("%s: %s", without_secrets(url), error)
            else:
                _report(source, url, found)
                return found
    raise InputError(_failure(source, failures))


def _fetch_from(url: str, source: CorpusSource, output: Path) -> Found:
    local = local_path(url)
    if local is None:
        try:
            scheme = urllib.parse.urlsplit(url).scheme
        except ValueError as error:
            raise Unavailable(f"it is no address ({error})", for_good=True) from None
        if scheme not in ("http", "https"):
            raise Unavailable(f"{scheme} is not among http, https and file", for_good=True)
        output.parent.mkdir(parents=True, exist_ok=True)
        # Nameless, so that no end of the process leaves it.
        with tempfile.TemporaryFile(dir=output.parent) as packed:
            _download(url, packed)
            if source.expected.has_digest():
                return _unpack(packed, source, output)
            return _unpack_as_before(packed, source, output)
    if not local.is_file():
        raise Unavailable("there is no such file", for_good=True)
    with local.open("rb") as packed:
        found = _unpack(packed, source, output)
    return replace(found, origin=fingerprint(local))


def _download(url: str, packed: BinaryIO) -> None:
    get = pooch.HTTPDownloader(_bar(url), BLOCK, headers=HEADERS, timeout=TIMEOUT_SECONDS)
    try:
        get(url, packed, None)
    except requests.HTTPError as error:
        answer = error.response
        assert answer is not None  # it is an answer that is an error
        passing = answer.status_code in PASSING_STATUSES
        said = f"HTTP {answer.status_code} {answer.reason}"
        raise Unavailable(said, for_good=not passing) from error
    except requests.RequestException as error:
        # An address that is none is a ValueError, too.
        said = _without_secrets_of(url, _innermost(error))
        raise Unavailable(said, for_good=isinstance(error, ValueError)) from None


def _bar(url: str) -> tqdm:
    return tqdm(
        desc=urllib.parse.urlsplit(url).path.rpartition("/")[2],
        total=1,  # until the length is known: a bar without one counts as false, and pooch asks
        unit="B",
        unit_scale=True,
        # Where no terminal shows it, a bar is a line in a log: one every ten seconds is enough.
        mininterval=0.1 if sys.stderr.isatty() else 10,
    )


def _without_secrets_of(url: str, said: str) -> str:
    """Hide what a URL holds of passwords and queries, also where the client repeats but a part of it."""
    parts = urllib.parse.urlsplit(url)
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    secrets = [each for each in (user, password, parts.query) if each]
    for secret in sorted([*secrets, *map(urllib.parse.unquote, secrets)], key=len, reverse=True):
        said = said.replace(secret, HIDDEN)
    return without_secrets(said)


def _innermost(error: BaseException) -> str:
    """What is the matter, without the layers of the client around it."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return " ".join(str(error).split()) or type(error).__name__


def _unpack(packed: BinaryIO, source: CorpusSource, output: Path) -> Found:
    packed.seek(0)
    inside = unpacked(packed, source.member) if source.unpack else nullcontext(packed)
    with atomic_write(output) as copy, inside as stream:
        return copy_verified(stream, copy, source.expected)


def _unpack_as_before(packed: BinaryIO, source: CorpusSource, output: Path) -> Found:
    """Unpack what no digest is known of: the first time it is written down, later it must be the same."""
    before = recorded_digest(output)
    try:
        known = replace(source.expected, sha256=before)
        with write_with_digest(output) as copy, unpacked(packed, source.member) as stream:
            return copy_verified(stream, copy, known)
    except Unusable as error:
        if before is None or error.entry != "sha256":
            raise
        raise Unusable(f"{error} since an earlier run fetched that", error.entry) from error


def _failure(source: CorpusSource, failures: dict[str, Unavailable | Unusable]) -> str:
    key = f"{source.section}.{source.name}"
    reasons = "; ".join(f"{url}: {error}" for url, error in failures.items())
    entries = {error.entry for error in failures.values() if isinstance(error, Unusable)} - {"urls"}
    remedy = f"give a mirror that works, or the path of a file, in {key}.urls"
    if entries:
        named = " and ".join(f"{key}.{entry}" for entry in sorted(entries))
        remedy += f", or correct {named} if this is the file you mean"
    return without_secrets(f"{_named(source)} could not be had ({reasons}): {remedy}")


def _named(source: CorpusSource) -> str:
    return f"{'corpus' if source.section.startswith('corpus') else 'task'} {source.name!r}"


def _report(source: CorpusSource, url: str, found: Found) -> None:
    logger.info("%s: %s, %s", source.name, without_secrets(url), found)
    if not source.expected.has_digest():
        logger.warning(
            "corpus %r from %s was accepted without a check of its content; "
            "set corpus.sources.%s.sha256 to %s",
            source.name,
            without_secrets(url),
            source.name,
            found.sha256,
        )
