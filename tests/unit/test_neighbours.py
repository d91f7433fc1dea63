import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import cKDTree

from clouds import gaussian, hidden_states
from shape_of_learning import nearest_distances
from shape_of_learning.estimators.arrays import distinct_rows
from shape_of_learning.random_streams import random_stream

pytestmark = pytest.mark.filterwarnings("error")


def compute_distances(X, k):
    """Compute all distances in float64; `hypot` neither over- nor underflows."""
    X = np.asarray(X, dtype=np.float64)
    distances = np.array([np.hypot.reduce(X - x, axis=1) for x in X])
    np.fill_diagonal(distances, np.inf)
    return np.sort(distances, axis=1)[:, :k]


def add_massive_rows(size, share):
    """Move a share of the rows far out along one coordinate, where they form a second cluster."""
    X = hidden_states(n=500)
    X[:: round(1 / share), 7] += size
    return X


CLOUDS = {
    "plain": hidden_states,
    "float32": lambda: hidden_states().astype(np.float32),
    "offset 5000": lambda: hidden_states() + 700 * gaussian(1, 48, seed=1),
    "one coordinate varies by 1e5": lambda: hidden_states() * np.where(np.arange(48) == 3, 1e5, 1),
    "10 % rows beyond the squares of float32": lambda: add_massive_rows(1e30, 0.1),
    "two halves 1e9 apart": lambda: add_massive_rows(1e9, 0.5),
    "scale 1e36": lambda: 1e36 * hidden_states(),
    "scale 1e-40": lambda: 1e-40 * hidden_states(),
    "clusters of near-duplicates": lambda: (
        np.tile(hidden_states(6), (80, 1)) + 1e-7 * gaussian(480, 48)
    ),
    "one dimension": lambda: gaussian(300, 1),
    "more dimensions than vectors": lambda: gaussian(120, 700),
}


@pytest.mark.parametrize("name", CLOUDS)
@pytest.mark.parametrize("k", [2, 20])
def test_distances_are_those_of_brute_force(name, k):
    X = CLOUDS[name]()
    np.testing.assert_allclose(nearest_distances(X, k), compute_distances(X, k), rtol=1e-9, atol=0)


@settings(max_examples=60)
@given(
    n=st.integers(2, 90),
    d=st.integers(1, 12),
    k=st.integers(1, 30),
    levels=st.sampled_from([3, 50, 10**6]),
    scale=st.sampled_from([1e-30, 1.0, 1e12]),
    offset=st.sampled_from([0.0, 1e4]),
    far=st.sampled_from([0.0, 1e3, 1e8]),
    seed=st.integers(0, 10**6),
)
def test_distances_are_those_of_brute_force_on_any_cloud(n, d, k, levels, scale, offset, far, seed):
    stream = random_stream(seed, "any cloud")
    X = stream.integers(levels, size=(n, d)) / levels + offset
    X += far * (stream.random((n, 1)) < 0.2) * stream.random(d)
    X *= scale
    k = min(k, n - 1)
    _, first = np.unique(X, axis=0, return_index=True)
    distinct = X[np.sort(first)]
    existing = min(k, len(distinct) - 1)
    distances = nearest_distances(X, k)
    assert distances.shape == (len(distinct), k)
    if existing:
        expected = compute_distances(distinct, existing)
        np.testing.assert_allclose(distances[:, :existing], expected, rtol=1e-9, atol=0)
    assert np.isnan(distances[:, existing:]).all()


def test_distinct_vectors_are_never_at_distance_zero():
    """Each vector has a twin at a distance whose square underflows."""
    gaps = 1e-45 * np.arange(1, 51)
    X = np.tile(gaussian(50, 3), (2, 1))
    X[:, 0] = np.append(np.zeros(50), gaps)
    np.testing.assert_allclose(nearest_distances(X, 1)[:, 0], np.tile(gaps, 2), rtol=1e-9, atol=0)


def test_distinct_rows_differ_in_the_last_bit_but_not_by_a_negative_zero():
    X = gaussian(5, 3)
    assert distinct_rows(X[[3, 1, 3, 0, 1, 4]]).tolist() == [0, 1, 3, 5]
    nearly = [[0.0, 1.0], [-0.0, 1.0], [0.0, np.nextafter(1.0, 2.0)]]
    assert distinct_rows(nearly).tolist() == [0, 2]


def test_the_search_takes_no_memory_for_all_pairs_of_many_vectors():
    X = gaussian(8192, 4) + 1000
    tracemalloc.start()
    distances = nearest_distances(X, 3)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # All pairs would take 512 MiB; a block of 16 MiB and its temporary arrays fit in 48.
    assert peak < 48 * 2**20
    expected, _ = cKDTree(X).query(X, 4)
    np.testing.assert_allclose(distances, expected[:, 1:], rtol=1e-9, atol=0)


@pytest.mark.parametrize(
    ("X", "k", "message"),
    [
        (np.zeros((5, 2)), 5, "^X has 5 rows, but k=5 neighbours take at least 6"),
        (np.eye(5), 0, "^k must be at least 1, not 0"),
        (np.eye(5), 2.0, "^k must be a whole number, not 2.0"),
    ],
)
def test_bad_input_is_refused_by_name_and_reason(X, k, message):
    with pytest.raises(ValueError, match=message):
        nearest_distances(X, k)
