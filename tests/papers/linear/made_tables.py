"""Tables of changed blocks, and the axes of this paper's figures, for tests/unit/test_figures_hold_their_numbers.py."""

from itertools import product

import numpy as np

from figure_tables import BY_DEPTH, BY_STEP
from papers.linear.changed_blocks import KINDS, LOWER_KINDS, ORDERS, PERCENT, UPPER_KINDS
from papers.linear.edits import EDIT_COLUMNS
from papers.linear.maps import FIT_ERROR_COLUMNS

NUMBERS = np.random.default_rng(0)
AXES = {
    **dict.fromkeys(("linearity_by_depth", "norm_ratio_by_depth", "first_tokens"), BY_DEPTH),
    "linearity_by_step": BY_STEP,
    "perplexity_of_changed_blocks": ((), ("perplexity", PERCENT)),
    "errors_of_tokens": (("layer",), ("quantile_0.5", "share_of_worst_tokens")),
    "changes_by_finetuning": (("change",), ()),
}


def select_drawn(table):
    """Select perplexities of the upper panels, and percentages of the lower panels."""
    return table.assign(
        perplexity=table["perplexity"].where(table["kind"].isin(UPPER_KINDS)),
        **{PERCENT: table[PERCENT].where(table["kind"].isin(LOWER_KINDS))},
    )


DRAWN = {"perplexity_of_changed_blocks": select_drawn}
AT_EDGE = ("linearity_by_depth",)  # scores that are far below the others
NO_CURVES = ("twins",)


def make_edits(model, _):
    layers = model.shape.layers or 24
    for order, kind in product(ORDERS, KINDS):
        is_alone = order == "alone"
        for k in range(is_alone, layers + 1 if is_alone else 13):
            loss = 2.5 + NUMBERS.random()
            count = (str(k), kind, 1) if is_alone else ("", kind, k)
            yield model.name, "main", order, *count, 60_000, loss, np.exp(loss), 7e9


def make_fit_errors(model, _):
    layers = model.shape.layers or 24
    for block in range(1, layers + 1):
        worst, *quantiles = np.sort(NUMBERS.uniform(0.001, 0.1, 9))
        yield model.name, "main", block, block / layers, 70_000, 0.98, worst, *quantiles


TABLES = {"edits": (EDIT_COLUMNS, make_edits), "fit_errors": (FIT_ERROR_COLUMNS, make_fit_errors)}
