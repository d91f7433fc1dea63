"""What stands out in the estimates of one checkpoint, in sentences with numbers."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shape_of_learning.metrics.suspects import FEW_WINDOWS, read_reasons

Row = Mapping[str, Any]
ANISOTROPY, WITHOUT_MASSIVE = "anisotropy", "anisotropy_without_massive_tokens"
DIMENSIONS = {
    "mada": "MADA",
    "mom": "MOM",
    "mle": "MLE",
    "two_nn": "TwoNN",
}  # first those that copies disturb least
ANISOTROPIC = 0.5  # from which on one direction has most of the variance
PLATEAU = 0.05  # below the peak
FEW_TOKENS = 0.5  # of the anisotropy is gone without massive tokens


def find_sentences(label: str, rows: Iterable[Row]) -> list[str]:
    """Say what stands out in the layers of one checkpoint.

    Parameters
    ----------
    label : str
        What the model is called.
    rows : iterable of mapping
        Of ``tables/estimates.csv``, with numbers or text; rows without a layer are passed over.

    Returns
    -------
    list of str
        At most one sentence on anisotropy and one on the intrinsic dimension.
    """
    curves: dict[str, dict[int, Row]] = {}
    for row in rows:
        layer, value = _number(row["layer"]), _number(row["value"])
        if layer >= 1 and math.isfinite(value):  # not the embeddings, which are no block
            curves.setdefault(str(row["estimator"]), {})[int(layer)] = row
    said = [_say_anisotropy(label, curves), _say_dimension(label, curves)]
    return [sentence for sentence in said if sentence]


def find_all_sentences(rows: Iterable[Row], models: Sequence[Sequence[str]]) -> list[str]:
    """Say what stands out in several models: first of all their anisotropy, then their dimensions.

    Parameters
    ----------
    rows : iterable of mapping
        As of :func:`find_sentences`, of any checkpoints.
    models : sequence of (name, label, revision)
    """
    listed = list(rows)
    by_model = [
        find_sentences(
            label, [row for row in listed if (row["model"], row["revision"]) == (name, revision)]
        )
        for name, label, revision in models
    ]
    return [*(said[0] for said in by_model if said), *(s for said in by_model for s in said[1:])]


def _say_anisotropy(label: str, curves: Mapping[str, Mapping[int, Row]]) -> str:
    rows = curves.get(ANISOTROPY)
    if not rows:
        return ""
    values = {layer: _number(row["value"]) for layer, row in rows.items()}
    peak = max(values, key=values.__getitem__)
    if values[peak] < ANISOTROPIC:
        return f"{label}: no block is anisotropic; the highest anisotropy is {values[peak]:.2f}, in block {peak}."
    high = _around(values, peak)
    inside = [values[layer] for layer in high]
    sentence = f"{label}: anisotropy is {_range(inside)} in {name_blocks(high)}"
    without = curves.get(WITHOUT_MASSIVE, {})
    others = [_number(without[layer]["value"]) for layer in high if layer in without]
    if not others:
        return f"{sentence}."
    vectors = [_number(rows[layer]["n"]) for layer in high]
    kept = [_number(without[layer]["n"]) for layer in high if layer in without]
    share = 1 - sum(kept) / len(kept) / (sum(vectors) / len(vectors))
    if max(others) > FEW_TOKENS * min(inside):
        return f"{sentence}, and without massive tokens still {_range(others)}."
    return f"{sentence}; without massive tokens ({100 * share:.1f} % of the vectors) it is {_range(others)} there."


def _say_dimension(label: str, curves: Mapping[str, Mapping[int, Row]]) -> str:
    found = next((name for name in DIMENSIONS if name in curves), None)
    if found is None:
        return ""
    rows = curves[found]
    values = {layer: _number(row["value"]) for layer, row in rows.items()}
    peak, last = max(values, key=values.__getitem__), max(values)
    sentence = f"{label}: the intrinsic dimension by {DIMENSIONS[found]} peaks at {values[peak]:.0f} in block {peak}"
    if last != peak:
        sentence += f" and is {values[last]:.0f} in the last block"
    for name, rows in curves.items():
        if name not in DIMENSIONS:
            continue
        reasons = {layer: _reasons(row) for layer, row in rows.items()}
        suspect = [layer for layer, names in reasons.items() if names]
        if suspect:
            words = sorted({word for layer in suspect for word in reasons[layer]})
            many = f"{len(suspect)} of {len(rows)} values"
            sentence += f"; do not trust {many} of {DIMENSIONS[name]} ({', '.join(words)})"
    return f"{sentence}."


def _reasons(row: Row) -> list[str]:
    cell = row.get("reason")
    reasons = read_reasons(cell) if isinstance(cell, str) else []
    return [r.name for r in reasons if r is not FEW_WINDOWS]


def _around(values: Mapping[int, float], peak: int) -> list[int]:
    """List the layers around a peak without a gap whose values are nearly as high."""
    found = [peak]
    for step in (-1, 1):
        layer = peak + step
        while values.get(layer, -math.inf) >= values[peak] - PLATEAU:
            found.append(layer)
            layer += step
    return sorted(found)


def name_blocks(layers: Sequence[int]) -> str:
    """Write layers without a gap as blocks.

    Examples
    --------
    >>> name_blocks([12, 13, 14])
    'blocks 12 to 14'
    """
    if len(layers) == 1:
        return f"block {layers[0]}"
    return f"blocks {layers[0]} to {layers[-1]}"


def _range(values: Sequence[float]) -> str:
    low, high = (f"{number:.2f}" for number in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _number(cell: Any) -> float:
    """Read a number of a table; NaN where the cell is empty."""
    if cell is None or cell == "":
        return math.nan
    try:
        return float(cell)
    except TypeError:  # the missing value of pandas
        return math.nan
