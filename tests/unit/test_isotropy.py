"""Isotropy: cosines, the share of the first direction, and the partition function."""

import math

import numpy as np
import pytest

from clouds import gaussian, hidden_states
from hard_clouds import CLOUDS, centre_exactly, mean_cosine_of_all_pairs, squared_singular_values
from shape_of_learning import anisotropy, average_cosine, log_partition_isotropy
from shape_of_learning.estimators import anisotropy as anisotropies
from shape_of_learning.estimators import cosine as cosines
from shape_of_learning.estimators import weights as partitions
from shape_of_learning.estimators.cosine import inter_window_cosine, intra_window_cosine
from shape_of_learning.random_streams import random_stream

pytestmark = pytest.mark.filterwarnings("error")


@pytest.mark.parametrize("rows_per_block", [7, 1024])
@pytest.mark.parametrize(
    ("name", "center"),
    [(name, False) for name in CLOUDS]
    # Most rows of the clouds called lengths lie at the mean, as far as float64 can tell.
    + [(name, True) for name in CLOUDS if not name.startswith("lengths")],
)
def test_average_cosine_of_hard_clouds_is_that_of_all_pairs(
    name, center, rows_per_block, monkeypatch
):
    X = CLOUDS[name]()
    monkeypatch.setattr(cosines, "BLOCK_BYTES", rows_per_block * 8 * X.shape[1])
    # The mean is rounded relative to the largest deviation from it, and turns a row by no more than that
    # rounding over its length.
    lengths = np.linalg.norm(centre_exactly(X), axis=1) if center else np.ones(len(X))
    turn = 10 * np.finfo(float).eps * float(lengths.max() / lengths.min())
    assert average_cosine(X, center) == pytest.approx(
        mean_cosine_of_all_pairs(X, center), abs=1e-14 + turn
    )


def anisotropy_from_singular_values(X, center=True):
    squares = squared_singular_values(X, center)
    return squares[0] / squares.sum()


def test_rows_of_zeros_and_rows_at_the_mean_have_no_direction():
    X = hidden_states(n=30)
    padded_rows = np.insert(X, [0, 4, 4, 30], 0.0, axis=0)
    assert average_cosine(padded_rows) == pytest.approx(average_cosine(X), rel=1e-13)
    X = 0.1 + np.outer([-1.0, 0.0, 1.0], gaussian(1, 6)[0])
    assert average_cosine(X, center=True) == pytest.approx(-1)


def test_fewer_than_two_directions_are_undefined():
    assert math.isnan(average_cosine([[0.0, 0.0], [1.0, 2.0]]))
    assert math.isnan(average_cosine(np.full((5, 3), 0.1), center=True))


WINDOW_COSINES = [
    (intra_window_cosine, cosines.intra_window_cosine_jackknife),
    (inter_window_cosine, cosines.inter_window_cosine_jackknife),
]


def mean_window_cosines(X, windows):
    """Return the mean cosine within and between windows, pair by pair."""
    lengths = np.linalg.norm(X, axis=1)
    X, windows = X[lengths > 0] / lengths[lengths > 0, None], windows[lengths > 0]
    cosines = (X @ X.T)[np.triu_indices(len(X), 1)]
    same = (windows[:, None] == windows)[np.triu_indices(len(X), 1)]
    return [math.fsum(cosines[kind]) / kind.sum() for kind in (same, ~same)]


def draw_windows_of_text():
    """Draw windows of unequal length whose vectors share a direction, in random order, some of norm zero."""
    stream = np.random.default_rng(0)
    shares = {3: 0.4, -5: 0.2, 11: 0.1, 12: 0.1, 400: 0.1, 7: 0.09, 8: 0.01}
    windows = stream.choice(list(shares), 300, p=list(shares.values()))
    X = hidden_states(300, 24) + 8 * stream.standard_normal((500, 24))[windows]
    X[[0, 50, 299]] = 0
    return X, windows


def test_window_cosines_are_the_means_over_all_pairs():
    X, windows = draw_windows_of_text()
    expected = mean_window_cosines(X, windows)
    values = [function(X, windows) for function, _ in WINDOW_COSINES]
    assert values == pytest.approx(expected, abs=1e-14)
    assert values[0] > values[1] + 0.1


@pytest.mark.parametrize("whole_windows", [True, False])
def test_jackknife_values_are_the_cosines_of_the_remaining_rows(whole_windows):
    X, windows = draw_windows_of_text()
    names = np.unique(windows)
    parts = [np.flatnonzero(windows == name) for name in names]
    if not whole_windows:
        parts = [np.arange(start, 290, 5) for start in range(5)]
    for function, jackknife_function in WINDOW_COSINES:
        value, jackknife_values = jackknife_function(X, windows, parts)
        assert value == pytest.approx(function(X, windows), abs=1e-15)
        remaining_rows = [np.delete(np.arange(300), part) for part in parts]
        expected = [function(X[rows], windows[rows]) for rows in remaining_rows]
        np.testing.assert_allclose(jackknife_values, expected, rtol=0, atol=1e-14)


def test_window_cosines_without_pairs_are_undefined():
    X = hidden_states(6)
    assert math.isnan(intra_window_cosine(X, range(6)))
    assert math.isnan(inter_window_cosine(X, [4] * 6))
    assert math.isnan(
        cosines.inter_window_cosine_jackknife(X, [4] * 5 + [9], [np.array([5])])[1][0]
    )
    assert math.isnan(intra_window_cosine(np.zeros((4, 3)), [0, 0, 1, 1]))


