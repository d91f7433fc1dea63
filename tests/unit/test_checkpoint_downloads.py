"""Downloads over a network and from a server that fail."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from shape_of_learning.hub.downloads import PARALLEL_FILES

from hub_fetching import (
    FILES,
    FIRST_PAUSE,
    LARGE_WIDTH,
    TOKENIZER,
    WEIGHTS,
    Hub,
    assert_same_files,
    fetch,
    gathering,
    refusal,
    shards,
    size,
    whole_and_large,
)
from hub_server import Proxy, proxied
from shape_of_learning.hub.retries import TRIES


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, hub_program: Path) -> Iterator[Hub]:
    with whole_and_large(tmp_path_factory.mktemp("hub"), hub_program) as running:
        yield running


def test_connections_that_are_cut_are_survived_in_one_run(hub, tmp_path):
    # One more than may fail in a row: as long as bytes arrive, nothing is given up.
    proxy = Proxy(hub.endpoint, cut={WEIGHTS: TRIES + 1})
    with proxied(proxy) as endpoint:
        fetch(hub, tmp_path / "m", "org/whole", "main", endpoint=endpoint)
    there, expected = 0, [None]
    for _ in range(TRIES + 1):
        there += (size(hub) - there) // 2
        expected.append(f"bytes={there}-")
    assert proxy.ranges_of(WEIGHTS) == expected
    assert_same_files(tmp_path / "m", hub.sources / "whole", FILES)


def test_a_server_that_knows_no_ranges_sends_the_file_anew(hub, tmp_path):
    proxy = Proxy(hub.endpoint, ranges=False, cut={WEIGHTS: 1})
    with proxied(proxy) as endpoint:
        fetch(hub, tmp_path / "m", "org/whole", "main", endpoint=endpoint)
    assert proxy.ranges_of(WEIGHTS) == [None, f"bytes={size(hub) // 2}-"]
    assert_same_files(tmp_path / "m", hub.sources / "whole", FILES)


def test_a_download_that_never_gets_farther_is_given_up(hub, tmp_path):
    proxy = Proxy(hub.endpoint, ranges=False, cut={WEIGHTS: 1000})
    with proxied(proxy) as endpoint:
        message = refusal(hub, tmp_path / "m", "org/whole", "main", endpoint=endpoint)
    assert len(proxy.ranges_of(WEIGHTS)) == TRIES
    assert f"{endpoint} cannot be reached" in message
    assert "what arrived is kept" in message


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_answers_that_pass_are_survived(hub, tmp_path, status):
    proxy = Proxy(hub.endpoint, failing={WEIGHTS: 2}, status=status)
    with proxied(proxy) as endpoint:
        fetch(hub, tmp_path / "m", "org/whole", "main", endpoint=endpoint)
    assert_same_files(tmp_path / "m", hub.sources / "whole", FILES)


def test_a_listing_that_fails_is_asked_for_again(hub, tmp_path):
    proxy = Proxy(hub.endpoint, failing={"main": 2})  # /api/models/org/whole/revision/main
    with proxied(proxy) as endpoint:
        fetch(hub, tmp_path / "m", "org/whole", "main", endpoint=endpoint)
    assert proxy.asked.count("main") == 3


def test_pauses_double(hub, tmp_path):
    proxy = Proxy(hub.endpoint, failing={WEIGHTS: 3})
    with proxied(proxy) as endpoint:
        fetch(hub, tmp_path / "m", "org/whole", "main", first_pause=0.1, endpoint=endpoint)
    times = [request.at for request in proxy.requests if request.name == WEIGHTS]
    pauses = [later - earlier for earlier, later in pairwise(times)]
    # No shorter than asked for; how much longer is up to the machine.
    assert all(pause >= least for pause, least in zip(pauses, (0.1, 0.2, 0.4), strict=True))


def test_the_server_may_say_how_long_to_wait(hub, tmp_path):
    proxy = Proxy(hub.endpoint, failing={WEIGHTS: 1}, retry_after="1")
    with proxied(proxy) as endpoint:
        fetch(hub, tmp_path / "m", "org/whole", "main", endpoint=endpoint)
    first, second = (request.at for request in proxy.requests if request.name == WEIGHTS)
    assert second - first >= 1 > FIRST_PAUSE


@pytest.mark.parametrize("status", [403, 404])
def test_answers_that_stay_are_not_asked_for_again(hub, tmp_path, status):
    proxy = Proxy(hub.endpoint, failing={WEIGHTS: 1000}, status=status)
    with proxied(proxy) as endpoint:
        message = refusal(hub, tmp_path / "m", "org/whole", "main", endpoint=endpoint)
    assert f"answered {status}" in message
    assert proxy.asked.count(WEIGHTS) == 1


@pytest.mark.parametrize("name", [WEIGHTS, "tokenizer.json"], ids=["sha256", "git_blob"])
def test_a_file_that_arrives_damaged_twice_is_refused(hub, tmp_path, name):
    proxy = Proxy(hub.endpoint, damaged=name)
    with proxied(proxy) as endpoint:
        message = refusal(hub, tmp_path / "m", "org/whole", "main", endpoint=endpoint)
    assert f"{name} of `org/whole` arrived damaged" in message
    assert proxy.ranges_of(name) == [None, None]
    assert not list(gathering(tmp_path / "m").rglob(f"{name}*"))
    fetch(hub, tmp_path / "m", "org/whole", "main")
    assert_same_files(tmp_path / "m", hub.sources / "whole", FILES)


def test_shards_are_downloaded_some_at_a_time(hub, tmp_path):
    proxy = Proxy(hub.endpoint, throttled=2e6)
    with proxied(proxy) as endpoint:
        log = fetch(
            hub, tmp_path / "m", "org/large", "main", hidden_size=LARGE_WIDTH, endpoint=endpoint
        )
    assert 2 <= proxy.most_in_flight <= PARALLEL_FILES
    wanted = ["config.json", "model.safetensors.index.json", *shards(hub), *TOKENIZER]
    assert_same_files(tmp_path / "m", hub.sources / "large", wanted)
    for shard in shards(hub):
        assert f"{shard} begins" in log
        assert f"{shard} is complete" in log
    total = sum((tmp_path / "m" / name).stat().st_size for name in wanted) / 1e6
    assert f"{total:.1f} of {total:.1f} MB" in log


def test_the_first_error_stops_the_others_and_what_is_complete_is_kept(hub, tmp_path):
    *others, last = shards(hub)
    proxy = Proxy(hub.endpoint, failing={last: 1}, status=404)
    wide = {"hidden_size": LARGE_WIDTH}
    with proxied(proxy) as endpoint:
        message = refusal(hub, tmp_path / "m", "org/large", "main", **wide, endpoint=endpoint)
        complete = {path.name for path in gathering(tmp_path / "m").rglob("*.safetensors")}
        proxy.requests.clear()
        fetch(hub, tmp_path / "m", "org/large", "main", **wide, endpoint=endpoint)
    assert "answered 404" in message
    assert complete <= set(others)
    assert "model.safetensors.index.json" not in {request.name for request in proxy.requests}
    assert not complete & {request.name for request in proxy.requests}


def test_the_token_is_not_shown_to_the_host_that_a_download_is_sent_on_to(hub, tmp_path):
    content = Proxy(hub.endpoint, cut={WEIGHTS: 1})
    with proxied(content) as elsewhere:
        gate = Proxy(hub.endpoint, token="secret", sent_on_to=elsewhere)
        with proxied(gate) as endpoint:
            fetch(
                hub, tmp_path / "m", "org/whole", "main", {"HF_TOKEN": "secret"}, endpoint=endpoint
            )
    assert {request.token for request in gate.requests if request.name in FILES} == {
        "Bearer secret"
    }
    assert {request.token for request in content.requests} == {None}
    # The rest is asked for by way of the Hub, since addresses of content expire.
    rest = f"bytes={size(hub) // 2}-"
    assert gate.ranges_of(WEIGHTS) == content.ranges_of(WEIGHTS) == [None, rest]
