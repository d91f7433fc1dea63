"""Null models have their stated properties, and claims say whether they hold beyond them."""

import csv
from dataclasses import replace

import numpy as np
import pytest
import torch

import measure_controls
from made_claims import CLAIMS, make_curve
from shape_of_learning.checkpoints.shapes import Shape
from shape_of_learning.claims.claim import EvidenceModel
from shape_of_learning.claims.evidence import Evidence
from shape_of_learning.claims.judgement import judge
from shape_of_learning.embeddings.controls import GaussianStates, initialise_weights, shuffle_tokens
from shape_of_learning.embeddings.model import load_model
from shape_of_learning.embeddings.protocol import (
    ControlsJob,
    ForwardFiles,
    SamplingProtocol,
    Weights,
)
from shape_of_learning.embeddings.tokenised_windows import TokenisedWindow
from shape_of_learning.estimators.massive import find_massive
from shape_of_learning.metrics.measure import measure_layer
from shape_of_learning.metrics.protocol import MeasuringProtocol, Selection
from shape_of_learning.metrics.registry import MEASURES
from shape_of_learning.metrics.selections import average_windows
from shape_of_learning.metrics.tidy import CONTROL_COLUMNS
from tiny_models import TEXT, save_tiny_model

RANDOM = np.random.default_rng(0)
WINDOWS = [
    TokenisedWindow(
        np.array([1, *RANDOM.integers(5, 50, length), 2]), np.array([True, *[False] * length, True])
    )
    for length in (3, 9, 30)
]


@pytest.mark.parametrize("within", [True, False])
def test_a_shuffle_keeps_tokens_their_number_and_special_tokens(within):
    shuffled_windows = shuffle_tokens(WINDOWS, 7, within_windows=within)
    assert [len(window.ids) for window in shuffled_windows] == [5, 11, 32]
    for original, shuffle in zip(WINDOWS, shuffled_windows, strict=True):
        assert (shuffle.ids[[0, -1]] == [1, 2]).all()
        assert (sorted(original.ids) == sorted(shuffle.ids)) == within
    together = [
        np.sort(np.concatenate([w.ids for w in windows])) for windows in (WINDOWS, shuffled_windows)
    ]
    assert (together[0] == together[1]).all()
    assert any((a.ids != b.ids).any() for a, b in zip(WINDOWS, shuffled_windows, strict=True))
    again, other = (shuffle_tokens(WINDOWS, seed, within_windows=within) for seed in (7, 8))
    assert all((a.ids == b.ids).all() for a, b in zip(shuffled_windows, again, strict=True))
    assert any((a.ids != b.ids).any() for a, b in zip(shuffled_windows, other, strict=True))


def test_untrained_weights_depend_on_the_seed_and_have_the_range_of_the_model(tmp_path):
    folder = save_tiny_model(tmp_path / "m", "gpt_neox", head=True)
    cpu = torch.device("cpu")
    model, _ = load_model(folder, role="decoder", precision="float32", device=cpu)
    first, again, other = (initialise_weights(model, seed, "m") for seed in (1, 1, 2))
    weights = [network.embed_in.weight for network in (first, again, other, model)]
    assert (weights[0] == weights[1]).all()
    assert not any(torch.allclose(weights[0], weight) for weight in weights[2:])
    assert float(weights[0].detach().std()) == pytest.approx(
        model.config.initializer_range, rel=0.05
    )


