import math

import numpy as np
import pytest

from clouds import gaussian
from hard_clouds import CLOUDS, by_singular_values
from shape_of_learning import anisotropy
from shape_of_learning.estimators import anisotropy as module
from shape_of_learning.random_streams import random_stream

pytestmark = pytest.mark.filterwarnings("error")


@pytest.mark.parametrize("by", ["Gram matrix", "Lanczos iteration"])
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("name", CLOUDS)
def test_anisotropy_is_that_of_the_singular_values(name, center, by, monkeypatch):
    X = CLOUDS[name]()
    if by == "Lanczos iteration" and min(X.shape) > 2:
        monkeypatch.setattr(module, "GRAM_SIDE", 20)
        monkeypatch.setattr(module, "LANCZOS_RESTARTS", 1000)
        monkeypatch.setattr("scipy.linalg.eigh", None)  # so that the Gram matrix cannot stand in
        monkeypatch.setattr(module, "ROWS_PER_BLOCK", 64)
    assert anisotropy(X, center) == pytest.approx(by_singular_values(X, center), rel=1e-9)


def test_a_spectrum_without_gap_is_left_to_the_gram_matrix(monkeypatch):
    X = gaussian(400, 300)
    monkeypatch.setattr(module, "GRAM_SIDE", 20)
    monkeypatch.setattr(module, "LANCZOS_RESTARTS", 1)
    assert anisotropy(X) == pytest.approx(by_singular_values(X), rel=1e-9)
    monkeypatch.setattr("scipy.linalg.eigh", None)
    with pytest.raises(TypeError):
        anisotropy(X)


@pytest.mark.parametrize(
    ("share_of_first", "gap"),
    [(3e-3, 2e-9), (1e-3, 1e-8), (1e-4, 1e-7), (1e-5, 1e-6), (1e-6, 1e-5)],
)
def test_the_second_of_two_nearly_equal_eigenvalues_is_not_taken_for_the_first(share_of_first, gap):
    """Even where the start of the iteration has next to nothing of the first eigenvector."""
    width = module.GRAM_SIDE + 1
    start = random_stream(0, "start of Lanczos iteration").standard_normal(width)
    image = gaussian(width, 1)[:, 0]
    image[0] = share_of_first * image[1]
    image *= np.linalg.norm(start) / np.linalg.norm(image)
    # A reflection that turns the start into its image in the basis of eigenvectors.
    normal = (start - image) / np.linalg.norm(start - image)
    reflection = np.eye(width) - 2 * np.outer(normal, normal)
    eigenvalues = np.concatenate([[1, 1 - gap], np.linspace(0.05, 0.5, width - 2)])
    X = np.sqrt(eigenvalues)[:, None] * reflection
    assert anisotropy(X, center=False) == pytest.approx(1 / eigenvalues.sum(), rel=1e-11)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e30, 1e-30])
def test_anisotropy_of_one_vector_repeated_is_undefined(value):
    assert math.isnan(anisotropy(np.full((7, 3), value) * [1, -0.3, 0.7]))


def test_variance_at_the_level_of_rounding_is_none():
    X = np.tile(gaussian(1, 20) + 1000, (30, 1))
    X[::2] = np.nextafter(X[::2], np.inf)
    assert math.isnan(anisotropy(X))
