"""What is drawn can be told apart without colours, and axes say what they count."""

from itertools import combinations, pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from figure_tables import draw, inputs_of, models_named, rows_of_model
from shape_of_learning.errors import InputError
from shape_of_learning.figures.inputs import DrawnMeasure
from shape_of_learning.figures.scales import (
    begin_at_zero,
    on_progress,
    progress_column,
    set_progress_axis,
    set_rank_ticks,
)
from shape_of_learning.figures.style import lightness, line_styles, step_colours

MEANS = "by_step:means_by_step"
JUST_NOTICED = 2.3  # in CIE Lab
STEPS = 14  # as many as there are of TinyLlama, the most that a figure of the paper has bands for
# Families of the paper's Figure 1 and of linear_figure_1, which has most.
FAMILIES = {"opt": 6, "gpt2": 4, "llama": 3, "falcon": 2, "gptj": 1, "bert": 2, "roberta": 2}
FAMILIES |= {"albert": 4, "bloom": 4, "pythia": 2, "phi": 2, "mistral": 1}


def test_lightness_is_that_of_cie():
    known = {"#000000": 0, "#ffffff": 100, "#777777": 50.034, "#0173b2": 46.285}
    assert {colour: lightness(colour) for colour in known} == pytest.approx(known, abs=0.01)


def test_steps_go_from_light_to_dark_and_neighbours_differ():
    levels = [lightness(colour) for colour in step_colours(range(1, STEPS + 1)).values()]
    assert min(lighter - darker for lighter, darker in pairwise(levels)) > 2 * JUST_NOTICED


def test_models_differ_in_dashes_or_clearly_in_lightness():
    families = [name for name, size in FAMILIES.items() for _ in range(size)]
    models = models_named([str(number) for number in range(len(families))], families=families)
    styles = [(style.dashes, lightness(style.colour)) for style in line_styles(models).values()]
    for (dashes, one), (others_dashes, other) in combinations(styles, 2):
        assert dashes != others_dashes or abs(one - other) > 2 * JUST_NOTICED


def test_24_families_have_24_looks_and_six_models_markers_of_their_own():
    styles = line_styles(models_named([str(number) for number in range(24)])).values()
    assert len({(style.colour, style.dashes) for style in styles}) == 24
    six = line_styles(models_named(list("abcdef"), families=list("xxxyyz"))).values()
    assert len({style.marker for style in six}) == len({style.dashes for style in six}) == 6


def test_step_0_stands_left_of_a_break_within_a_logarithmic_axis():
    steps = [0, 1, 8, 64, 512]
    rows = rows_of_model("a", steps=steps, estimators=["two_nn"])
    (axes,) = draw(MEANS, inputs_of(["a"], "two_nn", rows=rows)).figure.axes
    pixels = axes.transData.transform([(step, 20) for step in steps])[:, 0]
    assert axes.get_window_extent().x0 < pixels[0] < pixels[1]
    assert np.ptp(np.diff(pixels[1:])) < 1e-6 * pixels[-1]  # 1, 8, 64, 512 evenly: float rounding
    assert "0" in [text.get_text() for text in axes.get_xticklabels()]
    assert len([line for line in axes.get_lines() if line.get_label() == "_break"]) == 2


def trained(**tokens_per_step):
    rows = [
        (model, step, None if size is None else step * size)
        for model, size in tokens_per_step.items()
        for step in (0, 10, 100)
    ]
    return pd.DataFrame(rows, columns=["model", "step", "tokens"]).astype({"tokens": "Int64"})


@pytest.mark.parametrize(
    ("sizes", "column"),
    [
        ({"a": 2048, "b": 2048}, "step"),
        ({"a": 2_097_152, "b": 2_100_000}, "step"),  # one rounds its tokens
        ({"a": 2048, "b": 4096}, "tokens"),
        ({"a": 2048, "b": 4096, "c": None}, "step"),
    ],
)
def test_tokens_are_counted_where_batch_sizes_differ(sizes, column):
    assert progress_column(trained(**sizes), "auto") == column


def test_the_configuration_chooses_and_the_caption_says_what_steps_are():
    different = trained(a=2048, b=4096)
    assert progress_column(different, "step") == "step"
    assert "equal steps are not equal tokens" in on_progress(different, "step")
    with pytest.raises(InputError, match=r"`figures.progress` asks for tokens, which .* of b do"):
        progress_column(trained(a=2048, b=None), "tokens")


@pytest.mark.parametrize(
    "values",
    [[0], [0, 5], [7], [3, 4], [0, 1, 2, 4, 300], [1000, 600_000], [0, 2e6, 3e11, 3e12]],
)
def test_a_progress_axis_labels_its_range(values):
    axes = Figure().subplots()
    axes.plot(values, values)
    set_progress_axis(axes, values)
    low, high = axes.get_xlim()
    ticks = [tick for tick in axes.get_xticks() if low <= tick <= high]
    assert len(ticks) >= min(2, len(values))
    assert (0 in ticks) == (0 in values)
    assert all(low < value < high for value in values)


def test_steps_that_are_the_same_in_short_are_labelled_in_full():
    steps = [100_000, 100_010, 100_020, 100_030]
    axes = Figure().subplots()
    set_rank_ticks(axes.xaxis, steps, 8)
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == [f"{step:,}" for step in steps]
    axes.plot(steps, steps)
    set_progress_axis(axes, steps)
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == ["100,000", "100,030"]


def test_shares_begin_at_zero_and_a_line_of_nearly_one_value_is_not_on_the_edge():
    for from_zero in (True, False):
        axes = Figure().subplots()
        axes.plot([0, 1], [0.98, 0.99])
        begin_at_zero(axes, [DrawnMeasure("linearity", "Linearity", "Share", from_zero)])
        low, high = axes.get_ylim()
        assert (low == 0) == from_zero
        assert high > 0.99
