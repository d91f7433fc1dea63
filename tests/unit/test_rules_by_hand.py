"""Claims of the papers as they are written, on numbers by hand: verdicts are what their sentences say."""

import numpy as np
import pandas as pd
import pytest

from made_claims import CLAIMS, curve
from shape_of_learning.claims.claim import EvidenceModel
from shape_of_learning.claims.evidence import Evidence
from shape_of_learning.claims.judging import decide, judge
from shape_of_learning.claims.rules import replicated

RUNS = 1000


def evidence(claim, values, spread=1e-4):
    """Of each model values by step, the same in two layers, or by layer if a claim is on the last step."""
    curves, known = {}, {}
    for model, of in values.items():
        steps = {0: of}
        if claim.checkpoints == "training":
            numbers = (0, 1, 9, 11, 40, 60, 100)
            steps = {step: [value] * 2 for step, value in zip(numbers, of, strict=True)}
        curves |= {(model, estimator): curve(steps, spread) for estimator in claim.estimators}
        role = "encoder" if model == "e" else "decoder"
        known[model] = EvidenceModel(model, role, 8, warmup_steps=10)
    return Evidence(known, curves)


PEAK, RISING, LATE = [0, 1, 2, 2, 1, 0], [0, 1, 2, 3, 4, 5], [0, 0, 0, 0, 1, 0]
EARLY_TOP, LATER_TOP = [1, 5, 3, 3, 3, 3, 3], [1, 2, 4, 2, 2, 2, 2]
TINY, BLOOM = "tinyllama-1.1b", "bloom-1b1"


@pytest.mark.parametrize(
    ("claim", "values", "verdict"),
    [
        ("decoders_peak_in_the_middle", {"d": PEAK}, "supported"),
        ("decoders_peak_in_the_middle", {"d": RISING}, "contradicted"),
        ("decoders_peak_in_the_middle", {"d": LATE}, "contradicted"),
        ("decoders_peak_in_the_middle", {"d": [1] * 6}, "undecided"),
        ("encoders_are_flatter", {"d": PEAK, "e": [1, 1.1, 1, 1.1, 1, 1]}, "supported"),
        ("encoders_are_flatter", {"d": [1] * 6, "e": PEAK}, "contradicted"),
        ("encoders_are_flatter", {"d": PEAK, "e": PEAK[::-1]}, "undecided"),
        ("anisotropy_grows_then_settles", {"d": [1, 2, 4, 4, 4, 4, 4.1]}, "supported"),
        ("anisotropy_grows_then_settles", {"d": [1, 1.1, 1.2, 1.3, 2, 3, 6]}, "contradicted"),
        ("anisotropy_grows_then_settles", {"d": [4, 3, 2, 1, 1, 1, 1]}, "contradicted"),
        # It may have settled at a step between 40 and 60, or gone on at one: 50 is not measured.
        ("anisotropy_grows_then_settles", {"d": [1, 2, 3, 3, 3, 4, 4]}, "undecided"),
        ("dimension_rises_then_falls", {"d": [1, 2, 3, 3, 2, 2, 2]}, "supported"),
        ("dimension_rises_then_falls", {"d": [1, 2, 3, 4, 5, 6, 7]}, "contradicted"),
        ("dimension_rises_then_falls", {"d": [3, 2, 1, 1, 1, 2, 3]}, "contradicted"),
        ("dimension_does_not_follow_the_warm_up", {"d": [1, 3, 2, 2, 1, 1, 1]}, "supported"),
        ("dimension_does_not_follow_the_warm_up", {"d": [1, 2, 3, 3, 2, 1, 1]}, "contradicted"),
        # Nothing rises and falls.
        ("dimension_does_not_follow_the_warm_up", {"d": [1, 2, 3, 4, 5, 6, 7]}, "undecided"),
        ("tinyllama_is_above_bloom", {TINY: EARLY_TOP, BLOOM: LATER_TOP}, "supported"),
        ("tinyllama_is_above_bloom", {TINY: [*EARLY_TOP[:-1], 1], BLOOM: LATER_TOP}, "contradicted"),
        ("tinyllama_is_above_bloom", {TINY: LATER_TOP, BLOOM: [1, 5, 1, 1, 1, 1, 1]}, "contradicted"),
    ],
)  # fmt: skip
def test_verdicts_on_profiles_and_curves_are_what_their_sentences_say(claim, values, verdict):
    assert judge(CLAIMS[claim], evidence(CLAIMS[claim], values)).verdict == verdict


