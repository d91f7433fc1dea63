"""Which choices touch a claim, and the claim under every specification, from tables that are made for it."""

import math
from dataclasses import astuple, replace
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import judge_choices
from measure_checkpoint import CHOICE_COLUMNS
from shape_of_learning.claims.choices import ClaimChoices, specifications, thinned
from shape_of_learning.claims.claim import Claim
from shape_of_learning.claims.specifications import (
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
from shape_of_learning.files import write_table
from shape_of_learning.metrics.measure_entry import AFTER, BEFORE, Rows
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
    {
        "first_token": ("keep", "drop"),
        "centring": ("anisotropy", "anisotropy_uncentered"),
        "average_over": ("block_outputs", "all_layers"),
        "last_layer": (AFTER, BEFORE),
    },
    vars(Rows()) | {"last_layer": AFTER, "average_over": "block_outputs"},
    {"anisotropy": "centring"},
)


def settings_with(**choices):
    return with_defaults({"choices": choices}, DEFAULTS)


def of_claim(settings, *estimators):
    """What touches a claim on some estimators."""
    measures = chosen_measures(settings["measurement"], estimators, "both")
    claim = replace(CLAIM, estimators=estimators)
    return read_choice_settings(settings).of_claim(claim, measures)


def claims_of(paper, settings):
    claims = {paper: read_claims(REPOSITORY / f"workflow/papers/{paper}/claims.yaml")}
    read = read_choice_settings(settings)
    return claims_with_choices(claims, settings, read, MODELS, [paper, "linear"])[0]


def test_only_what_touches_a_claim_is_chosen():
    settings = settings_with(batch_share=[1, 0.5])
    anisotropy, dimension = (of_claim(settings, e).choices for e in ("anisotropy", "two_nn"))
    assert ("centring" in anisotropy, "dimension" in anisotropy) == (True, False)
    assert ("centring" in dimension, "dimension" in dimension) == (False, True)
    # Blocks are measured on all vectors together, and there is none at layer 0.
    assert "batch_share" in anisotropy
    of_blocks = of_claim(settings, "linearity").choices
    assert of_blocks.keys().isdisjoint({"batch_share", "average_over"})
    # What a measure says of its rows itself is no choice.
    assert "first_token" in of_blocks
    assert "first_token" not in of_claim(settings, "linearity_without_first_token").choices


def test_of_several_estimators_each_has_its_own_parameters():
    found = of_claim(settings_with(), "two_nn", "mada", "mom").choices
    assert found["two_nn"] == ("two_nn", "two_nn(kept=0.2)")
    assert found["mada"] == ("mada", "mada(k=10)")
    assert "dimension" not in found
    settings = settings_with()
    settings["choices"]["estimators"] = {  # with the name of one of them
        "two_nn": ["two_nn", {"two_nn": {"kept": 0.2}}, "mada", {"mada": {"k": 10}}]
    }
    instead = {"two_nn": "two_nn(kept=0.2)", "mada": "mada"}
    assert of_claim(settings, "two_nn", "mada").estimators(instead) == instead


def test_what_the_run_has_is_the_reference_and_listed_once():
    settings = settings_with(windows_share=[1, 0.33333333, 0.33333334])
    settings["measurement"] |= {"first_token": "drop", "parameters": {"two_nn": {"kept": 0.2}}}
    settings["forward"]["last_layer"] = "before_final_norm"
    settings["choices"]["estimators"]["dimension"] += [{"mada": {"k": 20}}]  # as by default
    found = of_claim(settings, "two_nn")
    own = {"first_token": "drop", "last_layer": "before_final_norm"}
    assert own.items() <= found.reference.items()
    names = [each for each in found.choices["dimension"] if each.startswith(("two_nn", "mada"))]
    assert set(names) == {"two_nn", "two_nn_authors", "mada", "mada(k=10)"}
    assert found.choices["windows_share"] == ("1", "0.333333")


def test_what_asks_for_more_neighbours_than_are_searched_is_left_out():
    settings = settings_with()
    settings["measurement"] |= {"neighbours": 20, "batch_vectors": 100}
    variants = read_choice_settings(settings).families["dimension"]
    assert {each.base for each in variants} == {"two_nn", "two_nn_authors", "mle", "mada"}
    found = claims_of("shape_of_learning", settings)
    assert "dimension_rises_then_falls" in found
    assert "estimators_agree" not in found  # which names one of 100
    of, _ = found["dimension_rises_then_falls"]
    # The first specification is the reference, in which nothing stands for another.
    assert of.estimators(specifications(of.choices)[0]) == {"two_nn": "two_nn"}


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


