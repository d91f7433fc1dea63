"""Bands are the intervals of the tables, captions say so, and points beyond conditions are marked."""

from dataclasses import replace

import numpy as np
import pytest

from figure_tables import (
    ALL,
    NO_INTERVAL,
    changes_of,
    draw,
    footnote,
    inputs_of,
    lines_labelled,
    measures_named,
    models_named,
    named_lines,
    rows_of_model,
    verdicts_on,
)

STEPS = [0, 1, 8, 64, 512]
TRAINED = rows_of_model("a", steps=STEPS) + rows_of_model("b", steps=[2, 100], layers=5)
ESTIMATES = {
    "profiles_by_role": "anisotropy",
    "training_profile": "anisotropy",
    "dimension_by_step": "two_nn",
}
INTERVALS = (
    "bands: 95 % intervals from leaving out each of 16 groups of the 128 windows; the standard deviation "
    "over batches, which the paper draws, is the column batch_sd of the numbers."
)


def drawn(folder, name, rows=TRAINED, models=("a",), measures=(), **tables):
    """Draw the figure of its estimator, or of `measures`."""
    if name == "profiles_by_role":
        rows = [row | {"revision": "main"} for row in rows if row["step"] in (512, 100)]
    inputs = inputs_of(
        folder, models_named(models, [f"M-{model}" for model in models]), rows=rows, **tables
    )
    measures = measures or measures_named(ESTIMATES[name])
    return draw(name, replace(inputs, measures=measures))


def bands(drawing, panel=0):
    """Corners of everything filled or barred in a panel."""
    collections = drawing.figure.axes[panel].collections
    corners = [path.vertices for each in collections for path in each.get_paths()]
    return np.concatenate(corners) if corners else np.empty((0, 2))


@pytest.mark.parametrize("name", ESTIMATES)
def test_the_csv_has_the_interval_and_the_deviation_over_batches(tmp_path, name):
    table = drawn(tmp_path, name).table
    given = {"value", "standard_error", "low", "high", "batch_sd", "n", "n_unique", "windows"}
    assert given | {"near_duplicates", "selection", "label"} <= set(table.columns)
    assert not {"hollow", "suspect"} & set(table.columns)
    drawn_rows = [row for row in TRAINED if row["estimator"] == ESTIMATES[name]]
    intervals = {(row["value"], row["low"], row["high"], row["batch_sd"]) for row in drawn_rows}
    found = list(zip(*(table[c] for c in ("value", "low", "high", "batch_sd")), strict=True))
    assert found
    assert set(found) <= intervals


@pytest.mark.parametrize("name", ESTIMATES)
def test_the_caption_says_what_the_band_is(tmp_path, name):
    words = drawn(tmp_path, name).caption
    assert INTERVALS in words
    assert "vectors; bands" in words
    assert "no intervals" not in words


@pytest.mark.parametrize("name", ESTIMATES)
def test_without_intervals_there_is_no_band_and_the_caption_says_why(tmp_path, name):
    rows = [row | NO_INTERVAL | {"windows": 12} for row in TRAINED]
    drawing = drawn(tmp_path, name, rows)
    assert not np.isfinite(bands(drawing)).all(axis=1).any()
    assert named_lines(drawing)
    assert "bands" not in drawing.caption
    assert "Fewer than 16 windows give no intervals." in drawing.caption


def test_averages_of_a_measure_whose_layers_have_no_interval_have_a_band(tmp_path):
    rows = [row | NO_INTERVAL if row["layer"] != "" else row for row in TRAINED]
    measures = [replace(each, interval=False) for each in measures_named("two_nn", "mom")]
    drawing = drawn(tmp_path, "dimension_by_step", rows, measures=measures)
    for panel in range(2):
        assert np.isfinite(bands(drawing, panel)).all(axis=1).any()
    assert INTERVALS in drawing.caption
    assert "No bands for" not in drawing.caption


