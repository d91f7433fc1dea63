"""Trying again where a network or a server fails for a while."""

import logging
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

import httpx2
from huggingface_hub.errors import HfHubHTTPError
from huggingface_hub.utils import parse_ratelimit_headers

from shape_of_learning.errors import InputError, UnreachableError
from shape_of_learning.hub.hub_client import may_pass_by_itself

logger = logging.getLogger(__name__)

TRIES = 6
SILENT_TRIES = 2  # where there is no answer at all, for which each try has waited long
FIRST_PAUSE = 1.0  # seconds, doubled from try to try: half a minute in all
LONGEST_PAUSE = 300.0  # seconds; the Hub counts requests in windows of five minutes
LONGEST_TRYING = 600.0  # seconds from the first failure on, pauses included
SAID_PAUSE = 20.0  # seconds; a longer one is said on the terminal
PASSING_ERRORS = (httpx2.TimeoutException, httpx2.NetworkError, httpx2.RemoteProtocolError)

Result = TypeVar("Result")
# When all questions end that are asked now, by time.monotonic().
_deadline = float("inf")


@contextmanager
def ending_in(seconds: float) -> Iterator[None]:
    """Let no question inside the block, in any thread, be asked or waited for after so many seconds."""
    global _deadline
    before, _deadline = _deadline, time.monotonic() + seconds
    try:
        yield
    finally:
        _deadline = before


def seconds_left() -> float:
    """Seconds for which questions may still be asked; infinite outside of :func:`ending_in`.

    Raises
    ------
    UnreachableError
        If there are none.
    """
    left = _deadline - time.monotonic()
    if left <= 0:
        raise UnreachableError("the Hub has not answered all questions in the time there is")
    return left


def with_retries(attempt: Callable[[], Result]) -> Result:
    """Try until it succeeds, or fails for good, or has failed :data:`TRIES` times, or twice in silence.

    Parameters
    ----------
    attempt : callable
        What to try. Errors that may pass are those of :func:`may_pass`.

    Notes
    -----
    It ends after :data:`LONGEST_TRYING` seconds, and at once where a server asks for a longer pause than
    :data:`LONGEST_PAUSE`. The client goes on by itself with a download that breaks off.
    """
    failures, ends = 0, float("inf")
    while True:
        try:
            return attempt()
        except (httpx2.HTTPError, InputError) as error:
            failures += 1
            ends = min(ends, time.monotonic() + LONGEST_TRYING, _deadline)
            pause = _asked_pause(error)
            if pause is None:
                pause = FIRST_PAUSE * 2 ** (failures - 1)
            is_silent = isinstance(_cause(error), httpx2.TimeoutException)
            tries = SILENT_TRIES if is_silent else TRIES
            is_late = pause > LONGEST_PAUSE or time.monotonic() + pause > ends
            if not may_pass(error) or failures >= tries or is_late:
                raise
            logger.log(
                logging.WARNING if pause >= SAID_PAUSE else logging.INFO,
                "%s; try %d of %d in %.1f s",
                *(" ".join(str(error).split()) or type(error).__name__, failures + 1, tries, pause),
            )
            time.sleep(pause)


def may_pass(error: BaseException) -> bool:
    """Tell errors that may be gone in a while from those that stay.

    An `InputError` is judged by its cause. A connection that cannot be made at all stays: a plan does
    without a network that is not there, and in a download the client has tried that already.
    """
    cause = _cause(error)
    if isinstance(cause, HfHubHTTPError):
        return may_pass_by_itself(cause.response.status_code)
    return isinstance(cause, PASSING_ERRORS) and not isinstance(cause, httpx2.ConnectError)


def _cause(error: BaseException) -> BaseException | None:
    return error.__cause__ if isinstance(error, InputError) else error


def _asked_pause(error: BaseException) -> float | None:
    """Seconds that the server asks to wait, in `Retry-After` or the headers of its rate limit."""
    cause = _cause(error)
    if not isinstance(cause, HfHubHTTPError):
        return None
    headers = cause.response.headers
    try:
        limit = parse_ratelimit_headers(headers)
        if cause.response.status_code == 429 and limit is not None and limit.remaining == 0:
            return float(limit.reset_in_seconds)
        asked = headers.get("Retry-After", "").strip()
        if re.fullmatch("[0-9]+", asked):
            return float(asked)
        return max(0.0, (parsedate_to_datetime(asked) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError, OverflowError, IndexError):  # neither seconds nor a whole date
        return None
