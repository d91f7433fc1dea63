"""Servers that stall, drip, lie, redirect or make no sense: bounded time and size, and one sentence."""

import pytest

from hostile_hub import EXPECTED, TOKEN, attacked, hostile

LARGEST = 500_000  # KiB of memory for the worst attack; its pages alone would take a gigabyte


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """What was said of each attack, and the tokens that another host than the Hub was shown."""
    with hostile() as (elsewhere, shown_elsewhere), hostile(elsewhere) as (endpoint, shown):
        said = attacked(endpoint, tmp_path_factory.mktemp("home"))
        yield said, shown, shown_elsewhere


@pytest.mark.parametrize("name", EXPECTED)
def test_it_ends_in_one_sentence_in_time(outcome, name):
    sentence, seconds, kind = outcome[0][name]
    assert EXPECTED[name] in sentence
    assert kind in ("InputError", "UnreachableError", "GatedError")
    assert sentence.startswith("model `m`: ")
    assert sentence.isprintable()
    assert len(sentence) < 600
    assert TOKEN not in sentence
    assert seconds < 30


def test_memory_is_bounded(outcome):
    assert outcome[0]["memory"] < LARGEST


def test_a_hub_that_makes_sense_is_understood(outcome):
    assert outcome[0]["config-fine"][0].startswith("Shape(role='decoder', layers=2")


def test_another_host_is_never_shown_the_token(outcome):
    _, shown, elsewhere = outcome
    assert any("tree-next" in path for path, _ in elsewhere)
    assert any("config-elsewhere" in path for path, _ in elsewhere)
    assert {token for _, token in elsewhere} == {None}
    assert {token for path, token in shown if "attack/" in path} == {f"Bearer {TOKEN}"}
