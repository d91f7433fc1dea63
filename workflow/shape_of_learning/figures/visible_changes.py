"""Words on the smallest change between checkpoints that can be told from none."""

from collections.abc import Sequence

import pandas as pd

from shape_of_learning.figures.captions import enumerated
from shape_of_learning.figures.inputs import FigureInputs


def smallest_visible_changes(inputs: FigureInputs, table: pd.DataFrame) -> str:
    """Say for each curve how large a change between consecutive drawn steps must be to be seen.

    Parameters
    ----------
    inputs : FigureInputs
        Without ``changes`` nothing is said.
    table : pandas.DataFrame
        From :mod:`shape_of_learning.figures.averages`, with labels: by layer, or over layers.

    Returns
    -------
    str
        A sentence with the median of each model and measure, over steps, and over layers where the table is
        by layer; empty where there is none. Pairs with a checkpoint that is left out do not count.
    """
    if inputs.changes is None:
        return ""
    is_by_layer = "layer" in table
    changes = inputs.changes.rows
    changes = changes[changes["layer"].notna() == is_by_layer].merge(consecutive_pairs(table))
    medians = changes.groupby(["estimator", "model"])["smallest_visible"].median().dropna()
    parts = []
    for measure in inputs.measures:
        own = [
            (model.label, medians[measure.name, model.name])
            for model in inputs.models
            if (measure.name, model.name) in medians.index
        ]
        if own:
            words = _listed(own) if len(inputs.models) > 1 else f"{own[0][1]:.2g}"
            parts.append(f"{measure.label}: {words}" if len(inputs.measures) > 1 else words)
    if not parts:
        return ""
    over = "layers and steps" if is_by_layer else "steps"
    return (
        "Smallest change from one step to the next that can be told from none, median over "
        f"{over}: {'; '.join(parts)}."
    )


def consecutive_pairs(table: pd.DataFrame) -> pd.DataFrame:
    """List ``model``, ``from_revision`` and ``to_revision`` of drawn steps with no drawn one between them."""
    drawn = table[["model", "revision", "step"]].drop_duplicates().sort_values("step")
    drawn["to_revision"] = drawn.groupby("model")["revision"].shift(-1)
    pairs = drawn.dropna(subset="to_revision").rename(columns={"revision": "from_revision"})
    return pairs[["model", "from_revision", "to_revision"]]


def _listed(own: Sequence[tuple[str, float]]) -> str:
    return enumerated([f"{median:.2g} ({label})" for label, median in own])
