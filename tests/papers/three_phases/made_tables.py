"""The axes of this paper's figure, for tests/unit/test_figures_hold_their_numbers.py."""

from figure_tables import BY_STEP

AXES = {"last_layer_by_step": BY_STEP}
