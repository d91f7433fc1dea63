import importlib.util
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from clouds import ball, embedded, gaussian, hidden_states, rotation, sphere, swiss_roll
from shape_of_learning import mada, mle, mom, nearest_distances, two_nn
from shape_of_learning.arrays import distinct_rows
from shape_of_learning.random_streams import random_stream

pytestmark = pytest.mark.filterwarnings("error")

N = 4096

# Every estimator as the workflow calls it, and the variants that its arguments make.
ESTIMATORS = {
    "two_nn": two_nn,
    "two_nn_authors": lambda r: two_nn(r, kept=0.2),
    "mada": mada,
    "mada_median": lambda r: mada(r, combine="median"),
    "mom": mom,
    "mom_harmonic": lambda r: mom(r, combine="harmonic"),
    "mle": mle,
    "mle_mean": lambda r: mle(r, combine="mean"),
}


@pytest.fixture(scope="module")
def distances():
    return nearest_distances(hidden_states(n=500), 100)


# --- formulas ---


def test_two_nn_is_the_slope_of_the_line_through_the_origin():
    mu = np.array([1.5, 1.1, 2.0, 1.2, 3.0])
    x = np.log([1.1, 1.2, 1.5, 2.0])
    y = -np.log(1 - np.array([0.2, 0.4, 0.6, 0.8]))
    found = two_nn(np.stack([np.full(5, 2.0), 2 * mu], axis=1), kept=0.8)
    assert found == pytest.approx(np.linalg.lstsq(x[:, None], y)[0][0], rel=1e-12)


def test_two_nn_never_uses_the_last_ratio():
    r = np.array([[1, 1.5], [1, 1.1], [1, 2.0], [1, 1.2]])
    assert two_nn(r, kept=1.0) == two_nn(r, kept=0.75)


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
    assert estimator(R, k=5, combine="harmonic") == pytest.approx(harmonic, rel=1e-12)


@pytest.mark.parametrize("estimator", [mada, mom, mle])
def test_neighbours_beyond_k_play_no_part(estimator, distances):
    assert estimator(distances, k=10) == estimator(distances[:, :10], k=10)


# --- the exact model: in d dimensions of even density, volumes are distributed as in a Poisson process ---


def model_distances(points, k, d, stream):
    """Distances to k neighbours: given the k-th, the others are uniform in volume."""
    volumes = np.sort(stream.random((points, k - 1)), axis=1)
    return np.concatenate([volumes, np.ones((points, 1))], axis=1) ** (1 / d)


@pytest.mark.parametrize(("kept", "relative_sd"), [(0.9, 0.0170), (0.2, 0.0376)])
def test_two_nn_has_the_mean_and_spread_of_its_exact_model(kept, relative_sd):
    # mu = r2 / r1 follows a Pareto law with exponent d.
    d, repetitions, stream = 7.0, 400, random_stream(0, "exact model")
    mu = (1 - stream.random((repetitions, N))) ** (-1 / d)
    found = np.array([two_nn(np.stack([np.ones(N), m], axis=1), kept) for m in mu]) / d
    # Known: mean in [1.000, 1.002], and the spread to four digits. Known by simulation of the same
    # size, so four standard errors are those of two simulations.
    error = 4 * math.sqrt(2) * relative_sd / math.sqrt(repetitions)
    assert abs(found.mean() - 1.001) < 0.001 + error
    error = 4 * math.sqrt(2) * relative_sd / math.sqrt(2 * repetitions)
    assert abs(found.std(ddof=1) - relative_sd) < 0.00005 + error


