"""The scales at which dimension is drawn."""

import figure_tables as made
from shape_of_learning.figures.job import DrawnMeasure


def test_panels_of_scales_are_the_first_middle_and_last_block():
    measures = [
        DrawnMeasure(f"gride_{n1}", f"n1 = {n1}", "Dimension", False, parameters={"n1": n1})
        for n1 in (1, 2, 4, 8, 16)
    ]
    names = [measure.name for measure in measures]
    rows = made.make_model_rows("a", layers=12, estimators=names)
    rows += [r | {"value": 20.0} for r in made.make_model_rows("b", layers=1, estimators=names)]
    inputs = made.make_inputs(["a", "b"], *measures, rows=rows)
    drawing = made.draw(
        "papers.shape_of_learning.figures:dimension_by_scale", inputs, parameter="n1"
    )
    blocks = drawing.table.query("model == 'a'").groupby("block", sort=False)["layer"]
    assert [int(*block.unique()) for _, block in blocks] == [1, 6, 12]
    assert set(drawing.table.query("model == 'b'")["layer"]) == {1}
