import numpy as np
import pytest

from clouds import gaussian, hidden_states
from papers.finetuning.adjustments import ClusterAdjustment
from shape_of_learning import average_cosine

pytestmark = pytest.mark.filterwarnings("error")


def draw_blobs(sizes, d=12, seed=0):
    """Draw clusters of these sizes, far from each other and in order."""
    middles = 100 * gaussian(len(sizes), d, seed)
    return np.repeat(middles, sizes, axis=0) + gaussian(sum(sizes), d, seed + 1)


@pytest.mark.parametrize("shape", [(400, 48), (30, 48)])
def test_the_remainder_without_principal_directions_has_the_smaller_eigenvalues(shape):
    X = hidden_states(*shape)
    adjustment = ClusterAdjustment(1, 4).fit(X)
    whole_lengths = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
    rest, projection = adjustment.apply(X), adjustment.project(X)
    rest_lengths, projection_lengths = (
        np.linalg.svd(part, compute_uv=False) for part in (rest, projection)
    )
    np.testing.assert_allclose(rest_lengths[:20], whole_lengths[4:24], rtol=1e-9)
    np.testing.assert_allclose(projection_lengths[:4], whole_lengths[:4], rtol=1e-9)
    assert projection_lengths[4] < 1e-9 * projection_lengths[0]
    np.testing.assert_allclose(rest + projection, X - X.mean(axis=0), atol=1e-9)


def test_leading_directions_of_a_larger_fit_are_those_of_a_smaller_one():
    X, Y = hidden_states(), hidden_states(seed=1)
    many, few = (ClusterAdjustment(1, k).fit(X) for k in (32, 5))
    np.testing.assert_allclose(many.select_leading(5).apply(Y), few.apply(Y), atol=1e-9)
    np.testing.assert_allclose(many.select_leading(0).apply(Y), Y - X.mean(axis=0), atol=1e-9)


@pytest.mark.parametrize("adjustment", [ClusterAdjustment(1, 3), ClusterAdjustment(9, 0)])
def test_held_out_vectors_do_not_change_the_fit(adjustment):
    """Nor do the vectors that are adjusted together change each other."""
    X, Y = hidden_states(), hidden_states(seed=1)
    fit = adjustment.fit(X)
    rest = fit.apply(Y)
    rest_beside_long_vectors = fit.apply(np.concatenate([Y[:100], 1e6 * Y[100:]]))
    np.testing.assert_allclose(rest_beside_long_vectors[:100], rest[:100], atol=1e-12)
    np.testing.assert_allclose(fit.apply(Y[:1]), rest[:1], atol=1e-12)


def test_each_cluster_loses_its_mean_and_directions_and_a_small_one_everything():
    sizes = [60, 40, 3, 1]
    X = draw_blobs(sizes)
    adjustment = ClusterAdjustment(4, 5).fit(X)
    assert sorted(len(direction) for direction in adjustment.directions) == [0, 2, 5, 5]
    rest = adjustment.apply(X)
    start = 0
    for size in sizes:
        rows = X[start : start + size]
        cluster_rest = ClusterAdjustment(1, min(5, size - 1)).fit(rows).apply(rows)
        np.testing.assert_allclose(rest[start : start + size], cluster_rest, atol=1e-9)
        start += size
    # Few vectors become exactly zero, and are left out of cosines.
    assert np.flatnonzero(~rest.any(axis=1)).tolist() == [100, 101, 102, 103]
    assert average_cosine(rest) == pytest.approx(average_cosine(rest[:100]), abs=1e-14)
