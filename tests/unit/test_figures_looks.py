"""Figures draw the right rows with the right marks, labels, captions and axes."""

import itertools
import math
import re
import unicodedata
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import PIL.Image
import pytest
from matplotlib.collections import QuadMesh
from matplotlib.font_manager import FontProperties, findfont
from matplotlib.ft2font import FT2Font
from matplotlib.text import Text

import figure_tables as made
from shape_of_learning.errors import InputError
from shape_of_learning.figures import style
from shape_of_learning.figures.inputs import read_tables
from shape_of_learning.figures.output import save
from shape_of_learning.figures.scales import (
    begin_at_zero,
    choose_progress_column,
    describe_progress,
    place_steps,
    set_log_axis,
)
from shape_of_learning.figures.style import THEME, use_theme
from shape_of_learning.figures.tables import select_averages
from shape_of_learning.metrics.suspects import Conditions
from shape_of_learning.plan.entries import PrintedText, read_entry

PROFILES, HEAT_MAPS = "curves:profiles_by_step", "curves:heat_maps"
PAPER = "papers.shape_of_learning.figures"
MEANS, LOSS = "curves:means_by_step", f"{PAPER}:loss_by_step"
STEPS = [0, 1, 8, 64, 512]
TRAINED = made.make_model_rows("a", steps=STEPS) + made.make_model_rows(
    "b", steps=[2, 100], layers=5
)
BROKEN = ("broken: perplexity 6,000 times that of earlier steps", "no")


def draw_panels(
    function, rows=TRAINED, models=("a",), estimators=("two_nn",), faults=None, **tables
):
    """Draw with `faults` of model a, and all other checkpoints ok."""
    if faults is not None:
        tables["verdicts"] = made.make_verdicts("a", STEPS, faults) + made.make_verdicts(
            "b", [2, 100]
        )
    figure_models = made.make_models(models, [f"M-{model}" for model in models])
    return made.draw(function, made.make_inputs(figure_models, *estimators, rows=rows, **tables))


def change_step_8(change, rows=TRAINED):
    return [change(row) if row["step"] == 8 else row for row in rows]


def find_corners(drawing, panel=0):
    """Find the corners of all bands and bars in a panel."""
    collections = drawing.figure.axes[panel].collections
    corners = [path.vertices for collection in collections for path in collection.get_paths()]
    corners = np.concatenate(corners) if corners else np.empty((0, 2))
    return corners[np.isfinite(corners).all(axis=1)]


def find_cells(axes):
    (mesh,) = [collection for collection in axes.collections if isinstance(collection, QuadMesh)]
    return mesh


# Which rows


def test_tables_keep_text_whole_numbers_and_empty_cells(tmp_path):
    (tmp_path / "a.csv").write_text("model,revision,step,loss,n\nNA,1000,3,,5\nb,x,,inf,6\n")
    table = read_tables({"weights": [tmp_path / "a.csv"] * 2, "none": []})["weights"]
    assert (table["revision"][0], table["step"][0], table["loss"][1]) == ("1000", 3, math.inf)
    assert table.to_csv(index=False).splitlines()[1:3] == ["NA,1000,3,,5", "b,x,,inf,6"]


def test_layers_of_an_average_are_counted():
    rows = made.make_model_rows("a", steps=[0, 8], estimators=["two_nn"])
    rows = [made.clear_value(r) if (r["step"], r["layer"]) == (8, 2) else r for r in rows]
    inputs = made.make_inputs(["a"], "two_nn", rows=rows)
    table = select_averages(inputs)
    assert list(table["value"]) == [row["value"] for row in rows if row["layer"] == ""]
    assert list(table["layers"]) == [3, 2]
    assert list(table["layers_left_out"]) == [0, 1]
    assert list(select_averages(inputs, "all_layers")["layers"]) == [4, 3]


@pytest.mark.parametrize("function", [PROFILES, MEANS])
def test_checkpoints_left_out_by_verdicts_are_named_and_not_drawn(function):
    faults = {8: ("same weights as step 1", "no")}
    drawing = draw_panels(function, faults=faults)
    assert set(drawing.table["step"]) == {0, 1, 64, 512}
    assert 8 not in [x for line in made.find_curves(drawing).values() for x in line.get_xdata()]
    assert "Left out: M-a step 8 (same weights as step 1)." in made.read_words(drawing)


