"""Define and find the reasons why a value is suspect, for tables, figures, pages and the terminal."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

# TwoNN discards a tenth of the vectors, so it cannot discard a larger share of near-duplicates.
NEAR_DUPLICATES = 0.1
# If a larger share of nearest neighbours is of the same token, a dimension describes how copies of a token differ.
SAME_TOKEN = 0.5
NEAR_WIDTH = 0.8  # share of the coordinates; an intrinsic dimension above it is suspect
WIDE = 0.5  # share of the value; a wider interval hardly bounds a number of directions


class Reason(NamedTuple):
    """A reason why a value is suspect: its name in tables, its mark on the terminal, its cause and consequence."""

    name: str
    mark: str
    cause: str
    consequence: str = ""

    @property
    def sentence(self) -> str:
        """Cause and consequence."""
        return f"{self.cause}, so {self.consequence}" if self.consequence else self.cause


COPIES = Reason(
    "copies",
    "*",
    "many vectors have a near-copy, or most nearest neighbours are the same token",
    "the value says more about the text than about the model",
)
NEAR_THE_WIDTH = Reason(
    "near the width",
    "^",
    "the dimension is near the number of coordinates or above it",
    "near-copies or too few vectors decide it",
)
WIDE_INTERVAL = Reason(
    "wide interval",
    "?",
    "the interval is wider than half the value",
    "the data hardly say how large the value is",
)
FEW_WINDOWS = Reason(
    "few windows", "~", "too few windows, or a few of them, decide the value", "it has no interval"
)
REASONS = {reason.name: reason for reason in (COPIES, NEAR_THE_WIDTH, WIDE_INTERVAL, FEW_WINDOWS)}
SEPARATOR = "; "


class Conditions(NamedTuple):
    """The conditions under which the values of a measure are not suspect.

    Attributes
    ----------
    is_dimension, is_positive : bool
        Whether the measure is an intrinsic dimension; whether it is that or a number of directions, always above 0.
    has_interval : bool
        Whether its intervals contain the true value. If they do not, a value without an interval is not suspect.
    near_duplicate_limit : float or None
        The largest share of vectors with a near-duplicate; None if copies do not matter.
    """

    is_dimension: bool = False
    is_positive: bool = False
    has_interval: bool = True
    near_duplicate_limit: float | None = None


def are_copies(near_duplicate_limit: float | None, near_duplicates: Any, same_token: Any) -> Any:
    """Return whether too many vectors have a near-copy, or most nearest neighbours are the same token.

    A TwoNN of these neighbours says more about the text than about the model. The terminal, tables, figures, the
    explorer and claims all use this definition.

    Parameters
    ----------
    near_duplicate_limit : float or None
        The largest share of vectors with a near-duplicate; None if copies do not matter.
    near_duplicates, same_token : float or ndarray of float64
        As in ``tables/estimates.csv``; NaN if unknown.
    """
    if near_duplicate_limit is None:
        return (near_duplicates != near_duplicates) & False
    return (near_duplicates > near_duplicate_limit) | (same_token > SAME_TOKEN)


def is_near_width(value: Any, width: int) -> Any:
    """Return whether an intrinsic dimension is near the number of coordinates `width`; False if this is 0, unknown."""
    return (value >= NEAR_WIDTH * width) & (width > 0)


def find_reasons(
    conditions: Conditions,
    value: float,
    low: float,
    high: float,
    *,
    near_duplicates: float = math.nan,
    same_token: float = math.nan,
    width: int = 0,
) -> list[Reason]:
    """Return the reasons why a value is suspect, in the order of `REASONS`.

    Parameters
    ----------
    conditions : Conditions
        The conditions of the measure.
    value, low, high : float
        NaN if the value is undefined or has no interval.
    near_duplicates, same_token : float
        As in ``tables/estimates.csv``.
    width : int
        Coordinates of the hidden states; 0 if unknown.

    Examples
    --------
    >>> two_nn = Conditions(is_dimension=True, is_positive=True, near_duplicate_limit=0.1)
    >>> [reason.name for reason in find_reasons(two_nn, 60.0, 40.0, 80.0, same_token=0.7, width=64)]
    ['copies', 'near the width', 'wide interval']
    """
    if math.isnan(value):
        return []
    applies = {
        COPIES: are_copies(conditions.near_duplicate_limit, near_duplicates, same_token),
        NEAR_THE_WIDTH: conditions.is_dimension and is_near_width(value, width),
        WIDE_INTERVAL: conditions.is_positive and high - low > WIDE * value,
        FEW_WINDOWS: conditions.has_interval and math.isnan(low),
    }
    return [reason for reason in applies if applies[reason]]


def format_reasons(reasons: Iterable[Reason]) -> str:
    """Write reasons for the column ``reason``."""
    return SEPARATOR.join(reason.name for reason in reasons)


def read_reasons(cell: str) -> list[Reason]:
    """Read the reasons in a cell of the column ``reason``."""
    return [REASONS[name] for name in cell.split(SEPARATOR)] if cell else []