def test_a_measure_whose_layers_have_no_interval_has_no_band_and_is_named(tmp_path):
    rows = [row | NO_INTERVAL for row in TRAINED]
    (anisotropy,) = measures_named("anisotropy")
    measures = [replace(anisotropy, interval=False)]
    drawing = drawn(tmp_path, "training_profile", rows, measures=measures)
    assert not np.isfinite(bands(drawing)).all(axis=1).any()
    said = "No bands for Anisotropy: intervals of single layers do not cover."
    assert said in drawing.caption
    assert "Fewer than 16" not in drawing.caption


def test_a_lost_interval_is_a_gap_in_the_band_and_the_caption_says_why(tmp_path):
    rows = [row | NO_INTERVAL if row["step"] == 8 else row for row in TRAINED]
    drawing = drawn(tmp_path, "dimension_by_step", rows)
    assert 8 not in bands(drawing)[:, 0]
    assert 8 in named_lines(drawing)["a"].get_xdata()
    assert "No band where a value is undefined without some group." in drawing.caption


def test_an_interval_between_two_gaps_of_the_band_is_a_bar(tmp_path):
    rows = [row | NO_INTERVAL if row["step"] in (1, 64) else row for row in TRAINED]
    drawing = drawn(tmp_path, "dimension_by_step", rows)
    middle = drawing.table.set_index("step").loc[8]
    corners = {tuple(corner) for corner in bands(drawing)}
    assert {(8, middle["low"]), (8, middle["high"])} <= corners


def near_duplicates(rows, shares):
    """`rows` with the share of near-duplicates by (model, step, layer); averages have the largest."""
    changed = []
    for row in rows:
        of_checkpoint = [
            s for (m, step, _), s in shares.items() if (m, step) == (row["model"], row["step"])
        ]
        share = shares.get((row["model"], row["step"], row["layer"]), 0.01)
        if row["layer"] == "":
            share = max(of_checkpoint, default=0.01)
        changed.append(row | {"near_duplicates": share} if row["estimator"] in ALL[4:] else row)
    return changed


def test_an_average_with_a_layer_of_near_duplicates_is_hollow_with_a_dot(tmp_path):
    shares = {("a", 0, 1): 0.2, ("a", 0, 2): 0.4, ("a", 8, 3): 0.1001, ("a", 64, 1): 0.1}
    rows = near_duplicates(TRAINED, shares)
    drawing = drawn(tmp_path, "dimension_by_step", rows, ["a", "b"])
    line = named_lines(drawing)["a"]
    (marked,) = lines_labelled(drawing, "_suspect")
    (dots,) = lines_labelled(drawing, "_dots")
    assert list(marked.get_xdata()) == list(dots.get_xdata()) == [0, 8]
    assert list(marked.get_ydata()) == [line.get_ydata()[place] for place in (0, 2)]
    assert marked.get_markerfacecolor() == "white"
    assert dots.get_markerfacecolor() == line.get_color()
    assert list(line.get_markevery()) == [step not in (0, 8) for step in STEPS]
    words = (
        "Hollow with a dot: more than 10 % of the vectors have a near-duplicate (r2/r1 > 10), where TwoNN is "
        "beyond its conditions: M-a 2 of 5 points, in up to 2 of 3 layers."
    )
    assert footnote(drawing) == words
    assert words in drawing.caption
    table = drawing.table[drawing.table["model"] == "a"]
    assert list(table["near_duplicates"]) == [0.4, 0.01, 0.1001, 0.1, 0.01]
    assert list(table["suspect_layers"]) == [2, 0, 1, 0, 0]