@pytest.mark.parametrize("function", [MEANS, LOSS])
def test_a_figure_without_checkpoints_is_refused(function):
    with pytest.raises(InputError, match="nothing to draw of M-a: the verdicts leave out every"):
        draw_panels(function, faults=dict.fromkeys(STEPS, ("missing", "no")))


# Undefined values


def test_undefined_values_are_gaps_with_a_stroke_at_the_lower_edge():
    drawing = draw_panels(MEANS, change_step_8(made.clear_value))
    line = made.find_curves(drawing)["M-a"]
    assert list(line.get_xdata()[np.isnan(line.get_ydata())]) == [8]
    (strokes,) = made.find_lines(drawing, style.UNDEFINED)
    assert list(strokes.get_xdata()) == [8]


# Intervals


def test_a_measure_without_intervals_has_no_bands_and_a_note_says_why():
    rows = [row | made.NO_INTERVAL for row in TRAINED]
    none = Conditions(has_interval=False)
    measures = [replace(measure, conditions=none) for measure in made.make_measures("two_nn")]
    for function in (MEANS, PROFILES):
        drawing = draw_panels(function, rows, estimators=measures)
        assert not find_corners(drawing).size
        assert made.find_lines(drawing, style.NO_INTERVAL) == []
        assert "of TwoNN, whose coverage" in made.read_words(drawing)
    few = draw_panels(MEANS, [row | made.NO_INTERVAL | {"windows": 12} for row in TRAINED])
    assert not find_corners(few).size


def test_a_missing_interval_is_a_gap_in_the_band_and_a_cross_that_the_key_explains():
    drawing = draw_panels(MEANS, change_step_8(lambda row: row | made.NO_INTERVAL))
    assert 8 not in find_corners(drawing)[:, 0]
    line = made.find_curves(drawing)["M-a"]
    (cross,) = made.find_lines(drawing, style.NO_INTERVAL)
    assert cross.get_xydata().tolist() == [[8, line.get_ydata()[STEPS.index(8)]]]
    assert style.MARKS[style.NO_INTERVAL].words in made.read_legends(drawing)
    assert "no interval for 1 of 5 values (undefined without" in made.read_words(drawing)
    assert style.MARKS[style.NO_INTERVAL].words not in made.read_legends(draw_panels(MEANS))


def test_a_note_says_where_few_windows_decide():
    rows = change_step_8(lambda row: row | made.NO_INTERVAL | {"effective_windows": 3.2})
    words = made.read_words(draw_panels(MEANS, rows))
    assert "no interval for 1 of 5 values (few windows decide)." in words


# Hollow points


def test_a_note_says_where_models_differ_in_vectors_per_dimension():
    measure = replace(made.make_measures("linearity_adjusted")[0], depends_on_width=True)
    rows = [
        row
        for model, n in {"narrow": 9216, "wide": 11264}.items()
        for row in made.make_model_rows(model, steps=(1, 2), estimators=(measure.name,), n=n)
    ]
    models = made.make_models(("narrow", "wide"))
    for width, has_note in ((512, False), (1024, True)):  # 18 and 22; 18 and 11
        figure_models = [replace(models[0], width=512), replace(models[1], width=width)]
        drawing = made.draw(MEANS, made.make_inputs(figure_models, measure, rows=rows))
        assert ("from 11 (wide) to 18 (narrow)" in made.read_words(drawing)) == has_note
    plain = made.make_inputs(figure_models, replace(measure, depends_on_width=False), rows=rows)
    assert "from 11 (wide)" not in made.read_words(made.draw(MEANS, plain))


def mark_places(*places):
    """Return rows of which those of TwoNN at some (model, step, layer) are suspect."""
    return [
        row | made.SUSPECT
        if row["estimator"] == "two_nn" and (row["model"], row["step"], row["layer"]) in places
        else row
        for row in TRAINED
    ]


def test_a_checkpoint_that_is_not_ok_has_an_open_diamond_on_the_line():
    drawing = draw_panels(MEANS, models=("a", "b"), faults={64: ("mixed shards", "hollow")})
    line = made.find_curves(drawing)["M-a"]
    (diamond,) = made.find_lines(drawing, style.NOT_OK)
    assert (diamond.get_marker(), diamond.get_markerfacecolor()) == ("D", "white")
    assert diamond.get_xydata().tolist() == [[64, line.get_ydata()[STEPS.index(64)]]]
    assert "M-a step 64 (mixed shards)." in made.read_words(drawing)