@pytest.mark.parametrize(
    ("estimator", "k", "combine", "bias"),
    [
        (mle, 20, "harmonic", 0.0),
        (mle, 20, "mean", 1 / 18),
        (mada, 20, "mean", 0.077),
        (mada, 20, "median", 0.0),
        (mada, 20, "harmonic", -0.036),
        (mada, 100, "mean", 0.014),
        (mom, 20, "mean", 0.112),
        (mom, 100, "mean", 0.020),
    ],
)
def test_local_estimators_have_the_bias_of_the_exact_model(estimator, k, combine, bias):
    d, groups, stream = 7.0, 30, random_stream(0, "exact model")
    found = np.array(
        [estimator(model_distances(1000, k, d, stream), k, combine) / d for _ in range(groups)]
    )
    error = found.std(ddof=1) / math.sqrt(groups)
    # Known to three decimals.
    assert abs(found.mean() - 1 - bias) < 0.0005 + 4 * error


# --- manifolds of known dimension ---

# Mean over draws of 4096 vectors, measured with scikit-dimension 0.5.0; below the dimension because a
# neighbourhood reaches over the boundary. Its own error is that of a single draw.
MANIFOLDS = {
    "ball of 5": (lambda: embedded(ball(N, 5), 50), [5.005, 4.872, 4.578, 4.639]),
    "ball of 10": (lambda: embedded(ball(N, 10), 50), [9.037, 9.194, 8.354, 8.670]),
    "ball of 20": (lambda: embedded(ball(N, 20), 50), [16.427, 16.242, 14.447, 15.311]),
    "swiss roll": (lambda: swiss_roll(N), [1.938, 2.095, 1.967, 1.944]),
    "gaussian of 50": (lambda: gaussian(N, 50), [33.695, 29.974, 26.050, 29.093]),
}


@pytest.mark.parametrize("name", MANIFOLDS)
def test_dimension_of_a_known_manifold(name):
    make, expected = MANIFOLDS[name]
    r = nearest_distances(make(), 100)
    found = np.array([two_nn(r), mada(r), mom(r), mle(r)])
    # Relative standard deviation of one draw. TwoNN: 2.1 % observed on balls. Local: at least N / k
    # neighbourhoods do not overlap, with pointwise deviations in the exact model of 0.39 (MADA,
    # k = 20), 0.11 (MOM, k = 100) and 1 / sqrt(k - 1) (MLE, k = 20).
    deviation = [0.021, 0.39 * math.sqrt(20 / N), 0.11 * math.sqrt(100 / N), math.sqrt(20 / 19 / N)]
    assert (np.abs(found / expected - 1) < 4 * math.sqrt(2) * np.array(deviation)).all()


@pytest.mark.parametrize("d", [1, 2, 4])
def test_two_nn_finds_the_dimension_of_a_sphere(d):
    # No boundary, and curvature changes volumes by O(r^2): only the spread of the exact model is left.
    found = two_nn(nearest_distances(embedded(sphere(N, d), 30), 2))
    assert found == pytest.approx(d, rel=4 * 0.017)


# --- other implementations ---


@pytest.fixture(scope="module")
def reference():
    """Outputs of R, Octave and DADApy that scikit-dimension ships with its tests, and their data."""
    spec = importlib.util.find_spec("skdim")
    if spec is None:
        pytest.skip("scikit-dimension, whose tests hold the reference outputs, is not installed")
    folder = Path(spec.submodule_search_locations[0]) / "tests" / "reference"
    module = importlib.util.spec_from_file_location("reference_data", folder / "data.py")
    data = importlib.util.module_from_spec(module)
    module.loader.exec_module(data)
    return data.id_datasets(), json.loads((folder / "fixtures.json").read_text())


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", ["ball5_in10", "sphere4_in5"])
class TestReferenceOutputs:
    def test_two_nn_of_dadapy(self, reference, name):
        clouds, outputs = reference
        expected = outputs["dadapy"][name]["twonn_base_mu0.9"]
        assert two_nn(nearest_distances(clouds[name], 2)) == pytest.approx(expected, rel=1e-6)

    def test_mle_of_r_intrinsic_dimension(self, reference, name):
        clouds, outputs = reference
        expected = outputs["intrinsicDimension"][name]
        r = nearest_distances(clouds[name], 20)
        assert mle(r) == pytest.approx(expected["mle_k20"], rel=1e-6)
        assert mle(r, k=5) == pytest.approx(expected["mle_k5"], rel=1e-6)
        assert mle(r, combine="mean") == pytest.approx(expected["mle_k20_mean"], rel=1e-6)

    def test_mada_of_r_ider_at_every_point(self, reference, name):
        clouds, outputs = reference
        r = nearest_distances(clouds[name], 20)
        found = [mada(row[None]) for row in r]
        np.testing.assert_allclose(found, outputs["ider"][name]["mada_local_k20"], rtol=1e-6)

    def test_mom_of_octave_at_every_point(self, reference, name):
        clouds, outputs = reference
        r = nearest_distances(clouds[name], 20)
        found = [mom(row[None], k=20) for row in r]
        np.testing.assert_allclose(found, outputs["matlab"][name]["mom_pw"], rtol=1e-6)


