"""Rows, batches and groups of windows, and the intervals that come of leaving groups out."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from shape_of_learning.errors import InputError
from shape_of_learning.estimators.massive import find_massive, measure_concentration
from shape_of_learning.metrics import selections
from shape_of_learning.metrics.intervals import interval, quantile, standard_error
from shape_of_learning.random_streams import random_stream, stream_seed

SPECIAL = np.array([True, False, False, True, False, False])
TOKEN_IDS = np.array([2, 7, 8, 3, 7, 7])
POSITIONS = np.array([0, 1, 2, 3, 0, 1])  # the second window begins with a token of its text
GROUPS = selections.group_windows(100, 0)


def chosen(selection, sample, seed=0):
    special, positions, token_ids = sample
    windows = np.cumsum(np.asarray(positions) == 0) - 1
    rows = {"special": special, "positions": positions, "token_ids": token_ids, "windows": windows}
    return selections.choose_rows(selection, rows, GROUPS, seed)


@pytest.mark.parametrize(
    ("special_tokens", "first_token", "rows"),
    [("drop", "keep", [1, 2, 4, 5]), ("keep", "drop", [1, 2, 3, 5]), ("drop", "drop", [1, 2, 5])],
)
def test_rows_that_are_kept_ascend(special_tokens, first_token, rows):
    selection = selections.Selection(special_tokens, first_token)
    found = chosen(selection, (SPECIAL, POSITIONS, TOKEN_IDS))
    np.testing.assert_array_equal(found, rows)


def sample(tokens=5000, types=300):
    """Token ids of very unequal frequency, in windows of fifty, the first token of each special."""
    stream = random_stream(0, "sample")
    token_ids = np.minimum(stream.geometric(0.02, tokens), types)
    positions = np.arange(tokens) % 50
    token_ids[positions == 0] = 0
    return positions == 0, positions, token_ids


@pytest.mark.parametrize("first_token", ["keep", "drop"])
def test_of_each_token_type_that_is_left_there_is_one(first_token):
    token_ids = sample()[2]
    left = chosen(selections.Selection(first_token=first_token), sample())
    rows = chosen(selections.Selection(first_token=first_token, token_types="one"), sample())
    assert (np.diff(rows) > 0).all()
    assert set(rows) <= set(left)
    assert sorted(token_ids[rows]) == sorted(set(token_ids[left]))


def test_each_token_of_a_type_can_be_the_one_that_is_kept():
    one, ids = selections.Selection(token_types="one"), np.repeat([5, 6], [10, 2])
    draws = [chosen(one, (ids < 0, np.arange(12), ids), seed) for seed in range(200)]
    assert set(np.ravel(draws)) == set(range(12))


@pytest.mark.parametrize(
    ("selection", "own", "name"),
    [
        (selections.Selection(), {}, "all"),
        (
            selections.Selection(special_tokens="drop"),
            {"first_token": "drop", "last_layer": "before_final_norm"},
            "without_first_token+without_special_tokens+before_final_norm",
        ),
        (selections.Selection(), {"token_types": "one"}, "one_per_token_type"),
        (selections.Selection(), {"massive_tokens": "drop"}, "without_massive_tokens"),
    ],
)
def test_tables_call_a_selection_by_what_it_leaves_out(selection, own, name):
    assert selection.set_rows(own).name == name


def test_a_share_of_the_windows_has_windows_of_every_group():
    special, positions, token_ids = sample()
    found = chosen(
        selections.Selection(first_token="drop", windows_share=0.5), (special, positions, token_ids)
    )
    windows = np.unique(found // 50)
    sizes, whole = (np.bincount(GROUPS[w], minlength=16) for w in (windows, np.arange(100)))
    assert (sizes == np.round(whole / 2)).all()
    np.testing.assert_array_equal(
        found, [r for r in range(5000) if r // 50 in windows and positions[r]]
    )


@given(st.sets(st.integers(0, 999), min_size=1, max_size=40), st.floats(8, 1e4))
def test_massive_tokens_are_found_wherever_they_are(planted, times):
    X = random_stream(0, "cloud").normal(size=(1000, 30)).astype(np.float32)
    X[list(planted)] *= np.float32(times)
    rows = {"special": np.zeros(1000, bool), "positions": np.arange(1000) % 50}
    rows |= {"token_ids": np.arange(1000) % 300, "windows": np.arange(1000) // 50}
    drop = selections.Selection(massive_tokens="drop")
    massive = find_massive(X)
    left = selections.choose_rows(drop, rows, GROUPS, massive=massive)
    assert {*range(1000)} - {*left.tolist()} == planted
    # Of each type the token is drawn first, so that revisions with other massive tokens have the same ones.
    one = selections.choose_rows(selections.Selection(token_types="one"), rows, GROUPS)
    both = selections.Selection(token_types="one", massive_tokens="drop")
    assert selections.choose_rows(both, rows, GROUPS, massive=massive).tolist() == [
        r for r in one if r not in planted
    ]


@pytest.mark.parametrize("width", [100, 500])
def test_long_tails_are_no_massive_tokens(width):
    stream = random_stream(0, "tails")
    assert not find_massive(stream.normal(size=(20_000, width))).any()
    assert not find_massive(stream.standard_t(5, size=(20_000, width))).any()


def test_what_is_not_finite_is_no_massive_token_and_stays():
    X = random_stream(0, "cloud").normal(size=(100, 5))
    for bad in (np.inf, np.nan):
        X[7, 2] = bad
        assert not find_massive(X).any()


def test_shares_of_the_variance_are_those_of_squares_about_the_mean():
    X = 3 + random_stream(0, "cloud").normal(size=(1000, 20))
    X[[5, 90], 4] += 500, 300
    found = measure_concentration(X.astype(np.float32))
    squares = (X - X.mean(axis=0)) ** 2
    shares = squares / squares.sum()
    assert found.largest_coordinate == 4
    assert found.largest_token_share == pytest.approx(shares[5].sum(), rel=1e-5)
    assert found.massive_share == pytest.approx(shares[[5, 90]].sum(), rel=1e-5)
    assert found.largest_coordinate_share == pytest.approx(shares[:, 4].sum(), rel=1e-5)
    norms = np.linalg.norm(X, axis=1)
    assert found.norm_ratio == pytest.approx(norms[5] / np.median(norms), rel=1e-5)


SIZES = st.tuples(st.integers(50, 2000), st.integers(1, 50))


@given(SIZES)
def test_contiguous_batches_cover_all_vectors_in_order_and_are_large_enough(vectors_and_size):
    vectors, size = vectors_and_size
    batches = selections.divide_contiguously(vectors, size)
    rows = np.concatenate([np.arange(vectors)[batch] for batch in batches])
    np.testing.assert_array_equal(rows, np.arange(vectors))
    lengths = [batch.stop - batch.start for batch in batches]
    assert max(lengths) - min(lengths) <= 1
    assert len(batches) == vectors // size


@given(SIZES)
def test_shuffled_batches_are_disjoint_and_of_exactly_one_size(vectors_and_size):
    vectors, size = vectors_and_size
    batches = selections.divide_shuffled(vectors, size, random_stream(0, "batches"))
    assert [len(batch) for batch in batches] == [size] * (vectors // size)
    rows = np.concatenate(batches)
    assert len(np.unique(rows)) == len(rows)
    assert rows.max() < vectors


def test_a_shuffled_batch_is_of_all_parts_of_the_text():
    batch, *_ = selections.divide_shuffled(1000, 100, random_stream(0, "batches"))
    assert batch.tolist() == sorted(batch)
    assert set(batch // 200) == set(range(5))


@pytest.mark.parametrize(
    "divide", [selections.divide_contiguously, lambda *a: selections.divide_shuffled(*a, None)]
)
def test_too_few_vectors_are_refused(divide):
    said = r"100 vectors, fewer than one batch of 4096; raise `sampling.*token_types"
    with pytest.raises(InputError, match=said):
        divide(100, 4096)


def test_a_random_stream_belongs_to_its_name_alone():
    owners = [(0, "batches", "m"), (0, "batches", "mr"), (0, "batchesm", ""), (0, "batches", "")]
    owners += [(1, "batches", "m"), (0, "windows", "m")]
    seeds = {stream_seed(seed, purpose, model=model) for seed, purpose, model in owners}
    assert len(seeds) == len(owners)


@given(windows=st.integers(1, 300), seed=st.integers(0, 100))
def test_groups_are_as_equal_as_can_be(windows, seed):
    sizes = np.bincount(selections.group_windows(windows, seed), minlength=16)
    assert (len(sizes), sizes.sum()) == (16, windows)
    assert sizes.max() - sizes.min() <= 1


def test_intervals_are_those_of_student_and_the_error_of_a_mean_is_the_textbook_one():
    values = random_stream(0, "values").normal(size=16)
    left_out = [np.delete(values, group).mean() for group in range(16)]
    error = values.std(ddof=1) / 4
    assert standard_error(left_out) == pytest.approx(error, rel=1e-12)
    assert quantile() == pytest.approx(2.131449546, rel=1e-9)  # t(0.975, 15)
    bounds = (3 - 2.131449546 * error, 3 + 2.131449546 * error)
    assert interval(3.0, left_out) == pytest.approx(bounds)


def test_a_window_is_its_last_token_or_the_mean_of_those_that_are_left():
    rows = {
        "windows": np.array([0, 0, 0, 3, 3]),
        "positions": np.array([0, 1, 2, 0, 1]),
        "token_ids": np.arange(5),
        "special": np.array([True, False, True, True, False]),
    }
    without_special = {"special_tokens": "drop"}
    last = selections.Selection(sequence="last_token")
    assert selections.choose_rows(last, rows, GROUPS).tolist() == [2, 4]
    last = selections.Selection(sequence="last_token", **without_special)
    assert selections.choose_rows(last, rows, GROUPS).tolist() == [1, 4]
    mean = selections.Selection(sequence="mean", **without_special)
    protocol = selections.MeasuringProtocol("m", 100, 0, 3, 2, mean)
    assert selections.count_vectors(protocol, rows, mean) == 2
    state = np.array([[0.0], [2.0], [7.0], [1.0], [5.0]], np.float32)
    means = selections.average_windows(state, rows["windows"])
    assert means.tolist() == [[3.0], [3.0]]
    tensor = torch.from_numpy(state).bfloat16()
    assert selections.average_windows(tensor, rows["windows"]).dtype == torch.bfloat16
    assert selections.average_windows(tensor, rows["windows"]).tolist() == [[3.0], [3.0]]
