"""Measures by layer and step: heat maps have a cell for each value, an overview a panel for each measure."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.collections import QuadMesh
from matplotlib.colors import LogNorm

from figure_tables import (
    draw,
    footnote,
    inputs_of,
    lines_labelled,
    models_named,
    named_lines,
    rows_of_model,
    undefined,
    verdicts_on,
)

STEPS = [0, 1, 8, 64, 512]
MEASURES = ("anisotropy", "two_nn")


def inputs(folder, models=("a", "b"), change=lambda row: row, measures=MEASURES, **options):
    rows = [row for m in models for row in rows_of_model(m, steps=STEPS, estimators=measures)]
    given = inputs_of(
        folder, list(models), *measures, rows=[change(row) for row in rows], **options
    )
    return replace(given, models=models_named(list(models)))


def cells_of(axes):
    (mesh,) = [each for each in axes.collections if isinstance(each, QuadMesh)]
    return mesh


def test_a_heat_map_has_the_values_of_its_csv_and_one_scale_per_measure(tmp_path):
    drawing = draw("heat_map", inputs(tmp_path))
    panels = [axes for axes in drawing.figure.axes if axes.collections and axes.get_label() == ""]
    assert len(panels) == 4
    expected = [(measure, model) for measure in MEASURES for model in "ab"]
    for axes, (measure, model) in zip(panels, expected, strict=True):
        own = drawing.table[
            (drawing.table["model"] == model) & (drawing.table["estimator"] == measure)
        ]
        values = own.pivot(index="layer", columns="step", values="value").to_numpy()
        np.testing.assert_array_equal(cells_of(axes).get_array(), values)
        labels = [label.get_text() for label in axes.get_xticklabels()]
        assert labels == [str(step) for step in STEPS]
    for first, second in (panels[:2], panels[2:]):
        assert cells_of(first).norm is cells_of(second).norm
    assert "Colours: mean over batches of 4,096 vectors; the numbers have 95 %" in drawing.caption
    assert "bands" not in drawing.caption


def test_a_heat_map_marks_what_is_undefined_suspect_or_hollow(tmp_path):
    def change(row):
        if (row["estimator"], row["layer"]) != ("two_nn", 2):
            return row
        return undefined(row) if row["step"] == 1 else row | {"near_duplicates": 0.2}

    verdicts = verdicts_on("a", STEPS, {8: ("mixed shards", "hollow"), 64: ("broken", "no")})
    drawing = draw("heat_map", inputs(tmp_path, ["a"], change, ["two_nn"], verdicts=verdicts))
    marks = {}
    for line in lines_labelled(drawing, "_marks"):
        marks.setdefault(line.get_marker(), []).extend(zip(*line.get_data(), strict=True))
    # Places of the steps 0, 1, 8 and 512: 64 is left out.
    assert {kind: sorted(places) for kind, places in marks.items()} == {
        "x": [(1, 2)],
        "o": [(2, layer) for layer in range(4)],
        ".": [(0, 2), (2, 2), (3, 2)],
    }
    words = footnote(drawing)
    assert "Dot: more than 10 % of the vectors have a near-duplicate" in words
    assert "Grey with a cross: undefined (1 of 16 values)." in words
    assert "Hollow: a step 8 (mixed shards)." in words


def same(row):
    return row


def wide(row):
    is_first = (row["model"], row["layer"], row["step"]) == ("a", 0, 0)
    return row | {"value": 500.0} if is_first and row["estimator"] == "mada" else row


def test_colours_are_on_a_log_scale_where_one_value_would_leave_the_others_one_colour(tmp_path):
    for change, is_log in ((same, False), (wide, True)):
        drawing = draw("heat_map", inputs(tmp_path, ["a"], change, ["mada"]))
        assert isinstance(cells_of(drawing.figure.axes[0]).norm, LogNorm) == is_log


def test_lines_are_on_a_log_scale_where_one_value_would_lay_the_others_on_each_other(tmp_path):
    measures = ("mada", "two_nn")
    for figure, models in (("training_profile", "ab"), ("overview", "a")):
        for change, scale in ((same, "linear"), (wide, "log")):
            panels = draw(figure, inputs(tmp_path, models, change, measures)).figure.axes
            of_mada, of_two_nn = panels[: len(models)], panels[len(models) : 2 * len(models)]
            assert {axes.get_yscale() for axes in of_mada} == {scale}, figure
            assert {axes.get_yscale() for axes in of_two_nn} == {"linear"}, figure


@pytest.mark.parametrize("name", ["heat_map", "training_profile", "dimension_by_step"])
def test_infinite_values_are_marked_like_undefined_ones(tmp_path, name):
    def change(row):
        is_first = (row["layer"], row["step"]) in {(0, 8), ("", 8)}
        return row | {"value": "inf", "high": "inf"} if is_first else row

    drawing = draw(name, inputs(tmp_path, ["a"], change, ["two_nn"]))
    crosses = lines_labelled(drawing, "_marks") or lines_labelled(drawing, "_undefined")
    assert [len(line.get_xdata()) for line in crosses] == [1]
    assert "undefined or infinite (1 of" in footnote(drawing)
    assert "undefined or infinite (1 of" in drawing.caption
    assert drawing.figure.axes[0].get_yscale() == "linear"


def test_a_log_scale_over_many_powers_of_ten_has_labels(tmp_path):
    def change(row):
        return row | {"value": 10.0 ** (3 * row["layer"] - 3)} if row["layer"] != "" else row

    for name, panel in (("heat_map", -1), ("overview", 0)):
        axes = draw(name, inputs(tmp_path, ["a"], change, ["two_nn"])).figure.axes[panel]
        low, high = axes.get_ylim()
        assert len([tick for tick in axes.get_yticks() if low <= tick <= high]) >= 2


def test_an_overview_has_a_panel_for_each_measure(tmp_path):
    measures = ("anisotropy", "average_cosine", "two_nn", "mada")
    drawing = draw("overview", inputs(tmp_path, ["a"], measures=measures))
    for panel, measure in enumerate(measures):
        lines = named_lines(drawing, panel)
        assert list(lines) == [str(step) for step in STEPS]
        for step, line in lines.items():
            own = drawing.table[drawing.table["estimator"] == measure]
            own = own[own["step"] == int(step)]
            np.testing.assert_array_equal(line.get_ydata(), own["value"])


def test_profiles_of_several_measures_are_below_each_other(tmp_path):
    drawing = draw("training_profile", inputs(tmp_path, measures=("two_nn", "mada")))
    labels = [axes.get_ylabel().split("\n")[-1] for axes in drawing.figure.axes[:4:2]]
    assert labels == ["TwoNN", "MADA"]


def test_many_steps_have_no_bands_and_the_caption_says_so(tmp_path):
    rows = rows_of_model("a", steps=range(21), estimators=["anisotropy"])
    drawing = draw("training_profile", inputs_of(tmp_path, ["a"], "anisotropy", rows=rows))
    areas = [band.get_paths() for band in drawing.figure.axes[0].collections]
    assert not any(
        np.isfinite(path.vertices).all() for paths in areas for path in paths if len(path)
    )
    assert "Too many steps for bands: a;" in drawing.caption
    assert "bands: 95 %" not in drawing.caption
    assert "the numbers have 95 % intervals" in drawing.caption


@pytest.mark.parametrize("name", ["training_profile", "dimension_by_step"])
def test_undefined_values_have_a_cross_at_the_lower_edge(tmp_path, name):
    def change(row):
        return undefined(row) if row["step"] == 8 else row

    drawing = draw(name, inputs(tmp_path, ["a"], change, ["two_nn"]))
    (crosses,) = lines_labelled(drawing, "_undefined")
    axes = drawing.figure.axes[0]
    heights = axes.transAxes.inverted().transform(
        crosses.get_transform().transform(crosses.get_xydata())
    )
    assert (heights[:, 1] < 0.05).all()
    assert (heights[:, 1] > 0).all()
    places = [8] if name == "dimension_by_step" else [0, 1, 2, 3]
    assert crosses.get_xdata().tolist() == places
    assert "cross at the lower edge: undefined" in footnote(drawing)
    assert "cross at the lower edge: undefined" in drawing.caption