def test_an_average_with_a_suspect_layer_has_an_open_ring():
    # Layer 0 is no block.
    rows = mark_places(("a", 0, 0), ("a", 1, 1), ("a", 1, 2), ("a", 8, 3))
    drawing = draw_panels(MEANS, rows, ("a", "b"), ["two_nn", "mada"])
    (rings,) = made.find_lines(drawing, style.SUSPECT)
    assert list(rings.get_xdata()) == [1, 8]
    assert made.find_lines(drawing, style.SUSPECT, 1) == []
    table = drawing.table.query("model == 'a' and estimator == 'two_nn'")
    assert list(table["suspect_layers"]) == [0, 2, 1, 0, 0]


@pytest.mark.parametrize(
    "function", [PROFILES, MEANS, HEAT_MAPS, "curves:overview", f"{PAPER}:measures_by_depth"]
)
def test_a_suspect_value_is_an_open_ring_in_every_figure(function):
    rows = [row | made.SUSPECT for row in TRAINED if row["step"] == 2]
    drawing = draw_panels(function, rows, ("b",))
    rings = made.find_lines(drawing, style.SUSPECT)
    assert {line.get_marker() for line in rings} == {"o"}
    assert {line.get_markerfacecolor() for line in rings} <= {"white", "none"}
    assert style.MARKS[style.SUSPECT].words in made.read_legends(drawing)


# Heat maps and scales


WIDE = [(1, -40.0), (3, 0.01), (50, 2.0), (100, 60.0)]  # values of layers, and lower ends of bands


@pytest.mark.parametrize("function", [PROFILES, "curves:overview"])
def test_a_log_axis_holds_all_values_and_never_begins_at_zero(function):
    rows = made.make_model_rows("a", estimators=["two_nn"])
    for row in rows:
        value, low = WIDE[row["layer"] if row["layer"] != "" else 2]
        row |= {"value": value, "low": low, "high": 2 * value - low}
    axes = draw_panels(function, rows).figure.axes[0]
    low, high = axes.get_ylim()
    assert axes.get_yscale() == "log"
    assert 0.1 < low < 1
    assert high > 100


def test_beginning_at_zero_leaves_a_log_axis_alone():
    rows = made.make_model_rows("a", estimators=["two_nn"])
    axes = draw_panels(PROFILES, rows).figure.axes[0]
    set_log_axis(axes)
    limits = axes.get_ylim()
    for measure in made.make_measures("two_nn", "anisotropy"):
        begin_at_zero(axes, [measure])
    assert axes.get_ylim() == limits
    assert limits[0] > 0


def make_suspect_rows(**values):
    """Return rows of TwoNN of model a, suspect at the steps of `values` and with these values."""
    rows = [row for row in TRAINED if row["model"] == "a" and row["estimator"] == "two_nn"]
    is_suspect = [f"step{row['step']}" in values for row in rows]
    return [
        row | made.SUSPECT | made.make_interval(values[f"step{row['step']}"], 0.1)
        if suspect
        else row
        for row, suspect in zip(rows, is_suspect, strict=True)
    ]


def test_ordinary_values_decide_axes_and_colours():
    rows = make_suspect_rows(step8=5000)
    ordinary_values = [row["value"] for row in rows if row["step"] != 8]
    drawing = draw_panels(MEANS, rows)
    assert drawing.figure.axes[0].get_ylim()[1] < 3 * max(ordinary_values)
    (arrows,) = made.find_lines(drawing, style.BEYOND)
    assert list(arrows.get_xdata()) == [8]
    mesh = find_cells(draw_panels(HEAT_MAPS, rows).figure.axes[0])
    blocks = [r["value"] for r in rows if r["step"] != 8 and r["layer"] not in ("", 0)]
    assert mesh.norm.vmax <= max(ordinary_values)
    assert (mesh.norm.vmin, mesh.norm.vmax) == pytest.approx(
        (min(ordinary_values), max(ordinary_values)), rel=0.5
    )
    assert mesh.norm.vmin <= min(blocks)


