"""What x axes of training count: tokens where batch sizes differ, unless the configuration says otherwise."""

import pandas as pd
import pytest

from figure_tables import draw, inputs_of, rows_of_model
from shape_of_learning.errors import InputError
from shape_of_learning.figures.progress import on_progress, progress_column

STEPS = [0, 10, 100]


def table(**tokens_per_step):
    rows = [
        (model, step, None if size is None else step * size)
        for model, size in tokens_per_step.items()
        for step in STEPS
    ]
    return pd.DataFrame(rows, columns=["model", "step", "tokens"]).astype({"tokens": "Int64"})


@pytest.mark.parametrize(
    ("sizes", "column"),
    [
        ({"a": 2048}, "step"),
        ({"a": 2048, "b": 2048}, "step"),
        ({"a": 2_097_152, "b": 2_100_000}, "step"),  # one rounds its tokens
        ({"a": 2048, "b": 4096}, "tokens"),
        ({"a": 2048, "b": 4096, "c": None}, "step"),
    ],
)
def test_tokens_are_counted_where_batch_sizes_differ(sizes, column):
    assert progress_column(table(**sizes), "auto") == column


def test_the_configuration_chooses_and_the_caption_says_what_steps_are():
    different = table(a=2048, b=4096)
    assert progress_column(different, "step") == "step"
    assert "equal steps are not equal tokens" in on_progress(different, "step")
    assert "counts tokens, since the models' batch sizes differ" in on_progress(different, "tokens")
    assert on_progress(table(a=2048), "step") == "Left of the axis break: before training."
    assert on_progress(table(a=2048).query("step == 0"), "step") == ""


def test_tokens_that_a_model_does_not_state_are_refused():
    with pytest.raises(
        InputError, match=r"`figures.progress` asks for tokens, which .* of b do not"
    ):
        progress_column(table(a=2048, b=None), "tokens")


@pytest.mark.parametrize("progress", ["auto", "step"])
def test_a_figure_draws_what_its_axis_says(tmp_path, progress):
    rows = rows_of_model("a", steps=STEPS)
    rows += [row | {"tokens": row["tokens"] * 2} for row in rows_of_model("b", steps=STEPS)]
    given = inputs_of(tmp_path, ["a", "b"], "two_nn", rows=rows)
    axes = draw("dimension_by_step", given, progress=progress).figure.axes[0]
    lines = {line.get_label(): line.get_xdata() for line in axes.get_lines()}
    factor = 4096 if progress == "auto" else 1
    assert lines["b"].tolist() == [step * factor for step in STEPS]
    assert axes.get_xlabel() == ("Training tokens" if progress == "auto" else "Training step")