@pytest.mark.filterwarnings("default")
def test_estimates_are_those_of_scikit_dimension():
    skdim = pytest.importorskip("skdim", reason="scikit-dimension is not installed")
    # Of 700 it would keep int(700 * (1 - 0.8)) = 139, one less than a fifth, through rounding.
    X = hidden_states(n=702, d=60)
    r = nearest_distances(X, 100)
    expected = {
        "two_nn": skdim.id.TwoNN().fit(X).dimension_,
        "two_nn_authors": skdim.id.TwoNN(discard_fraction=0.8).fit(X).dimension_,
        "mada": skdim.id.MADA().fit(X).dimension_,
        "mada_median": skdim.id.MADA().fit(X, comb="median").dimension_,
        "mom": skdim.id.MOM().fit(X, n_neighbors=100).dimension_,
        "mle": skdim.id.MLE().fit(X).dimension_,
        "mle_mean": skdim.id.MLE().fit(X, comb="mean").dimension_,
    }
    found = {name: ESTIMATORS[name](r) for name in expected}
    # Its distances come from a float64 matrix product: off by about 1e-13 of the squared norms, which
    # the offset makes ten times as large as squared distances; a dimension magnifies by its size.
    assert found == pytest.approx(expected, rel=1e-8)


# --- what must not matter ---


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda X: X @ rotation(X.shape[1]), id="rotation"),
        pytest.param(lambda X: X + 1000, id="translation"),
        pytest.param(lambda X: X * 1e-7, id="scale"),
        pytest.param(lambda X: X[random_stream(0, "order").permutation(len(X))], id="permutation"),
    ],
)
def test_dimension_is_unchanged_by(change, name, distances):
    estimate = ESTIMATORS[name]
    X = hidden_states(n=500)
    # Distances are about 10; the change moves coordinates by an ulp of 1000, 1e-13.
    assert estimate(nearest_distances(change(X), 100)) == pytest.approx(
        estimate(distances), rel=1e-10
    )


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("share", [0.02, 0.08, 0.30])
def test_copies_do_not_count(name, share):
    X = embedded(ball(1500, 10), 50)
    stream = random_stream(0, "copies")
    copies = stream.choice(len(X), round(share * len(X)), replace=False)
    X[copies] = X[stream.integers(len(X), size=len(copies))]
    estimate = ESTIMATORS[name]
    unique = X[distinct_rows(X)]
    assert len(unique) < len(X)
    assert estimate(nearest_distances(X, 100)) == estimate(nearest_distances(unique, 100))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_tensor_of_distances_gives_what_the_array_gives(name, distances):
    assert ESTIMATORS[name](torch.from_numpy(distances)) == ESTIMATORS[name](distances)


# --- ties and absent neighbours ---


