"""What is drawn can be told apart without colours, and by those who do not see all of them."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from figure_tables import models_named
from shape_of_learning.figures.style import lightness, line_styles, step_colours

# What is seen without the long-wave and without the middle-wave cones, of linear sRGB: Machado, Oliveira and
# Fernandes (2009), severity 1.
PROTANOPIA = [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
]
DEUTERANOPIA = [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.011820, 0.042940, 0.968881],
]
GREY = [[0.2126, 0.7152, 0.0722]] * 3
SEEN = {"all": np.eye(3), "protanopia": PROTANOPIA, "deuteranopia": DEUTERANOPIA, "grey": GREY}
TO_XYZ = [
    [0.4124564, 0.3575761, 0.1804375],
    [0.2126729, 0.7151522, 0.0721750],
    [0.0193339, 0.1191920, 0.9503041],
]
JUST_NOTICED = 2.3  # in CIE Lab
STEPS = 14  # as many as there are of TinyLlama, the most that a figure of the paper has bands for
# Families of the paper's Figure 1 and of linear_figure_1, which has most.
FAMILIES = {"opt": 6, "gpt2": 4, "llama": 3, "falcon": 2, "gptj": 1, "bert": 2, "roberta": 2}
FAMILIES |= {"albert": 4, "bloom": 4, "pythia": 2, "phi": 2, "mistral": 1}


def lab(colour, seen):
    """CIE Lab (D65) of a colour as it is seen."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    white = np.dot(TO_XYZ, np.ones(3))
    xyz = np.dot(TO_XYZ, np.clip(np.dot(SEEN[seen], linear), 0, 1)) / white
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz * 841 / 108 + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_lightness_is_that_of_cie():
    for colour in ("#000000", "#0173b2", "#ffffff", "#030303"):
        assert lightness(colour) == pytest.approx(lab(colour, "all")[0], abs=0.01)


@pytest.mark.parametrize("seen", SEEN)
def test_steps_go_from_light_to_dark_and_neighbours_differ_however_they_are_seen(seen):
    colours = [lab(colour, seen) for colour in step_colours(range(1, STEPS + 1)).values()]
    assert all(later[0] < earlier[0] for earlier, later in pairwise(colours))
    least = min(np.linalg.norm(one - other) for one, other in combinations(colours, 2))
    assert least > 2 * JUST_NOTICED


def test_steps_that_a_log_scale_would_make_one_colour_are_parted():
    steps = (1000, 10_000, *range(100_000, 700_000, 100_000))
    levels = [lightness(colour) for colour in step_colours(steps).values()]
    gaps = -np.diff(levels)
    assert gaps.min() > 0.5 * gaps.mean()  # of log steps the last would have a thirteenth


@pytest.mark.parametrize("seen", ["grey", "protanopia", "deuteranopia"])
def test_models_differ_in_dashes_or_clearly_in_colour_however_they_are_seen(seen):
    families = [name for name, size in FAMILIES.items() for _ in range(size)]
    models = models_named([str(number) for number in range(len(families))], families=families)
    styles = [(style.dashes, lab(style.colour, seen)) for style in line_styles(models).values()]
    for (dashes, one), (others_dashes, other) in combinations(styles, 2):
        assert dashes != others_dashes or np.linalg.norm(one - other) > 2 * JUST_NOTICED
