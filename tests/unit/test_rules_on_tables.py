"""Claims on fine-tunings and twins, judged on tables made by hand: verdicts follow the sentences of the claims."""

import numpy as np
import pandas as pd
import pytest

from made_claims import CLAIMS, make_curve
from shape_of_learning.claims.bounds import bound_repetitions
from shape_of_learning.claims.claim import EvidenceModel
from shape_of_learning.claims.evidence import Evidence
from shape_of_learning.claims.judgement import decide, judge

RUNS = 1000


def judge_directions(start_count, end_count, *costs, width=40):
    """Judge a fine-tuning of two seeds by its elongated directions and the costs of their removal, at both ends.

    Tables have 64 directions of a layer.
    """
    models, spectra, probes = {}, [], []
    for seed in (0, 1):
        name = f"e-{seed}"
        models[name] = EvidenceModel(
            name, "encoder", 2, "fine_tuning", "e", treatment="t", width=width
        )
        for step, number, cost in ((0, start_count, costs[0]), (9, end_count, costs[1])):
            row = {"model": name, "revision": f"s{step}", "step": step, "layer": 2, "sample": "x"}
            spectra += [row | {"median": 1.0, "place": p + 1, "eigenvalue": 20.0 if p < number else 1.0}
                        for p in range(min(width, 64))]  # fmt: skip
            probe = row | {"clusters": 1, "fitted_on": "training"}
            probes.append(probe | {"adjustment": "none", "directions": 0, "score": 0.9})
            probes += [probe | {"adjustment": "without_directions", "directions": d, "score": 0.9 - cost}
                       for d in (1, 2, 3, 4, 6, 8, 12)]  # fmt: skip
    tables = {
        "finetuning_spectra": pd.DataFrame(spectra),
        "finetuning_probes": pd.DataFrame(probes),
    }
    claim = CLAIMS["finetuning_puts_the_task_into_elongated_directions"]
    return judge(claim, Evidence(models, tables=tables)).verdict


def test_a_supported_claim_needs_twice_as_many_directions_and_a_cost_of_their_removal():
    assert judge_directions(8, 19, -0.01, 0.05) == "supported"
    assert judge_directions(2, 3, 0, 0.03) == "contradicted"
    assert judge_directions(20, 2, 0, 0.05) == "contradicted"
    assert judge_directions(8, 14, 0, 0.05) == "undecided"
    # Twice a small number is still small.
    assert judge_directions(0, 1, 0, 0.05) == "undecided"
    assert judge_directions(1, 3, 0, 0.05) == "undecided"
    assert judge_directions(0, 3, 0, 0.05) == "undecided"
    assert judge_directions(1, 5, 0, 0.05) == "supported"
    assert judge_directions(1, 8, 0, 0.05, width=768) == "undecided"
    assert judge_directions(1, 9, 0, 0.05, width=768) == "supported"
    # Removal that helps at both ends contradicts the paper; removal that hurts at both agrees with half of it.
    assert judge_directions(8, 19, -0.10, -0.05) == "contradicted"
    assert judge_directions(8, 19, 0.10, 0.15) == "undecided"


def make_finetuning_evidence(changes):
    """Make evidence on fine-tunings of some models from the changes of their seeds."""
    models, table = {}, []
    for origin, seed_changes in changes.items():
        for seed, change in enumerate(seed_changes):
            name = f"{origin}-{seed}"
            models[name] = EvidenceModel(
                name, "encoder", 2, kind="fine_tuning", origin=origin, treatment="t"
            )
            for step, value in ((0, 1), (9, 1 + change)):
                table.append({"model": name, "revision": f"s{step}", "step": step, "layer": 2,
                              "sample": "x", "estimator": "log_partition_isotropy", "value": value})  # fmt: skip
    return Evidence(models, tables={"finetuning_layers": pd.DataFrame(table)})


def test_a_fine_tuning_is_judged_by_the_interval_over_its_seeds():
    def find_verdict(**changes):
        return judge(
            CLAIMS["finetuning_does_not_raise_isotropy"], make_finetuning_evidence(changes)
        )

    assert find_verdict(a=[-1, -1.1, -0.9], b=[1, -1, 1]).verdict == "supported"
    assert find_verdict(a=[1, 1.1, 0.9], b=[1, 1.1, 1]).verdict == "contradicted"
    # A change of a hundredth is too small to matter.
    assert find_verdict(a=[0.01, 0.02, 0.015], b=[1, 1.1, 1]).verdict == "supported"
    assert find_verdict(a=[0.1, 0.12, 0.14], b=[1, 1.1, 1]).verdict == "undecided"
    # One model cannot refute "not necessarily".
    assert find_verdict(a=[1, 1.1, 0.9]).verdict == "undecided"
    # By chance all three seeds fall in one of eight fine-tunings.
    assert find_verdict(a=[-1, -0.1, -3], b=[1, 1.1, 0.9]).verdict == "undecided"
    assert "two seeds or more" in find_verdict(a=[-1], b=[1]).because
    assert "`change` of `a on t` is undefined" in find_verdict(a=[float("nan")] * 2).because
    one_undefined = find_verdict(a=[-1, -1.1, -0.9], b=[float("nan")] * 2)
    assert one_undefined.verdict == "supported"
    assert "`change` of `b on t` is undefined" in one_undefined.because


def test_few_verdicts_on_fine_tunings_are_false_by_chance():
    """Ten fine-tunings of three seeds have a true change at the limit of what matters, the least favourable truth."""
    changes = 0.1 + 0.1 + np.random.default_rng(0).normal(size=(10, RUNS, 3))
    clear = np.concatenate([changes[:1] - 0.2, changes[1:] + 100])
    for false, values in (("supported", changes), ("contradicted", clear)):
        units = {
            f"m{i}": {"change": bound_repetitions(seed_changes)}
            for i, seed_changes in enumerate(values)
        }
        is_verdict = decide(CLAIMS["finetuning_does_not_raise_isotropy"], units)
        assert 0 < is_verdict[false].sum() < 0.05 * RUNS


def test_a_twin_is_compared_with_its_original_at_the_same_step_and_layers():
    def find_verdict(last_step, values):
        curves = {}
        models = {f"d{i}": EvidenceModel(f"d{i}", "decoder", 8) for i in range(3)}
        for name in list(models):
            models[f"t{name}"] = EvidenceModel(
                f"t{name}", "decoder", 8, "twin", name, 0, "cosine 0.5"
            )
            curves[name, "linearity_increment"] = make_curve({9: [1, 2, 3]})
            curves[f"t{name}", "linearity_increment"] = make_curve({last_step: values})
        return judge(CLAIMS["cosine_term_lowers_linearity"], Evidence(models, curves))

    assert find_verdict(9, [0.9, 1.9, 2.9]).estimate == pytest.approx(-0.1)
    assert find_verdict(9, [0.9, 1.9, np.nan]).estimate == pytest.approx(-0.1)
    assert "0 of the 3 pairs needed" in find_verdict(8, [0.9, 1.9, 2.9]).because