def test_a_key_of_many_marks_fits_into_the_figure():
    rows = [
        row | made.NO_INTERVAL if row["step"] == 64 else row
        for row in make_suspect_rows(step8=5000)
    ]
    rows = [made.clear_value(row) if row["step"] == 1 else row for row in rows]
    drawing = draw_panels(MEANS, rows, faults={512: ("odd", "hollow")})
    *_, key = drawing.figure.legends
    assert len(key.get_texts()) == 5
    box, (panel,) = key.get_window_extent(), drawing.figure.axes
    (note,) = [text for text in drawing.figure.texts if text.get_gid() == "footnote"]
    assert box.x1 <= drawing.figure.bbox.x1
    assert note.get_window_extent().y1 <= box.y0
    assert box.y1 <= panel.get_tightbbox().y0 + 1


def test_axes_and_colours_of_suspect_values_alone_begin_at_zero_with_a_note():
    rows = make_suspect_rows(**{f"step{step}": 9 + step / 1000 for step in STEPS})
    for function in (MEANS, HEAT_MAPS):
        drawing = draw_panels(function, rows)
        axes = drawing.figure.axes[0]
        assert (axes.get_ylim()[0] if function == MEANS else find_cells(axes).norm.vmin) == 0
        assert f"all {len(drawing.table)} values" in made.read_words(drawing)


@pytest.mark.parametrize("steps", [STEPS, [0, 3, 17, 90, 128], [5], [*range(0, 143_001, 1000)]])
def test_labels_of_steps_stand_at_measured_steps(steps):
    axes = draw_panels(MEANS, made.make_model_rows("a", steps=steps)).figure.axes[0]
    assert set(axes.get_xticks()) <= set(steps)
    assert {steps[0], steps[-1]} <= set(axes.get_xticks())
    boxes = [label.get_window_extent() for label in axes.get_xticklabels()]
    assert all(first.x1 < second.x0 for first, second in itertools.pairwise(boxes))


def test_panels_of_estimators_have_y_axes_of_their_own():
    rows = [
        row | made.make_interval(10 * row["value"], 1) if row["estimator"] == "mada" else row
        for row in made.make_model_rows("a")
    ]
    drawing = draw_panels(f"{PAPER}:measures_by_depth", rows, estimators=["two_nn", "mada"])
    first, second = (axes.get_ylim() for axes in drawing.figure.axes)
    assert second[1] > 2 * first[1]


WITHOUT = "anisotropy_without_massive_tokens"


def test_anisotropy_with_and_without_massive_tokens_are_two_lines_of_one_panel():
    names = ("anisotropy", WITHOUT, "two_nn")
    rows = made.make_model_rows("a", estimators=names)
    drawing = made.draw("curves:overview", made.make_inputs(["a"], *names, rows=rows))
    panels = [axes for axes in drawing.figure.axes if axes.axison]
    assert len(panels) == 2
    for axes, measures in zip(panels, (names[:2], names[2:]), strict=True):
        lines = [list(line.get_ydata()) for line in axes.get_lines() if line.get_label()[0] != "_"]
        values = drawing.table.groupby("estimator")["value"].apply(list)
        assert lines == [values[name] for name in measures]
    both = rows + made.make_model_rows("b", estimators=names)
    drawing = made.draw("curves:overview", made.make_inputs(["a", "b"], *names, rows=both))
    assert len([axes for axes in drawing.figure.axes if axes.axison]) == 3


def test_an_overview_of_models_of_different_depth_shows_relative_depth():
    for layers, column in ((4, "layer"), (8, "depth")):
        rows = made.make_model_rows("a", layers=4) + made.make_model_rows("b", layers=layers)
        drawing = made.draw("curves:overview", made.make_inputs(["a", "b"], "two_nn", rows=rows))
        for label, line in made.find_curves(drawing).items():
            model_rows = drawing.table[drawing.table["label"] == label]
            assert list(line.get_xdata()) == model_rows[column].tolist()


def test_a_panel_without_massive_tokens_mentions_no_dashes():
    rows = made.make_model_rows("a", estimators=("anisotropy",))
    for change, has_dashes in ((0, False), (0.01, True)):
        second_rows = [row | {"estimator": WITHOUT, "value": row["value"] + change} for row in rows]
        inputs = made.make_inputs(["a"], "anisotropy", WITHOUT, rows=rows + second_rows)
        (axes,) = made.draw("curves:overview", inputs).figure.axes
        assert ("dashes" in axes.get_title(loc="left")) == has_dashes


