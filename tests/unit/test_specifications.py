"""Which choices touch a claim, and the claim under every specification, from tables that are made for it."""

import math
from dataclasses import astuple, replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import gather_choices
import judge_choices
from made_claims import CLAIMS, PAPERS
from measure_choices import CHOICE_COLUMNS
from plans import CONFIG
from shape_of_learning.claims.claim import (
    Claim,
    ClaimGrid,
    EvidenceModel,
    SpecificationsJob,
    read_condition,
)
from shape_of_learning.claims.specifications import (
    MeasuredChoices,
    find_flips,
    judge_specifications,
)
from shape_of_learning.errors import InputError
from shape_of_learning.figures.specification_curve import draw_specification_curve
from shape_of_learning.figures.style import use_theme
from shape_of_learning.files import write_table
from shape_of_learning.metrics.measure_entry import AFTER, BEFORE, SampleVariant
from shape_of_learning.plan.choices import RunGrid, SpecificationGrid, thin_checkpoints
from shape_of_learning.plan.run import add_defaults
from shape_of_learning.plan.settings import choose_measures

LAYERS = 4
MODELS = {
    name: EvidenceModel(name, role, LAYERS) for name, role in (("d", "decoder"), ("e", "encoder"))
}
CLAIM = Claim(
    name="high",
    sentence="The measure is high.",
    where="nowhere",
    statistic="mean_over_layers",
    estimators=["anisotropy"],
    models="decoders",
    supported=read_condition({"in": "all", "number": "anisotropy", "above": 0.5}),
    contradicted=read_condition({"in": "any", "number": "anisotropy", "below": 0.5}),
)
CHOICES = ClaimGrid(
    CLAIM,
    {
        **{name: [option] for name, option in vars(SampleVariant()).items()},
        "first_token": ["keep", "drop"],
        "centring": ["anisotropy", "anisotropy_uncentered"],
        "average_over": ["block_outputs", "all_layers"],
        "last_layer": [AFTER, BEFORE],
    },
    {"anisotropy": "centring"},
)


def settings_with(**choices):
    return add_defaults({"choices": choices}, CONFIG / "config.yaml")


def of_claim(settings, *estimators):
    """What touches a claim on some estimators."""
    measures = choose_measures(settings["measurement"], estimators, "both")
    return SpecificationGrid(settings).make_claim_grid(
        replace(CLAIM, estimators=estimators), measures
    )


def test_only_what_touches_a_claim_is_chosen():
    settings = settings_with(batch_share=[1, 0.5])
    anisotropy, dimension = (of_claim(settings, e).free_choices for e in ("anisotropy", "two_nn"))
    assert ("centring" in anisotropy, "dimension" in anisotropy) == (True, False)
    assert ("centring" in dimension, "dimension" in dimension) == (False, True)
    # Blocks are measured on all vectors together, and there is none at layer 0.
    assert "batch_share" in anisotropy
    of_blocks = of_claim(settings, "linearity").free_choices
    assert of_blocks.keys().isdisjoint({"batch_share", "average_over"})
    # What a measure says of its rows itself is no choice.
    assert "first_token" in of_blocks
    assert "first_token" not in of_claim(settings, "linearity_without_first_token").free_choices


def test_of_several_estimators_each_has_its_own_parameters():
    found = of_claim(settings_with(), "two_nn", "mada", "mom").free_choices
    assert found["two_nn"] == ["two_nn", "two_nn(kept=0.2)"]
    assert found["mada"] == ["mada", "mada(k=10)"]
    assert "dimension" not in found


def test_what_the_run_has_is_the_reference_and_listed_once():
    settings = settings_with(windows_share=[1, 0.33333333, 0.33333334])
    settings["measurement"] |= {"first_token": "drop", "parameters": {"two_nn": {"kept": 0.2}}}
    settings["forward"]["last_layer"] = "before_final_norm"
    settings["choices"]["estimators"]["dimension"] += [{"mada": {"k": 20}}]
    found = of_claim(settings, "two_nn").choices
    assert (found["first_token"][0], found["last_layer"][0]) == ("drop", "before_final_norm")
    names = [each for each in found["dimension"] if each.startswith(("two_nn", "mada"))]
    assert set(names) == {"two_nn", "two_nn_authors", "mada", "mada(k=10)"}
    assert found["windows_share"] == ["1", "0.333333"]


def test_what_asks_for_more_neighbours_than_are_searched_is_left_out():
    settings = settings_with()
    settings["measurement"] |= {"neighbours": 20, "batch_vectors": 100}
    read = SpecificationGrid(settings)
    assert set(read.families["dimension"].values()) == {"two_nn", "two_nn_authors", "mle", "mada"}
    assert read.plan_claim(CLAIMS["estimators_agree"], MODELS) is None  # which names one of 100
    of = read.plan_claim(CLAIMS["dimension_rises_then_falls"], MODELS)
    # The first specification is the reference, in which nothing stands for another.
    assert of.choose_estimators(of.list_specifications()[0]) == {"two_nn": "two_nn"}


