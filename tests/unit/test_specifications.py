"""Which choices touch a claim, and the claim under every specification, from tables that are made for it."""

import csv
import io
import json
import math
import warnings
from dataclasses import asdict, astuple, replace
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

from measure_choices import COLUMNS
from shape_of_learning.claims.choices import (
    AFTER,
    BEFORE,
    Choice,
    ClaimChoices,
    Rows,
    specifications,
    thinned,
)
from shape_of_learning.claims.claim import Claim
from shape_of_learning.claims.specifications import (
    FLIP_COLUMNS,
    MeasuredChoices,
    flip_page,
    flips,
    judged_specifications,
    specification_rows,
)
from shape_of_learning.errors import InputError
from shape_of_learning.figures.output import save
from shape_of_learning.figures.specification_curve import specification_curve
from shape_of_learning.figures.style import theme
from shape_of_learning.files import read_yaml, write_table
from shape_of_learning.plan.choice_settings import claims_with_choices, read_choice_settings
from shape_of_learning.plan.claim_list import read_claims
from shape_of_learning.plan.configuration import with_defaults
from shape_of_learning.plan.measures import chosen_measures

REPOSITORY = Path(__file__).parents[2]
DEFAULTS = REPOSITORY / "config/config.yaml"
MODELS = {
    "d": {"kind": "pretrained", "role": "decoder"},
    "e": {"kind": "pretrained", "role": "encoder"},
}
LAYERS = 4
PROTOCOL = {
    **{"windows": 128, "window_characters": 512, "source": "enwik8"},
    **{"batch_vectors": 4096, "checkpoints": 8},
}
CLAIM = Claim(
    name="high",
    sentence="The measure is high.",
    where="nowhere",
    statistic="mean_over_layers",
    estimators=["anisotropy"],
    models="decoders",
    rule={"supported": {"in": "all", "holds": {"of": "anisotropy", "above": 0.5}},
          "contradicted": {"in": "any", "holds": {"of": "anisotropy", "below": 0.5}}},
)  # fmt: skip
CHOICES = ClaimChoices(
    CLAIM,
    [
        Choice("first_token", ("keep", "drop")),
        Choice("centring", ("anisotropy", "anisotropy_uncentered")),
        Choice("average_over", ("block_outputs", "all_layers")),
        Choice("last_layer", (AFTER, BEFORE)),
    ],
    Rows(),
    AFTER,
    {"anisotropy": "centring"},
)


def settings_with(**choices):
    return with_defaults({"choices": choices}, DEFAULTS)


def choices_of(estimators, average_over="block_outputs", **choices):
    """The choices of a claim on some estimators, by name."""
    settings = settings_with(**choices)
    measures = chosen_measures(settings["measurement"], estimators, "both")
    found = read_choice_settings(settings).choices(measures, average_over)
    return {choice.name: choice.options for choice in found}


def claims_of(paper, settings):
    claims = {paper: read_claims(REPOSITORY / f"workflow/papers/{paper}/claims.yaml")}
    read = read_choice_settings(settings)
    return claims_with_choices(claims, settings, read, MODELS, [paper, "linear"])[0]


def test_only_what_touches_a_claim_is_chosen():
    anisotropy, dimension = choices_of(["anisotropy"]), choices_of(["two_nn"])
    assert ("centring" in anisotropy, "dimension" in anisotropy) == (True, False)
    assert ("centring" in dimension, "dimension" in dimension) == (False, True)
    # Blocks are measured on all vectors together, and there is none at layer 0.
    shares = {"batch_share": [1, 0.5]}
    assert "batch_share" in choices_of(["anisotropy"], **shares)
    of_blocks = choices_of(["linearity"], **shares)
    assert {"batch_share", "average_over"}.isdisjoint(of_blocks)
    # What a measure says of its rows itself is no choice.
    assert "first_token" in of_blocks
    assert "first_token" not in choices_of(["linearity_without_first_token"])


