"""The figures of what a model's own matrices say, drawn from seeded numbers of plausible size."""

import random

import numpy as np
import pandas as pd
import pytest

from figure_tables import (
    footnote,
    inputs_of,
    lines_labelled,
    models_named,
    named_lines,
    rows_of_model,
    verdicts_on,
)
from shape_of_learning.errors import InputError
from shape_of_learning.figures.inputs import DrawnMeasure, FigureInputs
from shape_of_learning.figures.output import paper_function
from shape_of_learning.figures.style import theme

STEPS = [0, 10, 100, 1000]
RAW, CENTERED = "matrix_partition_isotropy", "matrix_partition_isotropy_centered"
NORM = ("bias_length", "bias_to_gain")
MEASURES = {
    name: DrawnMeasure(name, label, axis, False, parameters=parameters)
    for name, label, axis, parameters in (
        (RAW, "Partition isotropy", "ln I", {"center": False}),
        (CENTERED, "Partition isotropy, centred", "ln I", {"center": True}),
        (NORM[0], "Length of the bias", "|b|", {}),
        (NORM[1], "Bias to gain", "|b| / |g|", {}),
    )
}


def weights(model, *, steps=STEPS, matrices=("input", "output"), bias=True):
    """A table of one model."""
    numbers = random.Random(model)
    rows = []
    for step in steps:
        common = {"model": model, "role": "decoder", "revision": f"step{step}", "step": step}
        common["tokens"] = step * 2048
        for matrix in matrices:
            for name in (RAW, CENTERED):
                value = -numbers.uniform(0, 0.1) - (step / 500 if name == RAW else 0)
                own = {"matrix": matrix, "estimator": name, "n": 50304, "d": 512, "value": value}
                rows.append(common | own)
        for name in NORM:
            value = numbers.uniform(1, 9) if bias else np.nan
            own = {"matrix": "final_norm", "estimator": name, "n": 1, "d": 512, "value": value}
            rows.append(common | own)
    return rows


def given(folder, rows, measures, kind="weights", verdicts=None):
    """The inputs of a figure that reads one table."""
    table = pd.DataFrame(rows)
    names = list(dict.fromkeys(table["model"]))
    judged = inputs_of(folder, names, verdicts=verdicts).verdicts if verdicts else None
    return FigureInputs(
        models_named(names, [f"Model {name}" for name in names]),
        [MEASURES[name] for name in measures],
        "Protocol.",
        verdicts=judged,
        tables={kind: table},
    )


def draw(name, inputs, **options):
    with theme():
        return paper_function(f"inherent:{name}")(inputs, **options)


def all_verdicts(*models, flagged=None):
    # A loss that falls as the isotropy of `weights` does.
    losses = {step: 5 - step / 500 for step in STEPS}
    return [row for m in models for row in verdicts_on(m, STEPS, flagged, losses=losses)]


def test_each_matrix_of_each_model_has_its_points(tmp_path):
    rows = weights("a", steps=[9]) + weights("b", steps=[9], matrices=["tied"])
    drawing = draw("isotropy_by_model", given(tmp_path, rows, (RAW, CENTERED), "last_weights"))
    expected = {(r["model"], r["matrix"], r["estimator"]): r["value"] for r in rows}
    for panel, measure in enumerate((RAW, CENTERED)):
        lines = named_lines(drawing, panel)
        places = {"input": ("a", 0), "output": ("a", 1), "input and output (tied)": ("b", 1)}
        assert set(lines) == set(places)
        for label, (model, _) in places.items():
            matrix = "tied" if "tied" in label else label
            x, y = lines[label].get_xydata()[0]
            assert x == expected[model, matrix, measure]
            assert y == "ab".index(model)
    assert set(drawing.table["estimator"]) == {RAW, CENTERED}
    assert [t.get_text() for t in drawing.figure.axes[0].get_yticklabels()] == [
        "Model a",
        "Model b",
    ]


def test_a_tied_matrix_is_at_both_ends(tmp_path):
    rows = weights("a") + weights("b", matrices=["tied"])
    inputs = given(tmp_path, rows, (RAW, CENTERED), verdicts=all_verdicts("a", "b"))
    drawing = draw("isotropy_by_step", inputs)
    ends = [named_lines(drawing, panel) for panel in (0, 1)]
    assert [set(lines) for lines in ends] == [{"a", "b"}] * 2
    tied = [row["value"] for row in rows if row["matrix"] == "tied" and row["estimator"] == RAW]
    for lines in ends:
        np.testing.assert_array_equal(lines["b"].get_xydata(), list(zip(STEPS, tied, strict=True)))
    assert not np.array_equal(ends[0]["a"].get_ydata(), ends[1]["a"].get_ydata())


def test_what_the_verdicts_hide_is_left_out_and_named(tmp_path):
    flagged = {100: ("broken", "no"), 1000: ("same weights as step 10", "hollow")}
    inputs = given(tmp_path, weights("a"), NORM, verdicts=all_verdicts("a", flagged=flagged))
    drawing = draw("final_norm_by_step", inputs)
    assert named_lines(drawing)["a"].get_xdata().tolist() == [0, 10, 1000]
    assert lines_labelled(drawing, "_hollow")[0].get_xdata().tolist() == [1000]
    assert "Left out: Model a step 100 (broken)." in footnote(drawing)
    assert "step100" not in set(drawing.table["revision"])


