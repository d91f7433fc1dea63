import math

import numpy as np
import pytest
import torch

from clouds import gaussian, hidden_states
from hard_clouds import CLOUDS, by_singular_values, exactly_centred, over_all_pairs
from shape_of_learning import anisotropy, average_cosine
from shape_of_learning.estimators import anisotropy as spectrum
from shape_of_learning.estimators.arrays import DistinctRowCount, NotFiniteError, distinct_rows
from shape_of_learning.estimators.moments import Moments
from shape_of_learning.random_streams import random_stream

pytestmark = pytest.mark.filterwarnings("error")

PARTS = ("scatter", "directions", "centred_directions")


def streamed(X, rows=7):
    moments = Moments(X.shape[1], PARTS)
    for start in range(0, len(X), rows):
        moments.add(X[start : start + rows])
    for start in range(0, len(X), rows):
        moments.add_directions(X[start : start + rows])
    return moments


def rounding(X):
    """Bound on what the order of sums changes in a share of the variance.

    A sum of n terms is wrong by n units in the last place at most, times the sum of magnitudes; that of
    an entry of the scatter matrix is at most the variance. Largest eigenvalue and trace, twice each.
    """
    return 4 * len(X) * np.finfo(float).eps


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("name", CLOUDS)
def test_anisotropy_from_a_stream_is_that_of_the_singular_values(name, center):
    X = CLOUDS[name]()
    assert anisotropy(streamed(X), center) == pytest.approx(by_singular_values(X, center), rel=1e-9)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("name", [n for n in CLOUDS if n not in ("two rows", "one column")])
def test_lanczos_iteration_on_the_scatter_matrix_finds_the_same(name, center, monkeypatch):
    X = CLOUDS[name]()
    monkeypatch.setattr(spectrum, "GRAM_SIDE", 20)
    monkeypatch.setattr(spectrum, "LANCZOS_RESTARTS", 1000)
    monkeypatch.setattr(spectrum, "largest_of_gram", None)  # so that it cannot stand in
    assert anisotropy(streamed(X), center) == pytest.approx(by_singular_values(X, center), rel=1e-9)


@pytest.mark.parametrize(
    ("name", "center"),
    [(name, False) for name in CLOUDS]
    # In these, most rows lie at the mean, as far as float64 can tell.
    + [(name, True) for name in CLOUDS if not name.startswith("lengths")],
)
def test_average_cosine_from_a_stream_is_that_of_all_pairs(name, center):
    X = CLOUDS[name]()
    # The mean is rounded relative to the largest deviation from it, and turns a row by no more than that
    # rounding over its length.
    lengths = np.linalg.norm(exactly_centred(X), axis=1) if center else np.ones(len(X))
    turn = 10 * np.finfo(float).eps * float(lengths.max() / lengths.min())
    value = average_cosine(streamed(X), center)
    assert value == pytest.approx(over_all_pairs(X, center), abs=1e-14 + turn)


@pytest.mark.parametrize("rows", [1, 64, 1000])
@pytest.mark.parametrize("name", CLOUDS)
def test_the_division_into_blocks_changes_rounding_only(name, rows):
    X = CLOUDS[name]()
    for center in (True, False):
        one_way = anisotropy(streamed(X, 7), center)
        assert anisotropy(streamed(X, rows), center) == pytest.approx(one_way, abs=rounding(X))


@pytest.mark.parametrize("name", CLOUDS)
def test_the_order_of_rows_changes_rounding_only(name):
    X = CLOUDS[name]()
    order = random_stream(0, "order").permutation(len(X))
    for other in (X[::-1], X[order]):
        for center in (True, False):
            one_way = anisotropy(streamed(X), center)
            assert anisotropy(streamed(other), center) == pytest.approx(one_way, abs=rounding(X))


