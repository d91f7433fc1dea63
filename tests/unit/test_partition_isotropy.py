import numpy as np
import pytest

from clouds import gaussian, hidden_states
from shape_of_learning import log_partition_isotropy
from shape_of_learning.estimators import weights as module

pytestmark = pytest.mark.filterwarnings("error")


def by_definition(X, signs="one"):
    """Each F as it is written, in extended precision, whose exponent has the range for any of these."""
    X = np.asarray(X, dtype=np.float64)
    C = np.linalg.eigh(X.T @ X)[1]
    C = C * np.where(X.mean(axis=0) @ C < 0, -1, 1)
    C = np.hstack([C, -C]) if signs == "both" else C
    F = np.exp((X @ C).astype(np.longdouble)).sum(axis=0)
    return float(np.log(F.min() / F.max()))


CLOUDS = {
    "offset 5": lambda: 0.3 * hidden_states(),
    "wide": lambda: hidden_states(n=30, d=80),
    "long": lambda: gaussian(300, 10) + 3,
    "one vector": lambda: [[3.0, 4.0]],
}


@pytest.mark.parametrize("signs", ["one", "both"])
@pytest.mark.parametrize("cloud", CLOUDS)
def test_it_is_what_the_definition_says(cloud, signs):
    X = CLOUDS[cloud]()
    expected = by_definition(X, signs)
    assert log_partition_isotropy(X, signs=signs) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("offset", [30, 340, 1e4])
def test_an_offset_at_which_exponentials_underflow_gives_a_finite_value(offset):
    X = gaussian(2000, 40) / 40
    direction = np.ones(40) / np.sqrt(40)
    raw = X + offset * direction
    assert offset < 100 or np.exp(-raw.astype(np.float32) @ direction.astype(np.float32)).sum() == 0
    # The leading eigenvector is the offset's; the others see next to nothing: ln F = offset + ln n, and ln n.
    assert log_partition_isotropy(raw) == pytest.approx(-offset, abs=0.01)
    assert log_partition_isotropy(raw, signs="both") == pytest.approx(-2 * offset, abs=0.02)
    # 1e4 leaves 12 digits of the signal.
    centred = log_partition_isotropy(X, center=True)
    assert log_partition_isotropy(raw, center=True) == pytest.approx(centred, rel=1e-6)


@pytest.mark.parametrize("rows", [1, 7, 400])
def test_blocks_of_any_size_give_the_same(rows, monkeypatch):
    X = hidden_states()
    value = log_partition_isotropy(X)
    monkeypatch.setattr(module, "PARTITION_BYTES", rows * 8 * X.shape[1])
    assert log_partition_isotropy(X) == pytest.approx(value, rel=1e-11)
