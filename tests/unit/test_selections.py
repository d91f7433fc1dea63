"""Rows, batches and groups of windows, and intervals from jackknife values."""

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


def choose_rows_of(selection, sample, seed=0):
    special, positions, token_ids = sample
    windows = np.cumsum(np.asarray(positions) == 0) - 1
    rows = {"special": special, "positions": positions, "token_ids": token_ids, "windows": windows}
    return selections.choose_rows(selection, rows, GROUPS, seed)


@pytest.mark.parametrize(
    ("special_tokens", "first_token", "rows"),
    [("drop", "keep", [1, 2, 4, 5]), ("keep", "drop", [1, 2, 3, 5]), ("drop", "drop", [1, 2, 5])],
)
def test_chosen_rows_ascend(special_tokens, first_token, rows):
    selection = selections.Selection(special_tokens, first_token)
    chosen_rows = choose_rows_of(selection, (SPECIAL, POSITIONS, TOKEN_IDS))
    np.testing.assert_array_equal(chosen_rows, rows)


def draw_tokens(tokens=5000, types=300):
    """Draw token ids of unequal frequency in windows of fifty, each of which begins with a special token."""
    stream = random_stream(0, "sample")
    token_ids = np.minimum(stream.geometric(0.02, tokens), types)
    positions = np.arange(tokens) % 50
    token_ids[positions == 0] = 0
    return positions == 0, positions, token_ids


@pytest.mark.parametrize("first_token", ["keep", "drop"])
def test_one_token_of_each_remaining_type_is_chosen(first_token):
    token_ids = draw_tokens()[2]
    kept_rows = choose_rows_of(selections.Selection(first_token=first_token), draw_tokens())
    rows = choose_rows_of(
        selections.Selection(first_token=first_token, token_types="one"), draw_tokens()
    )
    assert (np.diff(rows) > 0).all()
    assert set(rows) <= set(kept_rows)
    assert sorted(token_ids[rows]) == sorted(set(token_ids[kept_rows]))


def test_any_token_of_a_type_can_be_chosen():
    selection, ids = selections.Selection(token_types="one"), np.repeat([5, 6], [10, 2])
    draws = [choose_rows_of(selection, (ids < 0, np.arange(12), ids), seed) for seed in range(200)]
    assert set(np.ravel(draws)) == set(range(12))


