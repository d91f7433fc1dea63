"""Claims under every specification, from tables that are made for it."""

import csv
import io
import math
import warnings
from dataclasses import asdict, replace

import numpy as np
import pytest
from shape_of_learning.metrics.measurements import Estimate

from shape_of_learning.claims.choice_tables import AFTER, BEFORE, COLUMNS, Place, choice_rows
from shape_of_learning.claims.choices import Choice, Rows
from shape_of_learning.claims.claim import Claim
from shape_of_learning.claims.claim_choices import ClaimChoices
from shape_of_learning.claims.evidence import Evidence, EvidenceModel
from shape_of_learning.claims.measured_choices import MeasuredChoices
from shape_of_learning.claims.specifications import (
    FLIP_COLUMNS,
    flip_page,
    flips,
    judged_specifications,
    specification_rows,
)
from shape_of_learning.errors import InputError
from shape_of_learning.figures.output import save
from shape_of_learning.figures.specification_curve import specification_curve
from shape_of_learning.figures.style import theme
from shape_of_learning.storage.csv_table import write_table

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


def estimate(value, near_duplicates):
    without = tuple((value + 0.01 * np.linspace(-1, 1, 16)).tolist())
    return Estimate(value, math.nan, 4096, 4000, near_duplicates, 128, without)


def value_of(rows, estimator, layer, last_layer):
    """Without first tokens it is low; before the final norm one layer is another; nothing else matters."""
    if last_layer == BEFORE:
        return 0.95
    if rows.first_token == "drop":
        return 0.2
    return 0.8


def measured(tmp_path, value_of=value_of, *, verdicts=None, revisions=("last",), near=0.2):
    table = []
    for revision in revisions:
        for first_token in ("keep", "drop"):
            for estimator in ("anisotropy", "anisotropy_uncentered"):
                rows = Rows(first_token=first_token)
                for last_layer, layers in ((AFTER, range(LAYERS + 1)), (BEFORE, [LAYERS])):
                    place = Place(revision, rows, last_layer, estimator)
                    of = [
                        (n, estimate(value_of(rows, estimator, n, last_layer), near))
                        for n in layers
                    ]
                    table += choice_rows(place, of)
    write_table(tmp_path / "0.csv", COLUMNS, table)
    frame = Evidence(
        {"m": EvidenceModel("m", "decoder", LAYERS)},
        suspect_above={"anisotropy": 0.3},
        tables={} if verdicts is None else {"verdicts": verdicts},
    )
    steps = {"m": {name: (number, None) for number, name in enumerate(revisions)}}
    judged = [] if verdicts is None else ["m"]
    return MeasuredChoices(frame, {"m": [tmp_path / "0.csv"]}, steps, judged)


def flips_by_choice(values):
    judged = judged_specifications(CHOICES, values)
    named = [dict(zip(FLIP_COLUMNS, row, strict=True)) for row in flips(CHOICES, judged)]
    return {row["choice"]: row for row in named}


def test_a_choice_that_flips_a_verdict_is_shown_and_others_are_not(tmp_path):
    found = flips_by_choice(measured(tmp_path))
    assert found["first_token"]["flips"] == "yes"
    assert found["first_token"]["verdict_of_reference"] == "supported"
    assert found["first_token"]["verdict"] == "contradicted"
    assert (found["first_token"]["pairs"], found["first_token"]["flipped_pairs"]) == (8, 8)
    for name in ("centring", "average_over", "last_layer"):
        assert (found[name]["flips"], found[name]["flipped_pairs"]) == ("no", 0)
    page = flip_page([list(row.values()) for row in found.values()])
    assert "drop: **contradicted** (8 of 8)" in page
    assert "before_final_norm: same (0 of 8)" in page


def test_a_page_without_choices_says_why():
    assert flip_page([]).startswith("No claim to compare")


