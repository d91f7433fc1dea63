import threading
import time

import httpx2
import pytest
from huggingface_hub.errors import HfHubHTTPError

from shape_of_learning.errors import InputError
from shape_of_learning.hub.retries import TRIES, may_pass, with_retries

LONG = 60.0  # seconds, which no test waits


def answered(status: int, **headers: str) -> HfHubHTTPError:
    request = httpx2.Request("GET", "http://127.0.0.1/org/model")
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HfHubHTTPError("", response=httpx2.Response(status, headers=named, request=request))


class Failing:
    """Raises what it is given, one error after the other, and then succeeds."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


@pytest.mark.parametrize(
    "headers",
    [
        {"Retry_After": "0"},
        {"Retry_After": "Wed, 21 Oct 2015 07:28:00 GMT"},
        {"RateLimit": '"api";r=0;t=0'},
    ],
    ids=["seconds", "date", "rate limit"],
)
def test_the_pause_is_the_one_that_the_server_asks_for(headers):
    begun = time.monotonic()
    assert with_retries(Failing(answered(429, **headers)), first_pause=LONG) == "done"
    assert time.monotonic() - begun < LONG


def test_patience_ends():
    attempt = Failing(*[httpx2.ConnectError("refused")] * 100)
    with pytest.raises(httpx2.ConnectError):
        with_retries(attempt, first_pause=0)
    assert attempt.calls == TRIES


def test_progress_renews_patience():
    attempt = Failing(*[httpx2.ReadError("cut")] * 100)
    assert with_retries(attempt, first_pause=0, progress=lambda: attempt.calls) == "done"


def test_losing_ground_and_gaining_it_again_is_no_progress():
    attempt = Failing(*[httpx2.ReadError("cut")] * 100)
    with pytest.raises(httpx2.ReadError):
        with_retries(attempt, first_pause=0, progress=lambda: attempt.calls % 2)
    assert attempt.calls == TRIES


def test_waiting_can_be_stopped():
    stopping = threading.Event()
    stopping.set()
    attempt = Failing(httpx2.ConnectError("refused"))
    with pytest.raises(httpx2.ConnectError):
        with_retries(attempt, first_pause=LONG, stopping=stopping)
    assert attempt.calls == 1


def test_an_explained_error_is_judged_by_its_cause():
    for cause, passes in [(answered(503), True), (answered(404), False), (None, False)]:
        explained = InputError("one sentence")
        explained.__cause__ = cause
        assert may_pass(explained) is passes
