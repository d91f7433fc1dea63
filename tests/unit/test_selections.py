import numpy as np
import pytest

from shape_of_learning.metrics.selections import Selection
from shape_of_learning.random_streams import random_stream

SPECIAL = np.array([True, False, False, True, False, False])
TOKEN_IDS = np.array([2, 7, 8, 3, 7, 7])
POSITIONS = np.array([0, 1, 2, 3, 0, 1])  # the second window begins with a token of its text


@pytest.mark.parametrize(
    ("special_tokens", "first_token", "rows"),
    [
        ("keep", "keep", [0, 1, 2, 3, 4, 5]),
        ("drop", "keep", [1, 2, 4, 5]),
        ("keep", "drop", [1, 2, 3, 5]),
        ("drop", "drop", [1, 2, 5]),
    ],
)
def test_rows_that_are_kept_ascend(special_tokens, first_token, rows):
    selection = Selection(special_tokens, first_token)
    chosen = selection.rows(SPECIAL, POSITIONS, TOKEN_IDS)
    assert chosen.dtype == np.int64
    np.testing.assert_array_equal(chosen, rows)
    assert Selection.from_json(selection.to_json()) == selection


def sample(tokens=5000, types=300):
    """Token ids of very unequal frequency, in windows of fifty, the first token of each special."""
    stream = random_stream(0, "sample")
    token_ids = np.minimum(stream.geometric(0.02, tokens), types)
    positions = np.arange(tokens) % 50
    token_ids[positions == 0] = 0
    return positions == 0, positions, token_ids


@pytest.mark.parametrize("first_token", ["keep", "drop"])
def test_of_each_token_type_that_is_left_there_is_one(first_token):
    special, positions, token_ids = sample()
    left = Selection(first_token=first_token).rows(special, positions, token_ids)
    rows = Selection(first_token=first_token, token_types="one").rows(special, positions, token_ids)
    assert rows.dtype == np.int64
    assert (np.diff(rows) > 0).all()
    assert set(rows) <= set(left)
    assert sorted(token_ids[rows]) == sorted(set(token_ids[left]))


def test_the_seed_decides_which_and_nothing_else_does():
    def rows(seed):
        return Selection(token_types="one", seed=seed).rows(*sample()).tolist()

    assert rows(0) == rows(0)
    assert rows(0) != rows(1)


def test_each_token_of_a_type_is_as_likely_as_the_others():
    token_ids = np.repeat([5, 6], [40, 10])
    none, positions = np.zeros(50, bool), np.arange(50)
    draws = 4000
    counts = np.zeros(50)
    for seed in range(draws):
        counts[Selection(token_types="one", seed=seed).rows(none, positions, token_ids)] += 1
    expected = draws / np.repeat([40, 10], [40, 10])
    # Binomial counts; five standard deviations leave one false alarm in 35,000.
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()


def test_tables_call_a_selection_by_what_it_leaves_out():
    assert Selection(seed=3).name == "all"
    own = Selection(special_tokens="drop").with_rows(
        {"first_token": "drop", "last_layer": "before_final_norm"}
    )
    assert own.name == "without_first_token+without_special_tokens+before_final_norm"
    assert Selection(first_token="drop").with_rows({"first_token": "keep"}).name == "all"
    assert Selection(special_tokens="drop").name == "without_special_tokens"
    everything = Selection("drop", "drop", "one")
    assert everything.name == "without_first_token+without_special_tokens+one_per_token_type"
    assert Selection.from_json(everything.to_json()) == everything
