"""All estimators of vectors take arrays and tensors, refuse bad input, and have correct examples."""

import doctest
import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_limits

import shape_of_learning as sol
from clouds import hidden_states
from shape_of_learning import estimators
from shape_of_learning.estimators.cosine import inter_window_cosine, intra_window_cosine
from shape_of_learning.estimators.dimension import mean_distance_to_mean
from shape_of_learning.estimators.spread import participation_ratio_corrected, spectrum

pytestmark = pytest.mark.filterwarnings("error")

ESTIMATORS = {
    "anisotropy": sol.anisotropy,
    "average_cosine": sol.average_cosine,
    "average_cosine_centered": lambda X: sol.average_cosine(X, center=True),
    "block_cosine": lambda X: sol.block_cosine(X, X),
    "effective_rank": sol.effective_rank,
    "inter_window_cosine": lambda X: inter_window_cosine(X, np.arange(len(X)) // 10),
    "intra_window_cosine": lambda X: intra_window_cosine(X, np.arange(len(X)) // 10),
    "isoscore": sol.isoscore,
    "linearity": lambda X: sol.linearity(X, X),
    "log_partition_isotropy": sol.log_partition_isotropy,
    "mean_distance_to_mean": mean_distance_to_mean,
    "nearest_distances": lambda X: sol.nearest_distances(X, 10),
    "participation_ratio": sol.participation_ratio,
    "participation_ratio_corrected": participation_ratio_corrected,
    "spectrum": spectrum,
}


FILES = Path(estimators.__file__).parent.glob("*.py")


@pytest.mark.parametrize("estimator", [inter_window_cosine, intra_window_cosine])
def test_numbers_of_windows_may_have_any_whole_type(estimator):
    X, windows = hidden_states(), np.arange(len(hidden_states())) // 10
    for dtype in (np.uint8, np.int16, np.uint64):
        assert estimator(X, windows.astype(dtype)) == estimator(X, windows)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_tensor_gives_the_value_of_its_array_and_stays_unchanged(name, dtype):
    tensor = torch.from_numpy(hidden_states()).to(dtype)
    array = tensor.double().numpy()
    copy = array.copy()
    value = ESTIMATORS[name](tensor)
    np.testing.assert_array_equal(value, ESTIMATORS[name](array))
    np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (np.zeros(5), "must have two dimensions"),
        (np.zeros((0, 5)), "is empty"),
        ([[0.0, np.nan], [1.0, 1.0]], "holds NaN or infinity, first in row 0"),
        (np.array([[1.0, 1.0], [0.0, -np.inf]]), "holds NaN or infinity, first in row 1"),
        (np.eye(3) * 1e61, r"holds numbers beyond 1e\+60"),
        ([["a", "b"]], "must hold real numbers"),
        (torch.ones((2, 2), dtype=torch.complex64), "must hold real numbers"),
        (np.ma.masked_equal(np.eye(4), 0.0), "has no plain values"),
        (torch.eye(4).to_sparse(), "has no plain values"),
        (torch.ones((4, 4), device="meta"), "has no plain values"),
    ],
)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_bad_input_is_refused_by_name_and_reason(name, bad, reason):
    with pytest.raises(ValueError, match=f"^X {reason}"):
        ESTIMATORS[name](bad)


@pytest.mark.parametrize("name", ["anisotropy", "isoscore", "average_cosine", "spectrum"])
def test_a_single_vector_is_refused(name):
    with pytest.raises(ValueError, match=r"^X has 1 row, but at least 2 are needed"):
        ESTIMATORS[name](np.ones((1, 5)))


@pytest.mark.parametrize("name", ["anisotropy", "average_cosine_centered", "nearest_distances"])
def test_the_number_of_threads_changes_values_only_by_rounding(name):
    X = hidden_states(n=1300, d=1100)
    with threadpool_limits(1):
        alone = ESTIMATORS[name](X)
    with threadpool_limits(2):
        np.testing.assert_allclose(ESTIMATORS[name](X), alone, rtol=1e-12)


@pytest.mark.parametrize("name", [file.stem for file in FILES if ">>>" in file.read_text()])
def test_examples_in_docstrings_hold(name):
    results = doctest.testmod(importlib.import_module(f"shape_of_learning.estimators.{name}"))
    assert results.attempted > results.failed == 0


def test_estimators_load_without_torch_or_scipy():
    script = (
        "import sys, shape_of_learning as sol; assert 'numpy' not in sys.modules;"
        "[getattr(sol, name) for name in sol.__all__ if name not in ('measure', 'compare', 'plot')];"
        "print(sorted({'torch', 'scipy'} & set(sys.modules)))"
    )
    environment = {"PYTHONPATH": ":".join(sys.path)}
    process = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert process.stdout.strip() == "[]"
