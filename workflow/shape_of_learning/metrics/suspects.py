"""Why a value may say less about the model than it seems: one definition for tables, figures, pages and the command."""

import math
from collections.abc import Iterable
from typing import NamedTuple

NEAR_DUPLICATES = (
    0.1  # share of vectors above which TwoNN, which discards a tenth, does not discard all of them
)
SAME_TOKEN = 0.5  # share of nearest neighbours; most say how copies of a token differ
NEAR_WIDTH = 0.8  # share of the coordinates from which on an intrinsic dimension is none


class Reason(NamedTuple):
    """Why a value is suspect: its name in tables, its mark on the terminal, and a sentence."""

    name: str
    mark: str
    sentence: str


COPIES = Reason(
    "copies",
    "*",
    "most nearest neighbours are copies or the same token, so the value says more about the text than about the model",
)
NEAR_THE_WIDTH = Reason(
    "near the width",
    "^",
    "the dimension is near the number of coordinates or above it; near-copies or too few vectors decide it",
)
REACHES_0 = Reason(
    "interval reaches 0",
    "<",
    "the interval reaches 0, so the data do not say how large the value is",
)
FEW_WINDOWS = Reason(
    "few windows", "~", "too few windows, or a few of them, decide the value, so it has no interval"
)
REASONS = {reason.name: reason for reason in (COPIES, NEAR_THE_WIDTH, REACHES_0, FEW_WINDOWS)}
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
    value, low : float
        NaN where the value is undefined, and where there is no interval.
    near_duplicates, same_token : float
        As in ``tables/estimates.csv``.
    width : int
        Coordinates of the hidden states; 0 where nobody says.

    Examples
    --------
    >>> two_nn = Conditions(is_dimension=True, is_positive=True, near_duplicates=0.1)
    >>> [reason.name for reason in find_reasons(two_nn, 60.0, -2.0, same_token=0.7, width=64)]
    ['copies', 'near the width', 'interval reaches 0']
    """
    if math.isnan(value):
        return []
    limit = conditions.near_duplicates
    has_copies = limit is not None and (near_duplicates > limit or same_token > SAME_TOKEN)
    is_near = conditions.is_dimension and width > 0 and value >= NEAR_WIDTH * width
    reaches_0 = conditions.is_positive and low <= 0
    is_bare = conditions.has_interval and math.isnan(low)
    holds = {
        COPIES: has_copies,
        NEAR_THE_WIDTH: is_near,
        REACHES_0: reaches_0,
        FEW_WINDOWS: is_bare,
    }
    return [reason for reason, is_so in holds.items() if is_so]


def write_reasons(reasons: Iterable[Reason]) -> str:
    """Write reasons as the column ``reason`` has them."""
    return SEPARATOR.join(reason.name for reason in reasons)


def read_reasons(cell: str) -> list[Reason]:
    """Read what :func:`write_reasons` wrote."""
    return [REASONS[name] for name in cell.split(SEPARATOR)] if cell else []
