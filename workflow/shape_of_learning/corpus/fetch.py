"""Download a corpus from the first address that has it, or read the documentation inside Python."""

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

from shape_of_learning.corpus.job import SourceJob
from shape_of_learning.errors import InputError, hide_secrets
from shape_of_learning.files import compute_git_blob, compute_sha256

logger = logging.getLogger(__name__)

TIMEOUT_SECONDS = (10, 60)  # for a connection, and between two bytes
FIRST_ANSWER_SECONDS = 8.0  # until the first server answers
FURTHER_ANSWER_SECONDS = 0.5  # after the first answer, until further servers answer
PAUSES_SECONDS = (1, 4)  # before further tries
# Status codes of servers that may have the file later.
BUSY = frozenset({408, 425, 429, *range(500, 600)})
WEB = ("http://", "https://")
# Some mirrors refuse clients without a name; a compressed answer would have no length.
HEADERS = {"User-Agent": "shape-of-learning (corpus download)", "Accept-Encoding": "identity"}
# Errors of unpacking; archives with a password or a method that Python lacks raise RuntimeError.
DAMAGED = (zipfile.BadZipFile, LZMAError, zlib.error, EOFError, RuntimeError)


def fetch(job: SourceJob, urls: Sequence[str], output: Path) -> None:
    """Download the file of a source, unpack and verify it.

    Parameters
    ----------
    job : SourceJob
    urls : sequence of str
        URLs (http, https, file) and paths. They are tried in order, and again if a connection breaks or a server is
        busy. Files with the suffix zip, gz, bz2 or xz are unpacked.
    output : Path
        The unpacked file. If another run is writing it, this run waits and takes that file.

    Raises
    ------
    InputError
        If no address has the file. The message gives a reason for each address, or says that no server answers.
    """
    from filelock import FileLock

    output.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(output.with_name(f".{output.name}.lock")):
        is_pinned = job.sha256 or job.git_blob
        if is_pinned and output.exists():
            with suppress(ValueError):
                _require_digests(output, job)
                return
        url = _download_first(job, urls, output)
        if not is_pinned:
            logger.warning(
                "corpus %r from %s was accepted without a check of its content; set "
                "corpus.sources.%s.sha256 to %s",
                job.source,
                hide_secrets(url),
                job.source,
                compute_sha256(output),
            )


def _download_first(job: SourceJob, urls: Sequence[str], output: Path) -> str:
    """Download from the first address that has the file, and return the address."""
    failures: dict[str, str] = {}
    remaining = list(urls)
    for pause in (0, *PAUSES_SECONDS):
        time.sleep(pause)
        unreachable = _find_unreachable_servers(job.source, remaining)
        retries = []
        for url in remaining:
            if url in unreachable:
                failures[url] = unreachable[url]
                retries.append(url)
                continue
            try:
                _download(job, url, output)
            except (OSError, ValueError, *DAMAGED) as error:
                if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
                    raise
                failures[url] = _format_reason(error)
                if _is_temporary(error):
                    retries.append(url)
            else:
                return url
        if set(retries) <= unreachable.keys():  # jobs do not wait until there is a network
            break
        remaining = retries
    raise InputError(hide_secrets(_explain_failures(job.source, failures, unreachable)))


def _download(job: SourceJob, url: str, output: Path) -> None:
    """Download from one address, unpack the file and verify it."""
    with tempfile.TemporaryDirectory(dir=output.parent) as folder:
        file = _download_and_unpack(url, job.member, Path(folder))
        _require_digests(file, job)
        file.replace(output)


def _explain_failures(
    source: str, failures: Mapping[str, str], unreachable: Mapping[str, str]
) -> str:
    """Explain why a corpus could not be downloaded, and what to do."""
    key = f"corpus.sources.{source}"
    # A second `--config` would replace the first, and so the models of the run.
    builtin = (
        "or use the text that comes with Python: add `'corpus={source: python_topics}'` to the values after your "
        "`--config`, which counts once, or write `corpus: {source: python_topics}` into your configuration file"
    )
    if unreachable.keys() == failures.keys():
        servers = dict.fromkeys(_find_host(url) for url in unreachable)
        return (
            f"corpus {source!r} cannot be downloaded, since no server is reached ({', '.join(servers)}: "
            f"{next(iter(unreachable.values()))}): connect this machine to the network and run again, "
            f"{builtin} (a text of your own likewise, by its path)"
        )
    reasons = "; ".join(f"{url}: {reason}" for url, reason in failures.items())
    return (
        f"corpus {source!r} could not be downloaded ({reasons}): give an address that works, or the path of a file, in "
        f"{key}.urls, correct {key} if this file is the right one, {builtin}"
    )


