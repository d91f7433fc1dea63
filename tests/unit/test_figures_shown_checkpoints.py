"""Checkpoints that the verdicts leave out are not drawn, hollow ones are drawn hollow."""

import numpy as np
import pytest

from figure_tables import (
    draw,
    footnote,
    inputs_of,
    lines_labelled,
    models_named,
    named_lines,
    rows_of_model,
    verdicts_on,
)
from shape_of_learning.errors import InputError

DOTTED = (0, (1, 1.2))
STEPS = [0, 1, 8, 64, 512]
TRAINED = rows_of_model("a", steps=STEPS) + rows_of_model("b", steps=[2, 100], layers=5)
LEFT_OUT = {8: ("same weights as step 1 (https://example.org)", "no")}
HOLLOW = {64: ("mixed shards", "hollow")}
FIGURES = [("training_profile", ["a"]), ("dimension_by_step", ["a", "b"])]
DRAWN = {"training_profile": ["anisotropy"], "dimension_by_step": ["two_nn"]}


def drawn(folder, name, models, flagged, *, rows=TRAINED, verdicts=None, estimators=()):
    """Draw with verdicts on model a as `flagged` and on b as ok, or with the given ones."""
    if verdicts is None:
        verdicts = verdicts_on("a", STEPS, flagged) + verdicts_on("b", [2, 100])
    labelled = models_named(models, [f"Model {model}" for model in models])
    estimators = estimators or DRAWN[name]
    return draw(name, inputs_of(folder, labelled, *estimators, rows=rows, verdicts=verdicts))


@pytest.mark.parametrize(("name", "models"), FIGURES)
def test_what_is_left_out_is_not_drawn_but_named(tmp_path, name, models):
    drawing = drawn(tmp_path, name, models, LEFT_OUT)
    assert 8 not in set(drawing.table["step"])
    assert set(drawing.table.loc[drawing.table["model"] == "a", "step"]) == {0, 1, 64, 512}
    drawn_steps = {
        *named_lines(drawing),
        *(str(int(x)) for line in named_lines(drawing).values() for x in line.get_xdata()),
    }
    assert "8" not in drawn_steps
    assert footnote(drawing) == "Left out: Model a step 8 (same weights as step 1)."
    assert f"Left out: Model a step 8 ({LEFT_OUT[8][0]})." in drawing.caption


@pytest.mark.parametrize(("name", "models"), FIGURES)
def test_there_is_no_footnote_where_nothing_is_flagged(tmp_path, name, models):
    drawing = drawn(tmp_path, name, models, {})
    assert footnote(drawing) == ""
    assert "Left out" not in drawing.caption
    assert "Hollow" not in drawing.caption


@pytest.mark.parametrize(("name", "models"), FIGURES)
def test_the_csv_has_the_verdicts_of_the_drawn_rows(tmp_path, name, models):
    table = drawn(tmp_path, name, models, LEFT_OUT | HOLLOW).table
    columns = list(table.columns)
    assert columns[columns.index("tokens") + 1] == "verdict"
    assert "hollow" not in columns
    flagged = table["step"] == 64
    assert set(table.loc[flagged, "verdict"]) == {"mixed shards"}
    assert set(table.loc[~flagged, "verdict"]) == {"ok"}


def test_verdicts_are_empty_in_the_csv_where_none_are_given(tmp_path):
    drawing = draw("dimension_by_step", inputs_of(tmp_path, ["a"], "two_nn", rows=TRAINED))
    assert set(drawing.table["verdict"]) == {""}


def test_the_line_of_a_curve_passes_through_a_hollow_point(tmp_path):
    drawing = drawn(tmp_path, "dimension_by_step", ["a", "b"], HOLLOW)
    line = named_lines(drawing)["a"]
    (markers,) = lines_labelled(drawing, "_hollow")
    place = STEPS.index(64)
    assert list(line.get_xdata()) == STEPS
    assert list(line.get_markevery()) == [step != 64 for step in STEPS]
    assert markers.get_markerfacecolor() == "white"
    assert markers.get_markeredgecolor() == line.get_color()
    assert markers.get_markeredgewidth() > 0
    assert (list(markers.get_xdata()), list(markers.get_ydata())) == (
        [64],
        [line.get_ydata()[place]],
    )
    assert footnote(drawing) == "Hollow: Model a step 64 (mixed shards)."


