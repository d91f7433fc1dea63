import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shape_of_learning.metrics.intervals import (
    interval,
    left_out_values,
    quantile,
    standard_error,
    window_groups,
)
from shape_of_learning.metrics.tidy import GROUPS
from shape_of_learning.random_streams import random_stream


@given(windows=st.integers(1, 300), seed=st.integers(0, 100))
def test_groups_are_as_equal_as_can_be(windows, seed):
    groups = window_groups(windows, seed)
    sizes = np.bincount(groups, minlength=GROUPS)
    assert len(sizes) == GROUPS
    assert sizes.sum() == windows
    assert sizes.max() - sizes.min() <= 1


def test_the_standard_error_of_a_mean_is_the_textbook_one():
    values = random_stream(0, "values").normal(size=GROUPS)
    left_out = [np.delete(values, group).mean() for group in range(GROUPS)]
    assert standard_error(left_out) == pytest.approx(values.std(ddof=1) / 4, rel=1e-12)


def test_two_kinds_of_left_out_values_have_the_geometric_mean_of_their_errors():
    stream = random_stream(0, "values")
    rows, anew = stream.normal(size=GROUPS), 3 + 2 * stream.normal(size=GROUPS)
    both = left_out_values(rows, anew)
    error = math.sqrt(standard_error(rows) * standard_error(anew))
    assert standard_error(both) == pytest.approx(error, rel=1e-12)
    assert both.mean() == pytest.approx(anew.mean(), rel=1e-12)
    np.testing.assert_allclose(left_out_values(anew, anew), anew, rtol=1e-14)


def test_intervals_are_those_of_student():
    left_out = np.arange(16.0)
    # (G - 1) / G sum of squared deviations: 15 / 16 * 340, and t(0.975, 15) = 2.13145
    error = math.sqrt(15 / 16 * 340)
    assert standard_error(left_out) == pytest.approx(error)
    assert quantile() == pytest.approx(2.131449546, rel=1e-9)
    low, high = interval(3.0, left_out)
    assert (low, high) == pytest.approx((3 - 2.131449546 * error, 3 + 2.131449546 * error))


def test_intervals_of_a_mean_of_windows_cover_it():
    """Values of windows that all tokens of a window share: 1,000 draws, 95 % to three standard deviations."""
    stream = random_stream(0, "windows")
    groups = window_groups(128, 0)
    covered = 0
    for _ in range(1000):
        windows = stream.normal(size=128)
        left_out = [windows[groups != group].mean() for group in range(GROUPS)]
        low, high = interval(windows.mean(), left_out)
        covered += low <= 0 <= high
    assert abs(covered / 1000 - 0.95) < 3 * math.sqrt(0.95 * 0.05 / 1000)
