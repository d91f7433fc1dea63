import numpy as np
import pytest

from clouds import hidden_states
from shape_of_learning import anisotropy
from shape_of_learning.estimators.spread import spectrum


@pytest.mark.parametrize("shape", [(300, 40), (40, 300), (2, 5), (5, 1)])
def test_it_is_the_spectrum_of_numpys_covariance(shape):
    X = np.random.default_rng(0).standard_normal(shape)
    covariance = np.atleast_2d(np.cov(X, rowvar=False))
    expected = np.linalg.eigvalsh(covariance)[::-1][: min(shape)]
    found = spectrum(X)
    assert found.shape == (min(shape),)
    # Weyl: eigenvalues move by no more than the rounding of the matrix.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14 * max(shape) * found[0])
    assert (found >= 0).all()


def test_its_leading_share_is_the_anisotropy():
    X = hidden_states(500)
    found = spectrum(X)
    assert found[0] / found.sum() == pytest.approx(anisotropy(X), rel=1e-9)


def test_a_common_offset_changes_nothing_but_the_last_digits():
    X = hidden_states(200).astype(np.float64)
    moved = spectrum(X + 1000.0)
    # The rounding of the sums: half a unit in the last place of 1000 in each entry.
    np.testing.assert_allclose(moved, spectrum(X), rtol=0, atol=1e-9 * moved[0])


def test_one_vector_has_none():
    with pytest.raises(ValueError, match="at least 2"):
        spectrum([[1.0, 2.0]])
