import math

import numpy as np
import pytest
import torch
from shape_of_learning.estimators.window_cosine import (
    inter_leaving_out,
    inter_window_cosine,
    intra_leaving_out,
    intra_window_cosine,
)

from clouds import hidden_states
from shape_of_learning import average_cosine

pytestmark = pytest.mark.filterwarnings("error")
BOTH = [(intra_window_cosine, intra_leaving_out), (inter_window_cosine, inter_leaving_out)]


def over_all_pairs(X, windows):
    """Mean cosine within and between windows, pair by pair."""
    lengths = np.linalg.norm(X, axis=1)
    X, windows = X[lengths > 0] / lengths[lengths > 0, None], windows[lengths > 0]
    cosines = (X @ X.T)[np.triu_indices(len(X), 1)]
    same = (windows[:, None] == windows)[np.triu_indices(len(X), 1)]
    return [
        math.fsum(cosines[kind]) / kind.sum() if kind.any() else math.nan for kind in (same, ~same)
    ]


def cloud():
    """Windows of unequal length whose vectors share a direction, in no order, some of norm zero."""
    stream = np.random.default_rng(0)
    windows = stream.choice(
        [3, -5, 11, 12, 400, 7, 8], 300, p=[0.4, 0.2, 0.1, 0.1, 0.1, 0.09, 0.01]
    )
    X = hidden_states(300, 24) + 8 * stream.standard_normal((500, 24))[windows]
    X[[0, 50, 299]] = 0
    return X, windows


def test_they_are_the_means_over_all_pairs():
    X, windows = cloud()
    expected = over_all_pairs(X, windows)
    found = [function(X, windows) for function, _ in BOTH]
    assert found == pytest.approx(expected, abs=1e-14)
    assert found[0] > found[1] + 0.1


def test_weighed_by_their_pairs_they_are_the_average_cosine():
    X, windows = cloud()
    sizes = np.bincount(np.unique(windows[X.any(axis=1)], return_inverse=True)[1])
    n = sizes.sum()
    share = (sizes * (sizes - 1)).sum() / (n * (n - 1))
    both = share * intra_window_cosine(X, windows) + (1 - share) * inter_window_cosine(X, windows)
    assert both == pytest.approx(average_cosine(X), abs=1e-14)


@pytest.mark.parametrize("whole_windows", [True, False])
def test_values_without_parts_are_those_of_the_rows_that_are_left(whole_windows):
    X, windows = cloud()
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


@pytest.mark.parametrize("scales", [[1e300, 1e-300, 1.0], [1e308, 5e-324, 1e30]])
def test_length_does_not_matter_however_extreme(scales):
    X = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]) * np.array(scales)[:, None]
    assert intra_window_cosine(X, [0, 0, 1]) == pytest.approx(math.sqrt(0.5), rel=1e-15)
    assert inter_window_cosine(X, [0, 0, 1]) == pytest.approx(math.sqrt(0.5) / 2, rel=1e-15)


def test_without_pairs_they_are_undefined():
    X = hidden_states(6)
    assert math.isnan(intra_window_cosine(X, range(6)))
    assert math.isnan(inter_window_cosine(X, [4] * 6))
    assert math.isnan(inter_leaving_out(X, [4] * 5 + [9], [np.array([5])])[1][0])
    assert math.isnan(intra_window_cosine(np.zeros((4, 3)), [0, 0, 1, 1]))


def test_a_tensor_gives_what_its_values_give_as_an_array():
    X, windows = cloud()
    tensor = torch.from_numpy(X).to(torch.bfloat16)
    for function, _ in BOTH:
        assert function(tensor, torch.from_numpy(windows)) == function(
            tensor.double().numpy(), windows
        )


@pytest.mark.parametrize("windows", [[0, 1], [0.0, 1.0, 2.0], [[0, 1, 2]], ["a", "b", "c"]])
def test_windows_are_one_whole_number_for_each_row(windows):
    for function, _ in BOTH:
        with pytest.raises(ValueError, match=r"^windows must be 3 whole numbers, one for each row"):
            function(np.eye(3), windows)