def test_panels_of_dimensions_begin_at_zero_together():
    """Otherwise only panels of suspect values would begin at zero."""
    names = ("two_nn", "mada")
    rows = made.make_model_rows("a", steps=STEPS, estimators=names)
    rows = [row | made.SUSPECT if row["estimator"] == "two_nn" else row for row in rows]
    drawing = made.draw(MEANS, made.make_inputs(["a"], *names, rows=rows))
    assert [axes.get_ylim()[0] for axes in drawing.figure.axes] == [0, 0]


def test_a_note_counts_which_massive_tokens_are_first_in_their_windows():
    names = ("anisotropy", WITHOUT)
    massive = {
        **{"model": "a", "revision": "main", "step": None, "tokens": None, "layer": 2},
        **{"largest_token_share": 0.1, "largest_coordinate_share": 0.9, "massive_share": 0.95},
        **{"massive": 41, "massive_in_any_layer": 53, "n": 4488, "positions": "0 (40); 1 (1)"},
    }

    def read_note(strings):
        table = pd.DataFrame([massive | {"tokens_found": strings}]).astype({"step": "Int64"})
        rows = made.make_model_rows("a", estimators=names)
        inputs = made.make_inputs(["a"], *names, rows=rows, massive=table)
        return made.read_words(made.draw(f"{PAPER}:massive_tokens", inputs))

    note = read_note(r'"\") (9)" (7); "he" (2)')
    assert "53 of 4,488 tokens" in note
    assert "In layer 2, 41 hold 95 % of the variance" in note
    assert "40 of 41 are the first token of a window" in note
    assert r'"\") (9)" (7)' in note
    # A string of fewer than a tenth of the tokens is not named.
    assert r'"\") (9)"' not in read_note(r'"\") (9)" (3); "he" (2)')


def test_a_note_counts_vectors_by_measure_where_they_differ():
    names = ("anisotropy", "two_nn", "mada")
    rows = [
        row | {"n": 4818} if row["estimator"] == "anisotropy" else row
        for row in made.make_model_rows("a", estimators=names)
    ]
    inputs = replace(made.make_inputs(["a"], *names, rows=rows), sample="9 windows")
    note = made.read_words(made.draw("curves:overview", inputs))
    counts = "4,818 vectors a batch (Anisotropy); 4,096 vectors a batch (TwoNN, MADA)"
    assert counts in note


def test_heat_maps_of_models_share_colours_and_have_cells_at_layer_and_step():
    models, measures = ("a", "b"), ("anisotropy", "two_nn")
    rows = [
        row for m in models for row in made.make_model_rows(m, steps=STEPS, estimators=measures)
    ]
    drawing = draw_panels(HEAT_MAPS, rows, models, measures)
    panels = drawing.figure.axes[:4]
    pairs = [(measure, model) for measure in measures for model in models]
    for axes, (measure, model) in zip(panels, pairs, strict=True):
        panel_rows = drawing.table.query(f"model == '{model}' and estimator == '{measure}'")
        borders = find_cells(axes).get_coordinates()[0, :, 0]
        # Each step is 8 times the last.
        np.testing.assert_allclose(np.diff(borders)[2:], np.log10(8))
        values = panel_rows.pivot(index="layer", columns="step", values="value").to_numpy()
        np.testing.assert_array_equal(find_cells(axes).get_array(), values)
        assert [label.get_text() for label in axes.get_xticklabels()] == [*map(str, STEPS)]
    for first, second in (panels[:2], panels[2:]):
        assert find_cells(first).norm is find_cells(second).norm


def test_colours_of_a_heat_map_span_the_blocks():
    rows = [row | {"value": 1000 * row["value"]} if row["layer"] == 0 else row for row in TRAINED]
    drawing = draw_panels(HEAT_MAPS, rows)
    blocks = drawing.table["layer"] > 0
    values, outer_values = (drawing.table.loc[rows, "value"] for rows in (blocks, ~blocks))
    mesh = find_cells(drawing.figure.axes[0])
    assert (mesh.norm.vmin, mesh.norm.vmax) == (values.min(), values.max())
    assert mesh.get_array().shape[0] == drawing.table.loc[blocks, "layer"].nunique()
    assert f"{outer_values.min():.3g} to {outer_values.max():.3g}" in made.read_words(drawing)


