"""The parser of wikitext, with a bound on its work.

It tries each mark as the beginning of something, and goes back where that does not end. So a page of which
much is left open takes it time with the square of its length, or worse: 40 kB of ``{{a|b`` take minutes. How
much it has done is counted, not timed, so that on every machine the same pages are beyond it.
"""

from typing import Any

from mwparserfromhell.parser import ParserError
from mwparserfromhell.parser.builder import Builder
from mwparserfromhell.parser.tokenizer import Tokenizer
from mwparserfromhell.wikicode import Wikicode

# Steps that a character may take, and of a long text fewer: seconds in all, a step being a few microseconds.
# The pages of the first 2.6 MB of enwik8 and Python's topics take at most 2.2, where they are long 1.7.
STEPS_PER_CHARACTER = 20
STEPS_OF_A_LONG_TEXT, STEPS_PER_FURTHER_CHARACTER = 400_000, 6
FEWEST_STEPS = 2_000
# Where they are handed on: text without marks, and what has been found already.
CHARACTERS_OF_A_STEP = TOKENS_OF_A_STEP = 32
# Of what is open at once. The parser has a lower limit of its own, which not all markup is subject to.
DEPTH = 150


class BeyondParser(Exception):
    """A text whose markup is too much work, or that the parser gives up on."""


def parse(wikitext: str) -> Wikicode:
    """Parse as `mwparserfromhell.parse` does, within bounds.

    Raises
    ------
    BeyondParser
        If it takes more than :func:`allowed_steps`, or nests deeper than `DEPTH`.
    """
    try:
        return Builder().build(_tokens(wikitext))
    except ParserError as error:
        raise BeyondParser from error


def allowed_steps(characters: int) -> int:
    """Return how many steps a text of so many characters may take."""
    return min(
        FEWEST_STEPS + STEPS_PER_CHARACTER * characters,
        STEPS_OF_A_LONG_TEXT + STEPS_PER_FURTHER_CHARACTER * characters,
    )


class _CountingTokenizer(Tokenizer):
    """The tokenizer in Python: the one in C does the same, several times faster, and cannot be counted."""

    def __init__(self, wikitext: str):
        super().__init__()
        self._steps_left = allowed_steps(len(wikitext))

    def _spend(self, steps: int) -> None:
        self._steps_left -= steps
        if self._steps_left < 0:
            raise BeyondParser

    def _read(self, delta: int = 0, *, strict: bool = False) -> Any:
        self._spend(1)
        return super()._read(delta, strict=strict)  # type: ignore[call-overload]

    def _emit_text(self, text: str) -> None:
        self._spend(len(text) // CHARACTERS_OF_A_STEP)
        super()._emit_text(text)

    def _emit_all(self, tokenlist: list) -> None:
        self._spend(len(tokenlist) // TOKENS_OF_A_STEP)
        super()._emit_all(tokenlist)

    def _push(self, context: int = 0) -> None:
        if len(self._stacks) > DEPTH:
            raise BeyondParser
        super()._push(context)


def _tokens(wikitext: str) -> list:
    return _CountingTokenizer(wikitext).tokenize(wikitext)


# Python keeps what calls need in pieces of 16 kB, and asks the system for a further one and gives it back
# each time that a call crosses an end: nested markup then takes ten times as long. A large call leaves room.
_tokens.__code__ = _tokens.__code__.replace(co_stacksize=1 << 16)
