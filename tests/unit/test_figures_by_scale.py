"""The figure of dimension by scale holds the numbers of its CSV, and says whether there is a plateau."""

import numpy as np
import pytest

from figure_tables import draw, inputs_of, lines_labelled, named_lines, rows_of_model
from shape_of_learning.errors import InputError
from shape_of_learning.figures.by_scale import has_plateau
from shape_of_learning.figures.inputs import DrawnMeasure, FigureInputs

SCALES = (1, 2, 4, 8, 16, 32, 64)
MEASURES = [
    DrawnMeasure(
        f"gride_{n1}", f"Gride (n1 = {n1})", "Intrinsic dimension", True, parameters={"n1": n1}
    )
    for n1 in SCALES
]
NAMES = [measure.name for measure in MEASURES]
BLOCKS = ["First block", "Middle block", "Last block"]


def by_scale(folder, *models, values=None):
    """Draw models, by name and layers; `values` gives what all batches of a model and scale have."""
    rows = [
        row
        for name, layers in models
        for row in rows_of_model(name, layers=layers, estimators=NAMES)
    ]
    for row in rows if values else ():
        row["value"] = values(row["model"], int(row["estimator"].removeprefix("gride_")))
    given = inputs_of(folder, [name for name, _ in models], rows=rows)
    inputs = FigureInputs(given.models, MEASURES, "Words.", given.estimates)
    return draw("dimension_by_scale", inputs), rows


def test_each_panel_draws_one_block_of_each_model(tmp_path):
    drawing, rows = by_scale(tmp_path, ("a", 12), ("b", 3), ("c", 1))
    assert [axes.get_title(loc="left") for axes in drawing.figure.axes] == BLOCKS
    drawn = {"a": (1, 6, 12), "b": (1, 2, 3), "c": (1, 1, 1)}
    for panel, block in enumerate(BLOCKS):
        lines = named_lines(drawing, panel)
        assert list(lines) == ["a", "b", "c"]
        for name, line in lines.items():
            layer = drawn[name][panel]
            expected = [
                np.mean([
                    row["value"]
                    for row in rows
                    if (row["model"], row["layer"], row["estimator"]) == (name, layer, estimator)
                ])
                for estimator in NAMES
            ]  # fmt: skip
            np.testing.assert_array_equal(line.get_xdata(), SCALES)
            np.testing.assert_allclose(line.get_ydata(), expected, rtol=1e-12)
            table = drawing.table
            in_table = table[(table["block"] == block) & (table["model"] == name)]
            assert list(in_table["n1"]) == list(SCALES)
            assert set(in_table["layer"]) == {layer}
            np.testing.assert_array_equal(in_table["value"], line.get_ydata())
    assert not lines_labelled(drawing, "_hollow")


def test_the_caption_counts_plateaus(tmp_path):
    flat, rising = (lambda n1: 20.0), (lambda n1: 5.0 * n1**0.3)
    drawing, _ = by_scale(
        tmp_path,
        ("a", 4),
        ("b", 4),
        values=lambda model, n1: (flat if model == "a" else rising)(n1),
    )
    sentence = "A plateau, 4 successive n1 whose dimensions differ by at most 10 %, is on "
    assert f"{sentence}3 of 6 lines." in drawing.caption
    drawing, _ = by_scale(tmp_path, ("b", 4), values=lambda _, n1: rising(n1))
    assert f"{sentence}none of 3 lines." in drawing.caption


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([5, 5.1, 5.2, 5.4, 9, 12, 20], True),
        ([20, 12, 9, 5.4, 5.2, 5.1, 5], True),
        ([5, 5.1, 5.2, 5.6, 9, 12, 20], False),
        ([5, 5.1, 5.2, np.nan, 5.2, 5.1, 5], False),
        ([5, 5, 5], False),
    ],
)
def test_a_plateau_is_four_scales_of_about_the_same_dimension(values, expected):
    assert has_plateau(np.array(values, float)) == expected


@pytest.mark.parametrize("count", [1, 30])
def test_as_many_models_as_there_are_have_labels_that_do_not_meet(tmp_path, count):
    names = [f"model-{number}" for number in range(count)]
    drawing, _ = by_scale(tmp_path, *((name, 6) for name in names))
    drawing.figure.canvas.draw()
    boxes = [
        text.get_window_extent()
        for text in drawing.figure.axes[-1].texts
        if text.get_text().startswith("model-")
    ]
    assert len(boxes) == count
    heights = sorted((box.y0 + box.y1) / 2 for box in boxes)
    assert (np.diff(heights) > 0.9 * 0.125 * drawing.figure.dpi).all()


def test_one_checkpoint_of_a_model_is_drawn(tmp_path):
    rows = rows_of_model("a", steps=[1, 2], estimators=NAMES)
    given = inputs_of(tmp_path, ["a"], rows=rows)
    with pytest.raises(InputError, match="has 2 checkpoints of a, but the figure draws one"):
        draw("dimension_by_scale", FigureInputs(given.models, MEASURES, "", given.estimates))
