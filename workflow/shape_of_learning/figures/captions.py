"""Words: short numbers, sentences of captions."""

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from shape_of_learning.figures.inputs import DrawnMeasure
from shape_of_learning.metrics.table_columns import GROUPS

# How a figure shows that there is no value.
GAP = "Gaps, with a cross at the lower edge"
CELL = "Grey with a cross"


def short_number(number: float) -> str:
    """Write 143000 as 143k, 3e12 as 3T: three digits and a suffix for thousands, but 1024 as it is."""
    if 1000 < number < 10_000 and number % 10:
        return f"{number:.0f}"
    number = float(f"{number:.3g}")  # 999,999 is 1M
    for size, suffix in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{suffix}"
    return f"{number:.3g}"


def lines_and_bands(
    table: pd.DataFrame,
    measures: Sequence[DrawnMeasure],
    *,
    of: str | None = "batches",
    lines: str = "Lines",
    bands: bool = True,
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
    lines : str
        What shows the values.
    bands : bool
        Whether there are bands.
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
    values = (
        f"{lines}: mean over {of} of {sizes} vectors" if of else f"All {sizes} vectors together"
    )
    intervals = ""
    if defined["low"].notna().any():
        where = "bands:" if bands else "the numbers have"
        groups = f"{GROUPS} groups of the {windows} windows"
        intervals = f"; {where} 95 % intervals from leaving out each of {groups}"
        if of:
            intervals += (
                "; the standard deviation over batches, which the paper draws, is the column batch_sd of the "
                "numbers"
            )
    return caption(
        f"{values}{intervals}.",
        f"Fewer than {GROUPS} windows give no intervals." if (covered & few).any() else "",
        "No band where a value is undefined without some group."
        if bands and (covered & ~few & defined["low"].isna()).any()
        else "",
        f"No {'bands' if bands else 'intervals'} for {enumerated([*bare.values()])}: intervals of single "
        "layers do not cover."
        if bare
        else "",
        *undefined(table, GAP if lines == "Lines" else CELL),
    )


def undefined(table: pd.DataFrame, mark: str = GAP) -> list[str]:
    """One sentence on the values of a table that are undefined or infinite, if there are any."""
    values = table["value"].to_numpy("float64")
    count = int((~np.isfinite(values)).sum())
    kinds = "undefined or infinite" if np.isinf(values).any() else "undefined"
    return [f"{mark}: {kinds} ({count:,} of {len(table):,} values)."] if count else []


def caption(*sentences: str) -> str:
    """Join the sentences that there are."""
    return " ".join(sentence for sentence in sentences if sentence)


def as_markup(words: str) -> str:
    """Escape what Markdown or reStructuredText, where a report shows captions, would take for marks."""
    return re.sub(r"([\\`*_{}\[\]<>&#|~])", r"\\\1", words)


def enumerated(items: Sequence[str]) -> str:
    """Join as 'a, b and c'."""
    *others, last = items
    return f"{', '.join(others)} and {last}" if others else last


def number_range(low: int, high: int) -> str:
    """Write '4,096', or '4,096 to 4,700' if the ends differ."""
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
