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
# The search promises this precision of distances, and the estimators keep it.
RELATIVE_TOLERANCE = 1e-8


def draw_duplicates():
    X = hidden_states(600)
    X[400:440] = X[380:420]  # one of them in the same window, the others in other windows
    X[3] = X[2]
    return X


def draw_ties():
    return np.round(gaussian(600, 3) * 4)


def draw_two_halves():
    """Draw vectors whose neighbours are all in the same half of the text, so that some lose most neighbours."""
    return gaussian(600, 5) + 100 * (np.arange(600)[:, None] // 300)


HARD_CLOUDS = {
    "plain": lambda: hidden_states(600),
    "duplicates": draw_duplicates,
    "ties": draw_ties,
    "halves": draw_two_halves,
    "few": lambda: hidden_states(130),
}


def group_rows(n, windows=40):
    window_of = np.arange(n) * windows // n
    return window_of, selections.group_windows(windows, 0)


def list_neighbours(X, k):
    neighbours = nearest_neighbours(X, min(count_searched_neighbours(k), len(X) - 1))
    return NeighbourLists(*neighbours, np.arange(len(X)))


@pytest.mark.parametrize("cloud", HARD_CLOUDS)
@pytest.mark.parametrize("name", DIMENSIONS)
def test_jackknife_values_of_dimensions_are_those_of_a_new_neighbour_search(name, cloud):
    X = HARD_CLOUDS[cloud]()
    window_of, groups = group_rows(len(X))
    group_of = groups[window_of]
    measure = MEASURES[name].configure(name, {})
    lists = list_neighbours(X, 128)
    value, reused_values, recomputed_values = measure_batch(
        Batch(window_of, window_of, group_of, 0, lists), measure
    )
    function, k = measure.load(), measure.neighbours
    search = nearest_distances if measure.collapse else distances_by_brute_force
    distances = search(X, k)
    assert value == pytest.approx(function(distances), rel=RELATIVE_TOLERANCE)
    first_rows = np.unique(lists.distinct_of, return_index=True)[1]
    for group in range(GROUPS):
        remaining_rows = group_of != group
        expected = function(search(X[remaining_rows], k))
        assert recomputed_values[group] == pytest.approx(
            expected, rel=RELATIVE_TOLERANCE, nan_ok=True
        )
        remaining_distinct_rows = np.isin(
            np.arange(len(first_rows)), lists.distinct_of[remaining_rows]
        )
        remaining_distances = distances[
            remaining_distinct_rows if measure.collapse else remaining_rows
        ]
        assert reused_values[group] == pytest.approx(
            function(remaining_distances), rel=RELATIVE_TOLERANCE
        )


def test_a_vector_with_too_few_remaining_neighbours_has_no_value():
    """Ten neighbours are searched, and all neighbours of one vector are in the group that is left out."""
    X = np.concatenate([gaussian(12, 4) * 1e-3, gaussian(60, 4) + 50])
    lists = NeighbourLists(*nearest_neighbours(X, 10), np.arange(len(X)))
    present = np.ones(72, bool)
    present[1:12] = False
    (distances,) = lists.recompute_neighbours([present], 2)
    np.testing.assert_allclose(distances, nearest_distances(X[12:], 2), rtol=1e-9)


def test_near_duplicates_are_counted():
    X = gaussian(200, 20)
    X[100:120] = X[:20] + 1e-6 * gaussian(20, 20, seed=1)
    lists = NeighbourLists(*nearest_neighbours(X, 5), np.arange(len(X)))
    assert lists.near_duplicate_share() == 40 / 200


def draw_one_dominant_row():
    X = np.zeros((320, 200))
    X[np.arange(320), np.arange(320) % 160] = 1 + np.arange(320) / 320
    X[7, 199] = 1e3
    return X


VECTORS = {**CLOUDS, "no_gap": lambda: gaussian(700, 300), "one_row": draw_one_dominant_row}


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize(
    ("jackknife_function", "function"),
    [(anisotropy_jackknife, anisotropy), (average_cosine_jackknife, average_cosine)],
)
def test_jackknife_values_are_the_values_of_the_remaining_rows(
    jackknife_function, function, name, center
):
    X = np.asarray(VECTORS[name](), dtype=np.float64)
    parts = np.array_split(random_stream(0, "parts").permutation(len(X)), min(GROUPS, len(X)))
    value, jackknife_values = jackknife_function(X, parts, center)
    assert value == function(X, center)
    expected = np.array([call_or_nan(function, np.delete(X, p, axis=0), center) for p in parts])
    spread = expected.std() if np.isfinite(expected).all() else 0
    np.testing.assert_allclose(jackknife_values, expected, rtol=1e-9, atol=1e-6 * spread)


def call_or_nan(function, X, center):
    try:
        return function(X, center)
    except ValueError:  # too few rows
        return math.nan


TOTAL = Measure("numpy:sum", "spectrum", "Variance", "Variance")
CONFIGURED_MEASURES = {
    name: measure.configure(name, {})
    for name, measure in {**MEASURES, "total": TOTAL}.items()
    if measure.family in ("isotropy", "spectrum", "dimension") and not measure.rows
}


def measure_made_layer(X, name, windows=40, size=200):
    """Return the rows of the batches, and the row of the layer."""
    protocol = selections.MeasuringProtocol("m", windows, 0, size, 128)
    measure, states = CONFIGURED_MEASURES[name], MadeStates(X, windows=windows)
    *batches, layer_row = measure_layer(states, 0, measure.family, [measure], protocol)
    return batches, layer_row


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("anisotropy", anisotropy),
        ("total", lambda X: np.var(X.astype(float), axis=0, ddof=1).sum()),
    ],
)
def test_a_jackknife_value_is_the_mean_over_batches(name, function):
    X = hidden_states(650).astype(np.float32)
    window_of, groups = group_rows(650)
    estimate = measure_made_layer(X, name)[1]
    batches = selections.divide_contiguously(650, 200)
    for group in range(GROUPS):
        remaining_vectors = [X[rows][groups[window_of[rows]] != group] for rows in batches]
        values = [function(rows) for rows in remaining_vectors]
        assert estimate.jackknife_values[group] == pytest.approx(float(np.mean(values)), rel=1e-9)
    assert estimate.windows == 40
    assert (estimate.n, math.isnan(estimate.near_duplicates)) == (650 / 3, True)


