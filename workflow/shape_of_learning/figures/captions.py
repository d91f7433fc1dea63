"""Words: short numbers, sentences of captions."""

from collections.abc import Sequence

import pandas as pd

from shape_of_learning.figures.inputs import DrawnMeasure
from shape_of_learning.metrics.table_columns import GROUPS


def short_number(number: float) -> str:
    """Write 143000 as 143k, 3e12 as 3T: three digits and a suffix for thousands."""
    for size, suffix in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{suffix}"
    return f"{number:.3g}"


def lines_and_bands(
    table: pd.DataFrame, measures: Sequence[DrawnMeasure], *, of: str | None = "batches"
) -> str:
    """Say what lines and bands show, on how many vectors, windows and groups of windows.

    Parameters
    ----------
    table : pandas.DataFrame
        From :mod:`shape_of_learning.figures.averages`.
    measures : sequence of DrawnMeasure
        Those of the table.
    of : str or None
        What the mean is taken over; None where all vectors are measured together, without batches.
    """
    defined = table[table["value"].notna()]
    if defined.empty:
        return "No value is defined."
    sizes = number_range(round(defined["n"].min()), round(defined["n"].max()))
    windows = number_range(int(defined["windows"].min()), int(defined["windows"].max()))
    of_layers = "layer" in defined and defined["layer"].notna().any()
    bare = {each.name: each.label for each in measures if of_layers and not each.interval}
    covered = ~defined["estimator"].isin(bare)
    few = defined["windows"] < GROUPS
    lines = f"Lines: mean over {of} of {sizes} vectors" if of else f"All {sizes} vectors together"
    bands = ""
    if defined["low"].notna().any():
        bands = f"; bands: 95 % intervals from leaving out each of {GROUPS} groups of the {windows} windows"
        if of:
            bands += (
                "; the standard deviation over batches, which the paper draws, is the column batch_sd of the "
                "numbers"
            )
    return caption(
        f"{lines}{bands}.",
        f"Fewer than {GROUPS} windows give no intervals." if (covered & few).any() else "",
        "No band where a value is undefined without some group."
        if (covered & ~few & defined["low"].isna()).any()
        else "",
        f"No bands for {enumerated([*bare.values()])}: intervals of single layers do not cover."
        if bare
        else "",
        "" if len(defined) == len(table) else "Gaps: undefined.",
    )


def caption(*sentences: str) -> str:
    """Join the sentences that there are."""
    return " ".join(sentence for sentence in sentences if sentence)


def enumerated(items: Sequence[str]) -> str:
    """Join as 'a, b and c'."""
    *others, last = items
    return f"{', '.join(others)} and {last}" if others else last


def number_range(low: int, high: int) -> str:
    """Write '4,096', or '4,096 to 4,700' if the ends differ."""
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