def test_of_several_estimators_each_has_its_own_parameters():
    found = choices_of(["two_nn", "mada", "mom"])
    assert found["two_nn"] == ("two_nn", "two_nn(kept=0.2)")
    assert found["mada"] == ("mada", "mada(k=10)")
    assert "dimension" not in found
    family = {"two_nn": ["two_nn", {"two_nn": {"kept": 0.2}}, "mada", {"mada": {"k": 10}}]}
    settings = settings_with()
    settings["choices"]["estimators"] = family  # with the name of one of them
    measures = chosen_measures(settings["measurement"], ["two_nn", "mada"], "both")
    claim = replace(CLAIM, estimators=["two_nn", "mada"])
    of = read_choice_settings(settings).of_claim(claim, measures)
    instead = {"two_nn": "two_nn(kept=0.2)", "mada": "mada"}
    assert of.estimators(instead) == instead


def test_what_the_run_has_is_the_reference_and_listed_once():
    settings = settings_with(windows_share=[1, 0.33333333, 0.33333334])
    settings["measurement"] |= {"first_token": "drop", "parameters": {"two_nn": {"kept": 0.2}}}
    settings["forward"]["last_layer"] = "before_final_norm"
    settings["choices"]["estimators"]["dimension"] += [{"mada": {"k": 20}}]  # as by default
    found = read_choice_settings(settings)
    assert found.own_rows.first_token == "drop"
    assert found.last_layer[0] == "before_final_norm"
    assert choices_of(["anisotropy"], "all_layers")["average_over"][0] == "all_layers"
    names = [each.name for each in found.families["dimension"] if each.base in ("two_nn", "mada")]
    assert names == ["two_nn", "mada", "mada(k=10)"]
    shares = {choice.name: choice.options for choice in found.rows}["windows_share"]
    assert shares == ("1", "0.333333")


def test_what_asks_for_more_neighbours_than_are_searched_is_left_out():
    settings = settings_with()
    settings["measurement"] |= {"neighbours": 20, "batch_vectors": 100}
    variants = read_choice_settings(settings).families["dimension"]
    assert {each.base for each in variants} == {"two_nn", "two_nn_authors", "mle", "mada"}
    found = claims_of("shape_of_learning", settings)
    assert "dimension_rises_then_falls" in found
    assert "estimators_agree" not in found  # which names one of 100


def test_every_combination_is_there_once_and_the_reference_takes_nothings_place():
    for of, _ in claims_of("shape_of_learning", settings_with(batch_share=[1, 0.5])).values():
        made = specifications(of.choices)
        number = math.prod(len(choice.options) for choice in of.choices)
        assert len({tuple(each.items()) for each in made}) == len(made) == number
        assert of.estimators(made[0]) == {name: name for name in of.claim.estimators}


def test_the_demo_has_specifications_at_a_step_away_from_the_warm_up():
    settings = with_defaults(read_yaml(REPOSITORY / "config/demo.yaml"), DEFAULTS)
    found = claims_of("shape_of_learning", settings)
    assert len(found) == 6  # all but that on two models that the demo does not have
    assert min(len(specifications(of.choices)) for of, _ in found.values()) >= 32
    # Else the claim on the warm-up has a curve without a point.
    entry = read_yaml(REPOSITORY / "config/models/demo.yaml")["demo-decoder"]
    end = entry["pretraining"]["warmup_steps"]
    steps = thinned(settings["training_steps"]["demo-decoder"], settings["choices"]["checkpoints"])
    before = max(step for step in steps if step <= end)
    after = min(step for step in steps if step >= end)
    assert set(steps[1:-1]) - {before, after}


def test_claims_without_enough_models_or_on_other_tables_are_left_out():
    claims = {
        "one": replace(CLAIM, models=["d", "missing"], estimators=["two_nn"]),
        "some": replace(CLAIM, models=["d", "missing"], estimators=["two_nn"], needs=1),
        "twins": replace(CLAIM, models="twins"),
        "table": replace(CLAIM, models="all", estimators=[], reads=["edits"]),
    }
    settings = settings_with()
    read = read_choice_settings(settings)
    found, measures = claims_with_choices({"p": claims}, settings, read, MODELS, ["p"])
    assert {name: models for name, (_, models) in found.items()} == {"some": ["d"]}
    assert {"two_nn(kept=0.2)", "mle"} <= measures["some"].keys()
    twin = {"kind": "twin", "role": "decoder", "origin": "d", "treatment": "cosine 0.5"}
    models = MODELS | {"t": twin, "u": twin | {"origin": "elsewhere"}}
    found, _ = claims_with_choices({"p": claims}, settings, read, models, ["p"])
    assert found["twins"][1] == ["t", "u", "d"]  # with the original


