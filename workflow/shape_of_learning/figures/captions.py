"""Words: short numbers, sentences of captions."""

from collections.abc import Sequence

import pandas as pd


def short_number(number: float) -> str:
    """Write 143000 as 143k, 3e12 as 3T: three digits and a suffix for thousands."""
    for size, suffix in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{suffix}"
    return f"{number:.3g}"


def bands_over_batches(table: pd.DataFrame, *, of: str = "batches") -> str:
    """Say what lines and bands show, such as '... over 3 batches of 4,096 vectors.'.

    Parameters
    ----------
    table : pandas.DataFrame
        From :mod:`shape_of_learning.figures.averages`.
    of : str
        What the mean is taken over.
    """
    defined = table[table["batches"] > 0]
    if defined.empty:
        return "No value is defined."
    sizes = number_range(defined["n_smallest"].min(), defined["n_largest"].max())
    batches = number_range(defined["batches"].min(), defined["batches"].max())
    sentence = (
        f"Lines: mean over {of}; bands: one standard deviation to either side, over {batches} "
        f"batches of {sizes} vectors."
    )
    return sentence if len(defined) == len(table) else f"{sentence} Gaps: undefined."


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
