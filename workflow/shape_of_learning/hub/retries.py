"""Patience with a network or a server that fails for a while."""

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

import httpx2
from huggingface_hub.errors import HfHubHTTPError
from huggingface_hub.utils import parse_ratelimit_headers

from shape_of_learning.errors import InputError

logger = logging.getLogger(__name__)

TRIES = 6  # in a row without progress
FIRST_PAUSE = 1.0  # seconds, doubled from try to try: half a minute in all
LONGEST_PAUSE = 300.0  # seconds; the Hub counts requests in windows of five minutes
# Request timeout and too many requests; all other answers below 500 stay the same when asked again.
PASSING_STATUSES = frozenset({408, 429})
PASSING_ERRORS = (httpx2.TimeoutException, httpx2.NetworkError, httpx2.RemoteProtocolError)

Result = TypeVar("Result")


def with_retries(
    attempt: Callable[[], Result],
    *,
    first_pause: float = FIRST_PAUSE,
    progress: Callable[[], int] = lambda: 0,
    stopping: threading.Event | None = None,
    connected: bool = True,
) -> Result:
    """Try until it succeeds, or fails for good, or has failed :data:`TRIES` times without progress.

    Parameters
    ----------
    attempt : callable
        What to try. Errors that may pass are those of :func:`may_pass`.
    first_pause : float
        Seconds to wait after the first failure, doubled after each further one, unless the server
        says how long to wait.
    progress : callable
        Returns a number that grows with what has been reached. When it is larger than ever after a
        failure, the count of tries and the pauses start anew.
    stopping : threading.Event, optional
        Ends the waiting, and with it the trying.
    connected : bool
        Whether there is reason to believe in a network: if not, a connection that cannot be made at
        all is not tried again.
    """
    stopping = stopping or threading.Event()
    failures, farthest = 0, progress()
    while True:
        try:
            return attempt()
        except (httpx2.HTTPError, InputError) as error:
            reached = progress()
            failures = 1 if reached > farthest else failures + 1
            farthest = max(farthest, reached)
            given_up = not connected and isinstance(_cause(error), httpx2.ConnectError)
            if given_up or not may_pass(error) or failures >= TRIES:
                raise
            asked = _asked_pause(error)
            pause = first_pause * 2 ** (failures - 1) if asked is None else asked
            logger.info(
                "%s; try %d of %d in %.1f s",
                *(" ".join(str(error).split()) or type(error).__name__, failures + 1, TRIES, pause),
            )
            if stopping.wait(min(pause, LONGEST_PAUSE)):
                raise


def may_pass(error: BaseException) -> bool:
    """Tell errors that may be gone in a while from those that stay.

    An `InputError` is judged by what it explains.
    """
    cause = _cause(error)
    if isinstance(cause, HfHubHTTPError):
        status = cause.response.status_code
        return status in PASSING_STATUSES or status >= 500
    return isinstance(cause, PASSING_ERRORS)


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