@pytest.mark.parametrize("function", [HEAT_MAPS, "curves:overview"])
def test_a_model_without_steps_is_drawn(function):
    rows = made.make_model_rows("a")
    verdict = made.make_verdicts("a", [0])[0] | {"revision": "main", "step": "", "tokens": ""}
    drawing = draw_panels(function, rows, verdicts=[verdict])
    if function == HEAT_MAPS:
        values = find_cells(drawing.figure.axes[0]).get_array().ravel()
    else:
        values = made.find_curves(drawing)["the only checkpoint"].get_ydata()
    expected = [row["value"] for row in rows if row["estimator"] == "two_nn" and row["layer"] != ""]
    assert list(values) == expected


def test_an_axis_of_values_near_one_begins_near_them():
    rows = [row | made.make_interval(0.95 + row["value"] / 30, 1e-4) for row in TRAINED]
    for factor, ends in ((1, (0.9, 1)), (0.1, (0, 0.2))):
        scaled_rows = [
            row | {key: factor * row[key] for key in ("value", "low", "high")} for row in rows
        ]
        low, high = (
            draw_panels(MEANS, scaled_rows, estimators=["anisotropy"]).figure.axes[0].get_ylim()
        )
        assert ends[0] <= low + 1e-9
        assert high == pytest.approx(ends[1], abs=0.11)


@pytest.mark.parametrize("steps", [STEPS, [0, 4, 16, 64, 128], range(141_000, 143_001, 100)])
def test_labels_of_steps_of_a_heat_map_do_not_touch(steps):
    drawing = draw_panels(HEAT_MAPS, made.make_model_rows("a", steps=steps))
    drawing.figure.draw_without_rendering()
    labels = sorted(
        drawing.figure.axes[0].get_xticklabels(), key=lambda label: label.get_position()
    )
    boxes = [label.get_window_extent() for label in labels]
    assert all(first.x1 < second.x0 for first, second in itertools.pairwise(boxes))
    assert labels[-1].get_text().replace(",", "") in (f"{steps[-1]}", "143k")
    if len(steps) == 5:
        assert [label.get_text() for label in labels] == [f"{step}" for step in steps]


def test_a_heat_map_marks_undefined_suspect_and_hollow_cells():
    rows = mark_places(*(("a", step, 2) for step in STEPS))
    rows = [made.clear_value(r) if (r["step"], r["layer"]) == (1, 2) else r for r in rows]
    drawing = draw_panels(HEAT_MAPS, rows, faults={8: ("odd", "hollow"), 64: BROKEN})
    marks = {}
    for label in style.MARKS:
        for line in made.find_lines(drawing, label):
            marks.setdefault(label, []).extend(zip(*line.get_data(), strict=True))
    # Steps stand at their logarithms; step 64 is left out.
    places = dict(zip(place_steps([0, 1, 8, 512]), (0, 1, 8, 512), strict=True))
    steps = {
        kind: sorted((places[x], layer) for x, layer in points) for kind, points in marks.items()
    }
    assert steps == {
        style.UNDEFINED: [(1, 2)],
        style.NOT_OK: [(8, layer) for layer in range(4)],
        style.SUSPECT: [(0, 2), (8, 2), (512, 2)],
    }


# The loss


def draw_losses(faults=None, changes=None):
    losses = dict(zip(STEPS, [5.0, 4.5, 4.0, 3.5, 3.0], strict=True)) | (changes or {})
    verdicts = made.make_verdicts("a", STEPS, faults, losses=losses)
    return made.draw(LOSS, made.make_inputs(made.make_models("a", ["M-a"]), verdicts=verdicts))


def test_the_curve_of_the_loss_omits_broken_checkpoints_and_has_gaps_at_infinite_losses():
    drawing = draw_losses({64: BROKEN, 8: ("missing", "no")}, {64: 5.75, 1: "inf"})
    line = made.find_curves(drawing)["M-a"]
    assert list(line.get_xdata()) == [0, 1, 512]
    assert np.isfinite(line.get_ydata()).tolist() == [True, False, True]
    assert "M-a steps 8 (missing) and 64" in made.read_words(drawing)
    assert list(drawing.table["step"]) == [0, 1, 512]
    assert list(drawing.table["perplexity"]) == [math.exp(loss) for loss in drawing.table["loss"]]


# Words and axes

