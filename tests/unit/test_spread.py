"""The spread of variance over directions, from vectors and from eigenvalues."""

import itertools
import math

import numpy as np
import pytest
from IsoScore import IsoScore as package

from clouds import gaussian, hidden_states, rotation
from hard_clouds import CLOUDS, squared_singular_values
from shape_of_learning import effective_rank, isoscore, participation_ratio
from shape_of_learning.estimators import spread

pytestmark = pytest.mark.filterwarnings("error")
EIGENVALUE_MEASURES = [
    spread.effective_rank_of_spectrum,
    spread.alpha_req,
    spread.directions_for,
    spread.top_share,
]


@pytest.mark.parametrize("name", CLOUDS)
def test_measures_of_vectors_are_those_of_the_singular_values(name):
    X = CLOUDS[name]()
    values = squared_singular_values(X)
    ratio = values.sum() ** 2 / (values**2).sum()
    assert participation_ratio(X) == pytest.approx(ratio, rel=1e-9)
    expected = values[:3].sum() / values.sum()
    assert spread.top_share(spread.spectrum(X), 3) == pytest.approx(expected, rel=1e-9)


def test_the_corrected_ratio_is_that_of_means_over_quadruples_of_rows():
    X = np.random.default_rng(0).standard_t(3, (7, 4)) + 5
    trace, square = 0.0, 0.0
    for i, j, k, m in itertools.permutations(range(7), 4):
        u, v = X[i] - X[j], X[k] - X[m]
        trace += (u @ u) * (v @ v) / 4
        square += (u @ v) ** 2 / 4
    assert spread.participation_ratio_corrected(X) == pytest.approx(trace / square, rel=1e-12)


def test_measures_of_too_few_or_constant_vectors_are_undefined():
    for function in (
        participation_ratio,
        spread.participation_ratio_corrected,
        isoscore,
        effective_rank,
    ):
        assert math.isnan(function(np.full((40, 30), 0.1)))
    assert math.isnan(spread.participation_ratio_corrected(gaussian(3, 5)))
    assert math.isnan(isoscore(gaussian(50, 1)))


@pytest.mark.parametrize("decided_by", [1, 4, 32])
def test_effective_windows_count_windows_with_the_leading_direction(decided_by):
    X, windows = gaussian(32 * 20, 24) + 1e4, np.arange(640) // 20
    X[: 20 * decided_by : 20] += 1e3 * np.eye(24)[5]  # the first token of so many windows
    rows = X - X.mean(axis=0)
    leading = np.linalg.svd(rows)[2][0]
    shares = np.bincount(windows, (rows @ leading) ** 2)
    expected = shares.sum() ** 2 / (shares**2).sum()
    assert spread.effective_windows(X, windows) == pytest.approx(expected, rel=1e-6)
    # Ordinary vectors add 600 random squares to the 1e6 of a massive vector, and the mean moves a little.
    assert expected == pytest.approx(decided_by, rel=0.1)


def test_effective_windows_are_exact_for_two_nearly_equal_directions():
    # One window holds the first direction; all windows hold the second, which has a millionth less variance.
    X, windows = np.zeros((320, 16)), np.arange(320) // 10
    X[:2, 3] = 1, -1
    X[:, 5] = np.tile([1, 1, -1, -1], 80) * math.sqrt((1 - 1e-6) / 160)
    assert spread.effective_windows(X, windows) == pytest.approx(1, rel=1e-9)
    X[:2, 3] *= 1 - 2e-6
    assert spread.effective_windows(X, windows) == pytest.approx(32, rel=1e-9)


def test_effective_windows_without_variance_are_undefined():
    assert math.isnan(spread.effective_windows(np.ones((8, 3)), np.arange(8)))


@pytest.mark.parametrize("exponent", [1, 2])
def test_effective_rank_is_the_exponential_of_an_entropy(exponent):
    X = hidden_states()
    p = np.sqrt(squared_singular_values(X)) ** exponent
    p /= p.sum()
    expected = math.exp(-(p * np.log(p)).sum())
    assert effective_rank(X, exponent) == pytest.approx(expected, rel=1e-9)
    assert spread.effective_rank_of_spectrum(spread.spectrum(X), exponent) == effective_rank(
        X, exponent
    )


def test_directions_without_variance_do_not_count():
    """Their rounding errors, 1e-8 of the largest singular value after the square root, do not count."""
    X = (gaussian(400, 5) @ rotation(300)[:5]) * 100 + 1000
    assert effective_rank(X, 1) == pytest.approx(effective_rank(gaussian(400, 5), 1), rel=1e-6)
    assert math.isnan(spread.alpha_req(spread.spectrum(X), 3, 20))
    assert spread.directions_for(spread.spectrum(X), 1) == 5


def test_all_of_equal_eigenvalues_count():
    for exponent in (1, 2):
        assert spread.effective_rank_of_spectrum(np.ones(17), exponent) == pytest.approx(17)
    assert spread.directions_for(np.ones(10)) == 9
    assert spread.directions_for(np.ones(7), 1.0) == 7
    assert spread.alpha_req(np.ones(60)) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("alpha", [0.3, 1, 2.7])
def test_alpha_req_is_the_exponent_of_a_power_law_in_its_range(alpha):
    values = np.arange(1, 101) ** -float(alpha)
    assert spread.alpha_req(values) == pytest.approx(alpha)
    values[:10] *= 5
    values[40:] /= 5
    assert spread.alpha_req(values) == pytest.approx(alpha)
    assert spread.alpha_req(values, 5, 60) > alpha + 0.1


def test_alpha_req_weighs_ranks_by_their_inverse():
    values = np.array([8.0, 4, 3, 1])
    x, y, w = np.log([1, 2, 3, 4]), np.log(values), 1 / np.array([1, 2, 3, 4.0])
    expected = -np.polyfit(x, y, 1, w=np.sqrt(w))[0]
    assert spread.alpha_req(values, 1, 4) == pytest.approx(expected)


@pytest.mark.parametrize("function", EIGENVALUE_MEASURES)
def test_measures_of_eigenvalues_are_undefined_without_variance_and_refuse_other_arrays(function):
    assert math.isnan(function(np.zeros(60)))
    for bad in ([1.0, 2.0], [1.0, -1.0], [np.nan, 0], [[1.0]], []):
        with pytest.raises(ValueError, match=r"^eigenvalues must"):
            function(bad)


def test_isoscore_equals_that_of_its_package():
    X = hidden_states()
    assert isoscore(X) == pytest.approx(float(package.IsoScore(X)), abs=1e-6)
