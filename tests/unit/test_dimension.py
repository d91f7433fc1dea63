"""Estimators of the dimension follow their formulas and published values, and refuse bad input."""

import importlib.util
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial import cKDTree

from clouds import distances_by_brute_force, gaussian, hidden_states, rotation
from shape_of_learning import gride, mada, mle, mom, nearest_distances, two_nn
from shape_of_learning.estimators.dimension import mean_distance_to_mean, two_nn_authors
from shape_of_learning.random_streams import random_stream

pytestmark = pytest.mark.filterwarnings("error")


def test_two_nn_is_the_slope_of_the_line_through_the_origin():
    mu = np.array([1.5, 1.1, 2.0, 1.2, 3.0])
    x = np.log([1.1, 1.2, 1.5, 2.0])
    y = -np.log(1 - np.array([0.2, 0.4, 0.6, 0.8]))
    dimension = two_nn(np.stack([np.full(5, 2.0), 2 * mu], axis=1), kept=0.8)
    assert dimension == pytest.approx(np.linalg.lstsq(x[:, None], y)[0][0], rel=1e-12)


R = np.array([[1.0, 2.0, 3.0, 4.0, 6.0], [2.0, 3.0, 4.0, 7.0, 8.0]])


@pytest.mark.parametrize(
    ("estimator", "pointwise"),
    [
        (mada, [math.log(2) / math.log(6 / 2), math.log(2) / math.log(8 / 3)]),
        (mom, [3.2 / (6 - 3.2), 4.8 / (8 - 4.8)]),
        (mle, [4 / math.log(6**4 / 24), 4 / math.log(8**4 / 168)]),
    ],
)
def test_local_estimators_follow_their_formula(estimator, pointwise):
    assert estimator(R, k=5, combine="mean") == pytest.approx(np.mean(pointwise), rel=1e-12)
    assert estimator(R, k=5, combine="median") == pytest.approx(np.median(pointwise), rel=1e-12)
    harmonic = 1 / np.mean(1 / np.array(pointwise))
    # Neighbours beyond k do not count.
    further = np.hstack([R, R[:, -1:] + 1])
    assert estimator(further, k=5, combine="harmonic") == pytest.approx(harmonic, rel=1e-12)


@pytest.mark.parametrize("n1", [1, 2, 9, 64])
@pytest.mark.parametrize("d", [1e-2, 1.0, 40.0, 1e6])
def test_gride_maximises_the_likelihood(n1, d):
    x = -np.log(random_stream(0, "ratios").beta(n1, n1, 300)) / d
    # The likelihood in d allows a tie.
    x[0] = 0 if n1 == 1 else x[0]
    r = np.repeat([np.ones(300), np.exp(x)], n1, axis=0).T

    def log_likelihood(d):
        powers = (n1 - 1) * np.log(np.expm1(d * x)) if n1 > 1 else 0
        return np.sum(np.log(d) + powers - ((2 * n1 - 1) * d + 1) * x)

    dimension = gride(r, n1)
    assert dimension == pytest.approx(d, rel=0.5)
    step = 1e-5
    slope = (log_likelihood(dimension * (1 + step)) - log_likelihood(dimension * (1 - step))) / (
        2 * step
    )
    # The slope is a difference of sums of rounded terms, of up to 127 * 300 * ln 2.
    assert abs(slope) < 1e-2


@pytest.mark.parametrize("n1", [1, 2, 16])
def test_gride_counts_ties_and_is_undefined_for_ties_alone(n1):
    tied, free = np.ones((1, 2 * n1)), np.repeat([[1.0, 2.0]], n1, axis=1)
    some = gride(np.vstack([tied, free]), n1)
    assert gride(free, n1) < some < math.inf
    assert math.isnan(gride(tied, n1))


