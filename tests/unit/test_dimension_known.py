"""Estimates against what is known: the exact model, manifolds, other implementations."""

import importlib.util
import json
import math
from pathlib import Path

import numpy as np
import pytest

from clouds import embedded, hidden_states, sphere
from shape_of_learning import gride, mada, mle, mom, nearest_distances, two_nn
from shape_of_learning.random_streams import random_stream

N = 4096


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


@pytest.mark.parametrize(
    ("n1", "relative_sd"), [(1, 0.015625), (2, 0.0112626), (8, 0.0056425), (64, 0.0019928)]
)
def test_gride_has_the_mean_and_spread_of_its_exact_model(n1, relative_sd):
    # mu^-d, with mu = r_{2 n1} / r_{n1}, follows a Beta(n1, n1) law.
    d, repetitions, stream = 7.0, 400, random_stream(0, "exact model")
    ratios = stream.beta(n1, n1, (repetitions, N)) ** (-1 / d)
    found = np.array([gride(np.repeat([np.ones(N), mu], n1, axis=0).T, n1) / d for mu in ratios])
    # Known: the spread from the information of one ratio, the mean to 1 / N, of which the middle is taken.
    error = 4 * relative_sd / math.sqrt(repetitions)
    assert abs(found.mean() - 1 - 0.5 / N) < 0.5 / N + error
    assert abs(found.std(ddof=1) / relative_sd - 1) < 4 / math.sqrt(2 * repetitions)


# DADApy 0.3.4 (with NumPy 1.26), for n1 = 1, 2, 4, ..., 64:
#     dadapy.Data(cloud).return_id_scaling_gride(range_max=128)[0]
GRIDE_OF_DADAPY = {
    "ball of 5": [
        *(4.484364433766605, 4.607834633456574, 4.485411355708871, 4.430020477105601),
        *(4.381652462183994, 4.257228356300883, 4.07503727926445),
    ],
    "gaussian of 20": [
        *(15.934241856326086, 15.664709398315548, 14.765362646379014, 14.151167314902267),
        *(13.529720771318448, 12.30769289783193, 11.029004870757547),
    ],
}


@pytest.mark.parametrize("name", GRIDE_OF_DADAPY)
def test_gride_is_that_of_dadapy_but_for_one_vector_in_its_count(name):
    """It takes m - 1 for m in the likelihood, and solves it to 1e-7 in d."""
    m = 1000
    if name == "gaussian of 20":
        X = np.random.default_rng(2).standard_normal((m, 20))
    else:
        stream = np.random.default_rng(1)
        X = stream.standard_normal((m, 5))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        X *= stream.random((m, 1)) ** (1 / 5)
    r = nearest_distances(X, 128)
    found = np.array([gride(r, 2**i) for i in range(7)])
    larger = found / GRIDE_OF_DADAPY[name] - 1
    assert larger[0] == pytest.approx(1 / (m - 1), rel=1e-3)
    assert (np.abs(larger - 0.5 / m) < 0.51 / m).all()
    # The term shrinks against the others, whose information grows with n1.
    assert (np.diff(larger) < 0).all()


@pytest.mark.parametrize("d", [1, 2, 4])
def test_estimates_are_the_dimension_of_a_sphere(d):
    # No boundary, and curvature changes volumes by O(r^2): only the spread of the exact model is left.
    r = nearest_distances(embedded(sphere(N, d), 30), 20)
    assert two_nn(r[:, :2]) == pytest.approx(d, rel=4 * 0.017)
    # At least N / k neighbourhoods do not overlap, with deviations of 1 / sqrt(k - 1).
    assert mle(r) == pytest.approx(d, rel=4 * math.sqrt(20 / 19 / N))


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


@pytest.mark.parametrize("name", ["ball5_in10", "sphere4_in5"])
def test_estimates_are_those_of_dadapy_r_and_octave(reference, name):
    clouds, outputs = reference
    r = nearest_distances(clouds[name], 20)
    of_r = outputs["intrinsicDimension"][name]
    found = [two_nn(r), mle(r), mle(r, k=5), mle(r, combine="mean")]
    expected = [outputs["dadapy"][name]["twonn_base_mu0.9"]]
    expected += [of_r["mle_k20"], of_r["mle_k5"], of_r["mle_k20_mean"]]
    assert found == pytest.approx(expected, rel=1e-6)
    of_points = {
        mada: outputs["ider"][name]["mada_local_k20"],
        mom: outputs["matlab"][name]["mom_pw"],
    }
    for estimator, expected in of_points.items():
        found = [estimator(row[None], k=20) for row in r]
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_estimates_are_those_of_scikit_dimension():
    skdim = pytest.importorskip("skdim", reason="scikit-dimension is not installed")
    # Of 700 it would keep int(700 * (1 - 0.8)) = 139, one less than a fifth, through rounding.
    X = hidden_states(n=702, d=60)
    r = nearest_distances(X, 100)
    pairs = [
        (two_nn(r), skdim.id.TwoNN().fit(X)),
        (two_nn(r, kept=0.2), skdim.id.TwoNN(discard_fraction=0.8).fit(X)),
        (mada(r), skdim.id.MADA().fit(X)),
        (mada(r, combine="median"), skdim.id.MADA().fit(X, comb="median")),
        (mom(r), skdim.id.MOM().fit(X, n_neighbors=100)),
        (mom(r, combine="median"), skdim.id.MOM().fit(X, n_neighbors=100, comb="median")),
        (mle(r), skdim.id.MLE().fit(X)),
        (mle(r, combine="mean"), skdim.id.MLE().fit(X, comb="mean")),
    ]
    found, expected = zip(*((ours, theirs.dimension_) for ours, theirs in pairs), strict=True)
    # Its distances come from a float64 matrix product: off by about 1e-13 of the squared norms, which
    # the offset makes ten times as large as squared distances; a dimension magnifies by its size.
    assert found == pytest.approx(expected, rel=1e-8)
