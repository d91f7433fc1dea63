"""A corpus as it comes: from the first of its addresses that has the right one, or from inside Python."""

import errno
import logging
import queue
import re
import shutil
import socket
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from lzma import LZMAError
from pathlib import Path
from typing import Any

from shape_of_learning.errors import InputError, hide_secrets
from shape_of_learning.files import compute_git_blob, compute_sha256

logger = logging.getLogger(__name__)

TIMEOUT_SECONDS = (10, 60)  # for a connection, and without a byte
# In which one server at least must be reached, and in which the others may follow the first.
FIRST_ANSWER_SECONDS, OTHERS_SECONDS = 8.0, 0.5
# Before addresses are tried again that may have the file a little later.
PAUSES_SECONDS = (1, 4)
BUSY = frozenset({408, 425, 429, *range(500, 600)})  # what servers answer that may have it later
WEB = ("http://", "https://")
# Some mirrors refuse clients without a name; the file as it is, so that its length is known.
HEADERS = {"User-Agent": "shape-of-learning (corpus download)", "Accept-Encoding": "identity"}
# What unpacking raises; RuntimeError of archives with a password or a method that Python lacks.
DAMAGED = (zipfile.BadZipFile, LZMAError, zlib.error, EOFError, RuntimeError)


def fetch(
    source: str,
    urls: Sequence[str],
    output: Path,
    *,
    member: str | None = None,
    sha256: str | None = None,
    git_blob: str | None = None,
) -> None:
    r"""Get the unpacked file of a source, verified, under its final name.

    Parameters
    ----------
    source : str
        Key in ``corpus.sources``, for messages.
    urls : sequence of str
        http, https and file URLs and paths, tried in order, and again where a connection breaks or a server is
        busy. What ends in zip, gz, bz2 or xz is unpacked.
    output : Path
        Final name. Where another run is at it, this one waits and takes what that has made.
    member : str, optional
        File inside, where a URL leads to a zip archive.
    sha256 : str, optional
        Hexadecimal digest of the unpacked file.
    git_blob : str, optional
        Name that git gives to its content: SHA-1 of ``blob SIZE\0`` and the content.

    Raises
    ------
    InputError
        Where no address has the file. The message has one reason for each, or says that no server is reached.
    """
    from filelock import FileLock

    output.parent.mkdir(parents=True, exist_ok=True)
    facts = {"member": member, "sha256": sha256, "git_blob": git_blob}
    with FileLock(output.with_name(f".{output.name}.lock")):
        if (sha256 or git_blob) and output.exists():
            with suppress(ValueError):
                return _require(output, sha256, git_blob)
        url = _download_first(source, urls, output, facts)
        if not sha256 and not git_blob:
            logger.warning(
                "corpus %r from %s was accepted without a check of its content; set "
                "corpus.sources.%s.sha256 to %s",
                *(source, hide_secrets(url), source, compute_sha256(output)),
            )
    return None


def _download_first(
    source: str, urls: Sequence[str], output: Path, facts: Mapping[str, str | None]
) -> str:
    """Download from the first address that has the file, and return the address."""
    failures: dict[str, str] = {}
    left = list(urls)
    for pause in (0, *PAUSES_SECONDS):
        time.sleep(pause)
        unreached = _find_unreached_servers(source, left)
        later = []
        for url in left:
            if url in unreached:
                failures[url] = unreached[url]
                later.append(url)
                continue
            try:
                _download(url, output, facts)
            except (OSError, ValueError, *DAMAGED) as error:
                if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
                    raise
                failures[url] = _format_reason(error)
                if _is_temporary(error):
                    later.append(url)
            else:
                return url
        if set(later) <= unreached.keys():  # to wait for a network is not for a job
            break
        left = later
    raise InputError(hide_secrets(_explain_failures(source, failures, unreached)))


def _download(url: str, output: Path, facts: Mapping[str, str | None]) -> None:
    """Download from one address, unpack and verify."""
    with tempfile.TemporaryDirectory(dir=output.parent) as folder:
        file = _download_and_unpack(url, facts["member"], Path(folder))
        _require(file, facts["sha256"], facts["git_blob"])
        file.replace(output)


def _explain_failures(
    source: str, failures: Mapping[str, str], unreached: Mapping[str, str]
) -> str:
    """Say why a corpus could not be had, and what to do."""
    key = f"corpus.sources.{source}"
    builtin = (
        "or use the text that comes with Python, by `--config 'corpus={source: python_topics}'`"
    )
    if unreached.keys() == failures.keys():
        servers = dict.fromkeys(_find_server(url)[0] for url in unreached)
        return (
            f"corpus {source!r} cannot be downloaded, since no server is reached ({', '.join(servers)}: "
            f"{next(iter(unreached.values()))}): connect this machine to the network and run again, name a text of "
            f"your own by `--config 'corpus={{source: FILE}}'`, {builtin}"
        )
    reasons = "; ".join(f"{url}: {reason}" for url, reason in failures.items())
    return (
        f"corpus {source!r} could not be had ({reasons}): give an address that works, or the path of a file, in "
        f"{key}.urls, correct {key} if this is the file you mean, {builtin}"
    )


