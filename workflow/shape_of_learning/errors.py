"""Errors for users, which are shown without a traceback."""

import errno
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

_USER = re.compile(r"(?<=://)[^/?#\s]*@")
_QUERY = re.compile(r"(://[^\s?#]*\?)[^\s#]*[^\s#'\"):;,.]")
HIDDEN = "***"
# Messages of PyTorch, CUDA and cuBLAS when memory is exhausted and they raise no MemoryError.
MEMORY_PHRASES = (
    "out of memory",
    "can't allocate memory",
    "not enough memory",
    "STATUS_ALLOC_FAILED",
    "can't start new thread",
    "failed to map segment from shared object",  # an import
    "terminated abruptly",  # a process of a pool that the kernel ended
)
# Messages of HDF5, safetensors and PyTorch when a disk is full and they raise no OSError with its number.
DISK_PHRASES = (
    "No space left on device",
    "os error 28",
    "errno = 28",
    "Disk quota exceeded",
    "PytorchStreamWriter failed writing",
    "enforce fail at inline_container.cc",
)


class InputError(ValueError):
    """An error in the input or outside of the program that only the user can correct.

    The message is one sentence that names the file or the configuration key and says what to do;
    :func:`shape_of_learning.job.run_job` prints it without a traceback and exits with 1. Control characters are
    escaped, since names on the Hub and answers of servers may contain them.

    Parameters
    ----------
    problem : str
        The whole message, or its part before the remedy.
    remedy : str, optional
        The remedy for users of the workflow and the command.
    python_remedy : str, optional
        Another remedy for users of the Python functions, who have no configuration.
    """

    def __init__(self, problem: str, remedy: str = "", python_remedy: str = "") -> None:
        super().__init__(f"{problem}; {remedy}" if remedy else problem)
        self.problem, self.python_remedy = problem, python_remedy

    def __str__(self) -> str:
        return escape_controls(super().__str__())


class UnreachableError(InputError):
    """The Hub cannot be reached: there is no network, or offline mode is on.

    Attributes
    ----------
    reason : str
        The message without its beginning, `where`, which names the model.
    """

    def __init__(self, reason: str, where: str = "") -> None:
        super().__init__(f"{where}: {reason}" if where else reason)
        self.reason = reason


def is_memory_exhausted(error: BaseException) -> bool:
    """Return whether an error means that memory is exhausted; libraries raise several exceptions for this."""
    if isinstance(error, MemoryError):
        return True
    if not isinstance(error, (RuntimeError, ImportError)):
        return False
    return any(phrase in str(error) for phrase in MEMORY_PHRASES)


def is_disk_full(error: BaseException) -> bool:
    """Return whether an error of any library means that a disk or a quota is full."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    return any(phrase in str(error) for phrase in DISK_PHRASES)


def explain_failure(error: BaseException) -> str | None:
    """Return one sentence on a full disk, exhausted memory or a file that cannot be opened; None for other errors.

    The causes of the error count, too, since libraries raise errors of their own while they handle another error.
    """
    for cause in _list_causes(error):
        if is_disk_full(cause):
            file = getattr(cause, "filename", None) or "a file"
            return f"the disk is full: {file} could not be written; free some space and run again"
        if is_memory_exhausted(cause):
            return "memory is exhausted; give the job more memory, or lower its batch size"
    if isinstance(error, OSError) and error.errno == errno.EROFS:
        return f"{error.filename or 'a file'} is on a read-only disk; write to another folder"
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}; correct the path or its permissions"
    return None


def _list_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, each once."""
    visited_ids: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in visited_ids:
        visited_ids.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def escape_controls(text: str) -> str:
    """Escape control characters except line ends and tabs, so that a text cannot send commands to a terminal."""
    if text.isprintable():
        return text
    characters = []
    for char in text:
        if char not in "\n\t" and unicodedata.category(char) in ("Cc", "Cf", "Cs"):
            char = char.encode("unicode_escape").decode("ascii")
        characters.append(char)
    return "".join(characters)


def shorten_error(error: BaseException) -> str:
    """Return the message of another library's error on one line, for use in a sentence."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def hide_secrets(text: str) -> str:
    """Hide users, passwords and queries in the URLs of a text; a query may hold a token."""
    return _QUERY.sub(rf"\g<1>{HIDDEN}", _USER.sub(f"{HIDDEN}@", text))


def hide_secrets_in_settings(settings: Any) -> Any:
    """Apply :func:`hide_secrets` to every text in nested settings."""
    if isinstance(settings, dict):
        return {key: hide_secrets_in_settings(value) for key, value in settings.items()}
    if isinstance(settings, list):
        return [hide_secrets_in_settings(setting) for setting in settings]
    return hide_secrets(settings) if isinstance(settings, str) else settings
