import numpy as np
import pytest
from shape_of_learning.estimators.few_neighbours import FEW_NEIGHBOURS, nearest_few

from clouds import gaussian, hidden_states
from shape_of_learning.random_streams import random_stream

pytestmark = pytest.mark.filterwarnings("error")


def by_differences(X, k):
    squares = np.array([np.square(X - x).sum(axis=1) for x in X])
    np.fill_diagonal(squares, np.inf)
    return np.argsort(squares, axis=1, kind="stable")[:, :k], np.sqrt(np.sort(squares)[:, :k])


def by_products_in_float32(X, k):
    X = X.astype(np.float32)
    halves = np.square(X).sum(axis=1) / 2
    halved = halves - X @ X.T
    np.fill_diagonal(halved, np.inf)
    return np.argsort(halved, axis=1, kind="stable")[:, :k]


def nearly_equidistant(n=200, d=60):
    """Each of n vectors has three others at distances that differ by a millionth, far from the origin."""
    corners = np.insert(np.eye(d)[5:8], 0, 0, axis=0)
    lengths = 1 + 1e-6 * random_stream(0, "lengths").random((n, 4, 1))
    X = gaussian(n, d)[:, None] + lengths * corners
    X[:, :, 0] *= 30
    return X.reshape(4 * n, d)


@pytest.mark.parametrize("k", range(1, FEW_NEIGHBOURS + 1))
@pytest.mark.parametrize("n", [20, 128, 129, 700])
def test_distances_are_those_of_all_differences(n, k):
    X = hidden_states(n=n)
    np.testing.assert_allclose(nearest_few(X, k)[0], by_differences(X, k)[1], rtol=1e-14)


def test_neighbours_that_float32_would_confuse_are_told_apart():
    X = nearly_equidistant()
    nearest, distances = by_differences(X, 2)
    assert (by_products_in_float32(X, 2) != nearest).any(axis=1).sum() > 20
    np.testing.assert_allclose(nearest_few(X, 2)[0], distances, rtol=1e-14)


def test_ties_are_all_found():
    X = np.stack(np.meshgrid(*[np.arange(5.0)] * 3), axis=-1).reshape(-1, 3)
    np.testing.assert_array_equal(nearest_few(X, 3)[0], np.ones((125, 3)))


@pytest.mark.parametrize("scale", [2.0**-60, 2.0**40])
def test_a_scale_within_the_range_of_float32_changes_nothing(scale):
    X = hidden_states()
    np.testing.assert_array_equal(nearest_few(scale * X, 2)[0], scale * nearest_few(X, 2)[0])


@pytest.mark.parametrize(
    "X",
    [
        hidden_states() * 1e30,
        hidden_states() * 1e-30,
        np.repeat(hidden_states(n=20), 20, axis=0) + 1e-7 * gaussian(400, 48),
        np.arange(400)[:, None] * np.ones(3) * 1e-140,
        np.where(random_stream(0, "halves").random((400, 1)) < 0.5, 1e9, 0) + hidden_states(),
    ],
    ids=["large", "small", "near-duplicates", "tiny", "far apart"],
)
def test_clouds_that_float32_cannot_tell_apart_are_left_to_others(X):
    assert nearest_few(X, 2) is None


def test_more_neighbours_than_few_are_left_to_others():
    assert nearest_few(hidden_states(), FEW_NEIGHBOURS + 1) is None
