"""A corpus as it comes: from the first of its addresses that has the right one, or from inside Python."""

import errno
import logging
import re
import shutil
import sys
import tempfile
import urllib.parse
import urllib.request
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from lzma import LZMAError
from pathlib import Path
from typing import Any

from shape_of_learning.errors import InputError, without_secrets
from shape_of_learning.files import git_blob_of, sha256_of

logger = logging.getLogger(__name__)

TIMEOUT_SECONDS = 60  # without a byte
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
        http, https and file URLs and paths, tried in order, each once. What ends in zip, gz, bz2 or xz is
        unpacked.
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
        Where no address has the file. The message has one reason for each.
    """
    from filelock import FileLock

    output.parent.mkdir(parents=True, exist_ok=True)
    pinned = sha256 or git_blob
    failures = []
    with FileLock(output.with_name(f".{output.name}.lock")):
        if pinned and output.exists():
            with suppress(ValueError):
                return _require(output, sha256, git_blob)
        for url in urls:
            with tempfile.TemporaryDirectory(dir=output.parent) as folder:
                try:
                    found = _unpacked(url, member, Path(folder))
                    _require(found, sha256, git_blob)
                except (OSError, ValueError, *DAMAGED) as error:
                    if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
                        raise
                    failures.append(f"{url}: {_reason(error)}")
                    continue
                found.replace(output)
            if not pinned:
                logger.warning(
                    "corpus %r from %s was accepted without a check of its content; set "
                    "corpus.sources.%s.sha256 to %s",
                    *(source, without_secrets(url), source, sha256_of(output)),
                )
            return None
    key = f"corpus.sources.{source}"
    raise InputError(
        without_secrets(
            f"corpus {source!r} could not be had ({'; '.join(failures)}): give an address that works, or the "
            f"path of a file, in {key}.urls, or correct {key} if this is the file you mean"
        )
    )


def local_path(url: str) -> Path | None:
    """The file that a file URL or a path names; None for other URLs."""
    if url.lower().startswith("file:"):
        return Path(urllib.request.url2pathname(urllib.parse.urlsplit(url).path))
    return None if "://" in url else Path(url)


def _unpacked(url: str, member: str | None, folder: Path) -> Path:
    """Download to a folder, and unpack there."""
    import pooch

    local = local_path(url)
    name = (local or Path(urllib.parse.urlsplit(url).path)).name or "corpus"
    processor: Any = None
    if name.endswith(".zip"):
        processor = pooch.Unzip(members=None if member is None else [member])
    elif name.endswith((".gz", ".bz2", ".xz")):
        processor = pooch.Decompress()
    get = pooch.HTTPDownloader(sys.stderr.isatty(), headers=HEADERS, timeout=TIMEOUT_SECONDS)
    if local is not None:
        get = _copy
    elif not url.lower().startswith(("http://", "https://")):
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
    shutil.copyfile(local_path(url) or url, output)


def _require(file: Path, sha256: str | None, git_blob: str | None) -> None:
    """Raise ValueError where a file is not the one expected."""
    expected = {"SHA-256": (sha256, sha256_of), "git blob": (git_blob, git_blob_of)}
    for name, (wanted, digest) in expected.items():
        if wanted is not None and (found := digest(file)) != wanted:
            raise ValueError(f"its {name} is {found} where {wanted} is expected")


def _reason(error: BaseException) -> str:
    """What is the matter, without the layers of the client around it, which may repeat a query."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return " ".join(str(error).split()) or type(error).__name__


def demo_text() -> str:
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
        sentences = [each for each in paragraphs if each.endswith((".", ":"))]
        prose = [each for each in sentences if not {"::=", ">>>"} & {*each.split()}]
        new = dict.fromkeys(each for each in prose if each not in seen)
        seen |= new
        articles += ["".join(f"{each}\n" for each in new)] if new else []
    return "\n".join(articles)
