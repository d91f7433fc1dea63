"""The choices that affect a claim, and its verdicts under every specification, from tables made for it."""

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
from shape_of_learning.plan.settings import Settings, choose_measures

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


def read_settings(**choices):
    return add_defaults({"choices": choices}, CONFIG / "config.yaml")


def choose_for_claim(settings, *estimators):
    """Return the choices of a claim on some estimators."""
    settings = Settings.model_validate(settings)
    measures = choose_measures(settings.measurement, estimators, "both")
    return SpecificationGrid(settings).make_claim_grid(
        replace(CLAIM, estimators=estimators), measures
    )


def test_a_claim_has_the_choices_that_affect_it():
    settings = read_settings(batch_share=[1, 0.5])
    anisotropy, dimension = (
        choose_for_claim(settings, e).free_choices for e in ("anisotropy", "two_nn")
    )
    assert ("centring" in anisotropy, "dimension" in anisotropy) == (True, False)
    assert ("centring" in dimension, "dimension" in dimension) == (False, True)
    # Blocks are measured on all vectors together, and layer 0 is no block.
    assert "batch_share" in anisotropy
    block_choices = choose_for_claim(settings, "linearity").free_choices
    assert block_choices.keys().isdisjoint({"batch_share", "average_over"})
    # Rows that a measure itself chooses are no choice.
    assert "first_token" in block_choices
    assert (
        "first_token"
        not in choose_for_claim(settings, "linearity_without_first_token").free_choices
    )


def test_each_of_several_estimators_has_its_own_parameters():
    choices = choose_for_claim(read_settings(), "two_nn", "mada", "mom").free_choices
    assert choices["two_nn"] == ["two_nn", "two_nn(kept=0.2)"]
    assert choices["mada"] == ["mada", "mada(k=10)"]
    assert "dimension" not in choices


def test_the_settings_of_the_run_are_the_reference_and_listed_once():
    settings = read_settings(windows_share=[1, 0.33333333, 0.33333334])
    settings["measurement"] |= {"first_token": "drop", "parameters": {"two_nn": {"kept": 0.2}}}
    settings["forward"]["last_layer"] = "before_final_norm"
    settings["choices"]["estimators"]["dimension"] += [{"mada": {"k": 20}}]
    choices = choose_for_claim(settings, "two_nn").choices
    assert (choices["first_token"][0], choices["last_layer"][0]) == ("drop", "before_final_norm")
    names = [name for name in choices["dimension"] if name.startswith(("two_nn", "mada"))]
    assert set(names) == {"two_nn", "two_nn_authors", "mada", "mada(k=10)"}
    assert choices["windows_share"] == ["1", "0.333333"]


def test_estimators_that_need_more_neighbours_than_are_searched_are_left_out():
    settings = read_settings()
    settings["measurement"] |= {"neighbours": 20, "batch_vectors": 100}
    grid = SpecificationGrid(Settings.model_validate(settings))
    assert set(grid.families["dimension"].values()) == {"two_nn", "two_nn_authors", "mle", "mada"}
    # Names an estimator with 100 neighbours.
    assert grid.plan_claim(CLAIMS["estimators_agree"], MODELS) is None
    claim_grid = grid.plan_claim(CLAIMS["dimension_rises_then_falls"], MODELS)
    # In the first specification, the reference, no estimator replaces another.
    assert claim_grid.choose_estimators(claim_grid.list_specifications()[0]) == {"two_nn": "two_nn"}


def test_claims_without_enough_models_or_on_other_tables_are_left_out():
    grid = SpecificationGrid(Settings.model_validate(read_settings()))
    dimension_claim = replace(CLAIM, estimators=["two_nn"], min_models=1)
    twins = replace(CLAIM, models="twins")
    claim_on_models = replace(dimension_claim, models=["d", "missing"])
    for claim in (
        replace(claim_on_models, min_models=0),
        twins,
        replace(dimension_claim, estimators=[], reads=["edits"]),
    ):
        assert grid.plan_claim(claim, MODELS) is None
    claim_grid = grid.plan_claim(claim_on_models, MODELS)
    assert claim_grid.models == ["d"]
    assert {"two_nn(kept=0.2)", "mle"} <= claim_grid.measures.keys()


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
def test_unknown_names_in_choices_are_refused_with_their_key(choices, message):
    settings = Settings.model_validate(read_settings(**choices))
    with pytest.raises(InputError, match=message):
        RunGrid(SimpleNamespace(settings=settings, papers=PAPERS))


def compute_value(rows, estimator, layer, last_layer):
    """Return a low value without first tokens, and another value before the final norm."""
    if last_layer == BEFORE:
        return 0.95
    return 0.2 if rows.first_token == "drop" else 0.8


@pytest.fixture
def write_measured_choices(tmp_path):
    """Write values of one decoder and the verdicts on its revisions; return the inputs of the script."""

    def make_tables(compute_value=compute_value, *, good=None, revisions=("last",), near=0.2):
        places = [*((layer, AFTER) for layer in range(LAYERS + 1)), (LAYERS, BEFORE)]
        names = CHOICES.choices["centring"]
        options = product(("keep", "drop"), names, places, enumerate(revisions))
        table = []
        for first_token, name, (layer, last_layer), (step, revision) in options:
            rows = SampleVariant(first_token=first_token)
            value = compute_value(rows, name, layer, last_layer)
            jackknife_values = value + 0.01 * np.linspace(-1, 1, 16)
            cells = ("m", revision, step, *astuple(rows), last_layer, name, "all", layer, None)
            table.append((*cells, 4096, 4000, near, 0, 128, None, value, *jackknife_values))
        write_table(tmp_path / "measured.csv", CHOICE_COLUMNS, table)
        verdicts = [("m", name, "yes" if name in (good or ()) else "no") for name in revisions]
        write_table(tmp_path / "verdicts.csv", ("model", "revision", "shown"), verdicts)
        return {
            "models": [EvidenceModel("m", "decoder", LAYERS)],
            "near_duplicate_limits": {"anisotropy": 0.3},
            "tables": [tmp_path / "measured.csv"],
            "verdicts": [] if good is None else [tmp_path / "verdicts.csv"],
        }

    return make_tables


