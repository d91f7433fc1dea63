"""Why a value may say less about the model than it seems: one definition for tables, figures, pages and the command."""

import math
from collections.abc import Iterable
from typing import NamedTuple

NEAR_DUPLICATES = (
    0.1  # share of vectors above which TwoNN, which discards a tenth, does not discard all of them
)
SAME_TOKEN = 0.5  # share of nearest neighbours; most say how copies of a token differ
NEAR_WIDTH = 0.8  # share of the coordinates from which on an intrinsic dimension is none
WIDE = 0.5  # of the value; a wider interval hardly says how large a number of directions is


class Reason(NamedTuple):
    """Why a value is suspect: its name in tables, its mark on the terminal, the cause, and what follows."""

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
    "nearest neighbours are mostly the same token or copies",
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
    """What a measure needs of its values.

    Attributes
    ----------
    is_dimension, is_positive : bool
        Whether it is an intrinsic dimension, and whether it cannot be 0, as a number of directions cannot.
    has_interval : bool
        Whether its intervals cover; if not, a value without one is not suspect.
    near_duplicates : float or None
        The share of vectors with a near-duplicate up to which it holds; None if copies do not matter.
    """

    is_dimension: bool = False
    is_positive: bool = False
    has_interval: bool = True
    near_duplicates: float | None = None


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
        Of its measure.
    value, low, high : float
        NaN where the value is undefined, and where there is no interval.
    near_duplicates, same_token : float
        As in ``tables/estimates.csv``.
    width : int
        Coordinates of the hidden states; 0 where nobody says.

    Examples
    --------
    >>> two_nn = Conditions(is_dimension=True, is_positive=True, near_duplicates=0.1)
    >>> [reason.name for reason in find_reasons(two_nn, 60.0, 40.0, 80.0, same_token=0.7, width=64)]
    ['copies', 'near the width', 'wide interval']
    """
    if math.isnan(value):
        return []
    limit = conditions.near_duplicates
    has_copies = limit is not None and (near_duplicates > limit or same_token > SAME_TOKEN)
    is_near = conditions.is_dimension and width > 0 and value >= NEAR_WIDTH * width
    is_wide = conditions.is_positive and high - low > WIDE * value
    is_bare = conditions.has_interval and math.isnan(low)
    holds = {
        COPIES: has_copies,
        NEAR_THE_WIDTH: is_near,
        WIDE_INTERVAL: is_wide,
        FEW_WINDOWS: is_bare,
    }
    return [reason for reason, is_so in holds.items() if is_so]


def write_reasons(reasons: Iterable[Reason]) -> str:
    """Write reasons as the column ``reason`` has them."""
    return SEPARATOR.join(reason.name for reason in reasons)


def read_reasons(cell: str) -> list[Reason]:
    """Read what :func:`write_reasons` wrote."""
    return [REASONS[name] for name in cell.split(SEPARATOR)] if cell else []
