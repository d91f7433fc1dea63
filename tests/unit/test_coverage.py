"""Intervals of blocks and of spread hold the mean of all draws about as often as they say.

The bounds are those of docs/statistics.md, of which `make bench TABLE=further_coverage` draws more.
"""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

sys.path.append(str(Path(__file__).parents[2]))

from benchmarks.sampled_blocks import simulated
from benchmarks.tables.coverage import rows_of

DRAWS = 30
NAMES = ("linearity_increment", "effective_rank")


@pytest.fixture(scope="module")
def draws():
    kind = "shifted means and spread"
    return [simulated(kind, number, NAMES)[kind, 0] for number in range(DRAWS)]


@pytest.mark.parametrize("name", NAMES)
def test_intervals_cover(draws, name):
    (row,) = [row for row in rows_of("simulated", draws) if row.contender == name]
    covered = round(row.values["coverage"] * DRAWS)
    assert binom.cdf(covered, DRAWS, 0.92) > 0.005
    # Nor are they so wide that they say nothing; the deviation of so many draws is known to an eighth.
    assert row.values["standard_error"] < 1.6 * row.values["sd"]


@pytest.mark.parametrize("name", NAMES)
def test_intervals_of_what_is_not_of_windows_would_not_cover(draws, name):
    """Left-out values that are as near as those of single vectors would be: the test sees it."""
    near = [{name: each[name][0] + (each[name] - each[name][0]) / 3} for each in draws]
    (row,) = rows_of("simulated", near)
    assert binom.cdf(round(row.values["coverage"] * DRAWS), DRAWS, 0.92) < 0.005
    assert np.isfinite(row.values["sd"])
