"""The Hub's own client within bounds of time and size, and with a token for the Hub alone.

Of itself the client waits for ever, follows a listing from page to page without end, sleeps as long as a
server says, unpacks whatever it is sent, and shows the token to whichever host a listing names as next.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, Queue
from typing import TypeVar
from urllib.parse import urlsplit

import httpx2
from huggingface_hub import HfApi, get_session, set_client_factory
from huggingface_hub.utils import hf_raise_for_status

from shape_of_learning.errors import InputError

SILENT_SECONDS = 30.0  # between two pieces of an answer; the client would wait for ever
ANSWER_SECONDS = 45.0  # for a whole answer, all pages of a listing together
ANSWER_BYTES = (
    32_000_000  # of the same; the longest real ones, of thousands of files, have a few million
)
ERROR_BYTES = 1_000_000  # which a server may take to say that it has not got a smaller file
SLOWEST_DOWNLOAD = 10_000  # bytes per second
SLOW_SECONDS = 120.0  # for which a download may be slower
# Request timeout, too many requests, and what went wrong with the server: another try may succeed.
PASSING_STATUSES = frozenset({408, 429})

Result = TypeVar("Result")


class LimitError(InputError):
    """A server sends more than it should, or too slowly."""


class _Budget(threading.local):
    """What the requests of this thread may take in all; infinite outside of questions and downloads."""

    most: float = float("inf")  # bytes
    bytes: float = float("inf")  # of these, what is left
    is_question: bool = False


_budget = _Budget()


def may_pass_by_itself(status: int) -> bool:
    """Tell whether the same request may get another answer in a while."""
    return status in PASSING_STATUSES or status >= 500


def asked(question: Callable[[], Result], seconds: float = ANSWER_SECONDS) -> Result:
    """Ask something of the Hub, and give up when there is no whole answer in time.

    Parameters
    ----------
    question : callable
        Calls the client. It goes on in a thread of its own, which is forgotten if it takes too long: no
        timeout of a socket ends an answer whose next byte always comes in time.
    seconds : float
        The time for a whole answer.

    Raises
    ------
    httpx2.ReadTimeout
        If that is over.
    LimitError
        If the answer has more than :data:`ANSWER_BYTES`.
    """
    outcome: Queue[tuple[Result | None, BaseException | None]] = Queue(1)

    def work() -> None:
        _budget.most = _budget.bytes = ANSWER_BYTES
        _budget.is_question = True
        try:
            outcome.put((question(), None))
        except BaseException as error:
            outcome.put((None, error))

    threading.Thread(target=work, daemon=True).start()
    try:
        result, error = outcome.get(timeout=max(seconds, 0))
    except Empty:
        raise httpx2.ReadTimeout(f"no whole answer in {seconds:.0f} s") from None
    if error is not None:
        raise error
    return result  # type: ignore[return-value]


@contextmanager
def downloading(size: int) -> Iterator[None]:
    """Let no answer inside the block, in this thread, be larger than `size` bytes or a page of an error."""
    _budget.most = _budget.bytes = max(size, ERROR_BYTES)
    try:
        yield
    finally:
        _budget.most = _budget.bytes = float("inf")


class _BoundedStream(httpx2.SyncByteStream):
    """The bytes of an answer, as long as they are neither too many nor too slow."""

    def __init__(self, stream: httpx2.SyncByteStream, host: str) -> None:
        self._stream, self._host = stream, host

    def __iter__(self) -> Iterator[bytes]:
        begun, arrived = time.monotonic(), 0
        left = _budget.bytes
        for piece in self._stream:
            left -= len(piece)
            arrived += len(piece)
            if left < 0:
                raise LimitError(f"{self._host} sends more than {_budget.most:,.0f} bytes")
            if not _budget.is_question and time.monotonic() - begun > SLOW_SECONDS:
                if arrived < SLOWEST_DOWNLOAD * SLOW_SECONDS:
                    raise LimitError(f"{self._host} sent {arrived:,} bytes in {SLOW_SECONDS:.0f} s")
                begun, arrived = time.monotonic(), 0
            yield piece
        if _budget.is_question:  # of which all pages count
            _budget.bytes = left

    def close(self) -> None:
        self._stream.close()


def _prepare(request: httpx2.Request) -> None:
    """Show the token to nobody but the Hub, ask for plain bytes, and wait for each no longer than we say."""
    if _origin(str(request.url)) != _origin(HfApi().endpoint):
        request.headers.pop("Authorization", None)
    # What is compressed can be a thousand times as large as it looks.
    request.headers["Accept-Encoding"] = "identity"
    limits = request.extensions.get("timeout", {})
    request.extensions["timeout"] = {
        kind: min(limits.get(kind) or SILENT_SECONDS, SILENT_SECONDS)
        for kind in ("connect", "read", "write", "pool")
    }


def _examine(response: httpx2.Response) -> None:
    """Refuse what need not be read, and bound the rest."""
    host = response.url.host
    if response.headers.get("Content-Encoding", "").strip().lower() not in ("", "identity"):
        raise LimitError(f"{host} sends a compressed answer, for which it was not asked")
    assert isinstance(response.stream, httpx2.SyncByteStream)
    response.stream = _BoundedStream(response.stream, host)
    # Else the client sleeps as long as the server says, and then asks again by itself.
    if may_pass_by_itself(response.status_code):
        hf_raise_for_status(response)


def _origin(address: str) -> tuple[str, str, int]:
    parts = urlsplit(address)
    default = 443 if parts.scheme == "https" else 80
    return parts.scheme, (parts.hostname or "").lower(), parts.port or default


# The client's own, which forbids to ask in offline mode.
_OWN_HOOKS = tuple(get_session().event_hooks["request"])


def _client() -> httpx2.Client:
    hooks: dict[str, list[Callable]] = {"request": [*_OWN_HOOKS, _prepare], "response": [_examine]}
    return httpx2.Client(event_hooks=hooks, follow_redirects=True, timeout=SILENT_SECONDS)


set_client_factory(_client)
