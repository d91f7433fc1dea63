"""Phases of a training, as the claims of this paper judge them."""

from dataclasses import replace

import pytest

from made_claims import CLAIMS, make_curve
from shape_of_learning.claims.claim import EvidenceModel
from shape_of_learning.claims.evidence import Evidence
from shape_of_learning.claims.judgement import judge
from shape_of_learning.claims.page import describe_finding

STEPS = (1, 4, 16, 64, 256, 1000)
MODEL = EvidenceModel("d", "decoder", 2, last_step=1000)
THREE_PHASES = [30, 20, 13, 20, 30, 22]


def judge_curve(claim, last_layer, spread=0.01):
    """Judge a decoder whose first layer rises throughout, so that it shows no phase."""
    return judge_evidence(claim, last_layer, spread).verdict


def judge_evidence(claim, last_layer, spread=0.01):
    values_by_step = {step: [step, value] for step, value in zip(STEPS, last_layer, strict=True)}
    (name,) = CLAIMS[claim].estimators
    return judge(
        CLAIMS[claim], Evidence({"d": MODEL}, {("d", name): make_curve(values_by_step, spread)})
    )


@pytest.mark.parametrize(
    ("last_layer", "verdicts"),
    [
        (THREE_PHASES, ["supported"] * 4),
        # A collapse alone, growth alone, and a training that ends while the rank grows.
        ([30, 20, 15, 13, 12, 11], ["supported", "contradicted", "contradicted", "contradicted"]),
        ([11, 12, 13, 15, 20, 30], ["contradicted", "supported", "contradicted", "contradicted"]),
        ([30, 20, 13, 20, 25, 30], ["supported", "supported", "contradicted", "contradicted"]),
        # A dip near the end is no initial collapse.
        ([30, 30, 30, 30, 13, 30], ["contradicted", "supported", "contradicted", "contradicted"]),
        # A rise and a fall without a collapse before them.
        ([10, 14, 19, 24, 20, 14], ["contradicted", "supported", "supported", "contradicted"]),
        # A rise between the first two steps only.
        ([10, 50, 50, 50, 50, 50], ["contradicted", "supported", "contradicted", "contradicted"]),
    ],
)
def test_each_phase_and_their_order_are_judged(last_layer, verdicts):
    claims = (
        "representations_collapse_at_first",
        "dimensions_expand_then",
        "variance_is_compressed_at_last",
        "phases_come_in_this_order",
    )
    assert [judge_curve(claim, last_layer) for claim in claims] == verdicts


def test_the_beginning_is_a_tenth_of_the_training_and_not_of_the_measured_steps():
    values = {500: 100, 5000: 99, 14_000: 60, 40_000: 90, 80_000: 95, 125_000: 92}
    curve = make_curve({step: [1, value] for step, value in values.items()}, 1e-3)
    claim = CLAIMS["representations_collapse_at_first"]
    (name,) = claim.estimators
    verdicts = [
        judge(claim, Evidence({"d": replace(MODEL, last_step=last)}, {("d", name): curve})).verdict
        for last in (143_000, 130_000)
    ]
    assert verdicts == ["supported", "contradicted"]


def test_the_sentence_describes_the_last_layer():
    judgement = judge_evidence("dimensions_expand_then", THREE_PHASES)
    sentence = describe_finding(CLAIMS["dimensions_expand_then"], judgement)
    assert "layer 2, is 30 at step 1, 13 (lowest) at step 16 and 22 at step 1,000" in sentence


def test_phases_within_the_noise_are_undecided():
    assert judge_curve("phases_come_in_this_order", THREE_PHASES, spread=6) == "undecided"


def test_the_exponent_of_the_spectrum_mirrors_the_phases():
    inverse_values = [1 / value for value in THREE_PHASES]
    assert (
        judge_curve("decay_of_eigenvalues_mirrors_it", inverse_values, spread=1e-5) == "supported"
    )
    assert judge_curve("decay_of_eigenvalues_mirrors_it", THREE_PHASES) == "contradicted"
