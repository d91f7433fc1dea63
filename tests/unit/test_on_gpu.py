"""What a GPU computes, on tensors of the CPU: the same operations, and the same answers as NumPy's."""

import numpy as np
import pytest
import torch

from clouds import gaussian, hidden_states
from shape_of_learning import anisotropy, average_cosine, nearest_distances
from shape_of_learning.estimators.arrays import NotFiniteError
from shape_of_learning.estimators.on_gpu import average_cosine, neighbours, spectrum
from shape_of_learning.estimators.on_gpu import blocks as on_gpu_blocks


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
    "rows of zero": lambda: hidden_states(n=200) * (np.arange(200) % 7 > 0)[:, None],
}


@pytest.fixture(params=[1 << 29, 1 << 16], ids=["at once", "in blocks"])
def blocks(request, monkeypatch):
    monkeypatch.setattr(on_gpu_blocks, "BLOCK_BYTES", request.param)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("name", CLOUDS)
def test_measures_are_those_of_numpy(name):
    X = torch.from_numpy(CLOUDS[name]()).float()
    for center in (True, False):
        for here, there in (
            (spectrum.anisotropy, anisotropy),
            (cosine.average_cosine, average_cosine),
        ):
            expected = pytest.approx(there(X, center=center), rel=1e-9, abs=1e-12, nan_ok=True)
            assert here(X, center=center) == expected, (here, center)
    np.testing.assert_allclose(
        neighbours.nearest_distances(X, 100), nearest_distances(X, 100), rtol=1e-9, atol=0
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_types_of_16_bits_are_taken(dtype):
    X = torch.from_numpy(hidden_states()).to(dtype)
    assert spectrum.anisotropy(X) == pytest.approx(anisotropy(X), rel=1e-9)
    np.testing.assert_allclose(
        neighbours.nearest_distances(X, 10), nearest_distances(X, 10), rtol=1e-9, atol=0
    )


def test_gradients_are_not_asked_for():
    X = torch.from_numpy(hidden_states()).float().requires_grad_()
    assert spectrum.anisotropy(X) == pytest.approx(anisotropy(X), rel=1e-9)
    assert cosine.average_cosine(X) == pytest.approx(average_cosine(X), rel=1e-9)
    assert len(neighbours.nearest_distances(X, 2)) == len(X)


def test_bad_input_is_refused_as_elsewhere():
    for function in (spectrum.anisotropy, cosine.average_cosine):
        with pytest.raises(NotFiniteError, match=r"^X holds NaN or infinity"):
            function(torch.tensor([[1.0, torch.nan], [0.0, 1.0]]))
        with pytest.raises(ValueError, match=r"^X must have two dimensions"):
            function(torch.ones(1))
        with pytest.raises(ValueError, match=r"^X is empty"):
            function(torch.ones(0, 3))
        with pytest.raises(ValueError, match=r"^X has 1 row"):
            function(torch.ones(1, 3), center=True)
    with pytest.raises(ValueError, match=r"^X has 5 rows, but k=5 neighbours take at least 6"):
        neighbours.nearest_distances(torch.eye(5), 5)
    with pytest.raises(NotFiniteError):
        neighbours.nearest_distances(torch.full((5, 2), torch.inf), 2)
