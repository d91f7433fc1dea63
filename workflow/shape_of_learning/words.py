"""Words and numbers as sentences and tables write them."""

from collections.abc import Iterable, Sequence

MOST_NAMED = 4


def capitalise(words: object) -> str:
    """Begin with a capital letter."""
    return f"{str(words)[:1].upper()}{str(words)[1:]}"


def uncapitalise(words: str) -> str:
    """Begin with a small letter."""
    return f"{words[:1].lower()}{words[1:]}"


def enumerate_items(items: Sequence[str]) -> str:
    """Join as 'a, b and c'."""
    *others, last = items
    return f"{', '.join(others)} and {last}" if others else last


def list_first(names: Sequence[str]) -> str:
    """List the first names, and the number of the others."""
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def format_range(values: Iterable[float], form: str) -> str:
    """Write the least and the greatest number in a form such as ``.2f``, or one number if they are written alike."""
    known = [*values]
    low, high = f"{min(known):{form}}", f"{max(known):{form}}"
    return low if low == high else f"{low} to {high}"


def escape_cell(words: str) -> str:
    """Write words on one line and in one column of a Markdown table."""
    return " ".join(words.split()).replace("|", r"\|")