@pytest.mark.parametrize("name", CLOUDS)
def test_merged_parts_are_the_whole(name):
    X = CLOUDS[name]()
    whole = streamed(X)
    for cut in (0, 1, len(X) // 3, len(X)):
        first, second = Moments(X.shape[1]), Moments(X.shape[1])
        if cut:
            first.add(X[:cut])
        if cut < len(X):
            second.add(X[cut:])
        for merged, other in ((first, second), (second, first)):
            merged_in = Moments(X.shape[1])
            merged_in.merge(merged)
            merged_in.merge(other)
            assert merged_in.n == len(X)
            assert merged_in.directions.directed == whole.directions.directed
            for center in (True, False):
                expected = pytest.approx(anisotropy(whole, center), abs=rounding(X))
                assert anisotropy(merged_in, center) == expected
            assert average_cosine(merged_in) == pytest.approx(average_cosine(whole), abs=1e-13)


def test_the_moments_are_those_of_the_rows():
    X = hidden_states() + 5000
    moments = streamed(X)
    upper = np.triu(moments.scatter + len(X) * np.outer(moments.mean, moments.mean))
    exact = np.asarray(X, np.longdouble)
    bound = len(X) * np.finfo(float).eps
    np.testing.assert_allclose(upper, np.triu((exact.T @ exact).astype(float)), rtol=bound)
    np.testing.assert_allclose(moments.mean, exact.mean(axis=0).astype(float), rtol=1e-15)
    exact = exact - exact.mean(axis=0)
    spread = np.trace(moments.scatter)
    np.testing.assert_allclose(
        np.triu(moments.scatter), np.triu((exact.T @ exact).astype(float)), atol=bound * spread
    )
    np.testing.assert_array_equal(moments.low, X.min(axis=0))
    np.testing.assert_array_equal(moments.high, X.max(axis=0))


def test_rows_of_zeros_are_counted_but_have_no_direction():
    X = np.insert(hidden_states(n=30), [0, 4, 4, 30], 0.0, axis=0)
    moments = streamed(X)
    assert moments.n == 34
    assert moments.directions.directed == 30


@pytest.mark.parametrize("center", [True, False])
def test_a_flat_spectrum_of_tiny_numbers_is_iterated_to_its_end(center):
    X = 1e-20 * gaussian(1200, 1050) * np.linspace(1, 2, 1050)
    moments = Moments(1050, ["scatter"])
    moments.add(X)
    assert anisotropy(moments, center) == pytest.approx(by_singular_values(X, center), rel=1e-9)


def test_zeros_before_tiny_numbers_do_no_harm():
    X = np.vstack([np.zeros((10, 48)), 1e-300 * hidden_states(), np.zeros((10, 48))])
    assert anisotropy(streamed(X)) == pytest.approx(by_singular_values(X), rel=1e-9)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e30, 1e-300])
def test_one_vector_repeated_has_no_centred_measure(value):
    moments = streamed(np.full((17, 3), value) * [1, -0.3, 0.7])
    assert math.isnan(anisotropy(moments))
    assert math.isnan(average_cosine(moments, center=True))
    if value:
        assert anisotropy(moments, center=False) == pytest.approx(1, rel=rounding([0] * 17))
        assert average_cosine(moments) == pytest.approx(1, rel=rounding([0] * 17))
    else:
        assert math.isnan(anisotropy(moments, center=False))
        assert math.isnan(average_cosine(moments))


def test_a_row_at_the_mean_has_no_direction_after_centring():
    signs = np.repeat([-1.0, 0.0, 1.0], [200, 1, 200])
    X = 0.1 + np.outer(signs, hidden_states(n=1)[0])
    assert streamed(X).centred_directions.directed == 400


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_blocks_may_be_tensors(dtype):
    tensor = torch.from_numpy(hidden_states()).to(dtype)
    assert anisotropy(streamed(tensor)) == anisotropy(streamed(tensor.double().numpy()))


def test_numbers_at_the_end_of_the_range_are_measured():
    X = np.sign(hidden_states()) * np.finfo(float).max
    for center in (True, False):
        assert anisotropy(streamed(X), center) == pytest.approx(
            anisotropy(np.sign(X), center), rel=1e-9
        )


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused_as_such(bad):
    moments = Moments(3)
    with pytest.raises(NotFiniteError, match=r"^X holds NaN or infinity"):
        moments.add([[1.0, bad, 2.0]])


@pytest.mark.parametrize(
    ("X", "reason"),
    [
        (np.zeros((2, 4)), "^X is 4 wide, not 3"),
        (np.zeros(3), "^X must have two dimensions"),
        (np.zeros((0, 3)), "^X is empty"),
        (np.ones((2, 3), complex), "^X must hold real numbers"),
    ],
)
def test_bad_rows_are_refused_by_name_and_reason(X, reason):
    with pytest.raises(ValueError, match=reason):
        Moments(3).add(X)


def test_measures_refuse_moments_that_lack_their_part():
    moments = Moments(2, ())
    with pytest.raises(ValueError, match="of no rows"):
        anisotropy(moments, center=False)
    moments.add(np.eye(2))
    with pytest.raises(ValueError, match="without the scatter matrix"):
        anisotropy(moments)
    for center in (True, False):
        with pytest.raises(ValueError, match="without the directions"):
            average_cosine(moments, center)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_distinct_rows_of_a_stream_are_counted_as_those_in_memory(dtype):
    X = np.round(hidden_states(300, 3)).astype(dtype)
    X[5], X[6] = 0.0, -0.0
    count = DistinctRowCount()
    for start in range(0, len(X), 40):
        count.add(X[start : start + 40])
    assert len(distinct_rows(X)) == len(count) < 300
