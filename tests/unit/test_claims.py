"""Claims that are judged by hand-made numbers say what these say."""

import numpy as np
import pandas as pd
import pytest

import judge_claims
from made_claims import CLAIM, CLAIMS, curve, judged, judged_models, parts
from shape_of_learning.claims import layer_statistics, rules, table_statistics, training_statistics
from shape_of_learning.claims.claim import Claim, EvidenceModel
from shape_of_learning.claims.rules import how_many
from shape_of_learning.errors import InputError
from shape_of_learning.files import write_table
from shape_of_learning.metrics.tidy import GROUPS, TIDY_COLUMNS

RULE = {"supported": {"above": 0}, "contradicted": {"below": 0}}
TRAINING = {"statistic": "change_over_training", "checkpoints": "training"}


def test_what_decides_verdicts_is_pinned():
    assert [how_many("most", of) for of in (1, 2, 3, 4, 5)] == [1, 2, 2, 3, 3]
    assert [how_many(each, 4) for each in ("all", "any", 3, 0.75, 0.5, 0.01)] == [4, 1, 3, 3, 2, 1]
    assert how_many(0.1 * 3, 10) == 3  # of what a product of floats is beside
    assert pytest.approx(0.025) == rules.TAIL
    assert (GROUPS, layer_statistics.FEWEST_LAYERS) == (16, 4)
    assert (training_statistics.FEWEST_STEPS, training_statistics.MOST_STEPS_OF_RANKS) == (3, 8)
    assert table_statistics.ELONGATED == 10


def test_bounds_of_the_kth_largest_share_the_errors():
    of = rules.estimated(np.array([1.0, 2.0, 4.0]), np.array([0.1, 0.3, 0.2]), degrees=15)
    for rank, below, above in ((1, 0.01 / 3, 0.02), (2, 0.01 / 2, 0.02 / 2), (3, 0.01, 0.02 / 3)):
        (low, _), (_, high) = of.bounds(below, 0.5), of.bounds(0.5, above)
        ends = of.ranked(rank).bounds(0.01, 0.02)
        assert ends == (pytest.approx(sorted(low)[-rank]), pytest.approx(sorted(high)[-rank]))


def test_a_rule_names_parts_that_the_statistic_has_and_counts_where_there_are_several_units():
    with pytest.raises(InputError, match="names no part, but there are `middle_over_first`, "):
        judged([curve({0: [1, 1, 1, 1]})], {"statistic": "middle_over_ends"})
    with pytest.raises(InputError, match="2 to judge, such as `a` and `b`"):
        judged_models({"a": 1, "b": -1}, RULE)
    assert judged_models({"a": 1}, RULE).verdict == "supported"


def test_a_number_of_models_is_not_shown_by_fewer():
    rule = {"supported": {"in": 3, "holds": {"above": 0}},
            "contradicted": {"in": "any", "holds": {"below": 0}}}  # fmt: skip
    few = judged_models({"a": 1}, rule)
    assert (few.verdict, few.estimate) == ("undecided", 1)
    assert np.isnan([few.low, few.high, few.smallest_visible]).all()
    assert judged_models({"a": -1}, rule).verdict == "contradicted"


def test_what_is_not_shown_beyond_a_bound_adds_to_a_condition_and_not_to_its_estimate():
    rule = {
        "supported": {"all_of": [{"in": 0.75, "holds": {"below": 0}},
                                 {"in": "all", "holds": {"not_above": 0}}]},
        "contradicted": {"in": 0.5, "holds": {"above": 0}},
    }  # fmt: skip
    near = judged_models({"a": -1, "b": -1, "c": -0.5, "d": 0.001}, rule)
    assert (near.verdict, near.estimate) == ("supported", -0.5)
    assert near.low < -0.5 < near.high < 0
    far = judged_models({"a": -1, "b": -1, "c": -0.5, "d": 1}, rule)
    assert (far.verdict, far.estimate) == ("undecided", -0.5)


def test_an_interval_decides_and_not_the_value():
    def at(value):
        return judged([curve({0: [value] * 2}, spread=0.001)])

    # The standard error of values d off in turn is d sqrt(15), its interval 2.131 times that.
    half = 2.131449545559323 * 0.001 * np.sqrt(15)
    sure = at(0.95 + 1.01 * half)
    assert (sure.verdict, sure.estimate) == ("supported", pytest.approx(0.95 + 1.01 * half))
    assert (sure.low, sure.high) == pytest.approx((0.95 + 0.01 * half, 0.95 + 2.01 * half))
    assert sure.smallest_visible == pytest.approx(half)
    assert at(0.95 + 0.99 * half).verdict == "undecided"
    assert at(0.9 - 1.01 * half).verdict == "contradicted"


