"""The exceptions that a user is meant to read, and what nobody is."""

import re
from typing import Any

_USER = re.compile(r"(?<=://)[^/?#\s]*@")
_QUERY = re.compile(r"(://[^\s?#]*\?)[^\s#]*[^\s#'\"):;,.]")
HIDDEN = "***"


class InputError(ValueError):
    """Something the user gave, or the outside world did, that the pipeline cannot go on with.

    The message is one sentence that names the file or the configuration key and says what to do;
    :func:`shape_of_learning.job.job` prints it without a traceback and exits with 1.
    """


class UnreachableError(InputError):
    """The Hub cannot be asked now: no network, or offline mode."""


def shortened(error: Exception) -> str:
    """What another library says, as a part of one sentence."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def without_secrets(text: str) -> str:
    """Hide in each URL of a text who asks, with what password, and the query, which may hold a token."""
    return _QUERY.sub(rf"\g<1>{HIDDEN}", _USER.sub(f"{HIDDEN}@", text))


def settings_without_secrets(settings: Any) -> Any:
    """The same of every text in nested settings."""
    if isinstance(settings, dict):
        return {key: settings_without_secrets(value) for key, value in settings.items()}
    if isinstance(settings, list):
        return [settings_without_secrets(each) for each in settings]
    return without_secrets(settings) if isinstance(settings, str) else settings
