import doctest
import importlib
import subprocess
import sys

import numpy as np
import pytest
import torch

import shape_of_learning as sol
from clouds import gaussian
from shape_of_learning.estimators.arrays import as_matrix, distinct_rows


def test_distinct_rows_are_first_appearances_in_order():
    X = gaussian(5, 3)
    assert distinct_rows(X[[3, 1, 3, 0, 1, 4]]).tolist() == [0, 1, 3, 5]


def test_negative_zero_is_no_difference_but_the_last_bit_is():
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, np.nextafter(1.0, 2.0)]])
    assert distinct_rows(X).tolist() == [0, 2]


def test_distinct_rows_of_float32_are_those_of_their_values():
    X = gaussian(50, 4).astype(np.float32)
    repeated = np.vstack([X, X[::-1]])
    assert distinct_rows(repeated).tolist() == list(range(50))


@pytest.mark.parametrize(
    "dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.int32]
)
def test_a_tensor_is_read_without_loss(dtype):
    tensor = torch.tensor([[1.5, -2.0], [0.0, 96.0]]).to(dtype)
    expected = np.array([[int(dtype != torch.int32) * 0.5 + 1, -2.0], [0.0, 96.0]])
    np.testing.assert_array_equal(as_matrix(tensor), expected)


def test_a_tensor_that_requires_gradients_is_read():
    tensor = torch.ones((2, 2), requires_grad=True)
    assert as_matrix(tensor).tolist() == [[1, 1], [1, 1]]


def test_integers_are_promoted():
    assert as_matrix([[1, 2], [3, 4]]).dtype == np.float64


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ([1.0, 2.0], r"two dimensions .*\(2,\)"),
        (np.zeros((2, 2, 2)), "two dimensions"),
        (3.0, "two dimensions"),
        ([[1.0], [2.0, 3.0]], "two dimensions"),
        (np.zeros((0, 3)), "empty"),
        (np.zeros((3, 0)), "empty"),
        ([[1.0, 2.0], [np.nan, 0.0]], "NaN or infinity, first in row 1"),
        ([[1.0, -np.inf]], "NaN or infinity, first in row 0"),
        (np.ones((2, 2), complex), "real numbers"),
        (torch.ones((2, 2), dtype=torch.complex64), "real numbers"),
        ([["a", "b"]], "real numbers"),
        ([[None, 1.0]], "real numbers"),
    ],
)
def test_bad_input_is_refused_by_name_and_reason(bad, reason):
    with pytest.raises(ValueError, match=f"^cloud .*{reason}"):
        as_matrix(bad, "cloud")


@pytest.mark.parametrize("measure", ["anisotropy", "log_partition_isotropy", "linearity"])
def test_masked_entries_are_no_numbers(measure):
    others = [np.eye(4)] if measure == "linearity" else []
    with pytest.raises(ValueError, match="X must hold real numbers, not a masked array"):
        getattr(sol, measure)(np.ma.masked_equal(np.eye(4), 0.0), *others)


def test_numbers_whose_powers_could_overflow_are_refused_and_all_of_float32_is_not():
    largest = np.finfo(np.float32).max * np.array([[1, 0.5], [-1, 0.25], [0.3, 1], [0.1, -1]], "f4")
    values = sol.anisotropy(largest), sol.participation_ratio(largest), sol.isoscore(largest)
    expected = largest.astype(float) / float(largest.max())
    assert values == pytest.approx(
        (sol.anisotropy(expected), sol.participation_ratio(expected), sol.isoscore(expected))
    )
    with pytest.raises(ValueError, match=r"^X holds numbers beyond 1e\+60, whose powers"):
        sol.anisotropy(np.eye(3) * 1e61)


@pytest.mark.parametrize(
    "module",
    [
        "anisotropy",
        "arrays",
        "cosine",
        "dimension",
        "linearity",
        "neighbours",
        "partition_isotropy",
        "spread",
        "weights",
    ],
)
def test_examples_in_docstrings_hold(module):
    results = doctest.testmod(importlib.import_module(f"shape_of_learning.estimators.{module}"))
    assert results.attempted > 0
    assert results.failed == 0


def test_estimators_load_without_torch_or_scipy():
    script = (
        "import sys, shape_of_learning as sol; assert 'numpy' not in sys.modules;"
        "[getattr(sol, name) for name in sol.__all__];"
        "print(sorted({'torch', 'scipy'} & set(sys.modules)))"
    )
    environment = {"PYTHONPATH": ":".join(sys.path)}
    loaded = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert loaded.stdout.strip() == "[]"