def test_of_what_has_no_logarithm_or_no_interval_no_part_is_passed_over():
    def rising_from(first, spread):
        of = curve({0: [first], 1: [0.2], 2: [0.3], 3: [0.1]})
        of.values[0] = curve({0: [first]}, spread).values[0]
        with np.errstate(invalid="ignore"):
            return judged([of], TRAINING | {"statistic": "rise_then_fall", "rule": RULE})

    assert rising_from(0.01, 0.001).verdict == "supported"
    assert "`rise_and_fall` of `d` is undefined" in rising_from(-0.1, 0.001).because
    assert "has no interval" in rising_from(0.01, 0.02).because  # negative without some groups
    without_windows_in_every_group = curve({0: [1, 1]})
    without_windows_in_every_group.values[..., 1:] = np.nan
    assert "16 groups" in judged([without_windows_in_every_group]).because


def test_suspect_models_count_among_those_that_a_rule_needs_but_for_nothing():
    rule = CLAIM["rule"] | {"supported": {"in": 0.75, "holds": {"above": 0}}}

    def of(**near):
        return judged_models(dict.fromkeys("abcd", 1), rule, near, suspect_above={"linearity": 0.1})

    assert of(c=0.2, d=0.1).verdict == "supported"
    assert "decide nothing: 1 of `c`" in of(c=0.2).because
    assert of(c=0.2, d=0.2).verdict == "undecided"
    assert "would be supported, but values that are suspect" in of(c=0.2, d=0.2).because


def test_a_layer_that_is_undefined_at_one_step_is_left_out_at_all():
    without_a_group = curve({0: [1, 5], 1: [2, 9]})
    without_a_group.values[1, 1, 7] = np.nan
    for of in (curve({0: [1, 5], 1: [2, np.nan]}), without_a_group):
        assert parts(judged([of], TRAINING)) == {"linearity": 1}
        assert "Left out as undefined: 1 layers" in judged([of], TRAINING).because


def test_no_other_layer_stands_for_an_undefined_last_one():
    claim = {"statistic": "difference_of_estimators", "estimators": ["linearity", "other"]}
    of_last = claim | {"arguments": {"last_layer_only": True}}
    without_last, other = curve({0: [1, np.nan]}), curve({0: [0, 0]})
    assert judged([without_last, other], of_last).verdict == "not measured"
    assert judged([without_last, other], claim).estimate == 1
    assert judged([curve({0: [1, 3]}), other], of_last).estimate == 3


def along(by_step):
    return curve({step: [value, value] for step, value in by_step.items()})


def test_statistics_of_training_on_numbers_by_hand():
    def of(statistic, by_step, part, **arguments):
        rule = {key: {"of": part, "above": 0} for key in ("supported", "contradicted")}
        claim = {"statistic": statistic, "arguments": arguments, "rule": rule}
        return judged([along(by_step)], TRAINING | claim)

    by_step = {0: 2, 1: 4, 4: 8, 8: 4}
    settling = parts(of("growth_then_settling", by_step, "growth", share=0.25))
    # Half of the steps: from the third on.
    assert settling == {"growth": 2, "settling": 0.25 * 2 - 4, "moving_on": 4 - 0.25 * 2}
    late = of("growth_then_settling", {5: 8, 7: 4, 8: 4}, "growth", share=0.25)
    assert "a sound step in the first half of its training" in late.because
    rise = parts(of("rise_then_fall", by_step, "rise_and_fall"))
    assert rise == {"rise_and_fall": pytest.approx(np.log(2))}
    # The warm-up of two steps ends between the second and the third.
    beside = parts(of("peak_beside_warm_up", by_step | {16: 3}, "elsewhere"))
    assert beside == pytest.approx({"elsewhere": np.log(4 / 8), "at_warm_up": np.log(8 / 3)})


def test_the_first_and_the_last_checkpoint_are_those_that_are_sound_and_have_a_step():
    of = curve({0: [1], 2: [5], 9: [4]})
    assert parts(judged([of], TRAINING)) == {"linearity": 3}
    assert parts(judged([of], TRAINING | {"arguments": {"from_step": 1}})) == {"linearity": -1}
    assert parts(judged([of])) == {"linearity": 4}


