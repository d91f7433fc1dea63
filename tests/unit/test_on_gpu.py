"""Measures of tensors on a GPU, here a pretended one, are those of the same numbers in NumPy's arrays."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from clouds import gaussian, hidden_states
from pretended_cuda import pretended_cuda
from shape_of_learning import (
    anisotropy,
    average_cosine,
    distinct_rows,
    mada,
    mle,
    mom,
    nearest_distances,
    two_nn,
)
from shape_of_learning.estimators import anisotropy as anisotropy_module
from shape_of_learning.estimators import neighbours
from shape_of_learning.estimators.arrays import NotFiniteError, is_finite

ON_GPU = torch.device("cuda", 0)


@pytest.fixture(autouse=True)
def gpu():
    with pretended_cuda() as device:
        yield device


def near_duplicates():
    """Pairs, and a cluster, that products cannot tell apart."""
    X = hidden_states(n=400)
    X[200:] = X[:200] + 1e-5 * gaussian(200, X.shape[1])
    X[300:350] = X[300] + 1e-5 * gaussian(50, X.shape[1], seed=1)
    return X


def with_duplicates():
    X = hidden_states(n=300)
    X[40:60] = X[20:40]
    return X


CLOUDS = {
    "plain": lambda: hidden_states(n=500),
    "offset 3000": lambda: hidden_states(n=500) + 3000,
    "massive rows": lambda: hidden_states(n=500) + 1e5 * (np.arange(500) % 100 == 3)[:, None],
    "near-duplicates": near_duplicates,
    "duplicates": with_duplicates,
    "more coordinates than rows": lambda: hidden_states(n=150, d=400),
    "more than Gram matrices of": lambda: hidden_states(n=1300, d=1100),
    "flat spectrum of scale 1e-20": lambda: 1e-20 * gaussian(1200, 1050) * np.linspace(1, 2, 1050),
    "offset 1e8": lambda: gaussian(130, 50) + 1e8 * np.linspace(1, 2, 50),
    "scale 1e-30": lambda: 1e-30 * hidden_states(),
    "scale 1e30": lambda: 1e30 * hidden_states(),
    "constant": lambda: np.full((120, 5), 0.1),
    "zero": lambda: np.zeros((120, 5)),
    "least numbers": lambda: 1e-44 * hidden_states(n=120),
    "rows of zero": lambda: hidden_states(n=200) * (np.arange(200) % 7 > 0)[:, None],
}


# Numbers that float16 and bfloat16 can tell from each other, and hold.
OF_16_BITS = ("plain", "near-duplicates", "duplicates", "constant", "zero", "rows of zero")
CASES = [(name, torch.float32) for name in CLOUDS]
CASES += [(name, dtype) for name in OF_16_BITS for dtype in (torch.bfloat16, torch.float16)]


def tensor(name, dtype=torch.float32):
    return torch.from_numpy(CLOUDS[name]()).to(dtype)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_isotropy_is_that_of_numpy(name, dtype, center):
    X = tensor(name, dtype)
    for measure in (anisotropy, average_cosine):
        expected = measure(X.double().numpy(), center=center)
        found = measure(X.to(ON_GPU), center=center)
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True), measure


@pytest.mark.parametrize("rows_per_block", [50, 100_000])
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_distances_and_dimensions_are_those_of_numpy(name, dtype, rows_per_block, monkeypatch):
    X = tensor(name, dtype)
    monkeypatch.setattr(neighbours, "GPU_BLOCK_BYTES", rows_per_block * 8 * len(X))
    expected = nearest_distances(X.double().numpy(), 100)
    found = nearest_distances(X.to(ON_GPU), 100)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=0)
    for estimator in (two_nn, mada, mom, mle):
        # Sums of logarithms of ratios, which may be near one: absolute errors of 2e-9 each.
        assert estimator(found) == pytest.approx(estimator(expected), rel=1e-6, nan_ok=True)


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_distinct_rows_are_those_of_numpy(name, dtype):
    X = tensor(name, dtype)
    X[-1, 0] = -0.0
    np.testing.assert_array_equal(distinct_rows(X.to(ON_GPU)), distinct_rows(X.double().numpy()))


def test_distances_may_be_a_tensor():
    distances = nearest_distances(hidden_states(), 20)
    assert two_nn(torch.from_numpy(distances).to(ON_GPU)) == two_nn(distances)


def test_a_spectrum_without_gap_is_left_to_the_gram_matrix(monkeypatch):
    monkeypatch.setattr(anisotropy_module, "LANCZOS_RESTARTS", 1)
    X = torch.from_numpy(gaussian(400, 300)).float()
    assert anisotropy(X.to(ON_GPU)) == pytest.approx(anisotropy(X), rel=1e-9)


def test_double_precision_is_measured_by_numpy():
    X = torch.from_numpy(1e50 * hidden_states())
    for measure in (anisotropy, average_cosine):
        assert measure(X.to(ON_GPU)) == measure(X)


def test_gradients_are_not_asked_for():
    X = torch.from_numpy(hidden_states()).float().to(ON_GPU).requires_grad_()
    for measure in (anisotropy, average_cosine):
        assert measure(X) == measure(X.detach())
    assert len(nearest_distances(X, 2)) == len(X)


@pytest.mark.parametrize("center", [True, False])
def test_vectors_do_not_leave_the_gpu_for_isotropy(center, gpu):
    X = torch.from_numpy(hidden_states(n=1300, d=1100)).float().to(ON_GPU)
    anisotropy(X, center)
    average_cosine(X, center)
    # Some dozen vectors of Lanczos iteration, not one of the thousand of a Gram matrix.
    assert gpu.to_host < 100 * 8 * 1100
    assert gpu.allocated == X.nbytes


def test_a_vector_that_is_forgotten_on_the_host_is_found(monkeypatch):
    careless = SimpleNamespace(
        einsum=torch.einsum, asarray=lambda v, *, device: torch.asarray(v, device="cpu")
    )
    monkeypatch.setattr(anisotropy_module, "namespace", lambda X: careless)
    X = torch.from_numpy(hidden_states(n=400, d=300)).float()
    with pytest.raises(RuntimeError, match="found at least two devices, cuda:0 and cpu"):
        anisotropy(X.to(ON_GPU))


def test_nan_and_infinity_are_told():
    X = torch.from_numpy(hidden_states()).float()
    assert is_finite(X.to(ON_GPU))
    for bad in (torch.nan, torch.inf, -torch.inf):
        X[17, 3] = bad
        assert not is_finite(X.to(ON_GPU))
        for measure in (
            anisotropy,
            average_cosine,
            distinct_rows,
            lambda X: nearest_distances(X, 2),
        ):
            with pytest.raises(NotFiniteError, match=r"^X holds NaN or infinity, first in row 17"):
                measure(X.to(ON_GPU))


def test_bad_input_is_refused_as_elsewhere():
    for measure in (anisotropy, average_cosine):
        with pytest.raises(ValueError, match=r"^X must have two dimensions"):
            measure(torch.ones(1, device=ON_GPU))
        with pytest.raises(ValueError, match=r"^X is empty"):
            measure(torch.ones(0, 3, device=ON_GPU))
        with pytest.raises(ValueError, match=r"^X has 1 row"):
            measure(torch.ones(1, 3, device=ON_GPU), center=True)
    with pytest.raises(ValueError, match=r"^X has 5 rows, but k=5 neighbours take at least 6"):
        nearest_distances(torch.eye(5, device=ON_GPU), 5)
