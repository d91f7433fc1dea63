"""The loss by step: lines of what is shown, crosses for what gave itself away."""

import math
from dataclasses import replace

import numpy as np
import pytest

from figure_tables import (
    draw,
    footnote,
    inputs_of,
    lines_labelled,
    models_named,
    named_lines,
    verdicts_on,
)
from shape_of_learning.errors import InputError
from shape_of_learning.figures.lines import UPPER_EDGE
from shape_of_learning.figures.style import COLUMN_WIDTH, TEXT_WIDTH

STEPS = [0, 1, 10, 100, 1000]
LOSSES = dict(zip(STEPS, [5.0, 4.5, 4.0, 3.5, 3.0], strict=True))
BROKEN = ("broken: perplexity 6,000 times that of earlier steps", "no")


def listed(model="a", flagged=None, losses=None, **options):
    return verdicts_on(model, STEPS, flagged, losses=LOSSES | (losses or {}), **options)


def drawn(folder, *verdicts, roles=()):
    """Draw the models of these verdicts, in their order; decoders unless said otherwise."""
    rows = [row for model in verdicts for row in model]
    names = list(dict.fromkeys(row["model"] for row in rows))
    models = models_named(names, [f"Model {name}" for name in names])
    if roles:
        models = [replace(model, role=role) for model, role in zip(models, roles, strict=True)]
    return draw("loss_by_step", inputs_of(folder, models, verdicts=rows))


def marks(drawing, label):
    """Points of the lines with that label."""
    lines = lines_labelled(drawing, label)
    return [(float(x), float(y)) for line in lines for x, y in line.get_xydata()]


def words_of(drawing, panel=0):
    return [text.get_text() for text in drawing.figure.axes[panel].texts]


def test_losses_are_drawn_as_they_are_listed(tmp_path):
    drawing = drawn(tmp_path, listed(), listed("b", losses={0: 6.0}))
    lines = named_lines(drawing)
    assert list(lines) == ["a", "b"]
    np.testing.assert_array_equal(lines["a"].get_xydata(), list(LOSSES.items()))
    np.testing.assert_array_equal(lines["b"].get_ydata(), [6.0, 4.5, 4.0, 3.5, 3.0])
    assert drawing.figure.axes[0].get_ylabel() == "Cross-entropy (nats per token)"
    assert {"Model a", "Model b"} <= set(words_of(drawing))
    assert footnote(drawing) == ""


def test_the_table_holds_what_is_drawn_with_its_perplexity(tmp_path):
    flagged = {10: ("missing", "no"), 100: BROKEN, 1: ("mixed shards", "hollow")}
    table = drawn(tmp_path, listed(flagged=flagged, losses={10: ""})).table
    assert {"label", "verdict", "loss", "perplexity", "vocabulary"} <= set(table.columns)
    assert list(table["step"]) == [0, 1, 100, 1000]
    assert list(table["verdict"]) == ["ok", "mixed shards", BROKEN[0], "ok"]
    for row in table.itertuples():
        assert row.perplexity == math.exp(row.loss)


def test_hollow_points_are_white_and_on_the_line(tmp_path):
    drawing = drawn(tmp_path, listed(flagged={10: ("mixed shards", "hollow")}))
    assert list(named_lines(drawing)["a"].get_xdata()) == STEPS
    assert marks(drawing, "_hollow") == [(10, LOSSES[10])]
    (hollow,) = lines_labelled(drawing, "_hollow")
    assert hollow.get_markerfacecolor() == "white"
    assert footnote(drawing) == "Hollow: Model a step 10 (mixed shards)."


def test_what_is_left_out_is_only_named(tmp_path):
    drawing = drawn(tmp_path, listed(flagged={10: ("same weights as step 100", "no")}))
    assert list(named_lines(drawing)["a"].get_xdata()) == [0, 1, 100, 1000]
    assert marks(drawing, "_crosses") == []
    assert footnote(drawing) == "Left out: Model a step 10 (same weights as step 100)."


def test_a_broken_checkpoint_is_a_cross_beside_the_line(tmp_path):
    drawing = drawn(tmp_path, listed(flagged={100: BROKEN}, losses={100: 5.75}))
    (axes,) = drawing.figure.axes
    (cross,) = lines_labelled(drawing, "_crosses")
    assert (cross.get_marker(), cross.get_linestyle()) == ("x", "None")
    assert cross.get_color() == named_lines(drawing)["a"].get_color()
    assert marks(drawing, "_crosses") == [(100, 5.75)]
    assert axes.get_ylim()[1] > 5.75
    assert list(named_lines(drawing)["a"].get_xdata()) == [0, 1, 10, 1000]
    expected = f"step 100 ({BROKEN[0]}). Cross: a checkpoint left out as broken."
    assert footnote(drawing).endswith(expected)
    assert expected in drawing.caption


