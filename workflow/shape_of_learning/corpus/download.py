"""Downloads over HTTP that go on where they were broken off."""

import http.client
import logging
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from shape_of_learning.corpus.corpus_file import CHUNK_BYTES

logger = logging.getLogger(__name__)

TIMEOUT_SECONDS = 60  # without a byte
_TRANSIENT = {408, 425, 429, 500, 502, 503, 504}
_PARTIAL_CONTENT, _RANGE_NOT_SATISFIABLE = 206, 416


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
class Partial:
    """What has arrived of a download: the bytes, and a mark of the version they belong to.

    Attributes
    ----------
    path : Path
        Grows as bytes arrive, and survives the process.
    """

    path: Path

    @property
    def size(self) -> int:
        """Bytes that have arrived, 0 if there is no file yet."""
        return self.path.stat().st_size if self.path.exists() else 0

    @property
    def version_path(self) -> Path:
        """Where the server's mark (strong ETag or date) of the bytes is kept."""
        return self.path.with_name(self.path.name + ".version")

    def version(self) -> str | None:
        """Mark of the version, if the server gave one."""
        return self.version_path.read_text() if self.version_path.exists() else None

    def start_over(self, version: str | None) -> None:
        """Forget the bytes; those that follow belong to `version`."""
        self.path.write_bytes(b"")
        self.version_path.unlink(missing_ok=True)
        if version is not None:
            self.version_path.write_text(version)

    def remove(self) -> None:
        """Remove bytes and mark."""
        self.path.unlink(missing_ok=True)
        self.version_path.unlink(missing_ok=True)


def download(url: str, partial: Partial) -> bool:
    """Receive one file over one connection, after what `partial` already holds.

    Parameters
    ----------
    url : str
        Of scheme http or https.
    partial : Partial
        Where bytes are kept. A server that does not continue at the end of them, or whose file is
        another version now, makes them start over. A bar shows how they grow.

    Returns
    -------
    bool
        Whether the file was put together from more than one connection.

    Raises
    ------
    Unavailable
        Where the connection could not be made or was broken; `partial` keeps what has arrived.
    """
    held = partial.size
    try:
        response = _request(url, held, partial.version())
    except _AllHeld:
        return True
    with response:
        resumed = response.status == _PARTIAL_CONTENT and _start(response) == held
        if response.status == _PARTIAL_CONTENT and not resumed:
            partial.remove()
            raise Unavailable("it sent another part of the file than was asked for")
        if not resumed:
            if held:
                logger.info("%s does not continue at byte %d: starting over", url, held)
            partial.start_over(_version(response))
            held = 0
        total = None if response.length is None else held + response.length
        with partial.path.open("ab") as file, _bar(url, held, total) as bar:
            for chunk in _received(response):
                file.write(chunk)
                file.flush()  # out of reach of a kill
                bar.update(len(chunk))
    if total is not None and partial.size < total:
        raise Unavailable(f"the connection broke after {partial.size:,} of {total:,} bytes")
    return resumed


def _bar(url: str, held: int, total: int | None) -> tqdm:
    return tqdm(
        desc=url.rpartition("/")[2],
        initial=held,
        total=total,
        unit="B",
        unit_scale=True,
        # Where no terminal shows it, a bar is a line in a log: one every ten seconds is enough.
        mininterval=0.1 if sys.stderr.isatty() else 10,
    )


class _AllHeld(Exception):
    """The server has no byte beyond those that have arrived."""


def _request(url: str, held: int, version: str | None) -> http.client.HTTPResponse:
    headers = {"User-Agent": "shape-of-learning (corpus download)"}
    if held:
        headers["Range"] = f"bytes={held}-"
        if version is not None:
            headers["If-Range"] = version
    try:
        return urllib.request.urlopen(
            urllib.request.Request(url, headers=headers), timeout=TIMEOUT_SECONDS
        )
    except urllib.error.HTTPError as error:
        with error:
            if error.code == _RANGE_NOT_SATISFIABLE and held:
                if error.headers.get("Content-Range", "").strip() == f"bytes */{held}":
                    raise _AllHeld from error
                return _request(url, 0, None)
            raise Unavailable(
                f"HTTP {error.code} {error.reason}", for_good=error.code not in _TRANSIENT
            ) from error
    except urllib.error.URLError as error:
        raise Unavailable(str(error.reason)) from error
    except (OSError, http.client.HTTPException) as error:
        raise Unavailable(str(error) or type(error).__name__) from error
    except ValueError as error:
        raise Unavailable(f"no usable address ({error})", for_good=True) from error


def _received(response: http.client.HTTPResponse) -> Iterator[bytes]:
    while True:
        try:
            chunk = response.read1(CHUNK_BYTES)  # what is there, without waiting for more
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(f"the connection broke ({error or type(error).__name__})") from error
        if not chunk:
            return
        yield chunk


def _start(response: http.client.HTTPResponse) -> int | None:
    """First byte of a part, from ``Content-Range: bytes FIRST-LAST/TOTAL``."""
    unit, _, position = response.headers.get("Content-Range", "").partition(" ")
    first = position.partition("-")[0]
    return int(first) if unit == "bytes" and first.isdecimal() else None


def _version(response: http.client.HTTPResponse) -> str | None:
    tag = response.headers.get("ETag")
    if tag is not None and not tag.startswith("W/"):  # a weak one must not be used with Range
        return tag
    return response.headers.get("Last-Modified")
