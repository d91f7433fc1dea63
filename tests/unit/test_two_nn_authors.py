"""TwoNN beside the function that the paper's authors released, run as it is installed."""

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

from clouds import ball, embedded, hidden_states
from shape_of_learning import nearest_distances, two_nn
from shape_of_learning.estimators.dimension import mean_distance_to_mean, two_nn_authors
from shape_of_learning.random_streams import random_stream

# They compute F and its logarithm in float32.
THEIR_ROUNDING = 1e-6


@pytest.fixture(scope="module")
def theirs():
    """Their function; the package itself cannot be imported, it looks for its own module in a wrong place."""
    package = importlib.util.find_spec("llm_microscope")
    if package is None:
        pytest.skip("llm-microscope, the authors' code, is not installed")
    file = Path(package.submodule_search_locations[0]) / "functions.py"
    module = importlib.util.spec_from_file_location("functions_of_llm_microscope", file)
    functions = importlib.util.module_from_spec(module)
    module.loader.exec_module(functions)
    return lambda X: functions.intrinsic_dimension(torch.from_numpy(X), "cpu")


def ours(X):
    X = np.asarray(X, np.float64)
    r = cdist(X, X)
    np.fill_diagonal(r, np.inf)
    r = np.sort(np.partition(r, 1, axis=1)[:, :2], axis=1)
    return two_nn_authors(r / mean_distance_to_mean(X))


def with_copies(X, share, times=1):
    """Replace a share of the rows by copies of others, in groups of ``times + 1``."""
    stream = random_stream(0, "copies")
    copies = stream.choice(len(X), round(share * len(X)), replace=False)
    originals = np.setdiff1d(np.arange(len(X)), copies)
    X = X.copy()
    X[copies] = X[np.resize(originals[: max(1, len(copies) // times)], len(copies))]
    return X


@pytest.mark.parametrize("times", [1, 2, 5])
@pytest.mark.parametrize("share", [0, 0.02, 0.3])
@pytest.mark.parametrize("offset", [0, 1e3])
def test_it_is_what_the_authors_code_gives(theirs, offset, share, times):
    X = with_copies((hidden_states(800, 24) + offset).astype(np.float32), share, times)
    assert ours(X) == pytest.approx(theirs(X), rel=THEIR_ROUNDING)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_what_is_nearly_a_copy_is_so_in_units_of_the_cloud(theirs, scale):
    """Pairs 1e-11 to 1e-6 of the cloud's radius apart: those below 1e-8 are copies."""
    X = embedded(ball(600, 8), 16)
    X -= X.mean(axis=0)
    gaps = np.geomspace(1e-11, 1e-6, 40)
    # A coordinate of exact size, so that no rounding moves it.
    X[:80, 0] = 0
    X[40:80] = X[:40]
    X[40:80, 0] = gaps
    X *= scale
    expected = theirs(X)
    assert ours(X) == pytest.approx(expected, rel=THEIR_ROUNDING)
    without_unit = two_nn_authors(nearest_distances(X, 2) * 1e20)
    assert without_unit != pytest.approx(expected, rel=1e-3), "the unit decides"


@pytest.mark.parametrize("n", [3, 5, 9, 10, 11])
def test_of_few_vectors_it_is_theirs_too(theirs, n):
    X = ball(n, 3)
    assert ours(X) == pytest.approx(theirs(X), rel=THEIR_ROUNDING, nan_ok=True)
    assert math.isnan(ours(X)) == (n < 5)


def test_nothing_but_copies_and_ties_is_undefined(theirs):
    grid = np.stack(np.meshgrid(*[np.arange(4.0)] * 3), axis=-1).reshape(-1, 3)
    assert math.isnan(theirs(grid))
    assert math.isnan(ours(grid))
    assert math.isnan(two_nn_authors(np.zeros((10, 2))))
    assert math.isnan(two_nn_authors([[0.0, np.nan], [0.0, np.nan]]))


def test_without_copies_it_is_two_nn_that_keeps_a_fifth():
    """Of n ratios theirs keeps n // 5, as ours does where no rounding is at play."""
    X = hidden_states(702, 24)
    r = nearest_distances(X, 2)
    assert two_nn_authors(r / mean_distance_to_mean(X)) == pytest.approx(two_nn(r, 0.2), rel=1e-12)
