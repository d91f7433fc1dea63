"""The axes of this paper's figures, for tests/unit/test_figures_hold_their_numbers.py."""

from figure_tables import BY_DEPTH, BY_STEP

AXES = {
    **{"final_norm_by_depth": BY_DEPTH, "final_norm_by_step": BY_STEP, "isotropy_by_step": BY_STEP},
    "isotropy_by_model": (("value",), ()),
    "planes": (("x",), ("y",)),
    "isotropy_and_loss": (("loss",), ("value",)),
}
MATRIX_FIGURES = ("isotropy_by_model", "isotropy_by_step", "final_norm_by_step", "planes")
SOURCES = dict.fromkeys(MATRIX_FIGURES, "no text")


def select_drawn(table):
    """Select the drawn rows: of the state before the norm only the last two layers of each model."""
    is_before_norm = table["estimator"].str.contains("before_norm")
    return table[
        ~is_before_norm | (table.groupby(["model", "estimator"]).cumcount(ascending=False) < 2)
    ]


DRAWN = {"final_norm_by_depth": select_drawn}
