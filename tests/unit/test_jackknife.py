"""Jackknife values are those of a new measurement of the other vectors."""

import math

import numpy as np
import pytest

from clouds import distances_by_brute_force, gaussian, hidden_states
from hard_clouds import CLOUDS
from made_states import MadeStates
from shape_of_learning import anisotropy, average_cosine, nearest_distances, nearest_neighbours
from shape_of_learning.estimators.anisotropy import anisotropy_jackknife
from shape_of_learning.estimators.cosine import average_cosine_jackknife
from shape_of_learning.metrics import selections
from shape_of_learning.metrics.batches import Batch, NeighbourLists
from shape_of_learning.metrics.intervals import standard_error
from shape_of_learning.metrics.measure import combine_jackknife_values, measure_batch, measure_layer
from shape_of_learning.metrics.measure_entry import Measure, count_searched_neighbours
from shape_of_learning.metrics.registry import MEASURES
from shape_of_learning.metrics.tidy import GROUPS
from shape_of_learning.random_streams import random_stream

DIMENSIONS = ("two_nn", "mada", "mom", "mle", "two_nn_authors")
# What the search promises of a distance, and what the estimators make of it.
RELATIVE = 1e-8


def with_duplicates():
    X = hidden_states(600)
    X[400:440] = X[380:420]  # in other windows, and one in its own
    X[3] = X[2]
    return X


def with_ties():
    return np.round(gaussian(600, 3) * 4)


def in_two_halves():
    """Neighbours are all in the same half of the text, so that some lack more than a margin."""
    return gaussian(600, 5) + 100 * (np.arange(600)[:, None] // 300)


HARD = {
    "plain": lambda: hidden_states(600),
    "duplicates": with_duplicates,
    "ties": with_ties,
    "halves": in_two_halves,
    "few": lambda: hidden_states(130),
}


def group_rows(n, windows=40):
    window_of = np.arange(n) * windows // n
    return window_of, selections.group_windows(windows, 0)


def lists_of(X, k):
    found = nearest_neighbours(X, min(count_searched_neighbours(k), len(X) - 1))
    return NeighbourLists(*found, np.arange(len(X)))


@pytest.mark.parametrize("cloud", HARD)
@pytest.mark.parametrize("name", DIMENSIONS)
def test_without_a_group_neighbours_are_those_of_a_new_search(name, cloud):
    X = HARD[cloud]()
    window_of, groups = group_rows(len(X))
    group_of = groups[window_of]
    measure = MEASURES[name].configure(name, {})
    lists = lists_of(X, 128)
    value, reused, recomputed = measure_batch(
        Batch(window_of, window_of, group_of, 0, lists), measure
    )
    function, k = measure.load(), measure.neighbours
    search = nearest_distances if measure.collapse else distances_by_brute_force
    distances = search(X, k)
    assert value == pytest.approx(function(distances), rel=RELATIVE)
    first = np.unique(lists.distinct_of, return_index=True)[1]
    for group in range(GROUPS):
        left = group_of != group
        expected = function(search(X[left], k))
        assert recomputed[group] == pytest.approx(expected, rel=RELATIVE, nan_ok=True)
        of_distinct = np.isin(np.arange(len(first)), lists.distinct_of[left])
        as_found = distances[of_distinct if measure.collapse else left]
        assert reused[group] == pytest.approx(function(as_found), rel=RELATIVE)


def test_a_vector_with_too_few_remaining_neighbours_has_no_value():
    """Ten neighbours are searched, and those of one vector are all in the group that is left out."""
    X = np.concatenate([gaussian(12, 4) * 1e-3, gaussian(60, 4) + 50])
    lists = NeighbourLists(*nearest_neighbours(X, 10), np.arange(len(X)))
    present = np.ones(72, bool)
    present[1:12] = False
    (found,) = lists.recompute_neighbours([present], 2)
    np.testing.assert_allclose(found, nearest_distances(X[12:], 2), rtol=1e-9)


def test_near_duplicates_are_counted():
    X = gaussian(200, 20)
    X[100:120] = X[:20] + 1e-6 * gaussian(20, 20, seed=1)
    lists = NeighbourLists(*nearest_neighbours(X, 5), np.arange(len(X)))
    assert lists.near_duplicate_share() == 40 / 200


def one_direction_of_one_row():
    X = np.zeros((320, 200))
    X[np.arange(320), np.arange(320) % 160] = 1 + np.arange(320) / 320
    X[7, 199] = 1e3
    return X


VECTORS = {**CLOUDS, "no_gap": lambda: gaussian(700, 300), "one_row": one_direction_of_one_row}


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize(
    ("jackknife_function", "function"),
    [(anisotropy_jackknife, anisotropy), (average_cosine_jackknife, average_cosine)],
)
def test_values_of_vectors_are_those_of_the_rows_that_are_left(
    jackknife_function, function, name, center
):
    X = np.asarray(VECTORS[name](), dtype=np.float64)
    parts = np.array_split(random_stream(0, "parts").permutation(len(X)), min(GROUPS, len(X)))
    value, without = jackknife_function(X, parts, center)
    assert value == function(X, center)
    expected = np.array([value_or_nan(function, np.delete(X, p, axis=0), center) for p in parts])
    spread = expected.std() if np.isfinite(expected).all() else 0
    np.testing.assert_allclose(without, expected, rtol=1e-9, atol=1e-6 * spread)


def value_or_nan(function, X, center):
    try:
        return function(X, center)
    except ValueError:  # too few rows
        return math.nan


TOTAL = Measure("numpy:sum", "spectrum", "Variance", "Variance")
ALL = {
    name: measure.configure(name, {})
    for name, measure in {**MEASURES, "total": TOTAL}.items()
    if measure.family in ("isotropy", "spectrum", "dimension") and not measure.rows
}


def layer(X, name, windows=40, size=200):
    """Rows of the batches, and that of the layer."""
    protocol = selections.MeasuringProtocol("m", windows, 0, size, 128)
    measure, states = ALL[name], MadeStates(X, windows=windows)
    *batches, of_layer = measure_layer(states, 0, measure.family, [measure], protocol)
    return batches, of_layer


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("anisotropy", anisotropy),
        ("total", lambda X: np.var(X.astype(float), axis=0, ddof=1).sum()),
    ],
)
def test_a_value_without_a_group_is_the_mean_over_batches(name, function):
    X = hidden_states(650).astype(np.float32)
    window_of, groups = group_rows(650)
    estimate = layer(X, name)[1]
    batches = selections.divide_contiguously(650, 200)
    for group in range(GROUPS):
        left = [X[rows][groups[window_of[rows]] != group] for rows in batches]
        values = [function(rows) for rows in left]
        assert estimate.jackknife_values[group] == pytest.approx(float(np.mean(values)), rel=1e-9)
    assert estimate.windows == 40
    assert (estimate.n, math.isnan(estimate.near_duplicates)) == (650 / 3, True)