@pytest.fixture
def measured(tmp_path):
    """Makes values of one decoder, of which those at some revisions are sound."""

    def make(value_of=value_of, *, sound=None, revisions=("last",), near=0.2):
        places = [*((layer, AFTER) for layer in range(LAYERS + 1)), (LAYERS, BEFORE)]
        names = CHOICES.choices["centring"]
        options = product(("keep", "drop"), names, places, enumerate(revisions))
        table = []
        for first_token, name, (layer, last_layer), (step, revision) in options:
            rows = Rows(first_token=first_token)
            value = value_of(rows, name, layer, last_layer)
            without = value + 0.01 * np.linspace(-1, 1, 16)
            at = ("m", revision, step, *astuple(rows), last_layer, name, "", layer, None)
            table.append((*at, 4096, 4000, near, 128, value, *without))
        write_table(tmp_path / "measured.csv", CHOICE_COLUMNS, table)
        shown = [("m", name, "yes" if name in (sound or ()) else "no") for name in revisions]
        write_table(tmp_path / "verdicts.csv", ("model", "revision", "shown"), shown)
        return MeasuredChoices(
            [{"name": "m", "role": "decoder", "layers": LAYERS}],
            {"anisotropy": 0.3},
            [tmp_path / "measured.csv"],
            [] if sound is None else [tmp_path / "verdicts.csv"],
        )

    return make


def flips_by_choice(values):
    return {row["choice"]: row for row in flips(CHOICES, judged_specifications(CHOICES, values))}


def test_a_choice_that_flips_a_verdict_is_shown_and_others_are_not(measured, tmp_path):
    found = flips_by_choice(measured())
    assert list(found["first_token"].values())[4:] == ["supported", "contradicted", "yes", 8, 8]
    for name in ("centring", "average_over", "last_layer"):
        assert (found[name]["flips"], found[name]["flipped_pairs"]) == ("no", 0)
    page = flip_page([*found.values()])
    assert "drop: **contradicted** (8 of 8)" in page
    assert "before_final_norm: same (0 of 8)" in page
    page = tmp_path / "choices.md"
    judge_choices.main([], [], {}, PROTOCOL, [], [], (tmp_path / "choices.csv", page), [])
    assert page.read_text().startswith("No claim to compare")


def test_estimator_and_layers_are_taken_as_a_specification_says(measured):
    def value_of(rows, estimator, layer, last_layer):
        own = layer * (2.0 if estimator == "anisotropy_uncentered" else 1.0)
        return 0.1 if layer == 0 else own + 10 * (last_layer == BEFORE)

    judged = judged_specifications(CHOICES, measured(value_of))
    found = {tuple(s.specification.values())[1:]: s.judgement.estimate for s in judged}
    own = ("anisotropy", "block_outputs", AFTER)
    assert found[own] == pytest.approx((1 + 2 + 3 + 4) / 4)
    assert found["anisotropy_uncentered", *own[1:]] == pytest.approx((2 + 4 + 6 + 8) / 4)
    assert found["anisotropy", "all_layers", AFTER] == pytest.approx((0.1 + 1 + 2 + 3 + 4) / 5)
    assert found["anisotropy", "block_outputs", BEFORE] == pytest.approx((1 + 2 + 3 + 14) / 4)


def test_checkpoints_that_are_not_sound_are_left_out(measured):
    both = {"revisions": ("first", "last")}
    (reference, *_) = judged_specifications(CHOICES, measured(sound=["first"], **both))
    assert reference.judgement.revisions == ("m@first",)
    found = flips_by_choice(measured(sound=[], **both))["first_token"]
    assert (found["verdict"], found["flips"]) == ("not measured", "")


def test_suspect_values_decide_nothing_where_their_estimator_is_taken(measured):
    judged = judged_specifications(CHOICES, measured(near=0.5))
    undecided = {s.specification["centring"] for s in judged if s.judgement.verdict == "undecided"}
    assert undecided == {"anisotropy"}
    assert "Hollow" in specification_curve(CHOICES, judged, PROTOCOL).caption


def test_what_is_not_measured_is_told_and_counts_in_no_pair(measured):
    def value_of(rows, estimator, layer, last_layer):
        return math.nan if estimator == "anisotropy_uncentered" else 0.8

    found = flips_by_choice(measured(value_of))
    centring = [found["centring"][key] for key in ("verdict", "flips", "pairs")]
    assert centring == ["not measured", "", 0]
    assert found["first_token"]["pairs"] == 4


def test_a_curve_is_drawn_by_effect_with_its_choices_and_caption(measured, tmp_path):
    judged = judged_specifications(CHOICES, measured())
    with theme():
        drawing = specification_curve(CHOICES, judged, PROTOCOL)
        save(drawing, *(tmp_path / f"curve.{kind}" for kind in ("pdf", "png", "csv", "md")))
    rows = pd.read_csv(tmp_path / "curve.csv")
    assert len(rows) == len(specification_rows(CHOICES, judged)) == 16
    assert rows["estimate"].is_monotonic_increasing
    assert rows["is_reference"].tolist().count("yes") == 1
    matrix, (legend,) = drawing.figure.axes[0], drawing.figure.legends
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels == ["supported: 8", "contradicted: 8", "reference"]
    dots = sum(len(line.get_xdata()) for line in matrix.lines if line.get_marker() == "o")
    assert dots == 16 * 4  # one option of each choice
    assert "8 supported and 8 contradicted" in drawing.caption
    assert "there are 6 different effects" in drawing.caption
    assert "Hollow" not in drawing.caption
