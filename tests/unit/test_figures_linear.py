"""The figures on linearity: what is a line, what is a band, and what the caption says of first tokens."""

import numpy as np
import pytest

from figure_tables import (
    changes_of,
    inputs_of,
    measures_named,
    named_lines,
    rows_of_model,
    undefined,
    verdicts_on,
)
from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.figures.output import paper_function
from shape_of_learning.figures.style import theme

SCORES = ("linearity", "linearity_increment")
OF_FIGURE_1 = [f"{score}{kind}" for score in SCORES for kind in ("", "_adjusted", "_held_out")]
OF_FIRST_TOKENS = [f"{score}{rows}" for rows in ("", "_without_first_token") for score in SCORES]


def of_blocks(model, estimators, values=None, **options):
    """Rows of a model of three blocks, all vectors in one batch; `values` by estimator and block."""
    rows = []
    for row in rows_of_model(model, estimators=estimators, **options):
        if row["layer"] != 0:
            given = (values or {}).get((row["estimator"], row["layer"]), row["value"])
            rows.append(row | {"batch_sd": "", "value": given})
    return rows


def drawn(name, inputs):
    with theme():
        return paper_function(f"linear:{name}")(inputs)


def inputs(folder, rows, estimators, models=("a",), **tables):
    return inputs_of(folder, list(models), *estimators, rows=rows, **tables)


def test_lines_are_adjusted_and_bands_reach_to_the_held_out_score(tmp_path):
    values = {
        (f"linearity{kind}", block): value - block / 10
        for kind, value in (("", 1.0), ("_adjusted", 0.9), ("_held_out", 0.7))
        for block in (1, 2, 3)
    }
    drawing = drawn(
        "linearity_by_depth", inputs(tmp_path, of_blocks("a", OF_FIGURE_1, values), OF_FIGURE_1)
    )
    left = drawing.figure.axes[0]
    line = named_lines(drawing)["a"]
    assert line.get_xdata().tolist() == pytest.approx([1 / 3, 2 / 3, 1])
    assert line.get_ydata().tolist() == pytest.approx([0.8, 0.7, 0.6])
    band = left.collections[0].get_paths()[0].vertices
    assert {*np.round(band[:, 1], 3)} == {0.8, 0.7, 0.6, 0.5, 0.4}
    assert set(drawing.table["estimator"]) == set(OF_FIGURE_1)
    assert "4,096 vectors" in drawing.caption
    assert "Bands end at the edge" not in drawing.caption


def test_a_held_out_score_far_below_does_not_flatten_the_lines(tmp_path):
    values = {("linearity_held_out", 2): -6.0}
    drawing = drawn(
        "linearity_by_depth", inputs(tmp_path, of_blocks("a", OF_FIGURE_1, values), OF_FIGURE_1)
    )
    assert drawing.figure.axes[0].get_ylim()[0] > -0.1
    assert "Bands end at the edge of the panel" in drawing.caption


def test_where_nothing_is_defined_there_is_still_a_figure(tmp_path):
    rows = [undefined(row) for row in of_blocks("a", OF_FIGURE_1)]
    drawing = drawn("linearity_by_depth", inputs(tmp_path, rows, OF_FIGURE_1))
    assert "cross at the lower edge: undefined" in drawing.caption


def test_the_caption_says_how_much_rests_on_first_tokens(tmp_path):
    values = {(name, block): 0.9 for name in OF_FIRST_TOKENS for block in (1, 2, 3)}
    values["linearity_without_first_token", 2] = 0.3
    rows = of_blocks("a", OF_FIRST_TOKENS, values) + of_blocks("b", OF_FIRST_TOKENS, values)
    drawing = drawn(
        "first_tokens",
        inputs(tmp_path, rows, OF_FIRST_TOKENS, models=("a", "b")),
    )
    assert (
        "Output: without first tokens the score changes by -0.2000 in the mean over blocks and models, and "
        "most at block 2 of a, from 0.9000 to 0.3000." in drawing.caption
    )
    assert "Increment: without first tokens no score changes by 0.001." in drawing.caption
    above, _, below, _ = (named_lines(drawing, panel)["a"].get_ydata() for panel in range(4))
    assert above.tolist() == [0.9] * 3
    assert below.tolist() == [0.9, 0.3, 0.9]


def test_means_by_step_are_of_blocks_and_of_all_vectors(tmp_path):
    names, steps = [f"{score}_adjusted" for score in SCORES], (0, 1, 8)
    rows = of_blocks("a", names, steps=steps)
    given = inputs(
        tmp_path, rows, names, verdicts=verdicts_on("a", steps), changes=changes_of(rows)
    )
    drawing = drawn("linearity_by_step", given)
    assert "Averaged are all blocks. All 4,096 vectors together; bands: 95 %" in drawing.caption
    assert "batch_sd" not in drawing.caption
    assert set(drawing.table["layers"]) == {3}


def test_norm_ratios_have_a_logarithmic_axis(tmp_path):
    rows = of_blocks("a", ["block_norm_ratio"])
    given = inputs(tmp_path, rows, ["block_norm_ratio"])
    given = FigureInputs(given.models, measures_named("block_norm_ratio"), "", given.estimates)
    drawing = drawn("norm_ratio_by_depth", given)
    assert drawing.figure.axes[0].get_yscale() == "log"
    drawing.figure.canvas.draw()
    ticks = [label.get_text() for label in drawing.figure.axes[0].get_yticklabels()]
    assert any(ticks)
    assert not any("$" in tick for tick in ticks)
    assert drawing.caption.startswith("All 4,096 vectors together; bands")
