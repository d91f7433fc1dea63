"""Downloads over a network and from a server that fail."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hub_fetching import (
    FILES,
    LARGE_WIDTH,
    TOKENIZER,
    WEIGHTS,
    Hub,
    assert_same_files,
    fetch,
    gathering,
    refusal,
    shards,
    whole_and_large,
)
from hub_server import Proxy, proxied
from shape_of_learning.storage.digests import git_blob_name, sha256_of


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, hub_program: Path) -> Iterator[Hub]:
    with whole_and_large(tmp_path_factory.mktemp("hub"), hub_program) as running:
        yield running


def test_connections_that_are_cut_are_survived_in_one_run(hub, tmp_path):
    proxy = Proxy(hub.endpoint, cut={WEIGHTS: 3})
    with proxied(proxy) as endpoint:
        fetch(hub, tmp_path / "m", "org/whole", endpoint=endpoint)
    assert len(proxy.ranges_of(WEIGHTS)) == 4
    assert_same_files(tmp_path / "m", hub.sources / "whole", FILES)


def test_a_download_that_never_gets_to_its_end_is_given_up(hub, tmp_path):
    proxy = Proxy(hub.endpoint, ranges=False, cut={WEIGHTS: 1000})
    with proxied(proxy) as endpoint:
        message = refusal(hub, tmp_path / "m", "org/whole", endpoint=endpoint)
    assert f"{endpoint} cannot be reached" in message
    assert "files that are complete are kept" in message
    assert (gathering(tmp_path / "m") / hub.commits["org/whole"] / "config.json").exists()


@pytest.mark.parametrize(
    ("what", "status"),
    [
        ("file", 408),
        ("file", 429),
        ("file", 500),
        ("file", 503),
        ("listing", 429),
        ("listing", 503),
    ],
)
def test_answers_that_pass_are_survived(hub, tmp_path, what, status):
    name = {"file": WEIGHTS, "listing": hub.commits["org/whole"]}[what]
    with proxied(Proxy(hub.endpoint, failing={name: 3}, status=status)) as endpoint:
        fetch(hub, tmp_path / "m", "org/whole", endpoint=endpoint)
    assert_same_files(tmp_path / "m", hub.sources / "whole", FILES)


@pytest.mark.parametrize("status", [403, 404])
def test_answers_that_stay_are_not_asked_for_again(hub, tmp_path, status):
    proxy = Proxy(hub.endpoint, failing={WEIGHTS: 1000}, status=status)
    with proxied(proxy) as endpoint:
        message = refusal(hub, tmp_path / "m", "org/whole", endpoint=endpoint)
    assert f"answered {status}" in message
    assert [request.name for request in proxy.requests].count(WEIGHTS) == 1


@pytest.mark.parametrize("name", [WEIGHTS, "tokenizer.json"], ids=["sha256", "git_blob"])
def test_a_file_that_arrives_damaged_is_refused_and_not_kept(hub, tmp_path, name):
    with proxied(Proxy(hub.endpoint, damaged=name)) as endpoint:
        message = refusal(hub, tmp_path / "m", "org/whole", endpoint=endpoint)
    assert f"{name} of `org/whole` arrived damaged" in message
    listed = hub.listed[hub.commits["org/whole"]][name]
    content = bytearray((hub.sources / "whole" / name).read_bytes())
    content[0] ^= 1
    (tmp_path / "damaged").write_bytes(content)
    found = (git_blob_name if listed.hash.startswith("git:") else sha256_of)(tmp_path / "damaged")
    assert f"expected {listed.bytes} bytes with the hash {listed.hash}, found" in message
    assert f":{found};" in message
    assert not list(tmp_path.rglob(name))
    fetch(hub, tmp_path / "m", "org/whole")
    assert_same_files(tmp_path / "m", hub.sources / "whole", FILES)


def test_what_is_complete_when_a_run_fails_is_not_downloaded_again(hub, tmp_path):
    last = shards(hub)[-1]
    proxy = Proxy(hub.endpoint, failing={last: 1}, status=404)
    wide = {"hidden_size": LARGE_WIDTH}
    with proxied(proxy) as endpoint:
        refusal(hub, tmp_path / "m", "org/large", endpoint=endpoint, **wide)
        proxy.requests.clear()
        log = fetch(hub, tmp_path / "m", "org/large", endpoint=endpoint, **wide)
    wanted = ["config.json", "model.safetensors.index.json", *shards(hub), *TOKENIZER]
    assert set(proxy.asked) & set(wanted) == {last}
    assert log.count("is complete from an earlier run") == len(wanted) - 1
    assert_same_files(tmp_path / "m", hub.sources / "large", wanted)


def test_the_token_is_not_shown_to_the_host_that_a_download_is_sent_on_to(hub, tmp_path):
    content = Proxy(hub.endpoint)
    with proxied(content) as elsewhere:
        gate = Proxy(hub.endpoint, token="secret", sent_on_to=elsewhere)
        with proxied(gate) as endpoint:
            token = {"HF_TOKEN": "secret"}
            log = fetch(hub, tmp_path / "m", "org/whole", "main", token, endpoint=endpoint)
    shown = {request.token for request in gate.requests if request.name in FILES}
    assert shown == {"Bearer secret"}
    assert set(FILES) == set(content.asked)
    assert {request.token for request in content.requests} == {None}
    assert "secret" not in log
