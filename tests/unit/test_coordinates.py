"""Mean norm, largest coordinate and kurtosis equal their definitions in plain sums."""

import numpy as np
import pytest
import scipy.stats
import torch

import shape_of_learning as sol
from shape_of_learning.estimators.coordinates import kurtosis, largest_coordinate, mean_norm

MEASURES = (mean_norm, largest_coordinate, kurtosis)


def draw_cloud(seed=0, offset=0.0):
    return np.random.default_rng(seed).standard_t(5, (3000, 70)) + offset


def test_measures_equal_their_definitions():
    X = draw_cloud()
    assert mean_norm(X) == pytest.approx(np.sqrt((X**2).sum(axis=1)).mean(), rel=1e-12)
    assert largest_coordinate(X) == abs(X).max()
    assert largest_coordinate(-X) == abs(X).max()
    assert kurtosis(X) == pytest.approx(scipy.stats.kurtosis(X.ravel(), fisher=False), rel=1e-10)


def test_kurtosis_ignores_offset_and_scale_and_tells_a_gaussian_from_an_outlier():
    assert kurtosis(1e-3 * draw_cloud(offset=1e4)) == pytest.approx(
        kurtosis(draw_cloud()), rel=1e-6
    )
    X = np.random.default_rng(0).standard_normal((4000, 64))
    # The standard error of the kurtosis of N Gaussian numbers is the root of 24 / N.
    assert abs(kurtosis(X) - 3) < 5 * np.sqrt(24 / X.size)
    X[:, 7] += 100
    assert kurtosis(X) > 50  # of d coordinates, one that is always large gives about d
    assert np.isnan(kurtosis(np.ones((5, 5))))


@pytest.mark.parametrize("measure", MEASURES)
def test_all_types_of_input_are_taken_and_bad_input_is_refused(measure):
    X = draw_cloud()[:100].astype(np.float32)
    value = measure(X)
    for same in (X.tolist(), torch.from_numpy(X), torch.from_numpy(X).double()):
        assert measure(same) == pytest.approx(value, rel=1e-12)
    for bad in ([1.0], [[np.nan]], [[np.inf]], np.empty((0, 3))):
        with pytest.raises(ValueError, match="X"):
            measure(bad)


def test_a_layer_is_measured_whole_and_without_an_interval():
    """Batches do not divide the vectors: the largest coordinate of a layer is that of all its vectors."""
    states = draw_cloud().reshape(30, 100, 70).astype(np.float32)
    states[0, 0, 0] = 200
    table = sol.measure(
        states, measures=[measure.__name__ for measure in MEASURES], batch_vectors=500
    )
    rows = table[table["layer"] == 0].set_index("estimator")
    for measure in MEASURES:
        assert rows["value"][measure.__name__] == pytest.approx(measure(states.reshape(-1, 70)))
    assert rows["low"].isna().all()