@pytest.mark.parametrize("estimator", [mada, mom, mle])
class TestTies:
    tied = np.array([[2.0, 2.0, 2.0, 2.0]])
    free = np.array([[1.0, 2.0, 3.0, 4.0]])

    def test_the_mean_leaves_them_out(self, estimator):
        some = np.vstack([self.tied, self.free])
        assert estimator(some, 4, "mean") == estimator(self.free, 4, "mean")

    def test_the_harmonic_mean_takes_them_as_infinite(self, estimator):
        some = np.vstack([self.tied, self.free])
        expected = 2 * estimator(self.free, 4, "harmonic")
        assert estimator(some, 4, "harmonic") == pytest.approx(expected, rel=1e-12)

    def test_the_median_ranks_them_highest(self, estimator):
        small, large = [[1.0, 2.0, 3.0, 9.0]], [[3.0, 3.5, 3.8, 4.0]]
        some = np.vstack([small, self.tied, large])
        assert estimator(some, 4, "median") == estimator(np.array(large), 4, "median")

    def test_the_median_is_undefined_if_half_are_tied(self, estimator):
        assert math.isnan(estimator(np.vstack([self.tied, self.free]), 4, "median"))

    @pytest.mark.parametrize("combine", ["mean", "median", "harmonic"])
    def test_nothing_but_ties_is_undefined(self, estimator, combine):
        assert math.isnan(estimator(np.tile(self.tied, (5, 1)), 4, combine))


def test_two_nn_of_nothing_but_ties_is_undefined():
    assert math.isnan(two_nn(np.ones((10, 2))))


def test_two_nn_is_undefined_where_no_ratio_is_kept():
    assert math.isnan(two_nn([[1.0, 2.0], [1.0, 3.0], [1.0, 4.0]], kept=0.2))


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("distinct", [1, 2])
def test_dimension_of_too_few_distinct_vectors_is_undefined(name, distinct):
    X = np.repeat(gaussian(distinct, 6), 150, axis=0)
    assert math.isnan(ESTIMATORS[name](nearest_distances(X, 100)))


def test_what_neighbours_there_are_still_count():
    few = gaussian(30, 6)
    r = nearest_distances(np.repeat(few, 5, axis=0), 100)
    assert mle(r) == mle(nearest_distances(few, 20))
    assert math.isnan(mom(r))


# --- bad input ---

NAN = np.array([[1.0, 2.0], [1.0, np.nan], [1.0, 2.0]])


@pytest.mark.parametrize(
    ("estimate", "message"),
    [
        (lambda: two_nn(R, kept=0), r"^kept must lie in \(0, 1\], but is 0"),
        (lambda: two_nn(R, kept=1.1), r"^kept must lie in \(0, 1\]"),
        (lambda: two_nn(R, kept=math.nan), r"^kept must lie in \(0, 1\]"),
        (lambda: two_nn(R, kept="most"), r"^kept must lie in \(0, 1\]"),
        (lambda: two_nn(R[:, :1]), "^k=2 neighbours are needed, but distances has 1 column"),
        (lambda: mada(R), "^k=20 neighbours are needed, but distances has 5 columns"),
        (lambda: mom(R), "^k=100 neighbours are needed"),
        (lambda: mle(R, k=1), "^k must be at least 2, not 1"),
        (lambda: mle(R, k=2.5), "^k must be a whole number, not 2.5"),
        (lambda: mle(R, k=5, combine="mode"), "^combine must be .* but is 'mode'"),
        (lambda: two_nn(R[0]), "^distances must have two dimensions"),
        (lambda: two_nn(R[:, ::-1]), "^distances must ascend"),
        (lambda: two_nn(R - 1), "^distances must be positive"),
        (lambda: two_nn(R - 7), "^distances must be positive"),
        (lambda: two_nn(np.where(R > 5, np.inf, R)), "^distances must be positive and finite"),
        (lambda: two_nn(NAN), "^distances holds NaN"),
        (lambda: two_nn(NAN[:, ::-1]), "^distances holds NaN"),
        (lambda: two_nn(NAN * [[1.0, np.nan]]), "^distances holds NaN in a column whose"),
    ],
)
def test_bad_input_is_refused_by_name_and_reason(estimate, message):
    with pytest.raises(ValueError, match=message):
        estimate()