def judge_measured(tables):
    return judge_specifications(CHOICES, MeasuredChoices(**tables))


def find_flips_by_choice(tables):
    return {row["choice"]: row for row in find_flips(CHOICES, judge_measured(tables))}


def test_a_flipped_verdict_is_listed_and_every_specification_drawn(
    write_measured_choices, tmp_path
):
    flips, table, page = (tmp_path / name for name in ("flips.csv", "choices.csv", "choices.md"))
    figure = {kind: tmp_path / f"x.{kind}" for kind in ("pdf", "png", "csv", "markdown")}
    values = write_measured_choices()
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
    other_choices = rows.drop("first_token")
    assert [*other_choices.index] == ["centring", "average_over", "last_layer"]
    assert (other_choices["flips"].unique(), other_choices["flipped_pairs"].unique()) == (
        ["no"],
        [0],
    )
    assert "drop: **contradicted** (8 of 8)" in page.read_text()
    curve, caption = pd.read_csv(figure["csv"]), figure["markdown"].read_text()
    assert len(curve) == 16
    assert curve["estimate"].is_monotonic_increasing
    assert curve["is_reference"].tolist().count("yes") == 1
    assert "8 supported and 8 contradicted" in caption


def test_specifications_without_a_number_are_drawn_by_their_choices(write_measured_choices):
    judged_choices = judge_measured(write_measured_choices(lambda *_: float("nan")))
    with use_theme():
        drawing = draw_specification_curve(CHOICES, judged_choices, "128 windows of enwik8")
    (matrix,) = drawing.figure.axes
    options = [label.get_text() for label in matrix.get_yticklabels()]
    assert len(options) == 8
    points = {tuple(p) for line in matrix.get_lines() for p in np.transpose(line.get_data())}
    assert len({place for place, _ in points}) >= 16
    words = [text.get_text() for text in drawing.figure.texts]
    assert any("128 windows of enwik8" in word and "vectors" not in word for word in words)


def test_specifications_that_are_not_measured_have_small_dots(write_measured_choices):
    def compute_value(rows, estimator, layer, last_layer):
        return math.nan if estimator == "anisotropy_uncentered" else 0.8

    judgements = judge_measured(write_measured_choices(compute_value))
    with use_theme():
        drawing = draw_specification_curve(CHOICES, judgements, "128 windows of enwik8")
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
            for rank, rank_sizes in sizes.items()
            if (ranks[rank] == "not measured") is is_small
            for size in rank_sizes
        }
        for is_small in (True, False)
    )
    assert max(small) < min(large)


def test_a_specification_chooses_estimator_and_layers(write_measured_choices):
    def compute_value(rows, estimator, layer, last_layer):
        value = layer * (2.0 if estimator == "anisotropy_uncentered" else 1.0)
        return 0.1 if layer == 0 else value + 10 * (last_layer == BEFORE)

    estimates = {
        options[-3:]: judgement.estimate
        for options, judgement in judge_measured(write_measured_choices(compute_value)).items()
    }
    default_options = ("anisotropy", "block_outputs", AFTER)
    assert estimates[default_options] == pytest.approx((1 + 2 + 3 + 4) / 4)
    assert estimates["anisotropy_uncentered", *default_options[1:]] == pytest.approx(
        (2 + 4 + 6 + 8) / 4
    )
    assert estimates["anisotropy", "all_layers", AFTER] == pytest.approx((0.1 + 1 + 2 + 3 + 4) / 5)
    assert estimates["anisotropy", "block_outputs", BEFORE] == pytest.approx((1 + 2 + 3 + 14) / 4)


def test_bad_checkpoints_are_left_out(write_measured_choices):
    options = {"revisions": ("first", "last")}
    reference, *_ = judge_measured(write_measured_choices(good=["first"], **options)).values()
    assert reference.revisions == ("m@first",)
    flip = find_flips_by_choice(write_measured_choices(good=[], **options))["first_token"]
    assert (flip["verdict"], flip["flips"]) == ("not measured", "")


def test_a_choice_that_is_not_measured_counts_in_no_pair(write_measured_choices):
    def compute_value(rows, estimator, layer, last_layer):
        return math.nan if estimator == "anisotropy_uncentered" else 0.8

    flips = find_flips_by_choice(write_measured_choices(compute_value))
    centring = [flips["centring"][key] for key in ("verdict", "flips", "pairs")]
    assert centring == ["not measured", "", 0]
    assert flips["first_token"]["pairs"] == 4


def test_a_curve_has_a_reference_only_if_it_is_the_verdict_of_the_page(write_measured_choices):
    """With fewer windows than the run, no specification repeats the verdict of the page."""
    judgements = judge_measured(write_measured_choices())
    drawings = {less: draw_specification_curve(replace(CHOICES, less=less), judgements)
             for less in ("", "50 % of the windows")}  # fmt: skip
    texts = {
        less: [t.get_text() for t in d.figure.legends[0].get_texts()]
        for less, d in drawings.items()
    }
    assert ["reference" in texts[less] for less in drawings] == [True, False]
    assert "all windows" in drawings["50 % of the windows"].caption
