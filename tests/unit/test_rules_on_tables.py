"""Claims on fine-tunings and twins, on tables by hand: verdicts are what their sentences say."""

import numpy as np
import pandas as pd
import pytest

from made_claims import CLAIMS, make_curve
from shape_of_learning.claims.bounds import bound_repetitions
from shape_of_learning.claims.claim import EvidenceModel
from shape_of_learning.claims.evidence import Evidence
from shape_of_learning.claims.judgement import decide, judge

RUNS = 1000


def directions(before, after, *costs, width=40):
    """A fine-tuning of two seeds with so many elongated directions, and costs of their removal at both ends."""
    models, spectra, probes = {}, [], []
    for seed in (0, 1):
        name = f"e-{seed}"
        models[name] = EvidenceModel(name, "encoder", 2, "fine_tuning", "e", treatment="t")
        for step, number, cost in ((0, before, costs[0]), (9, after, costs[1])):
            row = {"model": name, "revision": f"s{step}", "step": step, "layer": 2, "sample": "x"}
            spectra += [row | {"median": 1.0, "place": p + 1, "eigenvalue": 20.0 if p < number else 1.0}
                        for p in range(width)]  # fmt: skip
            of = row | {"clusters": 1, "fitted_on": "training"}
            probes.append(of | {"adjustment": "none", "directions": 0, "score": 0.9})
            probes += [of | {"adjustment": "without_directions", "directions": d, "score": 0.9 - cost}
                       for d in (1, 2, 3, 4, 6, 8, 12)]  # fmt: skip
    tables = {
        "finetuning_spectra": pd.DataFrame(spectra),
        "finetuning_probes": pd.DataFrame(probes),
    }
    claim = CLAIMS["finetuning_puts_the_task_into_elongated_directions"]
    return judge(claim, Evidence(models, tables=tables)).verdict


def test_far_more_directions_are_twice_as_many_and_removal_no_longer_helps():
    assert directions(8, 19, -0.01, 0.05) == "supported"
    assert directions(2, 3, 0, 0.03) == "contradicted"
    assert directions(20, 2, 0, 0.05) == "contradicted"
    assert directions(8, 14, 0, 0.05) == "undecided"
    # Twice as many of few are few.
    assert directions(0, 1, 0, 0.05) == "undecided"
    assert directions(1, 3, 0, 0.05) == "undecided"
    assert directions(0, 3, 0, 0.05) == "undecided"
    assert directions(1, 5, 0, 0.05) == "supported"
    assert directions(1, 8, 0, 0.05, width=768) == "undecided"
    assert directions(1, 9, 0, 0.05, width=768) == "supported"
    # It helps at both ends, or hurts at both: the former is not what the paper says, the latter half of it.
    assert directions(8, 19, -0.10, -0.05) == "contradicted"
    assert directions(8, 19, 0.10, 0.15) == "undecided"


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
    assert verdict(a=[1, 1.1, 0.9], b=[1, 1.1, 1]).verdict == "contradicted"
    assert (
        verdict(a=[0.01, 0.02, 0.015], b=[1, 1.1, 1]).verdict == "supported"
    )  # a hundredth is none
    assert verdict(a=[0.1, 0.12, 0.14], b=[1, 1.1, 1]).verdict == "undecided"
    assert verdict(a=[1, 1.1, 0.9]).verdict == "undecided"  # one refutes no "not necessarily"
    # All seeds fall by chance in one of eight fine-tunings with three.
    assert verdict(a=[-1, -0.1, -3], b=[1, 1.1, 0.9]).verdict == "undecided"
    assert "two seeds or more" in verdict(a=[-1], b=[1]).because
    assert "`change` of `a on t` is undefined" in verdict(a=[float("nan")] * 2).because
    one_undefined = verdict(a=[-1, -1.1, -0.9], b=[float("nan")] * 2)
    assert one_undefined.verdict == "supported"
    assert "`change` of `b on t` is undefined" in one_undefined.because


def test_chance_makes_few_verdicts_on_fine_tunings_false():
    """Ten of three seeds each, whose true change is a hair above what matters, or of one of them a hair below."""
    changes = 0.1 + 0.1 + np.random.default_rng(0).normal(size=(10, RUNS, 3))
    clear = np.concatenate([changes[:1] - 0.2, changes[1:] + 100])
    for false, values in (("supported", changes), ("contradicted", clear)):
        units = {f"m{i}": {"change": bound_repetitions(of)} for i, of in enumerate(values)}
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
            curves[name, "linearity_increment"] = make_curve({9: [1, 2, 3]})
            curves[f"t{name}", "linearity_increment"] = make_curve({last_step: values})
        return judge(CLAIMS["cosine_term_lowers_linearity"], Evidence(known, curves))

    assert verdict(9, [0.9, 1.9, 2.9]).estimate == pytest.approx(-0.1)
    assert verdict(9, [0.9, 1.9, np.nan]).estimate == pytest.approx(-0.1)
    assert "0 of the 3 pairs needed" in verdict(8, [0.9, 1.9, 2.9]).because
