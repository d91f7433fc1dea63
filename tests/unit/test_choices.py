"""Which choices touch a claim, and what specifications they make."""

from itertools import pairwise
from pathlib import Path

import pytest

from shape_of_learning.claims.choices import specifications
from shape_of_learning.claims.claim import Claim
from shape_of_learning.claims.claim_choices import thinned
from shape_of_learning.errors import InputError
from shape_of_learning.plan.choice_settings import claims_with_choices, read_choice_settings
from shape_of_learning.plan.claim_list import read_claims
from shape_of_learning.plan.configuration import with_defaults
from shape_of_learning.plan.measures import chosen_measures
from shape_of_learning.plan.refusals import validated
from shape_of_learning.plan.settings import Settings
from shape_of_learning.storage.yaml_file import read_yaml

REPOSITORY = Path(__file__).parents[2]
DEFAULTS = REPOSITORY / "config/config.yaml"
MODELS = {
    "d": {"kind": "pretrained", "role": "decoder"},
    "e": {"kind": "pretrained", "role": "encoder"},
}


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
    assert "centring" in anisotropy
    assert "dimension" not in anisotropy
    assert "dimension" in dimension
    assert "centring" not in dimension
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


def test_what_the_run_has_is_the_reference():
    settings = settings_with()
    settings["measurement"]["first_token"] = "drop"
    settings["forward"]["last_layer"] = "before_final_norm"
    found = read_choice_settings(settings)
    assert found.own_rows.first_token == "drop"
    assert found.last_layer[0] == "before_final_norm"
    assert choices_of(["anisotropy"], "all_layers")["average_over"][0] == "all_layers"


def test_a_family_with_the_name_of_an_estimator_decides_about_no_other_one():
    family = {"two_nn": ["two_nn", {"two_nn": {"kept": 0.2}}, "mada", {"mada": {"k": 10}}]}
    settings = settings_with()
    settings["choices"]["estimators"] = family
    measures = chosen_measures(settings["measurement"], ["two_nn", "mada"], "both")
    claim = Claim("c", "", "", "mean_over_layers", {}, "all", ["two_nn", "mada"])
    of = read_choice_settings(settings).of_claim(claim, measures)
    instead = of.estimators({"two_nn": "two_nn(kept=0.2)", "mada": "mada"})
    assert instead == {"two_nn": "two_nn(kept=0.2)", "mada": "mada"}


def test_what_is_said_twice_is_one_option():
    alike = [{"mada": {"k": 20}}, "mada", "mle"]  # 20 is what the run has
    settings = settings_with(windows_share=[1, 0.33333333, 0.33333334])
    settings["choices"]["estimators"] = {"d": alike}
    read = read_choice_settings(settings)
    assert [each.name for each in read.families["d"]] == ["mada", "mle"]
    shares = {choice.name: choice.options for choice in read.rows}["windows_share"]
    assert shares == ("1", "0.333333")


def test_an_estimator_with_the_parameters_of_the_run_is_listed_once():
    settings = settings_with()
    settings["measurement"]["parameters"] = {"two_nn": {"kept": 0.2}}
    variants = read_choice_settings(settings).families["dimension"]
    assert [each.name for each in variants if each.base == "two_nn"] == ["two_nn"]


def test_what_asks_for_more_neighbours_than_are_searched_is_left_out():
    settings = settings_with()
    settings["measurement"] |= {"neighbours": 20, "batch_vectors": 100}
    variants = read_choice_settings(settings).families["dimension"]
    assert {each.base for each in variants} == {"two_nn", "two_nn_authors", "mle", "mada"}
    found = claims_of("shape_of_learning", settings)
    assert "dimension_rises_then_falls" in found
    assert "estimators_agree" not in found  # which names one of 100


def test_every_combination_is_there_once():
    settings = settings_with(batch_share=[1, 0.5])
    for of, _ in claims_of("shape_of_learning", settings).values():
        made = specifications(of.choices)
        number = 1
        for choice in of.choices:
            number *= len(choice.options)
        assert len({tuple(each.items()) for each in made}) == len(made) == number
        # The reference takes nothing else's place.
        assert of.estimators(made[0]) == {name: name for name in of.claim.estimators}


def test_the_demo_has_32_specifications_of_each_claim_of_the_first_paper():
    settings = with_defaults(read_yaml(REPOSITORY / "config/demo.yaml"), DEFAULTS)
    assert settings["choices"]["judged"]
    found = claims_of("shape_of_learning", settings)
    # All but that on two models that the demo does not have.
    assert len(found) == 6
    assert min(len(specifications(of.choices)) for of, _ in found.values()) >= 32