@pytest.mark.parametrize("number", [1, 2, 3, 9, 154])
def test_a_long_training_is_thinned_evenly(number):
    chosen = thinned(range(number), 3)
    assert len(chosen) == min(3, number)
    assert {chosen[0], chosen[-1]} == {0, number - 1}
    gaps = [b - a for a, b in pairwise(chosen)]
    assert max(gaps, default=0) - min(gaps, default=0) <= 1


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"text": ["own", "enwik8"]}, r"`choices.text` names `own` and `enwik8`, which are the same"),
        ({"papers": ["shape"]}, r"`choices.papers`: unknown paper `shape`"),
        ({"estimators": {"d": ["two_nn"]}}, r"`two_nn`, which is in `dimension`"),
        ({"estimators": {"estimate": ["isoscore"]}}, r"`choices.estimators.estimate` has the name"),
        ({"batch_share": [1, 0.01]}, r"`choices.batch_share` has 0.01, which makes batches of 41"),
    ],
)  # fmt: skip
def test_what_there_is_not_is_refused_by_its_key(choices, message):
    with pytest.raises(InputError, match=message):
        claims_of("shape_of_learning", settings_with(**choices))


def value_of(rows, estimator, layer, last_layer):
    """Without first tokens it is low; before the final norm one layer is another; nothing else matters."""
    if last_layer == BEFORE:
        return 0.95
    return 0.2 if rows.first_token == "drop" else 0.8


def measured(tmp_path, value_of=value_of, *, sound=None, revisions=("last",), near=0.2):
    """Values of one decoder, of which those at some revisions are sound."""
    places = [*((layer, AFTER) for layer in range(LAYERS + 1)), (LAYERS, BEFORE)]
    options = product(*(choice.options for choice in CHOICES.choices[:2]), places)
    table = []
    for first_token, estimator, (layer, last_layer) in options:
        rows = Rows(first_token=first_token)
        value = value_of(rows, estimator, layer, last_layer)
        without = (value + 0.01 * np.linspace(-1, 1, 16)).tolist()
        counts = ("", layer, None, 4096, 4000, near, 128)
        for step, revision in enumerate(revisions):
            chosen = ("m", revision, step, *astuple(rows), last_layer, estimator)
            table.append((*chosen, *counts, value, *without))
    write_table(tmp_path / "choices/m/last.csv", COLUMNS, table)
    shown = [("m", name, "yes" if name in (sound or ()) else "no") for name in revisions]
    write_table(tmp_path / "verdicts/m.csv", ("model", "revision", "shown"), shown)
    return MeasuredChoices(
        [{"name": "m", "role": "decoder", "layers": LAYERS}],
        {"anisotropy": 0.3},
        [tmp_path / "choices/m/last.csv"],
        [] if sound is None else [tmp_path / "verdicts/m.csv"],
    )


def flips_by_choice(values):
    judged = judged_specifications(CHOICES, values)
    named = [dict(zip(FLIP_COLUMNS, row, strict=True)) for row in flips(CHOICES, judged)]
    return {row["choice"]: row for row in named}


def test_a_choice_that_flips_a_verdict_is_shown_and_others_are_not(tmp_path):
    found = flips_by_choice(measured(tmp_path))
    first_token = {key: found["first_token"][key] for key in FLIP_COLUMNS[4:]}
    assert first_token == {
        **{"verdict_of_reference": "supported", "verdict": "contradicted", "flips": "yes"},
        **{"pairs": 8, "flipped_pairs": 8},
    }
    for name in ("centring", "average_over", "last_layer"):
        assert (found[name]["flips"], found[name]["flipped_pairs"]) == ("no", 0)
    page = flip_page([list(row.values()) for row in found.values()])
    assert "drop: **contradicted** (8 of 8)" in page
    assert "before_final_norm: same (0 of 8)" in page
    assert flip_page([]).startswith("No claim to compare")


