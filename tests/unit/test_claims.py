"""Claims are judged correctly on numbers made by hand."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import judge_claims
from made_claims import (
    CLAIM,
    CLAIMS,
    judge_decoder,
    judge_models,
    make_curve,
    read_conditions,
    read_numbers,
)
from shape_of_learning.claims import bounds, evidence
from shape_of_learning.claims.claim import Claim, ClaimsJob, EvidenceModel, read_condition
from shape_of_learning.claims.criteria import find_needed_weight, is_shown
from shape_of_learning.claims.evidence import VALUES, Evidence, read_evidence
from shape_of_learning.claims.judgement import judge
from shape_of_learning.claims.page import describe_finding, tabulate_criteria, write_page
from shape_of_learning.errors import InputError
from shape_of_learning.files import write_table
from shape_of_learning.metrics.tidy import GROUPS, JACKKNIFE_COLUMNS, TIDY_COLUMNS

SIGNS = read_conditions({"above": 0}, {"below": 0})
TRAINING = {
    "statistic": "change_over_training",
    "paper": "linear",
    "checkpoints": "training",
    "arguments": {"back": 0.5},
    **read_conditions({"number": "linearity", "above": 0}, {"number": "linearity", "below": 0}),
}


def test_constants_that_decide_verdicts_keep_their_values():
    assert [find_needed_weight(rule, "abcd")[0] for rule in ("all", "any", 3, 0.75)] == [4, 1, 3, 3]
    assert pytest.approx(0.025) == bounds.TAIL
    assert GROUPS == 16
    assert evidence.MAX_SHARE_LEFT_OUT == 0.25


@pytest.mark.parametrize(
    ("values", "families", "share", "value"),
    [
        ([5, 4, 3, 2, 1], "vwxyz", "most", 3),
        ([4, 3, 2, 1], "wxyz", "most", 2),
        ([4, 3, 2, 1], "wxyz", 0.5, 3),
        ([4, 3, 2, 1], "wxyz", 0.75, 2),
        # Three members of one family count as much as the only one of another.
        ([4, 3, 2, 1], "aaab", 0.5, 2),
        ([4, 3, 2, 1], "abbb", 0.5, 4),
        ([4, 3, 2, 1], "abbb", "most", 3),
        ([4, 3, 2, 1], "abbb", 0.75, 2),
        ([4, 3, 2, 1], "aaaa", 0.75, 2),
    ],
)
def test_families_count_once_and_their_members_equally(values, families, share, value):
    names = [f"m{number}" for number in range(len(values))]
    weight, weights = find_needed_weight(share, names, dict(zip(names, families, strict=True)))
    assert bounds.bound_exactly(values).weighted_largest(weight, weights).estimate == value


def test_a_weighted_number_errs_as_rarely_as_a_single_number():
    """Of ten models of three families, most hardly miss a bound and one clearly meets it."""
    names, families = [*"abcdefghij"], dict(zip("abcdefghij", "pppppptttu", strict=True))
    weight, weights = find_needed_weight("most", names, families)
    truth = np.array([9, *[-0.01] * 8, 9])  # p has a sixth, u one: less than one and a half
    draws = truth + np.random.default_rng(0).normal(size=(4000, 10))
    models = bounds.bound_by_error(draws, np.ones_like(draws), degrees=10**9)
    low, _ = models.weighted_largest(weight, weights).bounds(0.025, 0.5)
    assert 0 < np.mean(low > 0) < 0.03


def test_bounds_of_the_kth_largest_share_the_errors():
    values = bounds.bound_by_error(np.array([1.0, 2.0, 4.0]), np.array([0.1, 0.3, 0.2]), degrees=15)
    for rank, below, above in ((1, 0.01 / 3, 0.02), (2, 0.01 / 2, 0.02 / 2), (3, 0.01, 0.02 / 3)):
        (low, _), (_, high) = values.bounds(below, 0.5), values.bounds(0.5, above)
        ends = values.kth_largest(rank).bounds(0.01, 0.02)
        assert ends == (pytest.approx(sorted(low)[-rank]), pytest.approx(sorted(high)[-rank]))


def test_a_condition_names_numbers_of_its_statistic_and_by_default_holds_in_all_units():
    growing = TRAINING | {
        "statistic": "growth_then_settling",
        "paper": "shape_of_learning",
        "arguments": {"share": 0.25},
    }
    with pytest.raises(InputError, match="`growth`"):
        judge_decoder([make_curve({1: [1], 2: [2], 3: [2]})], growing | SIGNS)
    # In all, if nothing is said.
    assert judge_models({"a": 1, "b": -1}, SIGNS).verdict == "undecided"
    assert judge_models({"a": 1}, SIGNS).verdict == "supported"


def test_too_few_models_cannot_support_a_claim():
    rule = read_conditions({"in": 3, "above": 0}, {"in": "any", "below": 0})
    few = judge_models({"a": 1}, rule)
    assert (few.verdict, few.estimate) == ("undecided", 1)
    assert np.isnan([few.low, few.high, few.smallest_visible]).all()
    assert judge_models({"a": -1}, rule).verdict == "contradicted"


def test_a_not_above_criterion_decides_and_does_not_change_the_estimate():
    both = {"in": 0.75, "all_of": [{"below": 0}, {"not_above": 0, "in": "all"}]}
    rule = read_conditions(both, {"in": 0.5, "above": 0})
    near = judge_models({"a": -1, "b": -1, "c": -0.5, "d": 0.001}, rule)
    assert (near.verdict, near.estimate) == ("supported", -0.5)
    assert near.low < -0.5 < near.high < 0
    far = judge_models({"a": -1, "b": -1, "c": -0.5, "d": 1}, rule)
    assert (far.verdict, far.estimate) == ("undecided", -0.5)


def test_the_interval_decides_instead_of_the_value():
    def judge_value(value):
        return judge_decoder([make_curve({0: [value] * 2}, spread=0.001)])

    # The standard error of values d off in turn is d sqrt(15), its interval 2.131 times that.
    half = 2.131449545559323 * 0.001 * np.sqrt(15)
    sure = judge_value(0.95 + 1.01 * half)
    assert (sure.verdict, sure.estimate) == ("supported", pytest.approx(0.95 + 1.01 * half))
    assert (sure.low, sure.high) == pytest.approx((0.95 + 0.01 * half, 0.95 + 2.01 * half))
    assert sure.smallest_visible == pytest.approx(half)
    assert judge_value(0.95 + 0.99 * half).verdict == "undecided"
    assert judge_value(0.9 - 1.01 * half).verdict == "contradicted"


def test_a_missing_logarithm_or_interval_supports_nothing():
    rule = read_conditions({"number": "height", "above": 0}, {"number": "height", "below": 0})

    def judge_rise_from(first, spread):
        evidence_curve = make_curve({1: [first], 2: [0.3], 3: [0.2], 6: [0.1]})
        evidence_curve.values[0] = make_curve({1: [first]}, spread).values[0]
        with np.errstate(invalid="ignore"):
            claim = {
                "statistic": "rise_then_fall",
                "paper": "shape_of_learning",
                **rule,
                "arguments": {"dip": 0.5},
            }
            return judge_decoder([evidence_curve], TRAINING | claim)

    assert judge_rise_from(0.01, 0.0001).verdict == "supported"
    assert "`height` of `d` is undefined" in judge_rise_from(-0.1, 0.001).because
    # Without some groups the first value is negative, and the rise from it has no logarithm.
    assert judge_rise_from(0.01, 0.02).verdict == "undecided"
    incomplete_curve = make_curve({0: [1, 1]})
    incomplete_curve.values[..., 1:] = np.nan
    judgement = judge_decoder([incomplete_curve])
    assert (judgement.verdict, judgement.estimate) == ("undecided", 1)
    assert "16 groups" in judgement.because


def test_only_a_model_with_few_suspect_layers_decides():
    rule = read_conditions({"in": 0.75, "above": 0}, {"in": "any", "below": 0.9})

    def judge_by_near_duplicates(**near):
        return judge_models(
            dict.fromkeys("abcd", 1), rule, near, near_duplicate_limits={"linearity": 0.1}
        )

    assert judge_by_near_duplicates(c=0.2, d=0.1).models == ("a", "b", "d")
    assert "by `linearity` `c` (1 of 1, left out)" in judge_by_near_duplicates(c=0.2).because
    judgement = judge_decoder(
        [make_curve({0: [1, 1]}, near=0.2)], near_duplicate_limits={"linearity": 0.1}
    )
    assert (judgement.verdict, judgement.estimate) == ("undecided", 1)
    assert "decide nothing alone" in judgement.because
    one_of_four = make_curve({0: [1] * 4})
    one_of_four = replace(one_of_four, near_duplicates=np.array([[0.2, 0, 0, 0]]))
    assert (
        judge_decoder([one_of_four], near_duplicate_limits={"linearity": 0.1}).verdict
        == "supported"
    )


def test_a_layer_undefined_at_one_step_is_left_out_at_all_steps():
    judgement = judge_decoder([make_curve({1: [1, 1, 1, 5], 2: [2, 2, 2, np.nan]})], TRAINING)
    assert (judgement.verdict, read_numbers(judgement)["linearity"]) == ("supported", 1)
    assert "Left out as undefined: 1 layer" in judgement.because


def test_a_mean_over_the_defined_half_of_the_layers_decides_nothing():
    judgement = judge_decoder([make_curve({1: [1, 1, 1, 5], 2: [2, 2, np.nan, np.nan]})], TRAINING)
    assert (judgement.verdict, read_numbers(judgement)["linearity"]) == ("undecided", 1)
    assert "2 of 4 layers" in judgement.because


@pytest.mark.parametrize("layers", [[3], [2, 3], [0, 1, 2, 3]])
def test_a_layer_without_interval_counts_in_the_mean_which_then_decides_nothing(layers):
    """A layer that a few windows decide has a value but no interval; the mean is over all layers."""
    growing_curve = make_curve({1: [1, 1, 1, 5], 2: [2, 2, 2, 9]})
    few = np.zeros((2, 4), bool)
    few[1, layers] = True
    growing_curve.values[few, 1:] = np.nan
    judgement = judge_decoder([replace(growing_curve, few_windows=few)], TRAINING)
    assert (judgement.verdict, read_numbers(judgement)["linearity"]) == ("undecided", 1.75)
    assert f"{len(layers)} of 8 values" in judgement.because
    assert "a few windows decide" in judgement.because
    assert "undefined" not in judgement.because
    claim = Claim(name="c", **CLAIM | TRAINING)
    assert "a few windows decide" in describe_finding(claim, judgement)
    undefined_curve = replace(growing_curve, few_windows=None)
    assert "16 groups" in judge_decoder([undefined_curve], TRAINING).because


def test_a_value_without_interval_does_not_hide_others():
    unknown = bounds.bound_by_error(np.array([5.0, 1.0]), np.array([np.nan, 0.1]))
    low, high = unknown.greatest().bounds(0.025, 0.025)
    assert 0 < low < 1
    assert np.isinf(high)
    assert np.isneginf(unknown.least().bounds(0.025, 0.025)[0])
    # Without an interval a `not_above` criterion does not hold either.
    hurdle = read_condition(
        {"all_of": [{"number": "a", "above": 0}, {"number": "b", "not_above": 0}]}
    )
    positive = bounds.bound_by_error(np.array(1.0), np.array(0.1))
    negative = bounds.bound_by_error(np.array(-1.0), np.array(np.nan))
    assert not is_shown(hurdle, {"u": {"a": positive, "b": negative}})


def test_tables_tell_values_that_a_few_windows_decide(tmp_path):
    rows = [
        ("d", "step0", 0, "linearity", "all", layer, "", 4096, 4096, "", "", 128, effective, 0.5)
        + (("",) * GROUPS if effective else (0.5,) * GROUPS)
        for layer, effective in ((1, ""), (2, 3.2))
    ]
    write_table(tmp_path / "d.csv", ("model", "revision", "step", *TIDY_COLUMNS), rows)
    read = evidence.read_evidence([], {}, [tmp_path / "d.csv"], [])
    assert read.curves["d", "linearity"].few_windows.tolist() == [[False, True]]


def test_an_undefined_last_layer_is_not_replaced_by_another():
    claim = {"statistic": "difference_of_estimators", "estimators": ["linearity", "other"]}
    last_layer_claim = claim | {"arguments": {"last_layer_only": True}}
    incomplete_curve, other = make_curve({0: [1, np.nan]}), make_curve({0: [0, 0]})
    assert judge_decoder([incomplete_curve, other], last_layer_claim).verdict == "not measured"
    assert judge_decoder([incomplete_curve, other], claim).estimate == 1
    assert judge_decoder([make_curve({0: [1, 3]}), other], last_layer_claim).estimate == 3


def make_flat_curve(values_by_step):
    return make_curve({step: [value, value] for step, value in values_by_step.items()})


def test_statistics_of_training_on_numbers_by_hand():
    def judge_statistic(statistic, values_by_step, part, **arguments):
        holds = {"number": part, "above": 0}
        paper = "linear" if statistic == "change_over_training" else "shape_of_learning"
        claim = {
            "statistic": statistic,
            "paper": paper,
            "arguments": arguments,
            **read_conditions(holds, holds),
        }
        return judge_decoder([make_flat_curve(values_by_step)], TRAINING | claim)

    values_by_step = {0.5: 2, 1: 4, 4: 8, 8: 4}
    settling = read_numbers(
        judge_statistic("growth_then_settling", values_by_step, "growth", share=0.25)
    )
    # The step in the middle lies 4 above the last one; a quarter of the growth is allowed.
    assert settling == {
        "growth": 2,
        "of_layers": 2,
        "settling": 0.5 - 4,
        "moving_on": 4 - 0.5,
        "falls_back": 4 - 0.5,
        "below_start": -0.5,
        "still_to_grow": -0.5,
    }
    slow_growth = read_numbers(
        judge_statistic("growth_then_settling", {0.5: 2, 3: 4, 7: 5, 8: 10}, "growth", share=0.25)
    )
    # The last quarter begins at step 6: step 7 is within it, and step 3 is the last step before it.
    assert (slow_growth["still_to_grow"], slow_growth["settling"]) == (
        pytest.approx(10 - 5 - 2),
        pytest.approx(2 - 6),
    )
    late = judge_statistic("growth_then_settling", {5: 8, 7: 4, 8: 4}, "growth", share=0.25)
    assert "a good step in the first half of its training" in late.because
    rise = read_numbers(judge_statistic("rise_then_fall", values_by_step, "height", dip=0.5))
    # The peak is at the step in the middle, and the curve rises before it and falls after it.
    layer_numbers = {"of_layers": pytest.approx(np.log(2))}
    assert rise == {
        "height": pytest.approx(np.log(2)),
        "one_peak": pytest.approx(np.log(2)),
        **layer_numbers,
    }
    # The rise from 4 to 5 after the peak is divided by a half and subtracted from the height.
    again = read_numbers(
        judge_statistic("rise_then_fall", {0.5: 2, 1: 8, 2: 4, 3: 5, 4: 1}, "height", dip=0.5)
    )
    assert again["height"] == pytest.approx(np.log(4))
    assert again["one_peak"] == pytest.approx(np.log(4) - 2 * np.log(5 / 4))
    fall = read_numbers(
        judge_statistic("change_over_training", {1: 9, 2: 5, 3: 6, 4: 4}, "linearity", back=0.5)
    )
    assert fall == {"linearity": -5, "linearity_throughout": -5 + 2, "linearity_of_layers": -5}
    # The warm-up of two steps ends between the second and the third.
    comparison = read_numbers(
        judge_statistic("peak_beside_warm_up", values_by_step | {16: 3}, "elsewhere")
    )
    comparison = {part: comparison[part] for part in ("elsewhere", "at_warm_up")}
    assert comparison == pytest.approx({"elsewhere": np.log(4 / 8), "at_warm_up": np.log(8 / 3)})


def test_a_change_is_from_the_first_to_the_last_checkpoint_after_step_0():
    model_curve = make_curve({0: [8], 1: [1], 2: [5], 9: [4]})
    assert read_numbers(judge_decoder([model_curve], TRAINING))["linearity"] == 3
    later = TRAINING | {"seen": {"from_step": 2, "from": 0.5}}
    assert read_numbers(judge_decoder([model_curve], later))["linearity"] == -1
    assert read_numbers(judge_decoder([model_curve])) == {"linearity": 4}


def judge_losses(values, losses):
    """Judge the claim on isotropy of weights and loss, given a curve of each; the first step does not count."""
    common = {"model": "d", "matrix": "output", "estimator": "matrix_partition_isotropy"}
    steps = range(len(values))
    tables = {
        "weights": [
            common | {"revision": f"r{s}", "step": 7000 * s, "value": values[s]} for s in steps
        ],
        "verdicts": [{"model": "d", "revision": f"r{s}", "loss": losses[s]} for s in steps],
    }
    claim = vars(CLAIMS["isotropy_and_quality_of_the_smallest"]) | {"name": "c", "models": ["d"]}
    return judge_decoder([], claim, tables)


def draw_rise_and_fall(turn, noise, random, steps=22):
    """Draw a curve that rises until a step and then falls, with noise."""
    place = np.arange(steps)
    return np.where(place < turn, place, 2 * turn - place) / turn + noise * random.normal(
        size=steps
    )


def draw_saturating_curve(noise, random, steps=22):
    """Draw a curve that saturates at a random speed and height, with noise."""
    share = np.arange(steps) / steps
    height = random.choice([-1, 1]) * random.uniform(0.5, 2)
    return height * (1 - np.exp(-share / random.uniform(0.03, 0.5))) + noise * random.normal(
        size=steps
    )


def test_isotropy_and_loss_that_turn_at_one_step_go_together():
    random = np.random.default_rng(0)
    isotropy, loss = draw_rise_and_fall(9, 0.02, random), -draw_rise_and_fall(9, 0.02, random)
    assert judge_losses(isotropy, loss).verdict == "supported"
    assert judge_losses(isotropy, -loss).verdict == "contradicted"
    few = judge_losses(isotropy[:12], loss)
    assert all(number in few.because for number in ("11 steps", "7,000", "12"))
    # The loss only falls, so the curves do not rise and fall together.
    assert judge_losses(isotropy, -np.arange(22.0)).verdict != "supported"


@pytest.mark.parametrize("noise", [1e-6, 0.03])
@pytest.mark.parametrize("walk", [0, 0.1])
def test_independent_curves_that_saturate_or_drift_seldom_get_a_verdict(noise, walk):
    random = np.random.default_rng(0)
    pairs = [
        [
            draw_saturating_curve(noise, random) + walk * random.normal(size=22).cumsum()
            for _ in range(2)
        ]
        for _ in range(300)
    ]
    verdicts = [judge_losses(*pair).verdict for pair in pairs]
    assert verdicts.count("supported") + verdicts.count("contradicted") <= 15


@pytest.mark.parametrize(
    ("statistic", "arguments", "part"),
    [
        ("isotropy_beside_others", {"models": ["d"], "larger_models": ["e", "f"]}, "over_least"),
        ("weights_beside", {"reference": "e"}, "linearity"),
    ],
)
def test_a_comparison_of_weights_without_its_models_says_what_the_run_lacks(
    statistic, arguments, part
):
    rule = read_conditions({"number": part, "above": 0}, {"number": part, "below": 0})
    claim = {
        "statistic": statistic,
        "paper": "inherent",
        "arguments": arguments,
        "min_models": 1,
        "models": ["d", "e", "f"],
    }

    def judge_weights(**values):
        same = {"revision": "r", "step": np.nan, "matrix": "tied", "estimator": "linearity"}
        rows = [same | {"model": name, "value": value} for name, value in values.items()]
        models = [EvidenceModel(name, "decoder", 2) for name in "ef"]
        return judge_decoder([], claim | rule, {"weights": rows}, models)

    assert "the run lacks it" in judge_weights(d=1).because
    assert judge_weights(d=1, e=0, f=3).verdict == "supported"


def test_numbers_without_an_interval_are_compared_by_their_values():
    claim = vars(CLAIMS["most_linear_blocks_can_go"]) | {"arguments": {"share": 0.5}}
    claim |= {"name": "c", "models": "decoders", "min_models": 0}

    def judge_edits(perplexity, orders=2):
        curves = {"most_linear_first": (10, perplexity), "least_linear_first": (10, 30)}
        rows = [
            {"model": "d", "revision": "r", "order": order, "kind": kind, "k": k, "perplexity": value}
            for order, values in (list(curves.items())[:orders] or [("neither", (10, 10))])
            for kind in ("dropped", "replaced")
            for k, value in enumerate(values)
        ]  # fmt: skip
        return judge_decoder([], claim, {"edits": rows})

    judgement = judge_edits(11)
    assert judgement.verdict == "supported"
    costs = {kind: read_numbers(judgement)[kind] for kind in ("dropped", "replaced")}
    assert costs == pytest.approx({"dropped": 1.1, "replaced": 1.1})
    assert read_numbers(judgement)["dropped_over_reverse"] == pytest.approx(-1.9)
    assert np.isnan([judgement.low, judgement.high, judgement.smallest_visible]).all()
    assert judge_edits(11.1).verdict == "undecided"
    assert judge_edits(12.6).verdict == "contradicted"
    # The abstract does not speak of the reverse order.
    assert judge_edits(11, orders=1).verdict == "supported"
    assert "are not measured" in judge_edits(11, orders=0).because


@pytest.mark.parametrize(
    ("dropped_cost", "replaced_cost", "verdict"),
    [
        (1.3, 1.03, "supported"),
        (1.03, 1.3, "supported"),
        (1.3, 1.3, "contradicted"),
        (1.3, 1.2, "undecided"),
        (1.03, None, "supported"),
        (1.3, None, "undecided"),
    ],
)
def test_removing_blocks_or_replacing_them_is_enough(dropped_cost, replaced_cost, verdict):
    """The reverse order costs nothing, and is no part of the claim."""
    claim = vars(CLAIMS["most_linear_blocks_can_go"]) | {"arguments": {"share": 0.5}}
    claim |= {"name": "c", "models": "decoders", "min_models": 0}
    costs = {"dropped": dropped_cost, "replaced": replaced_cost}
    rows = [
        {"model": "d", "revision": "r", "order": order, "kind": kind, "k": k, "perplexity": value}
        for order in ("most_linear_first", "least_linear_first")
        for kind, cost in costs.items()
        if cost
        for k, value in enumerate((1.0, cost if order == "most_linear_first" else 1.0))
    ]
    assert judge_decoder([], claim, {"edits": rows}).verdict == verdict


def test_a_ledger_is_written_from_good_checkpoints(tmp_path):
    steps = {"step0": [9, 1, 1], "step8": [9, 0.5, 0.5], "step4": [9, 0.8, 1]}
    values, verdicts = tmp_path / "tables/jackknife/d.csv", tmp_path / "tables/verdicts/d.csv"
    rows = [
        ("d", revision, revision[4:], "linearity", "all", layer, "", 4096, 4096, 0, 0, 9, "")
        + (value,) * (GROUPS + 1)
        for revision, layer_values in steps.items()
        for layer, value in [*enumerate(layer_values), ("block_outputs", 7.0)]
    ]
    write_table(values, ("model", "revision", "step", *TIDY_COLUMNS), rows)
    verdict_rows = [
        ["d", revision, 3.2, 1000, "no" if revision == "step8" else "yes"] for revision in steps
    ]
    write_table(verdicts, ["model", "revision", "loss", "vocabulary", "shown"], verdict_rows)
    ledger, page = tmp_path / "claims.csv", tmp_path / "claims.md"
    claims = Claim(name="c", **CLAIM), Claim(name="other", **CLAIM | {"models": ["x|y"]})
    judge_claims.main(
        ClaimsJob("A paper", claims, (EvidenceModel("d", "decoder", 2),), near_duplicate_limits={}),
        jackknife=[values],
        tables=[verdicts],
        controls=[],
        ledger=ledger,
        page=page,
    )
    rows_of_ledger = pd.read_csv(ledger, keep_default_na=False, dtype=str)
    assert rows_of_ledger["verdict"].tolist() == ["undecided", "not measured"]
    row = rows_of_ledger.iloc[0]
    assert float(row["estimate"]) == pytest.approx(0.9)  # of the last good step, of blocks
    assert (row["revisions"], row["statistic"]) == ("d@step4", "mean_over_layers(linearity)")
    assert (row["n"], row["selections"]) == ("4,096", "all")
    assert "2 claims: 1 undecided, 1 not measured" in page.read_text()
    assert row["summary"] in page.read_text()
    assert "| `linearity` | d | 0.9 |" in page.read_text()


def test_a_finding_gives_numbers_of_the_quantity():
    """The sentence says where a profile with two humps is high, the table which criterion is met."""
    claim = CLAIMS["decoders_peak_in_the_middle"]
    models = {"d": EvidenceModel("d", "decoder", 9, label="Decoder 1.4B")}
    profile = make_curve({0: [0.2, 0.4, 0.9, 0.5, 0.5, 0.9, 0.4, 0.2]}, 1e-4)
    judgement = judge(claim, Evidence(models, {("d", "anisotropy"): profile}))
    assert describe_finding(claim, judgement).startswith(
        "Anisotropy of Decoder 1.4B is 0.9 in blocks 3 and 6 and 0.2 to 0.5 elsewhere, so the profile is not a bell "
        "(single hump: -0.9)."
    )
    rows = [[name, bound, met] for name, *_, bound, met in tabulate_criteria(claim, judgement)]
    assert ["height of the bell", "below 0.005", "no"] in rows
    assert ["single hump", "below 0", "yes"] in rows


def test_a_finding_is_about_the_blocks_that_decide():
    """The last block, after the final norm, does not count."""
    claim = CLAIMS["decoders_peak_in_the_middle"]
    models = {"d": EvidenceModel("d", "decoder", 10, label="Decoder 1.4B")}
    profile = make_curve({0: [0.2, 0.3, 0.4, 0.6, 0.8, 0.6, 0.4, 0.3, 0.2, 0.99]}, 1e-4)
    judgement = judge(claim, Evidence(models, {("d", "anisotropy"): profile}))
    assert judgement.verdict == "supported"
    assert describe_finding(claim, judgement).startswith(
        "Anisotropy of Decoder 1.4B is 0.8 in block 5 and 0.2 to 0.6 elsewhere, so the profile is a bell"
    )


def test_a_model_that_only_guesses_is_outside_a_claim_on_trained_models():
    rows = {"model": ["d"], "revision": ["step0"], "shown": ["yes"], "vocabulary": [1000]}
    low = [make_curve({0: [0.5, 0.5]})]
    judgement = judge_decoder(low, tables={"verdicts": rows | {"loss": [6.9]}})
    assert judgement.verdict == "outside the claim"
    assert "6.90" in judgement.because
    for loss in (4.0, np.nan):  # an unknown loss does not exclude a model
        assert (
            judge_decoder(low, tables={"verdicts": rows | {"loss": [loss]}}).verdict
            == "contradicted"
        )


def test_a_claim_on_published_models_is_judged_on_others_if_a_run_has_none():
    published_models = {"models": ["x", "y"], "applies_to": "decoders"}
    low = [make_curve({0: [0.5, 0.5]})]
    judgement = judge_decoder(low, published_models)
    assert judgement.verdict == "contradicted"
    assert judgement.models == ("d",)
    assert "this run's models" in judgement.because
    claim, curves = CLAIMS["near_perfect_linearity"], {("d", "linearity"): make_curve({0: [1, 1]})}
    judgement = judge(claim, Evidence({"d": EvidenceModel("d", "decoder", 2)}, curves))
    assert "other models" in describe_finding(claim, judgement)
    partial_judgement = judge_decoder(
        low, published_models, models=[EvidenceModel("x", "decoder", 2)]
    )
    assert partial_judgement.verdict == "not measured"
    assert judge_decoder(low, {"models": ["x"]}).verdict == "not measured"


def test_a_single_checkpoint_is_outside_a_claim_on_training_unless_a_measure_is_missing():
    models = {"d": EvidenceModel("d", "decoder", 2)}
    claim, last = Claim(name="c", **CLAIM | TRAINING), make_curve({8: [1, 2]})
    assert judge(claim, Evidence(models, {("d", "linearity"): last})).verdict == "outside the claim"
    both = {("d", "linearity"): last, ("d", "other"): make_curve({0: [1, 2], 8: [1, 2]})}
    assert judge(claim, Evidence(models, both)).verdict == "not measured"


def test_a_finding_concludes_from_the_numbers_that_contradict(tmp_path):
    claim = CLAIMS["decoders_alone"]
    models = {n: EvidenceModel(n, "encoder" if "bert" in n else "decoder", 2) for n in claim.models}
    conclusions = {"difference": "as linear as decoders", "encoder": "nearly linear themselves"}
    for encoder, decoder, met in ((0.97, 0.96, {"difference"}), (0.995, 0.99, {*conclusions})):
        curves = {
            (n, "linearity"): make_curve({0: [encoder if "bert" in n else decoder] * 2}, 1e-5)
            for n in claim.models
        }
        judgement = judge(claim, Evidence(models, curves))
        assert judgement.verdict == "contradicted"
        sentence = describe_finding(claim, judgement)
        assert {number for number, words in conclusions.items() if words in sentence} == met


def test_equal_values_give_no_second_verdict():
    claim = CLAIMS["decoders_peak_in_the_middle"]
    models = {"d": EvidenceModel("d", "decoder", 8)}
    profile = make_curve({0: [0.2, 0.3, 0.5, 0.6, 0.5, 0.3, 0.2, 0.2]}, 1e-4)
    other = make_curve({0: [0.2, 0.3, 0.5, 0.55, 0.5, 0.3, 0.2, 0.2]}, 1e-4)
    for second_profile, is_second in ((profile, False), (other, True)):
        curves = {
            ("d", "anisotropy"): profile,
            ("d", "anisotropy_without_massive_tokens"): second_profile,
        }
        judgement = judge(claim, Evidence(models, curves))
        assert ("without massive tokens" in judgement.other_verdicts) == is_second
        assert ("without massive tokens" in judgement.equal_values) != is_second


def test_step_0_is_a_null_model_of_the_trained_model(tmp_path):
    """Untrained blocks are nearly linear, too, and the page gives their linearity."""
    jackknife, cells = tmp_path / "jackknife" / "d.csv", dict.fromkeys(JACKKNIFE_COLUMNS, "")
    cells |= {"model": "d", "role": "decoder", "estimator": "linearity", "selection": "all"}
    cells |= {"n": 640, "n_unique": 640, "windows": 64, "effective_windows": 60}
    rows = []
    for step, value in ((0, 0.97), (10, 0.98)):
        for layer in (1, 2):
            layer_cells = {"revision": f"step{step}", "step": step, "layer": layer}
            layer_cells |= {name: value + 1e-5 * (place % 2) for place, name in enumerate(VALUES)}
            rows.append([(cells | layer_cells)[name] for name in JACKKNIFE_COLUMNS])
    write_table(jackknife, JACKKNIFE_COLUMNS, rows)
    model = EvidenceModel("d", "decoder", 2, is_from_scratch=True)
    evidence = read_evidence([model], {}, [jackknife], [])
    claim = CLAIMS["near_perfect_linearity"]
    judgement = judge(claim, evidence)
    ((_, (number,)),) = judgement.null_numbers.items()
    assert (judgement.verdict, number.estimate) == ("supported", pytest.approx(0.97, abs=1e-4))
    page = tmp_path / "page.md"
    write_page(page, "A paper", [(claim, judgement)])
    assert re.search(r"^\| untrained \| mean linearity .* \| 0\.97 \|", page.read_text(), re.M)


def test_a_finding_does_not_conclude_from_one_case_of_many():
    """All ratios are high, and the residual connection makes one decoder of 15 less linear."""
    claim = replace(CLAIMS["blocks_add_little"], models="decoders")
    names = [f"d{number}" for number in range(15)]
    models = {name: EvidenceModel(name, "decoder", 4) for name in names}
    curves = {}
    for name in names:
        increment = 0.9 if name == "d0" else 0.6
        values = {"block_norm_ratio": 1.6, "linearity": 0.8, "linearity_increment": increment}
        for estimator, value in values.items():
            curves[name, estimator] = make_curve({0: [value] * 4}, 1e-5)
    judgement = judge(claim, Evidence(models, curves))
    sentence = describe_finding(claim, judgement)
    assert judgement.verdict == "contradicted"
    assert "blocks add much" in sentence
    assert "residual connection" not in sentence


def test_seeds_with_different_steps_have_no_mean_curve():
    claim = CLAIMS["anisotropy_grows_then_settles"]
    steps = {"a": (1, 256, 1000), "b": (1, 512, 1000)}
    curves = {
        (name, "anisotropy"): make_curve(
            {s: [v] * 4 for s, v in zip(model_steps, (0.1, 0.9, 0.5), strict=True)}
        )
        for name, model_steps in steps.items()
    }
    models = {name: EvidenceModel(name, "decoder", 4, training="one") for name in steps}
    sentence = describe_finding(claim, judge(claim, Evidence(models, curves)))
    assert "seeds), averaged over layers" not in sentence