def test_the_demo_judges_choices_at_a_step_away_from_the_warm_up():
    # Else the claim on the warm-up has a curve without a point.
    settings = with_defaults(read_yaml(REPOSITORY / "config/demo.yaml"), DEFAULTS)
    entry = read_yaml(REPOSITORY / "config/models/demo.yaml")["demo-decoder"]
    end = entry["pretraining"]["warmup_steps"]
    steps = thinned(settings["training_steps"]["demo-decoder"], settings["choices"]["checkpoints"])
    before = max(step for step in steps if step <= end)
    after = min(step for step in steps if step >= end)
    assert set(steps[1:-1]) - {before, after}


def test_claims_without_enough_models_or_on_other_tables_are_left_out():
    of = {"sentence": "", "where": "", "statistic": "flatter", "rule": {}}
    claims = {
        "one": Claim("one", **of, models=["d", "missing"], estimators=["two_nn"]),
        "some": Claim("some", **of, models=["d", "missing"], estimators=["two_nn"], needs=1),
        "twins": Claim("twins", **of, models="twins", estimators=["two_nn"]),
        "table": Claim("table", **of, models="all", reads=["edits"]),
    }
    settings = settings_with()
    read = read_choice_settings(settings)
    found, measured = claims_with_choices({"p": claims}, settings, read, MODELS, ["p"])
    assert {name: models for name, (_, models) in found.items()} == {"some": ["d"]}
    assert {"two_nn(kept=0.2)", "mle"} <= measured["some"].keys()
    with pytest.raises(InputError, match="two papers have a claim `some`"):
        claims_with_choices({"p": claims, "q": claims}, settings, read, MODELS, ["p", "q"])


def test_of_twins_the_originals_are_measured_too():
    twin = {"kind": "twin", "role": "decoder", "origin": "d", "treatment": "cosine 0.5"}
    models = MODELS | {"t": twin, "u": twin | {"origin": "elsewhere"}}
    settings = settings_with()
    claim = Claim("c", "", "", "twins_less_originals", {}, "twins", ["linearity"])
    read = read_choice_settings(settings)
    found, _ = claims_with_choices({"p": {"c": claim}}, settings, read, models, ["p"])
    assert found["c"][1] == ["t", "u", "d"]


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
        (
            {"text": ["own", "enwik"]},
            r"key `choices.text`: unknown text `enwik`; did you mean `enwik8",
        ),
        (
            {"text": ["own", "enwik8"]},
            r"`choices.text` names `own` and `enwik8`, which are the same",
        ),
        ({"papers": ["shape"]}, r"key `choices.papers`: unknown paper `shape`"),
        (
            {"estimators": {"d": ["two_n"]}},
            r"key `choices.estimators.d`: unknown estimator `two_n`",
        ),
        (
            {"estimators": {"dimension": [{"two_nn": {"kep": 0.2}}]}},
            r"key `choices.estimators.dimension.two_nn`: unknown parameter `kep`; did you mean `kept`",
        ),
        ({"estimators": {"d": ["two_nn"]}}, r"`two_nn`, which is in `.*` already"),
        (
            {"estimators": {"mom": ["isoscore"]}},
            r"`choices.estimators.mom` has the name of an estimator",
        ),
        (
            {"estimators": {"text": ["isoscore"]}},
            r"`choices.estimators.text` has the name of another",
        ),
        ({"estimators": {"estimate": ["isoscore"]}}, r"`choices.estimators.estimate` has the name"),
        (
            {"estimators": {"d": ["gain_length"]}},
            r"`choices.estimators.d` names `gain_length`, which",
        ),
        ({"batch_share": [1, 0.01]}, r"`choices.batch_share` has 0.01, which makes batches of 41"),
    ],
)
def test_what_there_is_not_is_refused_by_its_key(choices, message):
    with pytest.raises(InputError, match=message):
        claims_of("shape_of_learning", settings_with(**choices))


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        (
            {"first_tokens": ["keep"]},
            r"unknown key `first_tokens` in `choices`; did you mean `first_token`",
        ),
        (
            {"token_types": ["many"]},
            r"`choices.token_types.0` is 'many', but must be one of `all`, `one`",
        ),
        ({"windows_share": [0]}, r"choices.windows_share"),
    ],
)
def test_what_the_schema_does_not_allow_is_refused(choices, message):
    with pytest.raises(InputError, match=message):
        validated(Settings, settings_with(**choices), "configuration")
