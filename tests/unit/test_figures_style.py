import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from figure_tables import models_named
from shape_of_learning.errors import InputError
from shape_of_learning.figures.captions import short_number
from shape_of_learning.figures.inputs import DrawnMeasure, FigureInputs
from shape_of_learning.figures.line_labels import spread
from shape_of_learning.figures.scales import set_measure_axes, set_progress_axis, set_rank_ticks
from shape_of_learning.figures.style import line_styles


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_labels_never_cover_each_other_and_keep_their_order(wanted):
    pitch = 1 / 20
    places = spread(np.array(wanted), pitch)
    rounding = 1e-12  # a few additions of numbers below 1
    assert np.all(np.diff(np.sort(places)) >= pitch - rounding)
    assert np.all((places >= pitch / 2 - rounding) & (places <= 1 - pitch / 2 + rounding))
    assert np.all(np.diff(places[np.argsort(wanted, kind="stable")]) > 0)


def test_labels_with_room_stay_where_they_are():
    wanted = np.array([0.9, 0.2, 0.5])
    np.testing.assert_allclose(spread(wanted, 0.1), wanted, rtol=0, atol=1e-15)


def test_six_models_are_told_apart_without_colours():
    models = models_named(list("abcdef"), families=["x", "x", "x", "y", "y", "z"])
    styles = line_styles(models).values()
    assert len({style.marker for style in styles}) == 6
    assert len({style.dashes for style in styles}) == 6


def test_twenty_four_models_have_twenty_four_looks():
    sizes = {"opt": 6, "gpt2": 4, "llama": 3, "falcon": 2, "gptj": 1, "bert": 2, "roberta": 2}
    families = [name for name, size in (sizes | {"albert": 4}).items() for _ in range(size)]
    styles = line_styles(models_named([str(i) for i in range(24)], families=families))
    assert len({(style.colour, style.dashes) for style in styles.values()}) == 24


def test_thirty_families_have_thirty_looks():
    styles = line_styles(models_named([str(i) for i in range(30)])).values()
    assert len({(style.colour, style.dashes) for style in styles}) == 30


def test_a_line_of_nearly_one_value_does_not_lie_on_the_edge():
    axes = Figure().subplots()
    axes.plot([0, 1], [0.98, 0.99])
    set_measure_axes([axes], [DrawnMeasure("linearity", "Linearity", "Share", depends_on_n=False)])
    low, high = axes.get_ylim()
    assert low == 0
    assert high > 1.01


def test_labels_tell_models_apart():
    with pytest.raises(InputError, match="two models of a figure have the label 'A'"):
        FigureInputs(models_named(["a", "b"], ["A", "A"]))


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


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (512, "512"),
        (1000, "1k"),
        (1024, "1024"),
        (1430, "1.43k"),
        (143_000, "143k"),
        (337_250, "337k"),
        (3e12, "3T"),
        (1_431_000, "1.43M"),
        (999_999, "1M"),
    ],
)
def test_numbers_are_written_short(number, text):
    assert short_number(number) == text


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
