"""Trying again where a network or a server fails for a while."""

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

import httpx2
from huggingface_hub.errors import HfHubHTTPError
from huggingface_hub.utils import parse_ratelimit_headers

from shape_of_learning.errors import InputError

logger = logging.getLogger(__name__)

TRIES = 6
FIRST_PAUSE = 1.0  # seconds, doubled from try to try: half a minute in all
LONGEST_PAUSE = 300.0  # seconds; the Hub counts requests in windows of five minutes
# Request timeout and too many requests; all other answers below 500 stay the same when asked again.
PASSING_STATUSES = frozenset({408, 429})
PASSING_ERRORS = (httpx2.TimeoutException, httpx2.NetworkError, httpx2.RemoteProtocolError)

Result = TypeVar("Result")


def with_retries(attempt: Callable[[], Result]) -> Result:
    """Try until it succeeds, or fails for good, or has failed :data:`TRIES` times.

    Parameters
    ----------
    attempt : callable
        What to try. Errors that may pass are those of :func:`may_pass`.

    Notes
    -----
    The Hub's client tries again to list files, to find one and to go on with one that breaks off, but
    neither to resolve revisions nor to begin with a file that the server fails to send.
    """
    failures = 0
    while True:
        try:
            return attempt()
        except (httpx2.HTTPError, InputError) as error:
            failures += 1
            if not may_pass(error) or failures >= TRIES:
                raise
            asked = _asked_pause(error)
            pause = FIRST_PAUSE * 2 ** (failures - 1) if asked is None else asked
            logger.info(
                "%s; try %d of %d in %.1f s",
                *(" ".join(str(error).split()) or type(error).__name__, failures + 1, TRIES, pause),
            )
            time.sleep(min(pause, LONGEST_PAUSE))


def may_pass(error: BaseException) -> bool:
    """Tell errors that may be gone in a while from those that stay.

    An `InputError` is judged by its cause. A connection that cannot be made at all stays: a plan does
    without a network that is not there, and in a download the client has tried that already.
    """
    cause = _cause(error)
    if isinstance(cause, HfHubHTTPError):
        status = cause.response.status_code
        return status in PASSING_STATUSES or status >= 500
    return isinstance(cause, PASSING_ERRORS) and not isinstance(cause, httpx2.ConnectError)


def _cause(error: BaseException) -> BaseException | None:
    return error.__cause__ if isinstance(error, InputError) else error


def _asked_pause(error: BaseException) -> float | None:
    """Seconds that the server asks to wait, in `Retry-After` or the headers of its rate limit."""
    cause = _cause(error)
    if not isinstance(cause, HfHubHTTPError):
        return None
    headers = cause.response.headers
    limit = parse_ratelimit_headers(headers)
    if cause.response.status_code == 429 and limit is not None and limit.remaining == 0:
        return limit.reset_in_seconds
    asked = headers.get("Retry-After", "").strip()
    if asked.isdigit():
        return int(asked)
    try:
        return max(0.0, (parsedate_to_datetime(asked) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):  # neither seconds nor a date with its zone
        return None
