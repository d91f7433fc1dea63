"""Claims that are judged by hand-made numbers say what these say."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

import judge_claims
from made_claims import CLAIM
from shape_of_learning.claims.claim import Claim
from shape_of_learning.claims.evidence import Evidence, EvidenceModel, LayerValues
from shape_of_learning.claims.judging import judge
from shape_of_learning.claims.ledger import COLUMNS, write_page
from shape_of_learning.errors import InputError
from shape_of_learning.metrics.table_columns import GROUPS, LEFT_OUT_TABLE_COLUMNS
from shape_of_learning.storage.csv_table import read_rows, write_table

REPOSITORY = Path(__file__).parents[2]


def measured(values, step=0, estimator="linearity", spread=0.0, **others):
    """One checkpoint whose layers have these values, and left-out values around them."""
    around = spread * np.concatenate([[0], np.tile([-1, 1], GROUPS // 2)])
    whole = np.asarray(values, float)[:, None] + around
    layers = tuple(range(1, len(values) + 1))
    return LayerValues(f"step{step}", step, None, estimator, "all", layers, whole, **others)


def judged(values, claim=None, tables=None, models=(), **others):
    """The judgement on one decoder `d` whose checkpoints of each estimator are given."""
    known = {m.name: m for m in (*models, EvidenceModel("d", "decoder", 4, warmup_steps=2))}
    given = {("d", of[0].estimator): of for of in values}
    evidence = Evidence(known, given, tables or {}, **others)
    return judge(Claim(name="c", **CLAIM | (claim or {})), evidence)


def test_a_rule_on_a_part_that_the_statistic_does_not_have_names_those_that_it_has():
    rule = CLAIM["rule"] | {"supported": {"of": "linearity_held_out", "above": 0}}
    with pytest.raises(InputError, match=r"`c`: the rule asks .* but there are `linearity`"):
        judged([[measured([1, 1])]], {"rule": rule})


def test_a_rule_on_one_model_is_refused_where_there_are_several():
    rule = {"supported": {"above": 0}, "contradicted": {"below": 0}}
    models = {name: EvidenceModel(name, "decoder", 2) for name in ("a", "b")}
    values = {("a", "linearity"): [measured([1, 1])], ("b", "linearity"): [measured([-1, -1])]}
    claim = Claim(name="c", **CLAIM | {"rule": rule})
    with pytest.raises(InputError, match=r"`c`: .* 2 to judge, such as `a` and `b`; write `{in"):
        judge(claim, Evidence(models, values))
    assert judge(claim, Evidence({"a": models["a"]}, values)).verdict == "supported"


def test_a_number_of_models_is_not_shown_by_fewer():
    rule = {"supported": {"in": 3, "holds": {"above": 0}},
            "contradicted": {"in": "any", "holds": {"below": 0}}}  # fmt: skip

    def of(value):
        return judged([[measured([value, value], spread=0.001)]], {"rule": rule})

    assert of(1).verdict == "undecided"
    assert "(in 1 of 1 cases, 3 needed)" in of(1).because
    assert of(1).estimate == 1
    assert np.isnan([of(1).low, of(1).high, of(1).smallest_visible]).all()
    assert of(-1).verdict == "contradicted"


def test_a_statistic_without_units_measures_nothing(monkeypatch):
    name = "shape_of_learning.claims.statistics.mean_over_layers"
    monkeypatch.setattr(name, lambda reading, estimators: {})
    assert "`mean_over_layers` finds nothing" in judged([[measured([1])]]).because


def test_what_is_not_shown_beyond_a_bound_adds_to_a_condition_and_not_to_its_estimate():
    rule = {
        "supported": {"all_of": [{"in": 0.75, "holds": {"below": 0}},
                                 {"in": "all", "holds": {"not_above": 0}}]},
        "contradicted": {"in": 0.5, "holds": {"above": 0}},
    }  # fmt: skip

    def of(last):
        ends = {"a": -1, "b": -1, "c": -0.5, "d": last}
        values = {(m, "linearity"): [measured([v], spread=0.001)] for m, v in ends.items()}
        models = {name: EvidenceModel(name, "decoder", 1) for name in ends}
        return judge(Claim(name="c", **CLAIM | {"rule": rule}), Evidence(models, values))

    near = of(0.001)
    assert (near.verdict, near.estimate) == ("supported", -0.5)
    assert near.low < -0.5 < near.high < 0
    assert of(1).verdict == "undecided"
    assert of(1).estimate == -0.5


def test_a_rule_on_one_of_several_parts_must_say_which():
    claim = {"statistic": "middle_over_ends"}
    with pytest.raises(InputError, match=r"names no part, but there are `middle_over_first`, "):
        judged([[measured([1, 1, 1, 1])]], claim)


def test_an_interval_decides_and_not_the_value():
    # The standard error of values d off in turn is d sqrt(15), its interval 2.131 times that.
    half = 2.131449545559323 * 0.001 * np.sqrt(15)
    sure = judged([[measured([0.95 + 1.01 * half] * 2, spread=0.001)]])
    assert sure.verdict == "supported"
    assert sure.estimate == pytest.approx(0.95 + 1.01 * half)
    assert (sure.low, sure.high) == pytest.approx((0.95 + 0.01 * half, 0.95 + 2.01 * half))
    assert sure.smallest_visible == pytest.approx(half)
    assert judged([[measured([0.95 + 0.99 * half] * 2, spread=0.001)]]).verdict == "undecided"
    assert judged([[measured([0.9 - 1.01 * half] * 2, spread=0.001)]]).verdict == "contradicted"


def test_without_windows_in_every_group_nothing_is_measured():
    values = measured([1, 1])
    values.values[:, 1:] = np.nan
    assert "16 groups" in judged([[values]]).because


def test_of_what_has_no_logarithm_no_part_is_passed_over():
    def rising_from(first, spread):
        curve = zip(range(4), (first, 0.2, 0.3, 0.1), (spread, 0, 0, 0), strict=True)
        values = [measured([value], step, spread=spread) for step, value, spread in curve]
        rule = {"supported": {"above": 0}, "contradicted": {"below": 0}}
        claim = {"statistic": "rise_then_fall", "checkpoints": "training", "rule": rule}
        with np.errstate(invalid="ignore"):
            return judged([values], claim)

    assert rising_from(0.01, 0.001).verdict == "supported"
    assert "`rise_and_fall` of `d` is undefined" in rising_from(-0.1, 0.001).because
    assert "has no interval" in rising_from(0.01, 0.02).because  # negative without some groups


def test_suspect_values_decide_nothing():
    near = judged(
        [[measured([1, 1], near_duplicates=(0.0, 0.2))]], suspect_above={"linearity": 0.1}
    )
    assert near.verdict == "undecided"
    assert "would be supported, but values that are suspect" in near.because
    assert near.because.endswith("decide nothing: 1 of `d`.")
    few = judged([[measured([1, 1], near_duplicates=(0.0, 0.1))]], suspect_above={"linearity": 0.1})
    assert few.verdict == "supported"


def test_suspect_models_count_among_those_that_a_rule_needs_but_for_nothing():
    def of(clear, suspect):
        names = [f"m{i}" for i in range(clear + suspect)]
        values = {
            (name, "linearity"): [measured([1, 1], near_duplicates=(0.0, 0.2 * (i >= clear)))]
            for i, name in enumerate(names)
        }
        models = {name: EvidenceModel(name, "decoder", 2) for name in names}
        rule = CLAIM["rule"] | {"supported": {"in": 0.75, "holds": {"above": 0}}}
        evidence = Evidence(models, values, suspect_above={"linearity": 0.1})
        return judge(Claim(name="c", **CLAIM | {"rule": rule}), evidence)

    assert of(3, 1).verdict == "supported"
    assert "decide nothing: 1 of `m3`" in of(3, 1).because
    assert of(2, 2).verdict == "undecided"


def test_a_layer_that_is_undefined_at_one_step_is_left_out_at_all():
    claim = {"statistic": "change_over_training", "checkpoints": "training"}
    of = judged([[measured([1, 5], 0), measured([2, np.nan], 1)]], claim)
    assert [part.estimate for part in of.parts] == [1]
    assert "Left out as undefined: 1 layers" in of.because
    without_a_group = measured([2, 9], 1)
    without_a_group.values[1, 7] = np.nan
    of = judged([[measured([1, 5], 0), without_a_group]], claim)
    assert [part.estimate for part in of.parts] == [1]


def test_no_other_layer_stands_for_an_undefined_last_one():
    claim = {"statistic": "difference_of_estimators", "estimators": ["linearity", "other"]}
    of_last = claim | {"arguments": {"last_layer_only": True}}
    values = [[measured([1, 2, np.nan])], [measured([0, 0, 0], estimator="other")]]
    of = judged(values, of_last)
    assert of.verdict == "not measured"
    assert "`linearity` beside `other` at the last layer (`d` is without)" in of.because
    assert judged(values, claim).estimate == 1.5
    assert judged([[measured([1, 2, 3])], values[1]], of_last).estimate == 3


def test_other_estimators_and_layers_can_stand_for_those_of_a_claim():
    with_0 = LayerValues("s", None, None, "x", "all", (0, 1), np.array([[0.0] * 17, [1.0] * 17]))
    models = {"d": EvidenceModel("d", "decoder", 1)}
    evidence = Evidence(models, {("d", "x"): [with_0]}, suspect_above={"linearity": 0.1})
    claim = Claim(name="c", **CLAIM)
    assert judge(claim, evidence).verdict == "not measured"
    instead = evidence.with_estimators({"linearity": "x"})
    assert judge(claim, instead).estimate == 1
    assert not instead.suspect_above
    assert judge(replace(claim, average_over="all_layers"), instead).estimate == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ({"models": ["gpt2", "d"]}, "`gpt2` is not in the run."),
        ({"models": "encoders"}, "The run has no encoders with `linearity` at a sound checkpoint."),
        ({"checkpoints": "training", "models": ["d"]}, "`d` has no `linearity` at two or more sound steps."),
        ({"statistic": "flatter", "models": "all"}, "The run has no encoders with `linearity`"),
        ({"statistic": "cost_of_edits", "arguments": {"share": 0.5}, "estimators": [],
          "models": ["d"]}, "`d` has no tables/edits."),
    ],
)  # fmt: skip
def test_what_is_missing_is_said(claim, sentence):
    of = judged([[measured([1, 1, 1, 1])]], claim)
    assert of.verdict == "not measured"
    assert sentence in of.because
    assert np.isnan(of.estimate)


def parts(of):
    assert of.verdict != "not measured", of.because
    return {part.part: part.estimate for part in of.parts}


def test_statistics_of_training_on_numbers_by_hand():
    curve = {"estimators": ["two_nn"], "checkpoints": "training"}
    values = [
        measured([v, v], step, "two_nn") for step, v in zip((0, 1, 4, 8), (2, 4, 8, 4), strict=True)
    ]
    rule = {key: {"of": "growth", "above": 0} for key in ("supported", "contradicted")}
    settled = {"statistic": "growth_then_settling", "arguments": {"share": 0.25}, "rule": rule}
    of = parts(judged([values], curve | settled))
    # Half of the steps: from the third on.
    assert of == {"growth": 2, "settling": 0.25 * 2 - 4, "moving_on": 4 - 0.25 * 2}
    late = judged([[*values[1:3], measured([4, 4], 5, "two_nn")]], curve | settled)
    assert parts(late)["growth"] == 0
    late = judged([[*values[2:], measured([4, 4], 7, "two_nn")]], curve | settled)
    assert "no decoders with a sound step in the first half of its training" in late.because
    rise = parts(judged([values], curve | {"statistic": "rise_then_fall"}))
    assert rise["rise_and_fall"] == pytest.approx(np.log(2))
    rule = {key: {"of": "elsewhere", "above": 0} for key in ("supported", "contradicted")}
    values.append(measured([3, 3], 16, "two_nn"))
    of = parts(judged([values], curve | {"statistic": "peak_beside_warm_up", "rule": rule}))
    # The warm-up of two steps ends between the second and the third.
    assert of["elsewhere"] == pytest.approx(np.log(4 / 8))
    assert of["at_warm_up"] == pytest.approx(np.log(8 / 3))
    unknown = [EvidenceModel("d", "decoder", 4)]
    evidence = Evidence({m.name: m for m in unknown}, {("d", "two_nn"): values})
    claim = Claim(name="c", **CLAIM | curve | {"statistic": "peak_beside_warm_up", "rule": rule})
    assert (
        "no decoders with a known `warmup_steps` (`d` is without)" in judge(claim, evidence).because
    )


def test_the_first_and_the_last_checkpoint_are_those_that_are_sound_and_have_a_step():
    values = [measured([v], step) for step, v in ((0, 1), (2, 5), (9, 4))]
    claim = {"statistic": "change_over_training"}
    ends = judged([values], claim | {"checkpoints": "training"})
    assert parts(ends) == {"linearity": 3}
    assert ends.revisions == ("d@step0", "d@step2", "d@step9")
    later = {"checkpoints": "training", "arguments": {"from_step": 1}}
    assert parts(judged([values], claim | later)) == {"linearity": -1}


def test_isotropy_of_weights_goes_with_the_loss_over_steps():
    steps = (1, 2, 3, 4)
    weights = [
        {"model": "d", "revision": f"step{s}", "step": str(s), "matrix": "output", "value": str(-s),
         "estimator": "matrix_partition_isotropy"} for s in steps
    ]  # fmt: skip
    losses = [
        {"model": "d", "revision": f"step{s}", "loss": str(loss)}
        for s, loss in zip(steps, (9, 3, 2, 1), strict=True)
    ]
    claim = {"statistic": "correlation_with_loss", "arguments": {"from_step": 2}}
    claim["estimators"] = ["matrix_partition_isotropy"]
    tables = {"weights": weights, "verdicts": losses}
    assert parts(judged([], claim, tables)) == {"correlation": pytest.approx(1)}
    claim["arguments"]["from_step"] = 3
    assert "a loss at 2 steps from 3 on, and 3 are needed" in judged([], claim, tables).because


@pytest.mark.parametrize(
    ("statistic", "arguments"),
    [
        ("isotropy_beside_others", {"of": ["d"], "others": ["e", "f"]}),
        ("weights_beside", {"reference": "e"}),
    ],
)
def test_models_that_weights_are_compared_with_may_be_missing(statistic, arguments):
    claim = {"statistic": statistic, "arguments": arguments, "needs": 1, "models": ["d", "e", "f"]}

    def of(**values):
        rows = [
            {"model": name, "revision": "r", "step": "", "matrix": "tied", "value": str(value),
             "estimator": "linearity"} for name, value in values.items()
        ]  # fmt: skip
        models = [EvidenceModel(name, "decoder", 2) for name in "ef"]
        return judged([], claim | {"rule": rule}, {"weights": rows}, models)

    part = "over_least" if "of" in arguments else "linearity"
    rule = {
        "supported": {"in": "all", "holds": {"of": part, "above": 0}},
        "contradicted": {"in": "all", "holds": {"of": part, "below": 0}},
    }
    assert "no `linearity` in the run" in of(d=1).because
    assert of(d=1, e=0, f=3).verdict == "supported"


def test_estimators_agree_where_all_rise_and_disagree_where_one_falls():
    claim = {"statistic": "concordance", "estimators": ["two_nn", "mom"], "checkpoints": "training"}
    rule = {key: {"of": "rank", "above": 0} for key in ("supported", "contradicted")}

    def of(*curves):
        named = zip(claim["estimators"], curves, strict=True)
        values = [[measured([v], s, name) for s, v in enumerate(curve)] for name, curve in named]
        return parts(judged(values, claim | {"rule": rule}))

    assert min(of([1, 2, 4, 8], [1, 3, 9, 27]).values()) == pytest.approx(np.log(2))
    assert max(of([1, 2, 4, 8], [27, 9, 3, 1]).values()) < 0
    falling_late = of([1, 2, 4, 8], [1, 9, 10, 8])  # alike in four pairs of steps of six
    assert falling_late["rank"] > 0 > falling_late["direction"]


def edits(*perplexities):
    rows = []
    for order in ("most_linear_first", "least_linear_first"):
        for kind in ("dropped", "replaced"):
            for k, perplexity in enumerate(perplexities if order[0] == "m" else (10, 30)):
                rows.append({"model": "d", "revision": "step0", "order": order, "kind": kind,
                             "k": str(k), "perplexity": str(perplexity)})  # fmt: skip
    return {"edits": rows}


def test_numbers_without_an_interval_are_compared_as_they_are():
    claim = {"statistic": "cost_of_edits", "arguments": {"share": 0.125}, "estimators": ()}
    claim["rule"] = yaml.safe_load((REPOSITORY / "workflow/papers/linear/claims.yaml").read_text())[
        "most_linear_blocks_can_go"
    ]["rule"]
    of = judged([], claim, edits(10, 11))
    assert of.verdict == "supported"  # at the bound
    assert parts(of) == {"dropped": 1.1, "replaced": 1.1, "dropped_over_reverse": pytest.approx(-1.9),
                         "replaced_over_reverse": pytest.approx(-1.9)}  # fmt: skip
    assert np.isnan([of.low, of.high, of.smallest_visible]).all()
    assert judged([], claim, edits(10, 11.1)).verdict == "undecided"
    assert judged([], claim, edits(10, 12.6)).verdict == "contradicted"
    one_order = {"edits": edits(10, 11)["edits"][:4]}
    assert (
        "least linear first, are not measured (`most_blocks`, `orders` and"
        in judged([], claim, one_order).because
    )


def left_out_table(folder, estimator, checkpoints):
    """A table of left-out values of one model: of each revision the step and the values of its layers."""
    rows = [
        ["d", revision, step, "", layer, estimator, "all", value, 4096, 0.0, *[value] * GROUPS]
        for revision, step, values in checkpoints
        for layer, value in enumerate(values)
    ]
    file = folder / "tables/every_checkpoint/d" / estimator / "left_out.csv"
    file.parent.mkdir(parents=True)
    write_table(file, LEFT_OUT_TABLE_COLUMNS, rows)
    return file


def test_a_ledger_is_written_from_sound_checkpoints(tmp_path):
    steps = [("step0", 0, [9, 1, 1]), ("step8", 8, [9, 0.5, 0.5]), ("step4", 4, [9, 0.8, 1])]
    values = left_out_table(tmp_path, "linearity", steps)
    verdicts = tmp_path / "tables/verdicts/d.csv"
    verdicts.parent.mkdir(parents=True)
    shown = [["d", revision, "no" if step == 8 else "yes"] for revision, step, _ in steps]
    write_table(verdicts, ["model", "revision", "shown"], shown)
    write_table(tmp_path / "checkpoints/d/step4.tensors.csv", ["tensor"], [["w"]])
    alphabet = tmp_path / "alphabet.json"
    alphabet.write_text('{"text": {"sha256": "0123456789abcdef"}}')
    claims = [
        vars(Claim(name="c", **CLAIM)),
        vars(Claim(name="other", **CLAIM | {"models": ["x"]})),
    ]
    model = {"name": "d", "role": "decoder", "layers": 2}
    output = [tmp_path / "claims.csv", tmp_path / "claims.md"]
    judge_claims.main("A paper", json.dumps(claims), json.dumps([model]), "{}", [values],
                      [("verdicts", verdicts)], (tmp_path / "checkpoints", alphabet), output)  # fmt: skip
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in read_rows(output[0], COLUMNS)]
    assert [row["verdict"] for row in rows] == ["undecided", "not measured"]
    assert float(rows[0]["estimate"]) == pytest.approx(0.9)  # of the last sound step, of blocks
    assert rows[0]["revisions"] == "d@step4"
    assert rows[0]["statistic"] == "mean_over_layers(linearity)"
    assert (rows[0]["n"], rows[0]["selections"]) == ("4096", "all")
    weights, text = rows[0]["hashes"].split(";")
    assert text == "text:01234567"
    assert weights.startswith("d:")
    page = output[1].read_text()
    assert "2 claims: 1 undecided, 1 not measured" in page
    write_page(output[1], "A paper", [(Claim(name="c", **CLAIM), judged([]))])
    assert "1 claim: 1 not measured" in output[1].read_text()
    assert "`x` is not in the run" in page
