"""Words on points that are hollow with a dot: where near-duplicates put a measure beyond its conditions."""

from collections.abc import Sequence

import pandas as pd

from shape_of_learning.figures.inputs import DrawnMeasure

POINT = "Hollow with a dot"


def suspects(table: pd.DataFrame, measures: Sequence[DrawnMeasure], mark: str = POINT) -> list[str]:
    """Say which points are suspect, and why.

    Parameters
    ----------
    table : pandas.DataFrame
        From :mod:`shape_of_learning.figures.averages`, with labels.
    measures : sequence of DrawnMeasure
    mark : str
        How these points look.

    Returns
    -------
    list of str
        A sentence for each measure of which a point is, such as "Hollow with a dot: more than 10 % of the
        vectors have a near-duplicate (r2/r1 > 10), where TwoNN is beyond its conditions: A 3 of 9 points.".
        Averages over layers say in how many of their layers at most.
    """
    sentences = []
    for measure in measures:
        rows = table[(table["estimator"] == measure.name) & table["value"].notna()]
        if measure.suspect_above is None or not rows["suspect"].any():
            continue
        parts = []
        for label, own in rows.groupby("label", sort=False):
            marked = own[own["suspect"]]
            if marked.empty:
                continue
            part = f"{label} {len(marked):,} of {len(own):,} points"
            if "suspect_layers" in own:
                most = marked.loc[marked["suspect_layers"].idxmax()]
                part += f", in up to {most['suspect_layers']} of {most['layers']} layers"
            parts.append(part)
        sentences.append(
            f"{mark}: more than {100 * measure.suspect_above:.3g} % of the vectors have a "
            f"near-duplicate (r2/r1 > 10), where {measure.label} is beyond its conditions: "
            f"{'; '.join(parts)}."
        )
    return sentences
