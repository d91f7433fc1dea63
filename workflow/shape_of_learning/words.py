"""Format words and numbers for sentences and tables."""

from collections.abc import Iterable, Sequence

MOST_NAMED = 4


def capitalise(words: object) -> str:
    """Write words with a capital first letter."""
    return f"{str(words)[:1].upper()}{str(words)[1:]}"


def uncapitalise(words: str) -> str:
    """Write words with a small first letter."""
    return f"{words[:1].lower()}{words[1:]}"


def enumerate_items(items: Sequence[str]) -> str:
    """Join items as in "a, b and c"."""
    *first_items, last = items
    return f"{', '.join(first_items)} and {last}" if first_items else last


def list_first(names: Sequence[str]) -> str:
    """List the first names, and count the other names."""
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def format_range(values: Iterable[float], form: str) -> str:
    """Write the least and the greatest number in a form such as ``.2f``, or one number if both look the same."""
    numbers = [*values]
    low, high = f"{min(numbers):{form}}", f"{max(numbers):{form}}"
    return low if low == high else f"{low} to {high}"


def escape_cell(words: str) -> str:
    """Write words so that they stay in one cell of a Markdown table."""
    return " ".join(words.split()).replace("|", r"\|")