@pytest.mark.parametrize("estimator", [mada, mom, mle])
def test_ties_are_left_out_of_means_infinite_in_harmonic_means_and_highest_in_medians(estimator):
    tied, free = np.full((1, 4), 2.0), np.array([[1.0, 2.0, 3.0, 4.0]])
    some = np.vstack([tied, free])
    assert estimator(some, 4, "mean") == estimator(free, 4, "mean")
    expected = 2 * estimator(free, 4, "harmonic")
    assert estimator(some, 4, "harmonic") == pytest.approx(expected, rel=1e-12)
    small, large = [[1.0, 2.0, 3.0, 9.0]], [[3.0, 3.5, 3.8, 4.0]]
    three_rows = np.vstack([small, tied, large])
    assert estimator(three_rows, 4, "median") == estimator(np.array(large), 4, "median")
    assert math.isnan(estimator(some, 4, "median"))
    for combine in ("mean", "median", "harmonic"):
        assert math.isnan(estimator(np.tile(tied, (5, 1)), 4, combine))


def test_two_nn_is_undefined_without_kept_ratios_or_for_ties_alone():
    assert math.isnan(two_nn(np.ones((10, 2))))
    assert math.isnan(two_nn([[1.0, 2.0], [1.0, 3.0], [1.0, 4.0]], kept=0.2))


@pytest.mark.parametrize("estimate", [two_nn, mada, mom, mle, lambda r: gride(r, 32)])
@pytest.mark.parametrize("distinct", [1, 2])
def test_dimension_of_too_few_distinct_vectors_is_undefined(estimate, distinct):
    X = np.repeat(gaussian(distinct, 6), 150, axis=0)
    assert math.isnan(estimate(nearest_distances(X, 100)))


def test_a_vector_with_few_distinct_neighbours_uses_those_it_has():
    few = gaussian(30, 6)
    r = nearest_distances(np.repeat(few, 5, axis=0), 100)
    assert mle(r) == mle(nearest_distances(few, 20))
    assert math.isnan(mom(r))


# DADApy 0.3.4 (with NumPy 1.26), for n1 = 1, 2, 4, ..., 64:
#     dadapy.Data(cloud).return_id_scaling_gride(range_max=128)[0]
GRIDE_OF_DADAPY = [
    *(15.934241856326086, 15.664709398315548, 14.765362646379014, 14.151167314902267),
    *(13.529720771318448, 12.30769289783193, 11.029004870757547),
]


def test_gride_is_that_of_dadapy_except_for_one_vector_in_its_count():
    """DADApy takes m - 1 for m in the likelihood, and solves it to 1e-7 in d."""
    m = 1000
    r = nearest_distances(np.random.default_rng(2).standard_normal((m, 20)), 128)
    larger = np.array([gride(r, 2**i) for i in range(7)]) / GRIDE_OF_DADAPY - 1
    assert larger[0] == pytest.approx(1 / (m - 1), rel=1e-3)
    assert (np.abs(larger - 0.5 / m) < 0.51 / m).all()
    # The difference shrinks, since the information of the other terms grows with n1.
    assert (np.diff(larger) < 0).all()


def load_module(package, file):
    """Load a module of an installed package that the package itself does not import."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        pytest.skip(f"{package} is not installed")
    path = Path(spec.submodule_search_locations[0]) / file
    module = importlib.util.spec_from_file_location(f"module_of_{package}", path)
    package_module = importlib.util.module_from_spec(module)
    module.loader.exec_module(package_module)
    return package_module


@pytest.fixture(scope="module")
def reference():
    """Outputs of R, Octave and DADApy that scikit-dimension ships with its tests, and their data."""
    data = load_module("skdim", "tests/reference/data.py")
    outputs = Path(data.__file__).with_name("fixtures.json").read_text()
    return data.id_datasets(), json.loads(outputs)


@pytest.mark.parametrize("name", ["ball5_in10", "sphere4_in5"])
def test_estimates_are_those_of_dadapy_r_and_octave(reference, name):
    clouds, outputs = reference
    r = nearest_distances(clouds[name], 20)
    outputs_of_r = outputs["intrinsicDimension"][name]
    estimates = [two_nn(r), mle(r), mle(r, k=5), mle(r, combine="mean")]
    expected = [outputs["dadapy"][name]["twonn_base_mu0.9"]]
    expected += [outputs_of_r["mle_k20"], outputs_of_r["mle_k5"], outputs_of_r["mle_k20_mean"]]
    assert estimates == pytest.approx(expected, rel=1e-6)
    outputs_by_estimator = {
        mada: outputs["ider"][name]["mada_local_k20"],
        mom: outputs["matlab"][name]["mom_pw"],
    }
    for estimator, expected in outputs_by_estimator.items():
        estimates = [estimator(row[None], k=20) for row in r]
        np.testing.assert_allclose(estimates, expected, rtol=1e-6)


# The authors compute F and its logarithm in float32.
AUTHORS_ROUNDING = 1e-6


@pytest.fixture(scope="module")
def authors_estimate():
    """The function that the paper's authors released; their package cannot be imported."""
    functions = load_module("llm_microscope", "functions.py")
    return lambda X: functions.intrinsic_dimension(torch.from_numpy(X), "cpu")


