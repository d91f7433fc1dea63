"""Estimators of tensors on a GPU."""

import numpy as np
import pytest
import torch

from clouds import gaussian, hidden_states
from shape_of_learning import anisotropy, average_cosine, nearest_distances

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not torch.cuda.is_available(), reason="needs a GPU, and torch.cuda.is_available() is false"
    ),
]
GPU = torch.device("cuda", 0)


def draw_near_duplicates():
    X = hidden_states(n=4096, d=768)
    X[2048:] = X[:2048] + 1e-5 * gaussian(2048, 768)
    X[-100:] = X[:100]
    return X


CLOUDS = {
    "plain": lambda: hidden_states(n=4096, d=1500),
    "offset 3000": lambda: hidden_states(n=4096, d=768) + 3000,
    "near-duplicates": draw_near_duplicates,
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", CLOUDS)
def test_measures_are_computed_on_the_gpu_and_equal_those_of_the_cpu(name, dtype):
    X = torch.from_numpy(CLOUDS[name]()).to(dtype)
    for measure in (anisotropy, average_cosine):
        for center in (True, False):
            # Before the reset, which fails where nothing has used the GPU yet.
            gpu_tensor = X.to(GPU)
            torch.cuda.reset_peak_memory_stats(GPU)
            value = measure(gpu_tensor, center=center)
            # The rows become float64, which takes twice as much again.
            assert torch.cuda.max_memory_allocated(GPU) > 2 * X.nbytes
            assert value == pytest.approx(measure(X, center=center), rel=1e-9, abs=1e-12)
    value = nearest_distances(X.to(GPU), 100)
    np.testing.assert_allclose(value, nearest_distances(X, 100), rtol=1e-9, atol=0)
