"""Figures of changed blocks and of the errors of their maps."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from figure_tables import models_named, named_lines
from shape_of_learning.blocks.edits import EDIT_COLUMNS, KINDS
from shape_of_learning.blocks.fit import FIT_ERROR_COLUMNS
from shape_of_learning.figures.changed_blocks import draw_edits
from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.figures.output import save
from shape_of_learning.figures.style import theme
from shape_of_learning.figures.token_errors import draw_token_errors

ORDERS = {"most_linear_first": ["", "2", "2 1"], "alone": ["1", "2", "3"]}


def tables(models, kinds=KINDS, orders=ORDERS):
    edits = [
        (
            model,
            "r",
            order,
            blocks,
            kind,
            len(blocks.split()),
            100 * (place + 1),
            loss,
            np.exp(loss),
            9,
            0.5,
        )
        for place, model in enumerate(models)
        for order in orders
        for kind in kinds
        for blocks in orders[order]
        for loss in [3 + len(blocks) / 9 + KINDS.index(kind) / 20]
    ]
    errors = [
        (model, "r", layer, layer / 3, 500, 0.9, 0.05, *np.geomspace(0.001, 0.1, 7), 1)
        for model in models
        for layer in (1, 2, 3)
    ]
    return {
        "edits": pd.DataFrame(edits, columns=EDIT_COLUMNS),
        "fit_errors": pd.DataFrame(errors, columns=FIT_ERROR_COLUMNS),
    }


def drawn(function, models, **options):
    inputs = FigureInputs(models_named(models), caption="C.", tables=tables(models, **options))
    with theme():
        drawing = function(inputs)
        drawing.figure.draw_without_rendering()
    return drawing


def test_each_kind_is_a_line_through_its_perplexities_dropped_blocks_apart():
    drawing = drawn(draw_edits, ["a", "b"])
    upper, lower = named_lines(drawing, 0), named_lines(drawing, 2)
    assert set(upper) == {"dropped", "replaced"}
    assert set(lower) == {"replaced", "maps_distilled", "all_distilled"}
    x, y = lower["all_distilled"].get_data()
    assert list(x) == [0, 1, 2]
    np.testing.assert_allclose(np.log(y), [3.15, 3.15 + 1 / 9, 3.15 + 3 / 9])
    x, _ = named_lines(drawing, 3)["replaced"].get_data()
    assert list(x) == [1, 2, 3]
    assert "predicted: 100 to 200; that maps are fitted on: 500." in drawing.caption
    assert "seconds" not in drawing.table  # which differ between runs
    assert set(drawing.table["label"]) == {model.label for model in models_named(["a", "b"])}


@pytest.mark.parametrize("kinds", [("dropped",), ("replaced",), ("replaced", "all_distilled")])
@pytest.mark.parametrize("orders", [{"alone": ["1", "2"]}, {"least_linear_first": ["", "3"]}])
def test_any_kinds_and_orders_can_be_drawn(kinds, orders, tmp_path):
    drawing = drawn(draw_edits, ["a"], kinds=kinds, orders=orders)
    with theme():
        save(drawing, *(tmp_path / f"figure.{suffix}" for suffix in ("pdf", "png", "csv", "md")))
    assert len(pd.read_csv(tmp_path / "figure.csv")) == len(kinds) * 2


def test_errors_of_tokens_have_a_median_and_a_share_of_the_worst():
    drawing = drawn(draw_token_errors, ["a", "b"])
    above, _, below, _ = drawing.figure.axes
    np.testing.assert_allclose(above.lines[0].get_ydata(), 0.01)
    np.testing.assert_allclose(below.lines[0].get_ydata(), 0.05)
    assert above.get_yscale() == "log"
    assert "500 tokens" in drawing.caption


def test_long_labels_of_models_do_not_reach_into_each_other():
    models = [letter * 60 for letter in "abc"]
    rows = [axes.yaxis.label for axes in drawn(draw_edits, models).figure.axes]
    extents = [label.get_window_extent() for label in rows if label.get_text()]
    assert len(extents) == 6
    assert all(low.y1 <= high.y0 for high, low in pairwise(extents))
    texts = drawn(draw_token_errors, models).figure.findobj(Text)
    titles = [text for text in texts if text.get_text()[:3] in ("aaa", "bbb", "ccc")]
    extents = sorted((title.get_window_extent() for title in titles), key=lambda box: box.x0)
    assert len(extents) == 3
    assert all(left.x1 <= right.x0 for left, right in pairwise(extents))
