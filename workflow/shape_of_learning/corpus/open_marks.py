"""Marks of a wikitext that nothing closes, hidden from the parser where they would cost it minutes."""

import re
from collections import Counter
from collections.abc import Callable

from mwparserfromhell.definitions import URI_SCHEMES, is_parsable, is_single

# At each mark that nothing closes the parser reads on, in vain, and then once more without it: its time grows with
# the characters that it reads so. With so many of them a page takes seconds.
MOST_CHARACTERS_IN_VAIN = 3_000_000
# The parser takes most deeper ones for text; braces it would follow until Python's stack is full.
DEEPEST = 35
# In a line, after which its time grows with their square.
MOST_QUOTES, MOST_LIST_MARKS = 300, 40

_SCHEMES = "|".join(map(re.escape, sorted(URI_SCHEMES)))
_MARK = re.compile(
    r"<!--|\[\[|\]\]|\{{2,}|\}{2,}|\{\||\|\}(?!\})|\n"
    rf"|\[(?=(?:{_SCHEMES}):|//)|\]|<(/?)([a-z][a-z0-9]*)([^<>]*)(>?)",
    re.IGNORECASE,
)
_CLOSING = {"]]": "[[", "|}": "{|", "]": "["}
_LIST_MARKS = re.compile(rf"^([*#:;]{{{MOST_LIST_MARKS}}})[*#:;]+", re.MULTILINE)
_QUOTES = re.compile(r"'{2,}")
# Noncharacters of Unicode, which no text has.
_STAND_INS = {"[": "\ufdd0", "]": "\ufdd1", "{": "\ufdd2", "}": "\ufdd3", "|": "\ufdd4"}
_STAND_INS |= {"<": "\ufdd5", ">": "\ufdd6"}
_HIDE = str.maketrans(_STAND_INS)
_RESTORE = str.maketrans({stand_in: mark for mark, stand_in in _STAND_INS.items()})


def hide_costly_marks(wikitext: str) -> tuple[str, Callable[[str], str]]:
    """Hide marks that nothing closes, if they are so many that the parser would take long.

    Returns
    -------
    str
        The wikitext, or the same with stand-ins for these marks. The parser takes either for text.
    callable
        Puts the marks back into what the parser shows.
    """
    wikitext = _LIST_MARKS.sub(r"\1", wikitext)
    wikitext = "\n".join(map(_cut_quotes, wikitext.split("\n")))
    marks, is_deep = _find_costly_marks(wikitext)
    in_vain = sum(len(wikitext) - start for start, _ in marks)
    if in_vain <= MOST_CHARACTERS_IN_VAIN and not is_deep:
        return wikitext, str
    parts, place = [], 0
    for start, end in sorted(marks):
        parts += [wikitext[place:start], wikitext[start:end].translate(_HIDE)]
        place = end
    return "".join([*parts, wikitext[place:]]), lambda shown: shown.translate(_RESTORE)


def _cut_quotes(line: str) -> str:
    """Leave out marks of italic and bold text from a line that has hundreds: they leave its words in any case."""
    if line.count("''") <= MOST_QUOTES:
        return line
    # Four quotes are one and bold text, and more than five are some and both.
    return _QUOTES.sub(lambda run: "'" * (1 if len(run[0]) == 4 else max(0, len(run[0]) - 5)), line)


def _find_costly_marks(wikitext: str) -> tuple[list[tuple[int, int]], bool]:
    """Find where marks begin and end that nothing closes, or that lie too deep; and whether there are such."""
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
    return marks.costly + [where for _, where in marks.opened], marks.is_deep


def _read_element(marks: "_Marks", wikitext: str, mark: re.Match[str]) -> int:
    """Note the beginning or the end of an element, and return where to read on."""
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
    """Marks of a wikitext, in pairs as far as they have been read.

    Attributes
    ----------
    opened : list of (str, (int, int))
        Those that wait for another one that closes them, by their kinds, and where they are.
    costly : list of (int, int)
        Where others are that nothing closes, or that lie too deep.
    is_deep : bool
        Whether some lie too deep.
    """

    def __init__(self) -> None:
        self.opened: list[tuple[str, tuple[int, int]]] = []
        self.costly: list[tuple[int, int]] = []
        self.is_deep = False
        self._numbers: Counter[str] = Counter()
        self._unclosed: set[str] = set()

    def open(self, kind: str, where: tuple[int, int]) -> None:
        self.opened.append((kind, where))
        self._numbers[kind] += 1

    def close(self, kind: str, where: tuple[int, int]) -> None:
        """Note what closes a mark of a kind; those within that wait still will do so in vain."""
        if beginning := self._find_innermost(kind):
            self._close_one(beginning, where)

    def close_braces(self, start: int, end: int) -> None:
        """Note a run of closing braces: three are those of an argument, two of a template."""
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
        """Note the end of a line, where links to other sites end."""
        while self.opened and self.opened[-1][0] == "[":
            self.costly.append(self._pop())

    def skip(self, wikitext: str, kind: str, end: str, where: tuple[int, int]) -> int:
        """Find the end of what has no marks within, and return where to read on."""
        if kind not in self._unclosed:
            if found := re.compile(re.escape(end), re.IGNORECASE).search(wikitext, where[1]):
                return found.end()
            self._unclosed.add(kind)
        self.costly.append((where[0], where[0] + 1))
        return where[1]

    def _find_innermost(self, kind: str) -> tuple[int, int] | None:
        if not self._numbers[kind]:
            return None
        while self.opened[-1][0] != kind:
            self.costly.append(self._pop())
        return self._pop()

    def _pop(self) -> tuple[int, int]:
        kind, where = self.opened.pop()
        self._numbers[kind] -= 1
        return where

    def _close_one(self, beginning: tuple[int, int], end: tuple[int, int]) -> None:
        if len(self.opened) >= DEEPEST:
            self.costly += [beginning, end]
            self.is_deep = True