PRINTED = PrintedText.__metadata__[0].metadata[0].pattern
HARD = ["$x$", "$\\frac{", r"\alpha_{i}^2 {n} %s #1 & ~", "{models} {0} {", "a $b"]
HARD += ["100 % 'of' \"it\" `id` <b>|</b>", "Größe é Ωж ≤ ∞ …", "W" * 60]
REFUSED = ["", " ", "a ", "-a", "=1+1", "@a", "a\nb", "a\tb", "a\x1b[2J", "a\u00a0", "a\u200bb"]
REFUSED += ["a\u202eb", "\U0001f600", "e\u0301", "\u05d0", "\u4e2d", "a" * 61, 3, ["a"]]


# Labels


def test_the_font_has_every_character_allowed_in_labels():
    characters = FT2Font(findfont(FontProperties(family=THEME["font.family"]))).get_charmap()
    allowed_characters = [
        chr(code) for code in range(0x11000) if re.search(PRINTED, f"a{chr(code)}a")
    ]
    assigned_characters = [c for c in allowed_characters if unicodedata.category(c) != "Cn"]
    assert len(assigned_characters) > 1000
    assert [c for c in assigned_characters if ord(c) not in characters] == []


def test_labels_that_can_be_drawn_are_read_and_all_others_refused():
    for words in HARD:
        read_entry({"repository": "a/b", "label": words}, "model `m`")
    for words in REFUSED:
        with pytest.raises(InputError, match="`label`") as caught:
            read_entry({"repository": "a/b", "label": words}, "model `m`")
        assert str(caught.value).isprintable()


LABELS = [f"{HARD[0]} {HARD[2]}", HARD[1], "W" * 60]
MEASURES_BY_FUNCTION = {"curves:heat_maps": ["anisotropy", "two_nn"], PROFILES: ["two_nn"]}
MEASURES_BY_FUNCTION |= {
    MEANS: ["two_nn", "mada"],
    "papers.shape_of_learning.figures:loss_by_step": [],
}