@pytest.mark.parametrize("name", CONFIGURED_MEASURES)
def test_fewer_windows_than_groups_give_a_value_but_no_jackknife_values(name):
    _, few = measure_made_layer(hidden_states(600), name, windows=15)
    _, enough = measure_made_layer(hidden_states(600), name, windows=16)
    assert math.isfinite(few.value)
    assert few.windows == 15
    assert np.isnan(few.jackknife_values).all()
    assert np.isfinite(enough.jackknife_values).all() == CONFIGURED_MEASURES[name].has_jackknife


def test_a_batch_of_one_group_does_not_count_in_the_jackknife_value_without_that_group():
    """Of 17 windows of 50, a batch of 50 has one or two."""
    _, estimate = measure_made_layer(hidden_states(850), "anisotropy", windows=17, size=50)
    assert np.isfinite(estimate.jackknife_values).all()


def test_jackknife_values_of_neighbours_combine_both_kinds():
    X = draw_duplicates().astype(np.float32)
    window_of, groups = group_rows(600)
    batches = []
    for rows in selections.divide_shuffled(600, 200, random_stream(0, "batches", model="m")):
        windows = window_of[rows]
        batches.append(Batch(windows, windows, groups[windows], 0, list_neighbours(X[rows], 128)))
    for name in ("two_nn", "mada"):
        kinds = np.mean(
            [measure_batch(batch, CONFIGURED_MEASURES[name])[1:] for batch in batches], axis=0
        )
        # Combined values of MADA would shrink, and make its intervals too short.
        expected = combine_jackknife_values(*kinds) if name == "two_nn" else kinds[1]
        assert measure_made_layer(X, name)[1].jackknife_values == pytest.approx(
            expected, rel=RELATIVE_TOLERANCE
        )


def test_combined_jackknife_values_have_the_geometric_mean_of_both_errors():
    stream = random_stream(0, "values")
    reused_values = stream.normal(size=GROUPS)
    recomputed_values = 3 + 2 * stream.normal(size=GROUPS)
    combined_values = combine_jackknife_values(reused_values, recomputed_values)
    error = math.sqrt(standard_error(reused_values) * standard_error(recomputed_values))
    assert standard_error(combined_values) == pytest.approx(error, rel=1e-12)
    assert combined_values.mean() == pytest.approx(recomputed_values.mean(), rel=1e-12)
    np.testing.assert_allclose(
        combine_jackknife_values(recomputed_values, recomputed_values),
        recomputed_values,
        rtol=1e-14,
    )