def test_a_hollow_point_is_hollow_in_every_panel(tmp_path):
    estimators = ["two_nn", "mada", "mom"]
    drawing = drawn(tmp_path, "dimension_by_step", ["a", "b"], HOLLOW, estimators=estimators)
    assert [len(lines_labelled(drawing, "_hollow", panel)) for panel in range(3)] == [1, 1, 1]
    assert footnote(drawing) == "Hollow: Model a step 64 (mixed shards)."


@pytest.mark.parametrize("step", [0, 64])
def test_a_hollow_step_of_a_profile_is_dotted_with_hollow_markers(tmp_path, step):
    drawing = drawn(tmp_path, "training_profile", ["a"], {step: ("odd", "hollow")})
    lines = named_lines(drawing)
    (markers,) = lines_labelled(drawing, "_hollow")
    assert _dashes(lines[str(step)]) == DOTTED
    assert all(_dashes(line) != DOTTED for name, line in lines.items() if name != str(step))
    assert markers.get_markerfacecolor() == "white"
    np.testing.assert_array_equal(markers.get_xydata(), lines[str(step)].get_xydata())
    assert markers.get_zorder() > max(line.get_zorder() for line in lines.values())


def test_a_model_of_which_nothing_is_shown_is_named_and_not_drawn(tmp_path):
    verdicts = verdicts_on("a", STEPS) + verdicts_on(
        "b", [2, 100], {2: ("missing", "no"), 100: ("missing", "no")}
    )
    unmeasured = [row for row in TRAINED if row["model"] == "a"]
    for rows in (TRAINED, unmeasured):
        drawing = drawn(tmp_path, "dimension_by_step", ["a", "b"], {}, rows=rows, verdicts=verdicts)
        assert set(named_lines(drawing)) == {"a"}
        assert footnote(drawing) == "Left out: Model b steps 2 and 100 (missing)."


def test_what_is_left_out_may_have_another_batch_size(tmp_path):
    small = [row | {"n": 1024} if row["step"] == 8 else row for row in TRAINED]
    drawing = drawn(tmp_path, "dimension_by_step", ["a", "b"], LEFT_OUT, rows=small)
    assert set(drawing.table["n"]) == {4096}


def test_models_that_are_not_drawn_need_no_verdict(tmp_path):
    drawing = drawn(tmp_path, "training_profile", ["a"], {}, verdicts=verdicts_on("a", STEPS))
    assert len(named_lines(drawing)) == len(STEPS)


@pytest.mark.parametrize(("name", "models"), FIGURES)
def test_a_measured_checkpoint_without_verdict_is_refused(tmp_path, name, models):
    verdicts = verdicts_on("a", STEPS[:-1]) + verdicts_on("b", [2, 100])
    with pytest.raises(InputError, match=r"no verdict on a step512 \(step 512\)"):
        drawn(tmp_path, name, models, {}, verdicts=verdicts)


def test_a_verdict_on_another_step_is_no_verdict(tmp_path):
    verdicts = verdicts_on("a", STEPS)
    verdicts[-1]["step"] = 513
    with pytest.raises(InputError, match=r"no verdict on a step512 \(step 512\)"):
        drawn(tmp_path, "training_profile", ["a"], {}, verdicts=verdicts)


@pytest.mark.parametrize("shown", ["yes", "hollow"])
@pytest.mark.parametrize(("name", "models"), FIGURES)
def test_a_checkpoint_that_is_to_be_shown_must_be_measured(tmp_path, name, models, shown):
    rows = [row for row in TRAINED if (row["model"], row["step"]) != ("a", 64)]
    with pytest.raises(InputError, match=r"of a step64 \(step 64\), which is to be shown"):
        drawn(tmp_path, name, models, {64: ("odd", shown)}, rows=rows)


def test_a_checkpoint_that_is_to_be_shown_must_be_measured_by_every_estimator(tmp_path):
    rows = [row for row in TRAINED if (row["step"], row["estimator"]) != (64, "mom")]
    with pytest.raises(InputError, match="no mom of a step64"):
        drawn(tmp_path, "dimension_by_step", ["a"], {}, rows=rows, estimators=["two_nn", "mom"])


def test_a_figure_of_nothing_is_refused(tmp_path):
    with pytest.raises(InputError, match="leaves out every checkpoint of a"):
        drawn(tmp_path, "training_profile", ["a"], dict.fromkeys(STEPS, ("no weights", "no")))


def _dashes(line):
    """Offset and pattern in points of the line's width, as a style gives them."""
    offset, pattern = line._unscaled_dash_pattern
    return offset, tuple(pattern) if pattern else None