@pytest.mark.parametrize("function", MEASURES_BY_FUNCTION)
def test_hard_and_long_labels_fit_into_the_figure(function, tmp_path):
    measures = MEASURES_BY_FUNCTION[function]
    steps, faults = [0, 1, 8], {8: ("same weights as step 1", "hollow")}
    rows = [row for m in "abc" for row in made.make_model_rows(m, steps=steps)]
    verdicts = [row for m in "abc" for row in made.make_verdicts(m, steps, faults)]
    models = made.make_models("abc", LABELS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # for example, of a missing glyph or too little room
        drawing = made.draw(
            function, made.make_inputs(models, *measures, rows=rows, verdicts=verdicts)
        )
        with use_theme():
            save(drawing, *(tmp_path / f"f.{kind}" for kind in ("pdf", "png", "csv", "md")))
            drawing.figure.draw_without_rendering()  # otherwise places are those in the PNG
    texts = [text for text in drawing.figure.findobj(Text) if text.get_text()]
    assert not [text for text in texts if text.get_parse_math()]
    for label in LABELS:
        letters = "".join(label.split())
        label_texts = [text for text in texts if letters in "".join(text.get_text().split())]
        assert label_texts
        corners = np.concatenate([text.get_window_extent().get_points() for text in label_texts])
        assert (corners >= -1).all()
        assert (corners <= drawing.figure.bbox.max + 1).all()
    assert set(drawing.table["label"]) == set(LABELS)
    assert PIL.Image.open(tmp_path / "f.png").text["Description"] == drawing.caption


# Looks and axes


def make_checkpoints(**tokens_per_step):
    rows = [
        (model, step, None if size is None else step * size)
        for model, size in tokens_per_step.items()
        for step in (0, 10, 100)
    ]
    return pd.DataFrame(rows, columns=["model", "step", "tokens"]).astype({"tokens": "Int64"})


def test_progress_is_in_tokens_if_batch_sizes_differ_and_all_models_state_them():
    different = make_checkpoints(a=2048, b=4096)
    assert choose_progress_column(different) == "tokens"
    for alike in ({"b": 2048}, {"b": 2050}, {"b": 4096, "c": None}):  # the second rounds its tokens
        assert choose_progress_column(make_checkpoints(a=2048, **alike)) == "step"
    some = make_checkpoints(a=2048, b=4096, c=None)
    assert "equal steps are not equal tokens" in describe_progress(
        some, choose_progress_column(some)
    )


def test_a_distant_null_model_does_not_push_the_model_out_of_its_panel():
    names, null_model = (
        ("anisotropy", "two_nn"),
        {"model": "a", "revision": "main", "control": "untrained"},
    )
    rows = made.make_model_rows("a", estimators=names)
    null = [
        {
            **null_model,
            "estimator": row["estimator"],
            "layer": row["layer"],
            "value": 100 * row["value"],
        }
        | {f"without_{group}": 100 * row["value"] + group for group in range(16)}
        for row in rows
        if row["layer"] != ""
    ]
    inputs = made.make_inputs(["a"], *names, rows=rows, controls=pd.DataFrame(null))
    drawing = made.draw("controls:controls_by_layer", inputs)
    differences, values, ratios = drawing.figure.axes[1:4]
    assert [axes.get_yscale() for axes in (differences, values, ratios)] == ["linear", "log", "log"]
    low, high = values.get_ylim()
    drawn_values = [y for line in values.get_lines() for y in line.get_ydata()]
    assert all(low < y < high for y in drawn_values)
    assert high / low < 1e5
    null_rows = drawing.table[drawing.table["control"] == "untrained"]
    model_rows = drawing.table[drawing.table["control"] != "untrained"]
    anisotropy = model_rows.loc[model_rows["estimator"] == "anisotropy", "value"]
    for axes, column, expected in (
        (differences, "difference", 99 * anisotropy),
        (ratios, "ratio", [100] * 4),
    ):
        (line,) = [line for line in axes.get_lines() if line.get_label()[0] != "_"]
        assert column in axes.get_ylabel()
        np.testing.assert_allclose(line.get_ydata(), expected)
        np.testing.assert_allclose(null_rows[column].dropna(), expected)


def test_suspect_values_are_marked_in_null_models_too():
    """At layer 1 of untrained weights most nearest neighbours are the same token; at layer 2 few windows decide."""
    null_model = {"model": "a", "revision": "main", "control": "untrained", "estimator": "two_nn"}
    rows = made.make_model_rows("a", estimators=("two_nn",))
    null = [
        {**null_model, "layer": layer, "value": 2.0, "near_duplicates": 0.0, "same_token": share}
        | {f"without_{group}": 2.0 + spread * (group == 0) for group in range(16)}
        for layer, share, spread in ((1, 0.73, 0), (2, 0.3, 1), (3, 0.3, 0))
    ]
    inputs = made.make_inputs(["a"], "two_nn", rows=rows, controls=pd.DataFrame(null))
    two_nn = Conditions(is_dimension=True, is_positive=True, near_duplicate_limit=0.1)
    measures = tuple(replace(measure, conditions=two_nn) for measure in inputs.measures)
    drawing = made.draw("controls:controls_by_layer", replace(inputs, measures=measures))
    lines = [line for axes in drawing.figure.axes for line in axes.get_lines()]
    rings = [line.get_xdata().tolist() for line in lines if line.get_label() == style.SUSPECT]
    assert [1.0, 2.0] in rings


def test_a_single_layer_has_a_whole_number():
    rows = [r for r in made.make_model_rows("a", layers=1, estimators=["linearity"]) if r["layer"]]
    axes = made.draw(
        "curves:overview", made.make_inputs(["a"], "linearity", rows=rows)
    ).figure.axes[0]
    low, high = axes.get_xlim()
    ticks = [tick for tick in axes.get_xticks() if low <= tick <= high]
    assert ticks == [1]


def test_panels_of_a_column_have_the_same_layers():
    """Layer 0 has no linearity, and null models may have fewer layers."""
    names = ("anisotropy", "linearity")
    rows = made.make_model_rows("a", estimators=names)
    rows = [row for row in rows if (row["estimator"], row["layer"]) != ("linearity", 0)]
    null_model = {"model": "a", "revision": "main", "control": "untrained", "value": 0.5}
    null = [
        {**null_model, "estimator": name, "layer": 2}
        | {f"without_{group}": 0.5 for group in range(16)}
        for name in names
    ]
    inputs = made.make_inputs(["a"], *names, rows=rows, controls=pd.DataFrame(null))
    drawing = made.draw("controls:controls_by_layer", inputs)
    assert len({axes.get_xlim() for axes in drawing.figure.axes}) == 1
