"""The exceptions that a user is meant to read, and what nobody is."""

import errno
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

_USER = re.compile(r"(?<=://)[^/?#\s]*@")
_QUERY = re.compile(r"(://[^\s?#]*\?)[^\s#]*[^\s#'\"):;,.]")
HIDDEN = "***"
# What PyTorch, CUDA and cuBLAS say when memory is exhausted, besides MemoryError.
MEMORY_PHRASES = (
    "out of memory",
    "can't allocate memory",
    "not enough memory",
    "STATUS_ALLOC_FAILED",
    "can't start new thread",
    "failed to map segment from shared object",  # of an import
    "terminated abruptly",  # a process of a pool, as the kernel ends it
)
# What libraries say of a full disk where they raise no OSError with its number: HDF5, safetensors, PyTorch.
DISK_PHRASES = (
    "No space left on device",
    "os error 28",
    "errno = 28",
    "Disk quota exceeded",
    "PytorchStreamWriter failed writing",
    "enforce fail at inline_container.cc",
)


class InputError(ValueError):
    """Something the user gave, or the outside world did, that the pipeline cannot go on with.

    The message is one sentence that names the file or the configuration key and says what to do;
    :func:`shape_of_learning.job.run_job` prints it without a traceback and exits with 1. Control characters, which
    names on the Hub and answers of servers may have, are escaped in it.
    """

    def __str__(self) -> str:
        return escape_controls(super().__str__())


class UnreachableError(InputError):
    """The Hub cannot be asked now: no network, or offline mode."""


def is_memory_exhausted(error: BaseException) -> bool:
    """Return whether less at a time could help: PyTorch has several exceptions for it."""
    if isinstance(error, MemoryError):
        return True
    is_of_a_kind = isinstance(error, (RuntimeError, ImportError))
    return is_of_a_kind and any(words in str(error) for words in MEMORY_PHRASES)


def is_disk_full(error: BaseException) -> bool:
    """Return whether a disk or a quota has no room left, whatever library noticed it."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    return any(words in str(error) for words in DISK_PHRASES)


def explain_failure(error: BaseException) -> str | None:
    """Return one sentence on what the machine lacks; None if the error is of another kind.

    An error counts that other errors hide, since libraries raise their own ones while they handle it.
    """
    for cause in _list_causes(error):
        if is_disk_full(cause):
            file = getattr(cause, "filename", None) or "a file"
            return f"the disk is full: {file} could not be written; free some space and run again"
        if is_memory_exhausted(cause):
            return "memory is exhausted; give more of it, or lower what is asked for at a time"
    if isinstance(error, OSError) and error.errno == errno.EROFS:
        return f"{error.filename or 'a file'} is on a read-only disk; write to another folder"
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}; correct the path or its permissions"
    return None


def _list_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those that led to it, each once."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def escape_controls(text: str) -> str:
    """Write control characters but line ends and tabs as escapes, so that no text can command a terminal."""
    if text.isprintable():
        return text
    return "".join(
        char
        if char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cf", "Cs")
        else _escape(char)
        for char in text
    )


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def shorten_error(error: BaseException) -> str:
    """What another library says, as a part of one sentence."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def hide_secrets(text: str) -> str:
    """Hide in each URL of a text who asks, with what password, and the query, which may hold a token."""
    return _QUERY.sub(rf"\g<1>{HIDDEN}", _USER.sub(f"{HIDDEN}@", text))


def hide_secrets_in_settings(settings: Any) -> Any:
    """The same of every text in nested settings."""
    if isinstance(settings, dict):
        return {key: hide_secrets_in_settings(value) for key, value in settings.items()}
    if isinstance(settings, list):
        return [hide_secrets_in_settings(setting) for setting in settings]
    return hide_secrets(settings) if isinstance(settings, str) else settings