@pytest.mark.parametrize("name", ALL)
def test_fewer_windows_than_groups_have_values_but_no_jackknife(name):
    _, few = layer(hidden_states(600), name, windows=15)
    _, enough = layer(hidden_states(600), name, windows=16)
    assert math.isfinite(few.value)
    assert few.windows == 15
    assert np.isnan(few.jackknife_values).all()
    assert np.isfinite(enough.jackknife_values).all() == ALL[name].has_jackknife


def test_a_batch_of_one_group_says_nothing_without_it():
    """Of 17 windows of 50, a batch of 50 has one or two."""
    _, estimate = layer(hidden_states(850), "anisotropy", windows=17, size=50)
    assert np.isfinite(estimate.jackknife_values).all()


def test_jackknife_values_of_neighbours_combine_both_kinds():
    X = with_duplicates().astype(np.float32)
    window_of, groups = group_rows(600)
    batches = []
    for rows in selections.divide_shuffled(600, 200, random_stream(0, "batches", model="m")):
        windows = window_of[rows]
        batches.append(Batch(windows, windows, groups[windows], 0, lists_of(X[rows], 128)))
    for name in ("two_nn", "mada"):
        kinds = np.mean([measure_batch(batch, ALL[name])[1:] for batch in batches], axis=0)
        # Of MADA, shrunk ones would make intervals that are too short.
        expected = combine_jackknife_values(*kinds) if name == "two_nn" else kinds[1]
        assert layer(X, name)[1].jackknife_values == pytest.approx(expected, rel=RELATIVE)


def test_combined_jackknife_values_have_the_geometric_mean_of_both_errors():
    stream = random_stream(0, "values")
    rows, anew = stream.normal(size=GROUPS), 3 + 2 * stream.normal(size=GROUPS)
    both = combine_jackknife_values(rows, anew)
    error = math.sqrt(standard_error(rows) * standard_error(anew))
    assert standard_error(both) == pytest.approx(error, rel=1e-12)
    assert both.mean() == pytest.approx(anew.mean(), rel=1e-12)
    np.testing.assert_allclose(combine_jackknife_values(anew, anew), anew, rtol=1e-14)