class Cloud:
    """States of one layer: elongated, away from the origin, some coordinates without variance."""

    layers = 0

    def __init__(self, random, n=2000):
        scales = np.array([5, 3, 2, 1, 1, 1, 0, 0])
        self.vectors = (random.normal(size=(n, 8)) * scales + 10).astype(np.float32)
        windows = np.repeat(np.arange(20), n // 20)
        nothing = np.zeros(n, np.int64)
        self.rows = {"windows": windows, "positions": nothing, "special": nothing.astype(bool)}
        self.rows |= {"token_ids": np.arange(n)}

    def __getitem__(self, state):
        return self.vectors

    @property
    def massive(self):
        return find_massive(self.vectors)


def test_a_gaussian_has_the_mean_and_the_covariance_of_the_state():
    states, protocol = Cloud(np.random.default_rng(1)), MeasuringProtocol("m", 20, 3, 1000, 30)
    vectors = GaussianStates(states, protocol)[0].astype(float)
    n = len(vectors)
    covariance = np.cov(states.vectors.T.astype(float))
    # Five standard errors of a mean and of a covariance of normal vectors.
    sd = np.sqrt(np.diag(covariance))
    assert (abs(vectors.mean(0) - states.vectors.mean(0)) < 5 * sd / np.sqrt(n) + 1e-4).all()
    error = np.sqrt((np.outer(sd**2, sd**2) + covariance**2) / n)
    assert (abs(np.cov(vectors.T) - covariance) < 5 * error + 1e-4).all()
    assert (vectors == GaussianStates(states, protocol)[0]).all()
    # A Gaussian cloud has the dimension of its control.
    values = []
    for cloud in (states, GaussianStates(states, protocol)):
        measure = MEASURES["two_nn"].configure("two_nn", {})
        rows = measure_layer(cloud, 0, "dimension", [measure], protocol)
        values.append(next(row.value for row in rows if row.batch is None))
    assert values[0] == pytest.approx(values[1], rel=0.15)


def test_a_gaussian_has_the_moments_of_the_selected_rows():
    states = Cloud(np.random.default_rng(1))
    states.rows["positions"] = np.arange(2000) % 100
    states.vectors[::100] = 1000
    for selection in (Selection(first_token="drop"), Selection(massive_tokens="drop")):
        protocol = MeasuringProtocol("m", 20, 3, 1000, 30, selection)
        assert abs(GaussianStates(states, protocol)[0]).max() < 100
    states.vectors[1] = np.nan
    assert np.isnan(GaussianStates(states, protocol)[0]).any()


def test_a_gaussian_of_means_has_the_covariance_of_means():
    """The mean of 100 independent tokens has a hundredth of their variance."""
    states = Cloud(np.random.default_rng(1))
    protocol = MeasuringProtocol("m", 20, 3, 10, 5, Selection(sequence="mean"))
    gaussian_means = average_windows(GaussianStates(states, protocol)[0], states.rows["windows"])
    means = average_windows(states.vectors, states.rows["windows"])
    assert gaussian_means.var(0).sum() == pytest.approx(means.var(0).sum(), rel=0.5)
    assert gaussian_means.var(0).sum() < states.vectors.var(0).sum() / 10


def test_a_job_measures_every_control_and_threads_change_no_digit(tmp_path):
    folder, text = save_tiny_model(tmp_path / "m", "gpt_neox", head=True), tmp_path / "text.txt"
    text.write_text(" ".join(TEXT) * 60, encoding="utf-8")
    measures = [MEASURES[n].configure(n, {}) for n in ("anisotropy", "two_nn", "linearity")]
    job = ControlsJob(
        Weights("m", "step8", Shape("decoder", 3, 32, 32), is_download=False),
        step=8,
        tokens=None,
        sampling=SamplingProtocol(20, 60, 0),
        measures=tuple(measures),
        protocol=MeasuringProtocol("m", 20, 0, 100, 10),
        kinds=(
            "shuffled_within_windows",
            "shuffled_unigram",
            "untrained",
            "gaussian",
            "gaussian_without_massive_tokens",
        ),
    )
    files = []
    for threads in (1, 2):
        files.append(tmp_path / f"{threads}.csv")
        measure_controls.main(job, ForwardFiles(folder, folder, text), files[-1], threads)
    assert files[0].read_bytes() == files[1].read_bytes()
    with files[0].open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [*rows[0]] == [*CONTROL_COLUMNS]
    values = {(r["control"], r["estimator"], r["layer"]): float(r["value"]) for r in rows}
    assert len(values) == len(rows) == 3 * (4 + 4 + 3) + 2 * 4
    assert {name for control, name, _ in values if control.startswith("gaussian")} == {"two_nn"}
    # Layer 0 has the same tokens in other batches.
    both = [values[f"shuffled_{kind}", "anisotropy", "0"] for kind in ("within_windows", "unigram")]
    assert both[0] == pytest.approx(both[1], rel=0.02)
    assert both[0] != pytest.approx(values["untrained", "anisotropy", "0"], rel=0.02)


def compare_with_control(control, claim="decoders_peak_in_the_middle"):
    """Compare a model with a bell with a control, given the control's values."""
    bell = make_curve({0: [0.1, 0.2, 0.9, 0.2, 0.1]}, 1e-4)
    models = {"d": EvidenceModel("d", "decoder", 6)}
    curves = {("d", "anisotropy"): bell}
    null = {("d", "anisotropy", "untrained"): make_curve({0: control}, 1e-4)}
    return judge(CLAIMS[claim], Evidence(models, curves, controls=null)).control_comparisons


def test_a_claim_holds_beyond_a_control_with_a_smaller_effect():
    assert compare_with_control([0.1, 0.1, 0.1, 0.1, 0.1]) == {"untrained": "yes"}
    assert compare_with_control([0.1, 0.2, 0.9, 0.2, 0.1]) == {"untrained": "no"}
    assert compare_with_control([0.1, 0.2, 0.95, 0.2, 0.1]) == {"untrained": "no"}


def test_untrained_weights_are_no_null_model_of_a_training():
    """Untrained weights give a flat curve, which supports no claim on a training."""
    claim = CLAIMS["anisotropy_grows_then_settles"]
    steps = dict(zip((0, 1, 9, 40, 60, 100), (0.1, 0.3, 0.6, 0.6, 0.6, 0.6), strict=True))
    curves = {("d", "anisotropy"): make_curve({step: [v, v] for step, v in steps.items()}, 1e-4)}
    models = {"d": EvidenceModel("d", "decoder", 40)}
    null = make_curve({100: [0.2, 0.2]}, 1e-4)
    evidence = Evidence(models, curves, controls={("d", "anisotropy", "untrained"): null})
    assert judge(claim, evidence).control_comparisons == {}
    same = replace(evidence, controls={("d", "anisotropy", "shuffled"): curves["d", "anisotropy"]})
    assert judge(claim, same).control_comparisons == {"shuffled": "no"}