def test_a_broken_checkpoint_far_above_stands_at_the_edge_and_the_lines_keep_their_room(tmp_path):
    far = drawn(tmp_path, listed(flagged={100: BROKEN}, losses={100: 40.0}))
    without = drawn(tmp_path, listed(flagged={100: ("missing", "no")}))
    (axes,) = far.figure.axes
    assert axes.get_ylim() == without.figure.axes[0].get_ylim()
    assert marks(far, "_crosses") == [(100, UPPER_EDGE)]
    assert footnote(far).endswith("left out as broken; at the upper edge: beyond the axis.")
    assert 40.0 in set(far.table["loss"])


@pytest.mark.parametrize("flagged", [{}, {10: ("broken: perplexity is infinite", "no")}])
def test_an_infinite_loss_is_a_cross_at_the_edge(tmp_path, flagged):
    drawing = drawn(tmp_path, listed(flagged=flagged, losses={10: "inf"}))
    assert marks(drawing, "_crosses") == [(10, UPPER_EDGE)]
    finite = dict(named_lines(drawing)["a"].get_xydata())
    assert 10 not in finite or math.isnan(finite[10])
    point = drawing.table.set_index("step").loc[10]
    assert (point["loss"], point["perplexity"]) == (math.inf, math.inf)
    what = "a checkpoint left out as broken" if flagged else "an infinite loss"
    assert footnote(drawing).endswith(f"Cross: {what}; at the upper edge: beyond the axis.")


def test_crosses_of_both_kinds_are_told(tmp_path):
    flagged = {0: BROKEN, 1: BROKEN}
    drawing = drawn(tmp_path, listed(flagged=flagged, losses={0: 4.0, 1: 4.1, 10: "inf"}))
    assert footnote(drawing).endswith(
        "Crosses: checkpoints left out as broken and an infinite loss; at the upper edge: beyond "
        "the axis."
    )


def test_a_perplexity_beyond_all_numbers_is_infinite(tmp_path):
    table = drawn(tmp_path, listed(flagged={1: BROKEN}, losses={1: 1000.0})).table
    assert table.set_index("step").loc[1, "perplexity"] == math.inf


def test_a_loss_that_was_not_measured_is_a_gap(tmp_path):
    drawing = drawn(tmp_path, listed(losses={10: ""}))
    assert list(np.isnan(named_lines(drawing)["a"].get_ydata())) == [step == 10 for step in STEPS]
    assert "Gaps: not measured." in drawing.caption


def test_a_model_without_any_loss_is_named_as_undefined(tmp_path):
    drawing = drawn(tmp_path, listed(), listed("b", losses=dict.fromkeys(STEPS, "")))
    assert "Model b: undefined" in words_of(drawing)


def test_a_model_of_crosses_only_has_its_label(tmp_path):
    drawing = drawn(tmp_path, listed(), listed("b", flagged=dict.fromkeys(STEPS, BROKEN)))
    assert "Model b: all left out" in words_of(drawing)
    assert len(marks(drawing, "_crosses")) == len(STEPS)


def test_crosses_alone_have_an_axis_that_holds_them(tmp_path):
    drawing = drawn(tmp_path, listed(flagged=dict.fromkeys(STEPS, BROKEN)))
    low, high = drawing.figure.axes[0].get_ylim()
    assert low < min(LOSSES.values()) < max(LOSSES.values()) < high


def test_decoders_and_encoders_have_panels_and_scales_of_their_own(tmp_path):
    encoder = listed("b", losses={step: loss / 2 for step, loss in LOSSES.items()})
    drawing = drawn(tmp_path, listed(), encoder, roles=["decoder", "encoder"])
    assert [axes.get_title(loc="left") for axes in drawing.figure.axes] == [
        "Decoders: next token",
        "Encoders: masked tokens",
    ]
    assert [list(named_lines(drawing, panel)) for panel in (0, 1)] == [["a"], ["b"]]
    assert drawing.figure.axes[0].get_ylim() != drawing.figure.axes[1].get_ylim()
    assert drawing.figure.get_figwidth() == TEXT_WIDTH


def test_one_role_has_one_panel_in_one_column(tmp_path):
    drawing = drawn(tmp_path, listed(), listed("b"), roles=["encoder", "encoder"])
    assert [axes.get_title(loc="left") for axes in drawing.figure.axes] == [
        "Encoders: masked tokens"
    ]
    assert drawing.figure.get_figwidth() == COLUMN_WIDTH


def test_losses_over_different_vocabularies_are_said_not_to_compare(tmp_path):
    one = drawn(tmp_path, listed(), listed("b")).caption
    two = drawn(tmp_path, listed(), listed("b", vocabulary=250880)).caption
    assert "vocabularies" not in one
    assert "different vocabularies do not compare (100 and 250,880 entries)." in two
    assert "Mean over 1,000 tokens. Left of the axis break: before training." in one


def test_a_figure_of_nothing_is_refused(tmp_path):
    with pytest.raises(InputError, match="leaves out every checkpoint of a: there is nothing"):
        drawn(tmp_path, listed(flagged=dict.fromkeys(STEPS, ("missing", "no"))))