def test_estimator_and_layers_are_taken_as_a_specification_says(tmp_path):
    def value_of(rows, estimator, layer, last_layer):
        own = layer * (2.0 if estimator == "anisotropy_uncentered" else 1.0)
        return 0.1 if layer == 0 else own + 10 * (last_layer == BEFORE)

    judged = judged_specifications(CHOICES, measured(tmp_path, value_of))
    found = {tuple(s.specification.values())[1:]: s.judgement.estimate for s in judged}
    own = ("anisotropy", "block_outputs", AFTER)
    assert found[own] == pytest.approx((1 + 2 + 3 + 4) / 4)
    assert found["anisotropy_uncentered", *own[1:]] == pytest.approx((2 + 4 + 6 + 8) / 4)
    assert found["anisotropy", "all_layers", AFTER] == pytest.approx((0.1 + 1 + 2 + 3 + 4) / 5)
    assert found["anisotropy", "block_outputs", BEFORE] == pytest.approx((1 + 2 + 3 + 14) / 4)


def test_checkpoints_that_are_not_sound_are_left_out(tmp_path):
    both = {"revisions": ("first", "last")}
    (reference, *_) = judged_specifications(CHOICES, measured(tmp_path, sound=["first"], **both))
    assert reference.judgement.revisions == ("m@first",)
    found = flips_by_choice(measured(tmp_path, sound=[], **both))["first_token"]
    assert (found["verdict"], found["flips"]) == ("not measured", "")


def test_what_is_not_measured_is_told_and_counts_in_no_pair(tmp_path):
    def value_of(rows, estimator, layer, last_layer):
        return math.nan if estimator == "anisotropy_uncentered" else 0.8

    found = flips_by_choice(measured(tmp_path, value_of))
    centring = [found["centring"][key] for key in ("verdict", "flips", "pairs")]
    assert centring == ["not measured", "", 0]
    assert found["first_token"]["pairs"] == 4


def test_a_job_is_told_all_of_it_in_plain_values():
    told = json.loads(json.dumps(asdict(CHOICES)))
    assert json.loads(json.dumps(asdict(ClaimChoices.from_plain(told)))) == told


def test_suspect_values_of_an_estimator_are_hollow_where_it_is_taken(tmp_path):
    judged = judged_specifications(CHOICES, measured(tmp_path, near=0.5))
    undecided = {s.specification["centring"] for s in judged if s.judgement.verdict == "undecided"}
    assert undecided == {"anisotropy"}
    with theme():
        drawing = specification_curve(CHOICES, judged, PROTOCOL)
    labels = [text.get_text() for text in drawing.figure.legends[0].get_texts()]
    assert {"undecided: 8", "(conditions not met)"} <= set(labels)
    assert "Hollow" in drawing.caption


def test_a_curve_is_drawn_by_effect_with_its_choices_and_caption(tmp_path):
    judged = judged_specifications(CHOICES, measured(tmp_path))
    with theme(), warnings.catch_warnings():
        warnings.simplefilter("error")
        drawing = specification_curve(CHOICES, judged, PROTOCOL)
        save(drawing, *(tmp_path / f"curve.{kind}" for kind in ("pdf", "png", "csv", "md")))
    rows = list(csv.DictReader(io.StringIO((tmp_path / "curve.csv").read_text())))
    assert len(rows) == len(specification_rows(CHOICES, judged)) == 16
    estimates = [float(row["estimate"]) for row in rows]
    assert estimates == sorted(estimates)
    assert [row["is_reference"] for row in rows].count("yes") == 1
    matrix, (legend,) = drawing.figure.axes[0], drawing.figure.legends
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels == ["supported: 8", "contradicted: 8", "reference"]
    dots = sum(len(line.get_xdata()) for line in matrix.lines if line.get_marker() == "o")
    assert dots == 16 * len(CHOICES.choices)  # one option of each choice
    assert "8 supported and 8 contradicted" in drawing.caption
    assert "there are 6 different effects" in drawing.caption
    of_twins = replace(CLAIM, statistic="twins_less_originals", models="twins")
    twins = replace(CHOICES, claim=replace(of_twins, arguments={"regulariser": "x", "pairs": 3}))
    with theme():
        drawing = specification_curve(
            twins, judged_specifications(twins, measured(tmp_path)), PROTOCOL
        )
    assert "95 % intervals of means over pairs" in drawing.caption