def test_estimator_and_layers_are_taken_as_a_specification_says(tmp_path):
    def value_of(rows, estimator, layer, last_layer):
        if layer == 0:
            return 0.1
        return 1.0 * layer * (2 if estimator == "anisotropy_uncentered" else 1) + 10 * (
            last_layer == BEFORE
        )

    judged = judged_specifications(CHOICES, measured(tmp_path, value_of))
    found = {tuple(s.specification.values())[1:]: s.judgement.estimate for s in judged}
    own = ("anisotropy", "block_outputs", AFTER)
    assert found[own] == pytest.approx((1 + 2 + 3 + 4) / 4)
    assert found["anisotropy_uncentered", *own[1:]] == pytest.approx((2 + 4 + 6 + 8) / 4)
    assert found["anisotropy", "all_layers", AFTER] == pytest.approx((0.1 + 1 + 2 + 3 + 4) / 5)
    assert found["anisotropy", "block_outputs", BEFORE] == pytest.approx((1 + 2 + 3 + 14) / 4)


def test_checkpoints_that_are_not_sound_are_left_out(tmp_path):
    verdicts = [{"model": "m", "revision": "first", "shown": "yes"}]
    values = measured(tmp_path, verdicts=verdicts, revisions=("first", "last"))
    (reference, *_) = judged_specifications(CHOICES, values)
    assert reference.judgement.revisions == ("m@first",)
    nothing = measured(tmp_path, verdicts=[], revisions=("first", "last"))
    assert {s.judgement.verdict for s in judged_specifications(CHOICES, nothing)} == {
        "not measured"
    }
    assert flips_by_choice(nothing)["first_token"]["flips"] == ""


def test_what_is_not_measured_is_told_and_counts_in_no_pair(tmp_path):
    def value_of(rows, estimator, layer, last_layer):
        return math.nan if estimator == "anisotropy_uncentered" else 0.8

    found = flips_by_choice(measured(tmp_path, value_of))
    assert (found["centring"]["flips"], found["centring"]["pairs"]) == ("", 0)
    assert found["centring"]["verdict"] == "not measured"
    assert found["first_token"]["pairs"] == 4


def test_a_damaged_table_is_refused(tmp_path):
    write_table(tmp_path / "0.csv", COLUMNS, [["x"] * len(COLUMNS)])
    frame = Evidence({"m": EvidenceModel("m", "decoder", LAYERS)})
    with pytest.raises(InputError, match=r"0\.csv: .*delete it and run again"):
        MeasuredChoices(frame, {"m": [tmp_path / "0.csv"]}, {"m": {}}, [])


def test_jobs_are_told_all_of_it():
    assert ClaimChoices.from_json(asdict(CHOICES)) == CHOICES


def test_suspect_values_of_an_estimator_are_hollow_where_it_is_taken(tmp_path):
    judged = judged_specifications(CHOICES, measured(tmp_path, near=0.5))
    undecided = {s.specification["centring"] for s in judged if s.judgement.verdict == "undecided"}
    assert undecided == {"anisotropy"}
    with theme():
        drawing = specification_curve(CHOICES, judged, PROTOCOL)
    labels = [text.get_text() for text in drawing.figure.legends[0].get_texts()]
    assert "undecided: 8" in labels
    assert "(conditions not met)" in labels
    assert "Hollow: decided by the numbers alone" in drawing.caption


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
    caption = (tmp_path / "curve.md").read_text()
    assert "16 specifications" in caption
    assert "8 supported and 8 contradicted" in caption
    assert "there are 6 different effects" in caption
    assert "intervals from leaving out each of 16 groups of windows;" in caption


def test_intervals_of_twins_are_said_to_be_over_pairs(tmp_path):
    claim = replace(CLAIM, statistic="twins_less_originals", models="twins")
    claim = replace(claim, arguments={"regulariser": "cosine", "pairs": 3})
    of = replace(CHOICES, claim=claim)
    judged = judged_specifications(of, measured(tmp_path))
    with theme():
        caption = specification_curve(of, judged, PROTOCOL).caption
    assert "95 % intervals of means over pairs of one seed each;" in caption
