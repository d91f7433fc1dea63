"""The axes of this paper's figures, for tests/unit/test_figures_hold_their_numbers.py."""

from figure_tables import BY_DEPTH

AXES = {
    **dict.fromkeys(("measures_by_depth", "profiles_by_role", "anisotropy_measures"), BY_DEPTH),
    "massive_tokens": (("layer",), ("value",)),
    "dimension_by_scale": (("n1",), ("value",)),
    "loss_by_step": (("step",), ("loss",)),
}