def _find_unreached_servers(source: str, urls: Sequence[str]) -> dict[str, str]:
    """Connect to all servers at once, and return why some cannot be reached, by their addresses.

    It takes seconds, whatever the network does: no other limit includes that of a name's resolution.
    """
    remote = [url for url in urls if url.lower().startswith(WEB)]
    if not remote:
        return {}
    named = ", ".join(dict.fromkeys(_find_server(url)[0] for url in remote))
    logger.info("corpus %r: waiting for %s", source, named)
    answers: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()

    def connect(url: str) -> None:
        try:
            socket.create_connection(_find_server(url), timeout=FIRST_ANSWER_SECONDS).close()
            answers.put((url, ""))
        except (OSError, ValueError, OverflowError) as error:
            answers.put((url, _format_reason(error)))

    for url in remote:
        threading.Thread(target=connect, args=(url,), daemon=True).start()
    waiting, unreached = dict.fromkeys(remote), {}
    deadline = time.monotonic() + FIRST_ANSWER_SECONDS
    is_any_reached = False
    while waiting and (seconds := deadline - time.monotonic()) > 0:
        with suppress(queue.Empty):
            url, reason = answers.get(timeout=seconds)
            waiting.pop(url, None)
            if reason:
                unreached[url] = reason
            elif not is_any_reached:
                is_any_reached = True
                deadline = min(deadline, time.monotonic() + OTHERS_SECONDS)
    if not is_any_reached:
        unreached |= dict.fromkeys(waiting, f"no answer in {FIRST_ANSWER_SECONDS:.0f} s")
    return {url: unreached[url] for url in remote if url in unreached}


def _find_server(url: str) -> tuple[str, int]:
    """Host and port that a download connects to: those of a proxy where one is set."""
    from requests.utils import get_environ_proxies, select_proxy

    parts = urllib.parse.urlsplit(url)
    with suppress(ValueError):
        if proxy := select_proxy(url, get_environ_proxies(url)):
            parts = urllib.parse.urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def _is_temporary(error: BaseException) -> bool:
    """Whether a download may go well a little later: a connection broke, or the server is busy."""
    from requests import exceptions

    if isinstance(error, exceptions.HTTPError):
        return error.response is not None and error.response.status_code in BUSY
    broken = (exceptions.ConnectionError, exceptions.Timeout, exceptions.ChunkedEncodingError)
    return isinstance(error, broken)


def find_local_file(url: str) -> Path | None:
    """The file that a file URL or a path names; None for other URLs."""
    if url.lower().startswith("file:"):
        return Path(urllib.request.url2pathname(urllib.parse.urlsplit(url).path))
    return None if "://" in url else Path(url)


def _download_and_unpack(url: str, member: str | None, folder: Path) -> Path:
    """Download to a folder, and unpack there."""
    import pooch

    local = find_local_file(url)
    name = (local or Path(urllib.parse.urlsplit(url).path)).name or "corpus"
    processor: Any = None
    if name.endswith(".zip"):
        processor = pooch.Unzip(members=None if member is None else [member])
    elif name.endswith((".gz", ".bz2", ".xz")):
        processor = pooch.Decompress()
    get = pooch.HTTPDownloader(sys.stderr.isatty(), headers=HEADERS, timeout=TIMEOUT_SECONDS)
    if local is not None:
        get = _copy
    elif not url.lower().startswith(WEB):
        raise ValueError("it is no address that begins with http, https or file")
    pooch.get_logger().setLevel(logging.ERROR)  # it would print passwords
    found = pooch.retrieve(url, None, fname=name, path=folder, processor=processor, downloader=get)
    files = [found] if isinstance(found, str) else found
    if len(files) != 1:
        names = ", ".join(sorted(Path(file).name for file in files)[:5]) or "nothing"
        raise ValueError(f"the archive holds {names}, not one {member or 'file'}; correct `member`")
    return Path(files[0])


def _copy(url: str, output: str, _: object) -> None:
    """Take a file of this machine, as a downloader of pooch."""
    shutil.copyfile(find_local_file(url) or url, output)


def _require(file: Path, sha256: str | None, git_blob: str | None) -> None:
    """Raise ValueError where a file is not the one expected."""
    expected = {"SHA-256": (sha256, compute_sha256), "git blob": (git_blob, compute_git_blob)}
    for name, (wanted, digest) in expected.items():
        if wanted is not None and (found := digest(file)) != wanted:
            raise ValueError(f"its {name} is {found} where {wanted} is expected")


def _format_reason(error: BaseException) -> str:
    """What is the matter, without the layers of the client around it, which may repeat a query."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return " ".join(str(error).split()) or type(error).__name__


def read_demo_text() -> str:
    """Return the language reference inside CPython: a paragraph a line, topics apart by a blank line.

    It is for runs without a network, and depends on the version of Python alone. Kept are paragraphs that end
    as sentences do, without marks of emphasis and code; grammar, sessions and tables go. Long topics contain
    shorter ones, so a paragraph is kept where it comes first: text that is there twice gives pairs of nearly
    equal hidden states, which no estimator of dimension is made for.
    """
    from pydoc_data.topics import topics

    seen: dict[str, None] = {}
    articles = []
    for _, text in sorted(topics.items()):
        paragraphs = [" ".join(re.sub('[*"]', "", each).split()) for each in text.split("\n\n")]
        sentences = [paragraph for paragraph in paragraphs if paragraph.endswith((".", ":"))]
        prose = [sentence for sentence in sentences if not {"::=", ">>>"} & {*sentence.split()}]
        new = dict.fromkeys(each for each in prose if each not in seen)
        seen |= new
        articles += ["".join(f"{each}\n" for each in new)] if new else []
    return "\n".join(articles)