@pytest.mark.parametrize(
    ("selection", "measure_rows", "name"),
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
def test_the_name_of_a_selection_says_which_rows_it_leaves_out(selection, measure_rows, name):
    assert selection.set_rows(measure_rows).name == name


def test_a_share_of_the_windows_has_windows_of_every_group():
    special, positions, token_ids = draw_tokens()
    chosen_rows = choose_rows_of(
        selections.Selection(first_token="drop", windows_share=0.5), (special, positions, token_ids)
    )
    windows = np.unique(chosen_rows // 50)
    sizes, all_sizes = (np.bincount(GROUPS[w], minlength=16) for w in (windows, np.arange(100)))
    assert (sizes == np.round(all_sizes / 2)).all()
    np.testing.assert_array_equal(
        chosen_rows, [r for r in range(5000) if r // 50 in windows and positions[r]]
    )


@given(st.sets(st.integers(0, 999), min_size=1, max_size=40), st.floats(8, 1e4))
def test_massive_tokens_are_found_and_left_out(massive_rows, factor):
    X = random_stream(0, "cloud").normal(size=(1000, 30)).astype(np.float32)
    X[list(massive_rows)] *= np.float32(factor)
    rows = {"special": np.zeros(1000, bool), "positions": np.arange(1000) % 50}
    rows |= {"token_ids": np.arange(1000) % 300, "windows": np.arange(1000) // 50}
    drop = selections.Selection(massive_tokens="drop")
    massive = find_massive(X)
    remaining_rows = selections.choose_rows(drop, rows, GROUPS, massive=massive)
    assert {*range(1000)} - {*remaining_rows.tolist()} == massive_rows
    # A type's token is drawn before massive tokens are left out, so that all revisions have the same tokens.
    one_per_type = selections.choose_rows(selections.Selection(token_types="one"), rows, GROUPS)
    selection = selections.Selection(token_types="one", massive_tokens="drop")
    assert selections.choose_rows(selection, rows, GROUPS, massive=massive).tolist() == [
        r for r in one_per_type if r not in massive_rows
    ]


@pytest.mark.parametrize("width", [100, 500])
def test_long_tails_are_no_massive_tokens(width):
    stream = random_stream(0, "tails")
    assert not find_massive(stream.normal(size=(20_000, width))).any()
    assert not find_massive(stream.standard_t(5, size=(20_000, width))).any()


def test_vectors_that_are_not_finite_are_no_massive_tokens():
    X = random_stream(0, "cloud").normal(size=(100, 5))
    for bad in (np.inf, np.nan):
        X[7, 2] = bad
        assert not find_massive(X).any()


def test_shares_of_the_variance_are_squares_about_the_mean():
    X = 3 + random_stream(0, "cloud").normal(size=(1000, 20))
    X[[5, 90], 4] += 500, 300
    concentration = measure_concentration(X.astype(np.float32))
    squares = (X - X.mean(axis=0)) ** 2
    shares = squares / squares.sum()
    assert concentration.largest_coordinate == 4
    assert concentration.largest_token_share == pytest.approx(shares[5].sum(), rel=1e-5)
    assert concentration.massive_share == pytest.approx(shares[[5, 90]].sum(), rel=1e-5)
    assert concentration.largest_coordinate_share == pytest.approx(shares[:, 4].sum(), rel=1e-5)
    norms = np.linalg.norm(X, axis=1)
    assert concentration.norm_ratio == pytest.approx(norms[5] / np.median(norms), rel=1e-5)


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
def test_shuffled_batches_are_disjoint_and_equally_large(vectors_and_size):
    vectors, size = vectors_and_size
    batches = selections.divide_shuffled(vectors, size, random_stream(0, "batches"))
    assert [len(batch) for batch in batches] == [size] * (vectors // size)
    rows = np.concatenate(batches)
    assert len(np.unique(rows)) == len(rows)
    assert rows.max() < vectors


def test_a_shuffled_batch_has_vectors_of_all_parts_of_the_text():
    batch, *_ = selections.divide_shuffled(1000, 100, random_stream(0, "batches"))
    assert batch.tolist() == sorted(batch)
    assert set(batch // 200) == set(range(5))


@pytest.mark.parametrize(
    "divide", [selections.divide_contiguously, lambda *a: selections.divide_shuffled(*a, None)]
)
def test_too_few_vectors_are_refused(divide):
    message = r"100 vectors, fewer than one batch of 4096; raise `sampling.*token_types"
    with pytest.raises(InputError, match=message):
        divide(100, 4096)


def test_streams_of_different_names_differ():
    owners = [(0, "batches", "m"), (0, "batches", "mr"), (0, "batchesm", ""), (0, "batches", "")]
    owners += [(1, "batches", "m"), (0, "windows", "m")]
    seeds = {stream_seed(seed, purpose, model=model) for seed, purpose, model in owners}
    assert len(seeds) == len(owners)


@given(windows=st.integers(1, 300), seed=st.integers(0, 100))
def test_groups_of_windows_differ_by_one_window_at_most(windows, seed):
    sizes = np.bincount(selections.group_windows(windows, seed), minlength=16)
    assert (len(sizes), sizes.sum()) == (16, windows)
    assert sizes.max() - sizes.min() <= 1


def test_intervals_of_a_mean_are_those_of_student():
    values = random_stream(0, "values").normal(size=16)
    left_out = [np.delete(values, group).mean() for group in range(16)]
    error = values.std(ddof=1) / 4
    assert standard_error(left_out) == pytest.approx(error, rel=1e-12)
    assert quantile() == pytest.approx(2.131449546, rel=1e-9)  # t(0.975, 15)
    bounds = (3 - 2.131449546 * error, 3 + 2.131449546 * error)
    assert interval(3.0, left_out) == pytest.approx(bounds)


def test_one_vector_of_a_window_is_its_last_token_or_the_mean_of_the_chosen_tokens():
    rows = {
        "windows": np.array([0, 0, 0, 3, 3]),
        "positions": np.array([0, 1, 2, 0, 1]),
        "token_ids": np.arange(5),
        "special": np.array([True, False, True, True, False]),
    }
    row_choices = {"special_tokens": "drop"}
    last = selections.Selection(sequence="last_token")
    assert selections.choose_rows(last, rows, GROUPS).tolist() == [2, 4]
    last = selections.Selection(sequence="last_token", **row_choices)
    assert selections.choose_rows(last, rows, GROUPS).tolist() == [1, 4]
    mean = selections.Selection(sequence="mean", **row_choices)
    protocol = selections.MeasuringProtocol("m", 100, 0, 3, 2, mean)
    assert selections.count_vectors(protocol, rows, mean) == 2
    state = np.array([[0.0], [2.0], [7.0], [1.0], [5.0]], np.float32)
    means = selections.average_windows(state, rows["windows"])
    assert means.tolist() == [[3.0], [3.0]]
    tensor = torch.from_numpy(state).bfloat16()
    assert selections.average_windows(tensor, rows["windows"]).dtype == torch.bfloat16
    assert selections.average_windows(tensor, rows["windows"]).tolist() == [[3.0], [3.0]]