def compute_estimate(X):
    r = distances_by_brute_force(np.asarray(X, np.float64), 2)
    return two_nn_authors(r / mean_distance_to_mean(X))


def add_copies(X, share, times=1):
    """Replace a share of the rows by copies of others, in groups of ``times + 1``."""
    stream = random_stream(0, "copies")
    copies = stream.choice(len(X), round(share * len(X)), replace=False)
    originals = np.setdiff1d(np.arange(len(X)), copies)
    X = X.copy()
    X[copies] = X[np.resize(originals[: max(1, len(copies) // times)], len(copies))]
    return X


@pytest.mark.parametrize("times", [1, 2, 5])
@pytest.mark.parametrize("share", [0, 0.02, 0.3])
@pytest.mark.parametrize("offset", [0, 1e3])
def test_the_authors_estimate_is_that_of_their_code(authors_estimate, offset, share, times):
    X = add_copies((hidden_states(800, 24) + offset).astype(np.float32), share, times)
    assert compute_estimate(X) == pytest.approx(authors_estimate(X), rel=AUTHORS_ROUNDING)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_near_copies_are_recognised_in_units_of_the_cloud(authors_estimate, scale):
    """Pairs 1e-11 to 1e-6 of the cloud's radius apart: those below 1e-8 are copies."""
    X = gaussian(600, 8) @ rotation(16)[:8]
    X -= X.mean(axis=0)
    gaps = np.geomspace(1e-11, 1e-6, 40)
    # Gaps along one coordinate are exact.
    X[:80, 0] = 0
    X[40:80] = X[:40]
    X[40:80, 0] = gaps
    X *= scale
    expected = authors_estimate(X)
    assert compute_estimate(X) == pytest.approx(expected, rel=AUTHORS_ROUNDING)
    estimate = two_nn_authors(nearest_distances(X, 2) * 1e20)
    assert estimate != pytest.approx(expected, rel=1e-3), "the unit decides"


def test_copies_raise_the_authors_estimate_as_its_docstring_says():
    X = random_stream(0, "cube").random((4096, 8))
    shares = {0.05: (1.34, 1.52, 2.0), 0.2: (2.5, 3.3, 5.9)}
    for share, factors in shares.items():
        number = round(share * len(X))
        single_copies, paired_copies, random_copies = X.copy(), X.copy(), X.copy()
        single_copies[:number] = X[0]
        paired_copies[: number // 2] = X[number // 2 : 2 * (number // 2)]
        random_copies[:number] = X[random_stream(1, "cube").integers(number, len(X), number)]
        estimates = [
            two_nn_authors(measure_tree_distances(Y))
            for Y in (single_copies, paired_copies, random_copies)
        ]
        assert np.array(estimates) / two_nn_authors(measure_tree_distances(X)) == pytest.approx(
            factors, rel=0.05
        )
        assert two_nn(nearest_distances(random_copies, 2)) == pytest.approx(
            two_nn(nearest_distances(X, 2)), rel=0.05
        )


def measure_tree_distances(X):
    """Return the distances to the two nearest other vectors; the distance to a copy is zero."""
    return cKDTree(X).query(X, 3)[0][:, 1:]


def test_a_few_near_pairs_lower_gride_at_its_smallest_scale_and_not_two_nn():
    X = random_stream(0, "pairs").normal(size=(2000, 10))
    X[:50] = X[50:100] + 1e-6 * random_stream(1, "pairs").normal(size=(50, 10))
    r = nearest_distances(X, 2)
    assert two_nn(r) > 0.8 * two_nn(nearest_distances(X[50:], 2))
    assert gride(r, 1) < 0.6 * two_nn(r)


@pytest.mark.parametrize("n", [3, 5, 9, 10, 11])
def test_the_authors_estimate_of_few_vectors_is_that_of_their_code(authors_estimate, n):
    X = gaussian(n, 3)
    assert compute_estimate(X) == pytest.approx(
        authors_estimate(X), rel=AUTHORS_ROUNDING, nan_ok=True
    )
    assert math.isnan(compute_estimate(X)) == (n < 5)


def test_the_authors_estimate_is_undefined_for_copies_and_ties_alone(authors_estimate):
    grid = np.stack(np.meshgrid(*[np.arange(4.0)] * 3), axis=-1).reshape(-1, 3)
    assert math.isnan(authors_estimate(grid))
    assert math.isnan(compute_estimate(grid))
    assert math.isnan(two_nn_authors(np.zeros((10, 2))))
    assert math.isnan(two_nn_authors([[0.0, np.nan], [0.0, np.nan]]))


def test_the_authors_estimate_without_copies_is_two_nn_that_keeps_a_fifth():
    """The authors keep n // 5 of n ratios, as `two_nn` does if no rounding interferes."""
    X = hidden_states(702, 24)
    r = nearest_distances(X, 2)
    assert two_nn_authors(r / mean_distance_to_mean(X)) == pytest.approx(two_nn(r, 0.2), rel=1e-12)


@pytest.mark.parametrize(
    ("estimate", "k"), [(two_nn, 2), (mada, 20), (mom, 100), (mle, 20), (lambda X: gride(X, 4), 8)]
)
def test_an_estimate_of_vectors_is_that_of_their_distances(estimate, k):
    X = hidden_states(703, 24)
    assert estimate(X) == estimate(nearest_distances(X, k))


def test_distances_of_vectors_to_themselves_are_refused():
    """A search among the vectors themselves returns these distances."""
    X = hidden_states(300, 8)
    distances = np.sort(np.linalg.norm(X[:, None] - X[None], axis=2), axis=1)
    for columns in (3, len(X)):
        with pytest.raises(ValueError, match="vector to itself"):
            two_nn(distances[:, :columns])
    assert two_nn(distances[:, 1:]) == pytest.approx(two_nn(X), rel=1e-9)


NAN = np.array([[1.0, 2.0], [1.0, np.nan], [1.0, 2.0]])


@pytest.mark.parametrize(
    ("estimate", "message"),
    [
        (lambda: two_nn(R, kept=0), r"^kept must lie in \(0, 1\], but is 0"),
        (lambda: two_nn(R, kept=1.1), r"^kept must lie in \(0, 1\]"),
        (lambda: mle(R[:, :2], k=5), "^k=5 neighbours are needed, but distances has 2 columns"),
        (lambda: mle(R, k=1), "^k must be at least 2, not 1"),
        (lambda: mle(R, k=2.5), "^k must be a whole number, not 2.5"),
        (lambda: mle(R, k=5, combine="mode"), "^combine must be .* but is 'mode'"),
        (lambda: gride(R, 3), "^k=6 neighbours are needed, but distances has 5 columns"),
        (lambda: gride(R, 0), "^n1 must be at least 1, not 0"),
        (lambda: two_nn_authors(R - 2), "^distances must be finite and not negative"),
        (lambda: two_nn(R[0]), "^distances must have two dimensions"),
        (lambda: mle(np.where(R > 5, np.inf, R), 5), "^distances must be finite and positive"),
        (lambda: two_nn([[0.0, 1.0], [2.0, 1.0]]), "^X has 2 rows"),
        (lambda: two_nn([[0.0, np.inf], [2.0, 1.0], [3.0, 1.0]]), "^X holds NaN or infinity"),
        (lambda: two_nn(NAN), "^distances holds NaN"),
        (lambda: two_nn(NAN * [[1.0, np.nan]]), "^distances holds NaN in a column whose"),
    ],
)
def test_bad_input_is_refused_by_name_and_reason(estimate, message):
    with pytest.raises(ValueError, match=message):
        estimate()