def test_claims_without_enough_models_or_on_other_tables_are_left_out():
    read, some = (
        SpecificationGrid(settings_with()),
        replace(CLAIM, estimators=["two_nn"], min_models=1),
    )
    twins = replace(CLAIM, models="twins")
    named = replace(some, models=["d", "missing"])
    for claim in (
        replace(named, min_models=0),
        twins,
        replace(some, estimators=[], reads=["edits"]),
    ):
        assert read.plan_claim(claim, MODELS) is None
    found = read.plan_claim(named, MODELS)
    assert found.models == ["d"]
    assert {"two_nn(kept=0.2)", "mle"} <= found.measures.keys()


def test_a_long_training_is_thinned_evenly():
    assert [list(thin_checkpoints(range(n), 3)) for n in (1, 3, 9)] == [[0], [0, 1, 2], [0, 4, 8]]


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"text": ["own", "enwik8"]}, r"`choices.text` names `own` and `enwik8`, which are the same"),
        ({"text": ["enwik"]}, r"`choices.text`: unknown text `enwik`"),
        ({"papers": ["shape"]}, r"`choices.papers`: unknown paper `shape`"),
        ({"estimators": {"d": ["two_nn"]}}, r"`two_nn`, which `dimension` names"),
        ({"estimators": {"estimate": ["isoscore"]}}, r"`choices.estimators.estimate` has the name"),
    ],
)  # fmt: skip
def test_what_there_is_not_is_refused_by_its_key(choices, message):
    with pytest.raises(InputError, match=message):
        RunGrid(SimpleNamespace(settings=settings_with(**choices), papers=PAPERS))


def value_of(rows, estimator, layer, last_layer):
    """Without first tokens it is low; before the final norm one layer is another; nothing else matters."""
    if last_layer == BEFORE:
        return 0.95
    return 0.2 if rows.first_token == "drop" else 0.8


@pytest.fixture
def measured(tmp_path):
    """Writes values of one decoder, of which those at some revisions are sound, and tells the script of them."""

    def make(value_of=value_of, *, sound=None, revisions=("last",), near=0.2):
        places = [*((layer, AFTER) for layer in range(LAYERS + 1)), (LAYERS, BEFORE)]
        names = CHOICES.choices["centring"]
        options = product(("keep", "drop"), names, places, enumerate(revisions))
        table = []
        for first_token, name, (layer, last_layer), (step, revision) in options:
            rows = SampleVariant(first_token=first_token)
            value = value_of(rows, name, layer, last_layer)
            without = value + 0.01 * np.linspace(-1, 1, 16)
            at = ("m", revision, step, *astuple(rows), last_layer, name, "all", layer, None)
            table.append((*at, 4096, 4000, near, 0, 128, None, value, *without))
        write_table(tmp_path / "measured.csv", CHOICE_COLUMNS, table)
        shown = [("m", name, "yes" if name in (sound or ()) else "no") for name in revisions]
        write_table(tmp_path / "verdicts.csv", ("model", "revision", "shown"), shown)
        return {
            "models": [EvidenceModel("m", "decoder", LAYERS)],
            "near_duplicate_limits": {"anisotropy": 0.3},
            "tables": [tmp_path / "measured.csv"],
            "verdicts": [] if sound is None else [tmp_path / "verdicts.csv"],
        }

    return make


def judged(of):
    return judge_specifications(CHOICES, MeasuredChoices(**of))


def flips_by_choice(of):
    return {row["choice"]: row for row in find_flips(CHOICES, judged(of))}


def test_a_flipped_verdict_is_shown_and_every_specification_drawn(measured, tmp_path):
    flips, table, page = (tmp_path / name for name in ("flips.csv", "choices.csv", "choices.md"))
    figure = {kind: tmp_path / f"x.{kind}" for kind in ("pdf", "png", "csv", "markdown")}
    values = measured()
    models, limits = tuple(values["models"]), values["near_duplicate_limits"]
    judge_choices.main(
        SpecificationsJob(CHOICES, models, limits, "128 windows of enwik8"),
        values["tables"],
        values["verdicts"],
        flips,
        figure,
    )
    gather_choices.main([flips], table, page)
    rows = pd.read_csv(table, index_col="choice")
    assert [*rows.loc["first_token"]][3:] == ["supported", "contradicted", "yes", 8, 8]
    others = rows.drop("first_token")
    assert [*others.index] == ["centring", "average_over", "last_layer"]
    assert (others["flips"].unique(), others["flipped_pairs"].unique()) == (["no"], [0])
    assert "drop: **contradicted** (8 of 8)" in page.read_text()
    curve, caption = pd.read_csv(figure["csv"]), figure["markdown"].read_text()
    assert len(curve) == 16
    assert curve["estimate"].is_monotonic_increasing
    assert curve["is_reference"].tolist().count("yes") == 1
    assert "8 supported and 8 contradicted" in caption


