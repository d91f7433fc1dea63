"""The characters that a corpus is reduced to."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Alphabet:
    """Characters with their counts, most frequent first.

    Attributes
    ----------
    kept : dict of str to int
        Characters of the alphabet.
    dropped : dict of str to int
        The other characters of the text it was chosen for.
    """

    kept: dict[str, int]
    dropped: dict[str, int]

    def reducer(self) -> Callable[[str], str]:
        """Build the function that removes from a text what is not in the alphabet."""
        if not self.dropped:
            return str
        unwanted = re.compile("[" + "".join(map(re.escape, self.dropped)) + "]+")
        return lambda text: unwanted.sub("", text)


def most_frequent(counts: Mapping[str, int], size: int) -> Alphabet:
    """Choose the most frequent characters; of equally frequent ones the lower code point.

    Parameters
    ----------
    counts : mapping of str to int
        How often each character occurs.
    size : int
        Number of characters to keep; all of them if there are not that many.
    """
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return Alphabet(dict(ranked[:size]), dict(ranked[size:]))


def described(counts: Mapping[str, int]) -> list[dict[str, str | int]]:
    """Spell out characters for a JSON file, where many would be hard to tell apart by sight."""
    return [
        {"character": character, "code_point": f"U+{ord(character):04X}", "count": count}
        for character, count in counts.items()
    ]
