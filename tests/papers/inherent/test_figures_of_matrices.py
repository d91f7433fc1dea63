"""Figures of the isotropy of a model's matrices."""

import random

import pandas as pd

import figure_tables as made
from shape_of_learning.figures.job import DrawnMeasure
from shape_of_learning.metrics.tidy import WEIGHT_COLUMNS

STEPS = [0, 10, 100, 1000]
RAW = "matrix_partition_isotropy"


def draw_weights(model, matrices=("input", "output")):
    """Draw the rows of one model: seeded numbers of plausible size."""
    numbers, rows = random.Random(model), []
    for step in STEPS:
        common = {"model": model, "role": "decoder", "revision": f"step{step}", "step": step}
        common |= {"tokens": step * 2048, "estimator": RAW, "n": 50304, "d": 512}
        for matrix in matrices:
            value = -numbers.uniform(0, 0.1) - step / 500
            rows.append(common | {"matrix": matrix, "value": value})
    return rows


def draw_figure(function, rows, verdicts_by_step=None):
    """Draw with a loss that falls as the isotropy of `weights` does."""
    names = list(dict.fromkeys(row["model"] for row in rows)) or ["a"]
    loss = {step: 5 - step / 500 for step in STEPS}
    verdicts = [
        r for name in names for r in made.make_verdicts(name, STEPS, verdicts_by_step, losses=loss)
    ]
    models = made.make_models(names, [f"M-{name}" for name in names])
    measure = DrawnMeasure(RAW, "Partition isotropy", "ln I", parameters={"center": False})
    table = pd.DataFrame(rows, columns=WEIGHT_COLUMNS)
    inputs = made.make_inputs(models, measure, verdicts=verdicts, weights=table)
    return made.draw(f"papers.inherent.figures:{function}", inputs)


def test_a_tied_matrix_is_drawn_as_input_and_output():
    rows = draw_weights("a") + draw_weights("b", ["tied"])
    drawing = draw_figure("isotropy_by_step", rows)
    both = [made.find_curves(drawing, panel) for panel in (0, 1)]
    tied = [row["value"] for row in rows if row["matrix"] == "tied"]
    assert [lines["M-b"].get_ydata().tolist() for lines in both] == [tied, tied]
    assert both[0]["M-a"].get_ydata().tolist() != both[1]["M-a"].get_ydata().tolist()


def test_isotropy_and_loss_are_drawn_for_shown_checkpoints():
    drawing = draw_figure("isotropy_and_loss", draw_weights("a"), {1000: ("broken", "no")})
    output = drawing.table[drawing.table["matrix"] == "output"]
    assert output["step"].tolist() == [0, 10, 100]
    assert output["loss"].tolist() == [5.0, 4.98, 4.8]