def test_specifications_without_a_number_are_drawn_by_their_choices(measured):
    judged_choices = judged(measured(lambda *_: float("nan")))
    with use_theme():
        drawing = draw_specification_curve(CHOICES, judged_choices, "128 windows of enwik8")
    (matrix,) = drawing.figure.axes
    options = [label.get_text() for label in matrix.get_yticklabels()]
    assert len(options) == 8
    points = {tuple(p) for line in matrix.get_lines() for p in np.transpose(line.get_data())}
    assert len({place for place, _ in points}) >= 16
    words = [text.get_text() for text in drawing.figure.texts]
    assert any("128 windows of enwik8" in word and "vectors" not in word for word in words)


def test_specifications_that_are_not_measured_have_small_dots_and_the_footer_counts_vectors(
    measured,
):
    def value_of(rows, estimator, layer, last_layer):
        return math.nan if estimator == "anisotropy_uncentered" else 0.8

    of = judged(measured(value_of))
    with use_theme():
        drawing = draw_specification_curve(CHOICES, of, "128 windows of enwik8")
    (footer,) = [text.get_text() for text in drawing.figure.texts if text.get_gid()]
    assert "128 windows of enwik8; 4,096 vectors" in footer
    assert "Bars: " in footer
    matrix, _ = drawing.figure.axes
    sizes = {}
    for line in matrix.get_lines():
        for rank, _ in np.transpose(line.get_data()) if line.get_linestyle() == "None" else ():
            sizes.setdefault(rank, set()).add(line.get_markersize())
    ranks = drawing.table.set_index("rank")["verdict"]
    small, large = (
        {
            size
            for rank, of_rank in sizes.items()
            if (ranks[rank] == "not measured") is is_small
            for size in of_rank
        }
        for is_small in (True, False)
    )
    assert max(small) < min(large)


def test_estimator_and_layers_are_taken_as_a_specification_says(measured):
    def value_of(rows, estimator, layer, last_layer):
        own = layer * (2.0 if estimator == "anisotropy_uncentered" else 1.0)
        return 0.1 if layer == 0 else own + 10 * (last_layer == BEFORE)

    found = {options[-3:]: of.estimate for options, of in judged(measured(value_of)).items()}
    own = ("anisotropy", "block_outputs", AFTER)
    assert found[own] == pytest.approx((1 + 2 + 3 + 4) / 4)
    assert found["anisotropy_uncentered", *own[1:]] == pytest.approx((2 + 4 + 6 + 8) / 4)
    assert found["anisotropy", "all_layers", AFTER] == pytest.approx((0.1 + 1 + 2 + 3 + 4) / 5)
    assert found["anisotropy", "block_outputs", BEFORE] == pytest.approx((1 + 2 + 3 + 14) / 4)


def test_checkpoints_that_are_not_sound_are_left_out(measured):
    both = {"revisions": ("first", "last")}
    reference, *_ = judged(measured(sound=["first"], **both)).values()
    assert reference.revisions == ("m@first",)
    found = flips_by_choice(measured(sound=[], **both))["first_token"]
    assert (found["verdict"], found["flips"]) == ("not measured", "")


def test_what_is_not_measured_is_told_and_counts_in_no_pair(measured):
    def value_of(rows, estimator, layer, last_layer):
        return math.nan if estimator == "anisotropy_uncentered" else 0.8

    found = flips_by_choice(measured(value_of))
    centring = [found["centring"][key] for key in ("verdict", "flips", "pairs")]
    assert centring == ["not measured", "", 0]
    assert found["first_token"]["pairs"] == 4


def test_a_curve_has_a_reference_only_where_that_is_the_verdict_of_the_page(measured):
    """With fewer windows than the claim has, the first specification examines another verdict."""
    of = judged(measured())
    looks = {less: draw_specification_curve(replace(CHOICES, less=less), of)
             for less in ("", "50 % of the windows")}  # fmt: skip
    texts = {
        less: [t.get_text() for t in d.figure.legends[0].get_texts()] for less, d in looks.items()
    }
    assert ["reference" in texts[less] for less in looks] == [True, False]
    assert "all windows" in looks["50 % of the windows"].caption