def _find_unreachable_servers(source: str, urls: Sequence[str]) -> dict[str, str]:
    """Connect to all servers at once, and return a reason for each address that cannot be reached.

    This takes seconds in any network, whereas the timeouts of connections do not include the resolution of names.
    """
    remote = [url for url in urls if url.lower().startswith(WEB)]
    if not remote:
        return {}
    servers = ", ".join(dict.fromkeys(_find_host(url) for url in remote))
    logger.info("corpus %r: waiting for %s", source, servers)
    answers: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()

    def connect(url: str) -> None:
        try:
            socket.create_connection(_find_server(url), timeout=FIRST_ANSWER_SECONDS).close()
            answers.put((url, ""))
        except (OSError, ValueError, OverflowError) as error:
            answers.put((url, _format_reason(error)))

    for url in remote:
        threading.Thread(target=connect, args=(url,), daemon=True).start()
    silent, unreachable = dict.fromkeys(remote), {}
    deadline = time.monotonic() + FIRST_ANSWER_SECONDS
    is_any_reached = False
    while silent and (seconds := deadline - time.monotonic()) > 0:
        with suppress(queue.Empty):
            url, reason = answers.get(timeout=seconds)
            silent.pop(url, None)
            if reason:
                unreachable[url] = reason
            elif not is_any_reached:
                is_any_reached = True
                deadline = min(deadline, time.monotonic() + FURTHER_ANSWER_SECONDS)
    if not is_any_reached:
        unreachable |= dict.fromkeys(silent, f"no answer in {FIRST_ANSWER_SECONDS:.0f} s")
    return {url: unreachable[url] for url in remote if url in unreachable}


def _find_server(url: str) -> tuple[str, int]:
    """Return the host and port to which a download connects: those of the proxy, if the environment sets one."""
    from requests.utils import get_environ_proxies, select_proxy

    parts = urllib.parse.urlsplit(url)
    with suppress(ValueError):
        if proxy := select_proxy(url, get_environ_proxies(url)):
            parts = urllib.parse.urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def _find_host(url: str) -> str:
    """Return the host to which a download connects; an invalid address as it is."""
    with suppress(ValueError):
        return _find_server(url)[0]
    return url


def _is_temporary(error: BaseException) -> bool:
    """Return whether a download may succeed later: a connection broke, or the server is busy."""
    from requests import exceptions

    if isinstance(error, exceptions.HTTPError):
        return error.response is not None and error.response.status_code in BUSY
    return isinstance(
        error, exceptions.ConnectionError | exceptions.Timeout | exceptions.ChunkedEncodingError
    )


def find_local_file(url: str) -> Path | None:
    """Return the file of a file URL or a path; None for other URLs."""
    if url.lower().startswith("file:"):
        return Path(urllib.request.url2pathname(urllib.parse.urlsplit(url).path))
    return None if "://" in url else Path(url)


def _download_and_unpack(url: str, member: str | None, folder: Path) -> Path:
    """Download a file into a folder, and unpack it there."""
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
        raise ValueError("the address does not begin with http, https or file")
    pooch.get_logger().setLevel(logging.ERROR)  # it would print passwords
    paths = pooch.retrieve(url, None, fname=name, path=folder, processor=processor, downloader=get)
    files = [paths] if isinstance(paths, str) else paths
    if len(files) != 1:
        names = ", ".join(sorted(Path(file).name for file in files)[:5]) or "nothing"
        raise ValueError(f"the archive holds {names}, not one {member or 'file'}; correct `member`")
    return Path(files[0])


def _copy(url: str, output: str, _: object) -> None:
    """Copy a local file, as a downloader of pooch."""
    shutil.copyfile(find_local_file(url) or url, output)


def _require_digests(file: Path, job: SourceJob) -> None:
    """Raise ValueError if a file does not have the digests of its source."""
    if job.sha256 is not None and (digest := compute_sha256(file)) != job.sha256:
        raise ValueError(f"its SHA-256 is {digest}, but {job.sha256} is expected")
    if job.git_blob is not None and (digest := compute_git_blob(file)) != job.git_blob:
        raise ValueError(f"its git blob is {digest}, but {job.git_blob} is expected")


def _format_reason(error: BaseException) -> str:
    """Return the message of the innermost error, since outer errors may repeat a query."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return " ".join(str(error).split()) or type(error).__name__


def read_demo_text() -> str:
    """Return the language reference inside CPython, with a paragraph per line and a blank line between topics.

    It serves runs without a network, and depends on the version of Python only. It holds the paragraphs that end like
    sentences, without marks of emphasis and code, and without grammar, sessions and tables. Long topics contain shorter
    topics, so repeated paragraphs are dropped: repeated text gives pairs of nearly equal hidden states, for which
    estimators of dimension are not made.
    """
    from pydoc_data.topics import topics

    paragraphs: set[str] = set()
    articles = []
    for _, text in sorted(topics.items()):
        article = ""
        for part in text.split("\n\n"):
            paragraph = " ".join(re.sub('[*"]', "", part).split())
            is_prose = paragraph.endswith((".", ":")) and not {"::=", ">>>"} & {*paragraph.split()}
            if is_prose and paragraph not in paragraphs:
                paragraphs.add(paragraph)
                article += f"{paragraph}\n"
        if article:
            articles.append(article)
    return "\n".join(articles)
