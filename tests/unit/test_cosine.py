import math

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from clouds import gaussian, hidden_states
from hard_clouds import CLOUDS, exactly_centred, over_all_pairs
from shape_of_learning import average_cosine
from shape_of_learning.estimators import cosine as module
from shape_of_learning.estimators.cosine import inter_window_cosine, intra_window_cosine

pytestmark = pytest.mark.filterwarnings("error")


@pytest.mark.parametrize("rows_per_block", [7, 1024])
@pytest.mark.parametrize(
    ("name", "center"),
    [(name, False) for name in CLOUDS]
    # In these, most rows lie at the mean, as far as float64 can tell.
    + [(name, True) for name in CLOUDS if not name.startswith("lengths")],
)
def test_average_cosine_of_hard_clouds_is_that_of_all_pairs(
    name, center, rows_per_block, monkeypatch
):
    X = CLOUDS[name]()
    monkeypatch.setattr(module, "BLOCK_BYTES", rows_per_block * 8 * X.shape[1])
    # The mean is rounded relative to the largest deviation from it, and turns a row by no more than that
    # rounding over its length.
    lengths = np.linalg.norm(exactly_centred(X), axis=1) if center else np.ones(len(X))
    turn = 10 * np.finfo(float).eps * float(lengths.max() / lengths.min())
    assert average_cosine(X, center) == pytest.approx(over_all_pairs(X, center), abs=1e-14 + turn)


def test_rows_of_zeros_and_rows_at_the_mean_have_no_direction():
    X = hidden_states(n=30)
    with_zeros = np.insert(X, [0, 4, 4, 30], 0.0, axis=0)
    assert average_cosine(with_zeros) == pytest.approx(average_cosine(X), rel=1e-13)
    X = 0.1 + np.outer([-1.0, 0.0, 1.0], gaussian(1, 6)[0])
    assert average_cosine(X, center=True) == pytest.approx(-1)


def test_fewer_than_two_directions_are_undefined():
    assert math.isnan(average_cosine([[0.0, 0.0], [1.0, 2.0]]))
    assert math.isnan(average_cosine(np.full((5, 3), 0.1), center=True))


def test_the_number_of_threads_changes_no_bit():
    X = hidden_states(n=3000, d=200)
    with threadpool_limits(1):
        alone = average_cosine(X, center=True)
    with threadpool_limits(2):
        assert average_cosine(X, center=True) == alone


BOTH = [
    (intra_window_cosine, module.intra_window_cosine_without),
    (inter_window_cosine, module.inter_window_cosine_without),
]


def within_and_between(X, windows):
    """Mean cosine within and between windows, pair by pair."""
    lengths = np.linalg.norm(X, axis=1)
    X, windows = X[lengths > 0] / lengths[lengths > 0, None], windows[lengths > 0]
    cosines = (X @ X.T)[np.triu_indices(len(X), 1)]
    same = (windows[:, None] == windows)[np.triu_indices(len(X), 1)]
    return [math.fsum(cosines[kind]) / kind.sum() for kind in (same, ~same)]


def windows_of_text():
    """Windows of unequal length whose vectors share a direction, in no order, some of norm zero."""
    stream = np.random.default_rng(0)
    shares = {3: 0.4, -5: 0.2, 11: 0.1, 12: 0.1, 400: 0.1, 7: 0.09, 8: 0.01}
    windows = stream.choice(list(shares), 300, p=list(shares.values()))
    X = hidden_states(300, 24) + 8 * stream.standard_normal((500, 24))[windows]
    X[[0, 50, 299]] = 0
    return X, windows


def test_they_are_the_means_over_all_pairs():
    X, windows = windows_of_text()
    expected = within_and_between(X, windows)
    found = [function(X, windows) for function, _ in BOTH]
    assert found == pytest.approx(expected, abs=1e-14)
    assert found[0] > found[1] + 0.1


@pytest.mark.parametrize("whole_windows", [True, False])
def test_values_without_parts_of_windows_are_those_of_the_rows_that_are_left(whole_windows):
    X, windows = windows_of_text()
    names = np.unique(windows)
    parts = [np.flatnonzero(windows == name) for name in names]
    if not whole_windows:
        parts = [np.arange(start, 290, 5) for start in range(5)]
    for function, leaving_out in BOTH:
        value, without = leaving_out(X, windows, parts)
        assert value == pytest.approx(function(X, windows), abs=1e-15)
        left = [np.delete(np.arange(300), part) for part in parts]
        expected = [function(X[rows], windows[rows]) for rows in left]
        np.testing.assert_allclose(without, expected, rtol=0, atol=1e-14)


def test_without_pairs_they_are_undefined():
    X = hidden_states(6)
    assert math.isnan(intra_window_cosine(X, range(6)))
    assert math.isnan(inter_window_cosine(X, [4] * 6))
    assert math.isnan(module.inter_window_cosine_without(X, [4] * 5 + [9], [np.array([5])])[1][0])
    assert math.isnan(intra_window_cosine(np.zeros((4, 3)), [0, 0, 1, 1]))


@pytest.mark.parametrize("windows", [[0, 1], [0.0, 1.0, 2.0], [[0, 1, 2]], ["a", "b", "c"]])
def test_windows_are_one_whole_number_for_each_row(windows):
    for function, _ in BOTH:
        with pytest.raises(
            ValueError, match=r"^windows must hold one whole number for each of the 3"
        ):
            function(np.eye(3), windows)


def test_two_vectors_that_are_left_near_each_other_still_have_a_cosine():
    X = [[1e6, 0.0], [1e6 + 1, 0.0], [-5e6, 3.0]]
    found = module.average_cosine_without(X, [np.array([2])], center=True)[1]
    assert found == pytest.approx([-1])
