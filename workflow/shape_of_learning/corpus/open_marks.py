"""Hide unclosed marks of a wikitext from the parser if parsing them would take minutes."""

import re
from collections import Counter
from collections.abc import Callable

from mwparserfromhell.definitions import URI_SCHEMES, is_parsable, is_single

# At an unclosed mark the parser reads to the end, and then once more without the mark. Its time grows with the
# characters that it reads twice. A page with this number takes seconds.
MOST_CHARACTERS_READ_TWICE = 3_000_000
# On deeper levels the parser takes most marks for text, but follows braces until Python's stack is full.
DEEPEST = 35
# Marks in a line. If there are more, the parser's time grows with the square of their number.
MOST_QUOTES = 300
MOST_LIST_MARKS = 40

_SCHEMES = "|".join(map(re.escape, sorted(URI_SCHEMES)))
_MARK = re.compile(
    r"<!--|\[\[|\]\]|\{{2,}|\}{2,}|\{\||\|\}(?!\})|\n"
    rf"|\[(?=(?:{_SCHEMES}):|//)|\]|<(/?)([a-z][a-z0-9]*)([^<>]*)(>?)",
    re.IGNORECASE,
)
_CLOSING = {"]]": "[[", "|}": "{|", "]": "["}
_LIST_MARKS = re.compile(rf"^([*#:;]{{{MOST_LIST_MARKS}}})[*#:;]+", re.MULTILINE)
_QUOTES = re.compile(r"'{2,}")
# Stand-ins for marks are noncharacters of Unicode, which texts do not contain.
_STAND_INS = {"[": "\ufdd0", "]": "\ufdd1", "{": "\ufdd2", "}": "\ufdd3", "|": "\ufdd4"}
_STAND_INS |= {"<": "\ufdd5", ">": "\ufdd6"}
_HIDE = str.maketrans(_STAND_INS)
_RESTORE = str.maketrans({stand_in: mark for mark, stand_in in _STAND_INS.items()})


def hide_costly_marks(wikitext: str) -> tuple[str, Callable[[str], str]]:
    """Hide the unclosed marks of a wikitext if parsing them would take minutes.

    Returns
    -------
    str
        The wikitext, in which stand-ins may replace unclosed marks. The parser takes these for text, too.
    callable
        Restores the marks in the parser's output.
    """
    wikitext = _LIST_MARKS.sub(r"\1", wikitext)
    wikitext = "\n".join(map(_cut_quotes, wikitext.split("\n")))
    marks, is_deep = _find_costly_marks(wikitext)
    characters = sum(len(wikitext) - start for start, _ in marks)
    if characters <= MOST_CHARACTERS_READ_TWICE and not is_deep:
        return wikitext, str
    parts, place = [], 0
    for start, end in sorted(marks):
        parts += [wikitext[place:start], wikitext[start:end].translate(_HIDE)]
        place = end
    return "".join([*parts, wikitext[place:]]), lambda text: text.translate(_RESTORE)


def _cut_quotes(line: str) -> str:
    """Remove the marks of italic and bold text from a line with hundreds of them."""
    if line.count("''") <= MOST_QUOTES:
        return line
    # Four quotes are an apostrophe and bold text; more than five are apostrophes and bold italic text.
    return _QUOTES.sub(lambda run: "'" * (1 if len(run[0]) == 4 else max(0, len(run[0]) - 5)), line)


def _find_costly_marks(wikitext: str) -> tuple[list[tuple[int, int]], bool]:
    """Find the spans of marks that are unclosed or too deep, and return whether some are too deep."""
    marks = _Marks()
    place = 0
    while mark := _MARK.search(wikitext, place):
        start, place = mark.span()
        if mark[0] == "\n":
            marks.end_line()
        elif mark[2] is not None:
            place = _read_element(marks, wikitext, mark)
        elif mark[0] == "<!--":  # the parser reads no marks within
            place = marks.skip(wikitext, "<!--", "-->", (start, place))
        elif mark[0] in _CLOSING:
            marks.close(_CLOSING[mark[0]], (start, place))
        elif mark[0][0] == "}":
            marks.close_braces(start, place)
        elif mark[0][0] == "{" and len(mark[0]) > 2 * DEEPEST:
            marks.costly.append((start, place))
            marks.is_deep = True
        else:
            marks.open("{{" if mark[0].startswith("{{") else mark[0], (start, place))
    return marks.costly + [span for _, span in marks.open_marks], marks.is_deep


def _read_element(marks: "_Marks", wikitext: str, mark: re.Match[str]) -> int:
    """Record the beginning or the end of an element, and return the position after it."""
    name, first = mark[2].lower(), (mark.start(), mark.start() + 1)
    if not mark[4]:
        marks.costly.append(first)
    elif mark[1]:
        marks.close(f"<{name}", first)
    elif not is_parsable(name) and not mark[3].endswith("/"):
        return marks.skip(wikitext, f"<{name}", f"</{name}", (mark.start(), mark.end()))
    elif not is_single(name) and not mark[3].endswith("/"):
        marks.open(f"<{name}", first)
    return mark.end()


class _Marks:
    """The pairs of marks in a wikitext up to a position.

    Attributes
    ----------
    open_marks : list of (str, (int, int))
        Kinds and spans of marks that are still open.
    costly : list of (int, int)
        Spans of other marks that are unclosed or too deep.
    is_deep : bool
        Whether some marks are too deep.
    """

    def __init__(self) -> None:
        self.open_marks: list[tuple[str, tuple[int, int]]] = []
        self.costly: list[tuple[int, int]] = []
        self.is_deep = False
        self._numbers: Counter[str] = Counter()
        self._endless_kinds: set[str] = set()

    def open(self, kind: str, span: tuple[int, int]) -> None:
        self.open_marks.append((kind, span))
        self._numbers[kind] += 1

    def close(self, kind: str, span: tuple[int, int]) -> None:
        """Close the innermost mark of a kind; open marks inside it stay unclosed."""
        if beginning := self._find_innermost(kind):
            self._close_one(beginning, span)

    def close_braces(self, start: int, end: int) -> None:
        """Close marks by a run of braces: three braces close an argument, two close a template."""
        while end - start >= 2 and (beginning := self._find_innermost("{{")):
            first, last = beginning
            number = min(3, last - first, end - start)
            self._close_one((last - number, last), (start, start + number))
            start, last = start + number, last - number
            if last - first >= 2:
                self.open("{{", (first, last))
            elif last > first:
                self.costly.append((first, last))

    def end_line(self) -> None:
        """End a line, and with it all open links to other sites."""
        while self.open_marks and self.open_marks[-1][0] == "[":
            self.costly.append(self._pop())

    def skip(self, wikitext: str, kind: str, end: str, span: tuple[int, int]) -> int:
        """Return the position after an element whose content the parser does not read."""
        if kind not in self._endless_kinds:
            if match := re.compile(re.escape(end), re.IGNORECASE).search(wikitext, span[1]):
                return match.end()
            self._endless_kinds.add(kind)
        self.costly.append((span[0], span[0] + 1))
        return span[1]

    def _find_innermost(self, kind: str) -> tuple[int, int] | None:
        if not self._numbers[kind]:
            return None
        while self.open_marks[-1][0] != kind:
            self.costly.append(self._pop())
        return self._pop()

    def _pop(self) -> tuple[int, int]:
        kind, span = self.open_marks.pop()
        self._numbers[kind] -= 1
        return span

    def _close_one(self, beginning: tuple[int, int], end: tuple[int, int]) -> None:
        if len(self.open_marks) >= DEEPEST:
            self.costly += [beginning, end]
            self.is_deep = True