@pytest.mark.parametrize("name", ["profiles_by_role", "training_profile"])
def test_a_point_of_near_duplicates_in_a_profile_is_hollow_with_a_dot(tmp_path, name):
    rows = near_duplicates(TRAINED, {("a", 512, 0): 0.3, ("a", 512, 3): 0.05})
    drawing = drawn(tmp_path, name, rows, measures=measures_named("two_nn"))
    (marked,) = lines_labelled(drawing, "_suspect")
    assert list(marked.get_xdata()) == [0]
    of = 4 if name == "profiles_by_role" else 20
    assert footnote(drawing).endswith(f"beyond its conditions: M-a 1 of {of} points.")
    assert footnote(drawing) in drawing.caption


def test_other_measures_of_the_same_vectors_are_not_marked(tmp_path):
    rows = near_duplicates(TRAINED, {("a", 0, 1): 0.9})
    drawing = drawn(tmp_path, "dimension_by_step", rows, measures=measures_named("two_nn", "mada"))
    assert len(lines_labelled(drawing, "_suspect", 0)) == 1
    assert lines_labelled(drawing, "_suspect", 1) == []
    assert "MADA is beyond" not in drawing.caption


def test_flagged_checkpoints_and_near_duplicates_are_told_apart(tmp_path):
    flagged = {64: ("mixed shards", "hollow"), 8: ("mixed shards", "hollow")}
    rows = near_duplicates(TRAINED, {("a", 0, 1): 0.2, ("a", 8, 1): 0.2})
    drawing = drawn(tmp_path, "dimension_by_step", rows, verdicts=verdicts_on("a", STEPS, flagged))
    places = {
        label: [list(line.get_xdata()) for line in lines_labelled(drawing, label)]
        for label in ("_hollow", "_suspect", "_dots")
    }
    assert places == {"_hollow": [[64]], "_suspect": [[0, 8]], "_dots": [[0, 8]]}
    assert "Hollow: M-a steps 8 and 64 (mixed shards)." in footnote(drawing)
    assert "Hollow with a dot: " in footnote(drawing)


def test_the_caption_says_the_smallest_visible_change_of_each_curve(tmp_path):
    changes = changes_of(rows_of_model("a", steps=STEPS), 0.25)
    changes += changes_of(rows_of_model("b", steps=[2, 100]), 0.5)
    tables = {"changes": changes, "measures": measures_named("two_nn", "mada")}
    drawing = drawn(tmp_path, "dimension_by_step", models=("a", "b"), **tables)
    assert (
        "Smallest change from one step to the next that can be told from none, median over steps: "
        "TwoNN: 0.25 (M-a) and 0.5 (M-b); MADA: 0.25 (M-a) and 0.5 (M-b)." in drawing.caption
    )
    drawing = drawn(tmp_path, "training_profile", changes=changes)
    assert "told from none, median over layers and steps: 0.25." in drawing.caption


def test_the_smallest_visible_change_is_a_median_over_pairs_of_drawn_neighbours(tmp_path):
    visible = dict(zip(STEPS[1:], [1, 2, 4, 8], strict=True))
    changes = [
        row | {"smallest_visible": visible[int(row["to_revision"].removeprefix("step"))]}
        for row in changes_of(rows_of_model("a", steps=STEPS))
    ]
    ends = {"from_revision": "step0", "to_revision": "step512", "smallest_visible": 1000}
    changes += [row | ends for row in changes if row["to_revision"] == "step1"]
    drawing = drawn(tmp_path, "dimension_by_step", changes=changes)
    assert "median over steps: 3." in drawing.caption
    verdicts = verdicts_on("a", STEPS, {8: ("missing", "no")})
    drawing = drawn(tmp_path, "dimension_by_step", changes=changes, verdicts=verdicts)
    assert "median over steps: 4.5." in drawing.caption  # of 0 to 1 and 64 to 512


def test_nothing_is_said_of_changes_without_intervals(tmp_path):
    changes = [row | {"smallest_visible": ""} for row in changes_of(TRAINED)]
    drawing = drawn(tmp_path, "dimension_by_step", changes=changes)
    assert "told from none" not in drawing.caption