def test_isotropy_of_weights_goes_with_the_loss_over_steps():
    losses = {1: 9.0, 2: 3.0, 3: 2.0, 4: 1.0}
    of_model = {"model": "d", "matrix": "output", "estimator": "linearity"}
    tables = {
        "weights": [of_model | {"revision": f"r{s}", "step": s, "value": -s} for s in losses],
        "verdicts": [{"model": "d", "revision": f"r{s}", "loss": of} for s, of in losses.items()],
    }

    def of(from_step):
        claim = {"statistic": "correlation_with_loss", "arguments": {"from_step": from_step}}
        return judged([], claim, tables)

    assert parts(of(2)) == {"correlation": pytest.approx(1)}
    assert "a loss at 2 steps from 3 on, and 3 are needed" in of(3).because


@pytest.mark.parametrize(
    ("statistic", "arguments", "part"),
    [
        ("isotropy_beside_others", {"of": ["d"], "others": ["e", "f"]}, "over_least"),
        ("weights_beside", {"reference": "e"}, "linearity"),
    ],
)
def test_models_that_weights_are_compared_with_may_be_missing(statistic, arguments, part):
    rule = {key: {"in": "all", "holds": {"of": part, **RULE[key]}} for key in RULE}
    claim = {"statistic": statistic, "arguments": arguments, "needs": 1, "models": ["d", "e", "f"]}

    def of(**values):
        same = {"revision": "r", "step": np.nan, "matrix": "tied", "estimator": "linearity"}
        rows = [same | {"model": name, "value": value} for name, value in values.items()]
        models = [EvidenceModel(name, "decoder", 2) for name in "ef"]
        return judged([], claim | {"rule": rule}, {"weights": rows}, models)

    assert "and the run lacks it" in of(d=1).because
    assert of(d=1, e=0, f=3).verdict == "supported"


def test_numbers_without_an_interval_are_compared_as_they_are():
    claim = vars(CLAIMS["most_linear_blocks_can_go"]) | {"arguments": {"share": 0.5}}
    claim |= {"name": "c", "models": "decoders", "needs": 0}

    def of(perplexity, orders=2):
        curves = {"most_linear_first": (10, perplexity), "least_linear_first": (10, 30)}
        rows = [
            {"model": "d", "revision": "r", "order": order, "kind": kind, "k": k, "perplexity": value}
            for order, values in list(curves.items())[:orders]
            for kind in ("dropped", "replaced")
            for k, value in enumerate(values)
        ]  # fmt: skip
        return judged([], claim, {"edits": rows})

    at_the_bound = of(11)
    assert at_the_bound.verdict == "supported"
    assert list(parts(at_the_bound).values()) == pytest.approx([1.1, -1.9, 1.1, -1.9])
    assert np.isnan([at_the_bound.low, at_the_bound.high, at_the_bound.smallest_visible]).all()
    assert of(11.1).verdict == "undecided"
    assert of(12.6).verdict == "contradicted"
    assert "least linear first, are not measured" in of(11, orders=1).because


def test_a_ledger_is_written_from_sound_checkpoints(tmp_path):
    steps = {"step0": [9, 1, 1], "step8": [9, 0.5, 0.5], "step4": [9, 0.8, 1]}
    values, verdicts = tmp_path / "tables/left_out/d.csv", tmp_path / "tables/verdicts/d.csv"
    rows = [
        ("d", revision, revision[4:], "linearity", "all", layer, "", 4096, 4096, 0, 9, "")
        + (value,) * (GROUPS + 1)
        for revision, of in steps.items()
        for layer, value in [*enumerate(of), ("block_outputs", 7.0)]
    ]
    write_table(values, ("model", "revision", "step", *TIDY_COLUMNS), rows)
    shown = [["d", revision, "no" if revision == "step8" else "yes"] for revision in steps]
    write_table(verdicts, ["model", "revision", "shown"], shown)
    ledger, page = tmp_path / "claims.csv", tmp_path / "claims.md"
    judge_claims.main(
        "A paper",
        [vars(Claim(name="c", **CLAIM)), vars(Claim(name="other", **CLAIM | {"models": ["x|y"]}))],
        [{"name": "d", "role": "decoder", "layers": 2}],
        suspect_above={},
        left_out=[values],
        tables=[verdicts],
        output=(ledger, page),
    )
    found = pd.read_csv(ledger, keep_default_na=False, dtype=str)
    assert found["verdict"].tolist() == ["undecided", "not measured"]
    row = found.iloc[0]
    assert float(row["estimate"]) == pytest.approx(0.9)  # of the last sound step, of blocks
    assert (row["revisions"], row["statistic"]) == ("d@step4", "mean_over_layers(linearity)")
    assert (row["n"], row["selections"]) == ("4096", "all")
    assert "2 claims: 1 undecided, 1 not measured" in page.read_text()
    assert "| d | linearity | 0.9 |" in page.read_text()
