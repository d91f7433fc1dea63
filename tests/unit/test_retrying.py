import time

import httpx2
import pytest
from huggingface_hub.errors import HfHubHTTPError

from shape_of_learning.errors import InputError
from shape_of_learning.hub.retries import (
    FIRST_PAUSE,
    LONGEST_TRYING,
    SILENT_TRIES,
    TRIES,
    may_pass,
    with_retries,
)


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


@pytest.fixture
def pauses(monkeypatch) -> list[float]:
    """The pauses that are made, and take no time."""
    made: list[float] = []
    monkeypatch.setattr(time, "sleep", made.append)
    return made


def test_pauses_double_and_end(pauses):
    attempt = Failing(*[httpx2.ReadError("cut")] * 100)
    with pytest.raises(httpx2.ReadError):
        with_retries(attempt)
    assert attempt.calls == TRIES
    assert pauses == [FIRST_PAUSE * 2**n for n in range(TRIES - 1)]


@pytest.mark.parametrize(
    "headers", [{"Retry_After": "7"}, {"RateLimit": '"api";r=0;t=7'}], ids=["seconds", "rate limit"]
)
def test_the_pause_is_the_one_that_the_server_asks_for(headers, pauses):
    assert with_retries(Failing(answered(429, **headers))) == "done"
    assert pauses == [7]


@pytest.mark.parametrize("date", ["Wed, 21 Oct 2015 07:28:00 GMT", "0"])
def test_a_date_that_is_over_is_not_waited_for(date, pauses):
    assert with_retries(Failing(answered(429, Retry_After=date))) == "done"
    assert pauses == [0]


@pytest.mark.parametrize(
    "headers",
    [
        {"Retry_After": "1000000000"},
        {"Retry_After": "9" * 5000},
        {"Retry_After": "Wed, 21 Oct 2105 07:28:00 GMT"},
        {"RateLimit": '"api";r=0;t=301'},
    ],
)
def test_a_server_that_asks_for_a_longer_pause_is_given_up_at_once(headers, pauses):
    attempt = Failing(*[answered(429, **headers)] * 2)
    with pytest.raises(HfHubHTTPError):
        with_retries(attempt)
    assert attempt.calls == 1
    assert pauses == []


@pytest.mark.parametrize(
    "asked", ["\u00b2", "-1", "1e3", "soon", "", "Wed, 21 Oct 99999 07:28:00 GMT"]
)
def test_a_pause_that_is_no_number_is_our_own(asked, pauses):
    refused = answered(429)
    refused.response.headers = httpx2.Headers([(b"retry-after", asked.encode())])
    assert with_retries(Failing(refused)) == "done"
    assert pauses == [FIRST_PAUSE]


def test_pauses_that_a_server_asks_for_again_and_again_end(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    with pytest.raises(HfHubHTTPError):
        with_retries(Failing(*[answered(429, Retry_After="250")] * 100))
    assert 0 < now[0] <= LONGEST_TRYING


def test_silence_is_waited_for_twice(pauses):
    attempt = Failing(*[httpx2.ReadTimeout("nothing")] * 100)
    with pytest.raises(httpx2.ReadTimeout):
        with_retries(attempt)
    assert attempt.calls == SILENT_TRIES == 2


def test_a_network_that_is_not_there_is_not_waited_for(pauses):
    with pytest.raises(httpx2.ConnectError):
        with_retries(Failing(httpx2.ConnectError("refused")))
    assert pauses == []


def test_an_explained_error_is_judged_by_its_cause():
    for cause, passes in [(answered(503), True), (answered(404), False), (None, False)]:
        explained = InputError("one sentence")
        explained.__cause__ = cause
        assert may_pass(explained) is passes