def test_a_norm_without_a_bias_is_said_to_have_none(tmp_path):
    rows = weights("a") + weights("b", bias=False)
    inputs = given(tmp_path, rows, NORM, verdicts=all_verdicts("a", "b"))
    drawing = draw("final_norm_by_step", inputs)
    words = [text.get_text() for text in drawing.figure.axes[-1].texts]
    assert "Model b: no bias" in words
    assert "Undefined: Model b." in drawing.caption


def test_the_correlation_is_over_the_checkpoints_that_are_shown(tmp_path):
    flagged = {1000: ("broken", "no")}
    rows = weights("a")
    inputs = given(tmp_path, rows, [RAW], verdicts=all_verdicts("a", flagged=flagged))
    drawing = draw("isotropy_and_loss", inputs)
    own = [r for r in rows if r["estimator"] == RAW and r["matrix"] == "output"][:3]
    expected = np.corrcoef([5 - r["step"] / 500 for r in own], [r["value"] for r in own])[0, 1]
    table = drawing.table[drawing.table["matrix"] == "output"]
    np.testing.assert_allclose(table["correlation"], expected, rtol=1e-12)
    words = [text.get_text() for text in drawing.figure.axes[1].texts]
    assert f"Model a (r = {expected:.2f})" in words
    assert table["loss"].tolist() == [5.0, 4.98, 4.8]


def test_two_checkpoints_have_no_correlation(tmp_path):
    flagged = dict.fromkeys((100, 1000), ("broken", "no"))
    inputs = given(tmp_path, weights("a"), [RAW], verdicts=all_verdicts("a", flagged=flagged))
    drawing = draw("isotropy_and_loss", inputs)
    assert drawing.table["correlation"].isna().all()
    assert "Model a" in [text.get_text() for text in drawing.figure.axes[0].texts]


def test_a_model_whose_loss_is_not_known_is_named_as_such(tmp_path):
    verdicts = all_verdicts("a") + [row | {"loss": ""} for row in all_verdicts("b")]
    inputs = given(tmp_path, weights("a") + weights("b"), [RAW], verdicts=verdicts)
    for axes in draw("isotropy_and_loss", inputs).figure.axes:
        assert "Model b: not known" in [text.get_text() for text in axes.texts]


@pytest.mark.parametrize("name", ["isotropy_by_step", "isotropy_and_loss"])
def test_checkpoints_that_are_all_left_out_are_refused(tmp_path, name):
    verdicts = all_verdicts("a", flagged=dict.fromkeys(STEPS, ("broken", "no")))
    inputs = given(tmp_path, weights("a"), [RAW], verdicts=verdicts)
    with pytest.raises(InputError, match="leaves out every checkpoint of a: there is nothing"):
        draw(name, inputs)


def test_lines_end_after_the_final_norm_and_dashes_before_it(tmp_path):
    names = ("cosine", "cosine_before")
    rows = rows_of_model("a", estimators=names) + rows_of_model("b", estimators=names)
    before = [row for row in rows if row["estimator"] == "cosine_before" and row["model"] == "a"]
    drawing = draw(
        "final_norm_by_depth",
        inputs_of(tmp_path, ["a", "b"], *names, rows=rows),
        before={"cosine": "cosine_before"},
    )
    assert len(named_lines(drawing)["a"].get_xdata()) == 4
    dashes = lines_labelled(drawing, "_before")[0]
    np.testing.assert_array_equal(dashes.get_xdata(), [2 / 3, 1])
    np.testing.assert_allclose(dashes.get_ydata(), [r["value"] for r in before[2:4]], rtol=1e-15)


def points(model, matrices=("input", "output"), steps=(0, 10, 1000)):
    numbers = np.random.default_rng(0)
    rows = []
    for step in steps:
        common = {"model": model, "role": "decoder", "revision": f"step{step}", "step": step}
        common["tokens"] = step * 2048
        for matrix in matrices:
            for centered in ("no", "yes"):
                xy = numbers.normal(0, 1 + step / 1000, (300, 2)) + (centered == "no") * step / 300
                own = {"matrix": matrix, "centered": centered}
                rows += [common | own | {"entry": e, "x": x, "y": y} for e, (x, y) in enumerate(xy)]
    return rows


def test_each_panel_has_the_points_of_its_matrix_and_step(tmp_path):
    rows = points("a")
    inputs = given(tmp_path, rows, (), "weight_points", all_verdicts("a"))
    drawing = draw("planes", inputs)
    assert len(drawing.figure.axes) == 12
    for panel, (matrix, centered, step) in {
        0: ("input", "no", 0),
        11: ("output", "yes", 1000),
    }.items():
        chosen = [
            (r["x"], r["y"])
            for r in rows
            if (r["matrix"], r["centered"], r["step"]) == (matrix, centered, step)
        ]
        np.testing.assert_array_equal(
            drawing.figure.axes[panel].collections[0].get_offsets(), chosen
        )
    assert "300 entries" in drawing.caption


def test_nothing_measured_is_one_sentence(tmp_path):
    inputs = given(tmp_path, weights("a")[:2], NORM, verdicts=all_verdicts("a"))
    with pytest.raises(InputError, match="nothing was measured of the matrices of Model a"):
        draw("final_norm_by_step", inputs)