@pytest.mark.parametrize("layers", [4, 5, 7, 12, 13, 25])
@pytest.mark.parametrize("spread", [0, 1e-3])
def test_rounding_makes_no_profile_of_layers_of_one_height(layers, spread):
    for claim in map(CLAIMS.get, ("decoders_peak_in_the_middle", "encoders_are_flatter")):
        of = evidence(claim, dict.fromkeys("de", [0.1] * layers), spread)
        assert judge(claim, of).verdict == "undecided"


def fine_tuned(changes):
    """Evidence on the fine-tunings of some models, the changes of whose seeds are given."""
    models, table = {}, []
    for origin, of in changes.items():
        for seed, change in enumerate(of):
            name = f"{origin}-{seed}"
            models[name] = EvidenceModel(
                name, "encoder", 2, kind="fine_tuning", origin=origin, treatment="t"
            )
            for step, value in ((0, 1), (9, 1 + change)):
                table.append({"model": name, "revision": f"s{step}", "step": step, "layer": 2,
                              "sample": "x", "estimator": "log_partition_isotropy", "value": value})  # fmt: skip
    return Evidence(models, tables={"finetuning_layers": pd.DataFrame(table)})


def test_a_fine_tuning_is_judged_by_the_interval_over_its_seeds():
    def verdict(**changes):
        return judge(CLAIMS["finetuning_does_not_raise_isotropy"], fine_tuned(changes))

    assert verdict(a=[-1, -1.1, -0.9], b=[1, -1, 1]).verdict == "supported"
    # All seeds fall by chance in one of eight fine-tunings with three.
    assert verdict(a=[-1, -0.1, -3], b=[1, 1.1, 0.9]).verdict == "undecided"
    assert "two seeds or more" in verdict(a=[-1], b=[1]).because
    assert "`change` of `a on t` is undefined" in verdict(a=[float("nan")] * 2).because


def test_chance_makes_few_verdicts_on_fine_tunings_false():
    """Ten of three seeds each, whose true change is a hair above none, or of one of them a hair below."""
    changes = 0.1 + np.random.default_rng(0).normal(size=(10, RUNS, 3))
    clear = np.concatenate([changes[:1] - 0.2, changes[1:] + 100])
    for false, values in (("supported", changes), ("contradicted", clear)):
        units = {f"m{i}": {"change": replicated(of)} for i, of in enumerate(values)}
        shown = decide(CLAIMS["finetuning_does_not_raise_isotropy"], units)
        assert 0 < shown[false].sum() < 0.05 * RUNS


def test_a_twin_is_compared_with_its_original_at_the_same_step_and_layers():
    def verdict(last_step, values):
        curves = {}
        known = {f"d{i}": EvidenceModel(f"d{i}", "decoder", 8) for i in range(3)}
        for name in list(known):
            known[f"t{name}"] = EvidenceModel(
                f"t{name}", "decoder", 8, "twin", name, 0, "cosine 0.5"
            )
            curves[name, "linearity_increment_adjusted"] = curve({9: [1, 2, 3]})
            curves[f"t{name}", "linearity_increment_adjusted"] = curve({last_step: values})
        return judge(CLAIMS["cosine_term_lowers_linearity"], Evidence(known, curves))

    assert verdict(9, [0.9, 1.9, 2.9]).estimate == pytest.approx(-0.1)
    assert verdict(9, [0.9, 1.9, np.nan]).estimate == pytest.approx(-0.1)
    assert "0 of 3 needed pairs" in verdict(8, [0.9, 1.9, 2.9]).because