@pytest.mark.parametrize("windows", [[0, 1], [0.0, 1.0, 2.0], [[0, 1, 2]], ["a", "b", "c"]])
def test_windows_that_are_not_one_whole_number_per_row_are_refused(windows):
    message = r"^windows must hold one whole number for each of the 3"
    for function, _ in WINDOW_COSINES:
        with pytest.raises(ValueError, match=message):
            function(np.eye(3), windows)


def test_two_remaining_vectors_near_each_other_still_have_a_cosine():
    X = [[1e6, 0.0], [1e6 + 1, 0.0], [-5e6, 3.0]]
    jackknife_values = cosines.average_cosine_jackknife(X, [np.array([2])], center=True)[1]
    assert jackknife_values == pytest.approx([-1])


@pytest.mark.parametrize("method", ["Gram matrix", "Lanczos iteration"])
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("name", CLOUDS)
def test_anisotropy_is_the_share_of_the_largest_singular_value(name, center, method, monkeypatch):
    X = CLOUDS[name]()
    if method == "Lanczos iteration" and min(X.shape) > 2:
        monkeypatch.setattr(anisotropies, "GRAM_SIDE", 20)
        monkeypatch.setattr(anisotropies, "LANCZOS_RESTARTS", 1000)
        monkeypatch.setattr("scipy.linalg.eigh", None)  # so that the Gram matrix cannot stand in
        monkeypatch.setattr(anisotropies, "ROWS_PER_BLOCK", 64)
    assert anisotropy(X, center) == pytest.approx(
        anisotropy_from_singular_values(X, center), rel=1e-9
    )


def test_a_spectrum_without_gap_is_left_to_the_gram_matrix(monkeypatch):
    X = gaussian(400, 300)
    monkeypatch.setattr(anisotropies, "GRAM_SIDE", 20)
    monkeypatch.setattr(anisotropies, "LANCZOS_RESTARTS", 1)
    assert anisotropy(X) == pytest.approx(anisotropy_from_singular_values(X), rel=1e-9)
    monkeypatch.setattr("scipy.linalg.eigh", None)
    with pytest.raises(TypeError):
        anisotropy(X)


@pytest.mark.parametrize(
    ("share_of_first", "gap"),
    [(3e-3, 2e-9), (1e-3, 1e-8), (1e-4, 1e-7), (1e-5, 1e-6), (1e-6, 1e-5)],
)
def test_lanczos_tells_two_nearly_equal_eigenvalues_apart(share_of_first, gap):
    """The start of the iteration is nearly orthogonal to the first eigenvector."""
    width = anisotropies.GRAM_SIDE + 1
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


def test_anisotropy_of_equal_vectors_and_of_rounding_errors_is_undefined():
    for value in (0.0, 0.1, 1e30, 1e-30):
        assert math.isnan(anisotropy(np.full((7, 3), value) * [1, -0.3, 0.7]))
    X = np.tile(gaussian(1, 20) + 1000, (30, 1))
    X[::2] = np.nextafter(X[::2], np.inf)
    assert math.isnan(anisotropy(X))


def log_partition_isotropy_as_defined(X, signs="one"):
    """Compute each F as the paper writes it, in extended precision, so that no exponential overflows."""
    X = np.asarray(X, dtype=np.float64)
    C = np.linalg.eigh(X.T @ X)[1]
    C = C * np.where(X.mean(axis=0) @ C < 0, -1, 1)
    C = np.hstack([C, -C]) if signs == "both" else C
    F = np.exp((X @ C).astype(np.longdouble)).sum(axis=0)
    return float(np.log(F.min() / F.max()))


PLAIN_CLOUDS = {
    "offset 5": lambda: 0.3 * hidden_states(),
    "wide": lambda: hidden_states(n=30, d=80),
    "long": lambda: gaussian(300, 10) + 3,
    "one vector": lambda: [[3.0, 4.0]],
}


@pytest.mark.parametrize("signs", ["one", "both"])
@pytest.mark.parametrize("cloud", PLAIN_CLOUDS)
def test_log_partition_isotropy_follows_its_definition(cloud, signs):
    X = PLAIN_CLOUDS[cloud]()
    expected = log_partition_isotropy_as_defined(X, signs)
    assert log_partition_isotropy(X, signs=signs) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("offset", [30, 340, 1e4])
def test_log_partition_isotropy_is_finite_where_exponentials_underflow(offset):
    X = gaussian(2000, 40) / 40
    direction = np.ones(40) / np.sqrt(40)
    offset_vectors = X + offset * direction
    assert (
        offset < 100
        or np.exp(-offset_vectors.astype(np.float32) @ direction.astype(np.float32)).sum() == 0
    )
    # The leading eigenvector is the offset's, where ln F = offset + ln n; along the others ln F = ln n.
    assert log_partition_isotropy(offset_vectors) == pytest.approx(-offset, abs=0.01)
    assert log_partition_isotropy(offset_vectors, signs="both") == pytest.approx(
        -2 * offset, abs=0.02
    )
    # 1e4 leaves 12 digits of the signal.
    value = log_partition_isotropy(X, center=True)
    assert log_partition_isotropy(offset_vectors, center=True) == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("rows", [1, 7, 400])
def test_log_partition_isotropy_does_not_depend_on_the_block_size(rows, monkeypatch):
    X = hidden_states()
    value = log_partition_isotropy(X)
    monkeypatch.setattr(partitions, "PARTITION_BYTES", rows * 8 * X.shape[1])
    assert log_partition_isotropy(X) == pytest.approx(value, rel=1e-11)
