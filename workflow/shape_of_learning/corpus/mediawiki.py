"""Read the pages of a MediaWiki XML export as a stream, and extract the readable text of their wikitext."""

import html
import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple
from xml.parsers import expat

import mwparserfromhell
from mwparserfromhell.nodes import ExternalLink, Heading, HTMLEntity, Node, Tag, Text, Wikilink
from mwparserfromhell.parser import ParserError
from mwparserfromhell.wikicode import Wikicode

from shape_of_learning.corpus.namespaces import (
    CATEGORY_KEY,
    IN_ENGLISH,
    LANGUAGE_CODES,
    MEDIA_KEYS,
    STANDARD_NAMESPACES,
    InvisibleNamespaces,
    fold_case,
)
from shape_of_learning.corpus.open_marks import hide_costly_marks
from shape_of_learning.errors import InputError

# These elements hold no running text, but code, formulas, media, tables or notes.
DROPPED_ELEMENTS = frozenset(
    {
        "categorytree", "ce", "charinsert", "chem", "code", "gallery", "graph", "hiero",
        "imagemap", "includeonly", "indicator", "inputbox", "mapframe", "maplink", "math",
        "pre", "ref", "references", "score", "script", "section", "source", "style",
        "syntaxhighlight", "table", "templatedata", "templatestyles", "timeline",
    }
)  # fmt: skip
# Elements that end a line of the rendered page.
LINE_BREAKING_ELEMENTS = frozenset(
    {
        "blockquote", "br", "center", "dd", "div", "dl", "dt", "h1", "h2", "h3", "h4", "h5",
        "h6", "hr", "li", "ol", "p", "poem", "ul",
    }
)  # fmt: skip


# These marks come in pairs. The parser takes an unpaired mark for text, but a reader does not.
_PAIRED_MARKS = ("[[", "]]", "{{", "}}", "{|", "|}", "'''", "''")
_STRAY_TAG = re.compile(
    r"</?(?:abbr|b|big|blockquote|br|caption|center|cite|code|dd|del|div|dl|dt|em|font|gallery|"
    r"h[1-6]|hr|i|imagemap|includeonly|ins|kbd|li|math|noinclude|nowiki|ol|p|poem|pre|q|references|"
    r"ref|s|samp|small|source|span|strike|strong|sub|sup|table|td|th|timeline|tr|tt|u|ul|var)\b"
    r"[^<>]*>|<!--|-->",
    re.IGNORECASE,
)
# A redirect is a magic word, in any language, before a link. After a list item, another item would follow.
_REDIRECT = re.compile(r"\s*#[^\s\[\]#*:;]+\s*:?\s*\[\[[^\[\]\n]+\]\](?![^\n]*\n\s*#)")
# A comment, or an element in which no comment can begin.
_COMMENT = re.compile(
    r"<!--|<(nowiki|pre|math|gallery|timeline|source|syntaxhighlight)\b[^<>]*(?<!/)>", re.IGNORECASE
)
_BEHAVIOUR_SWITCH = re.compile(r"__[A-Z]{3,}__")  # __TOC__ and its kin
# Behaviour switches in other languages, such as __KEIN_INHALTSVERZEICHNIS__ or __目次__.
_LOCAL_SWITCH = re.compile(r"__[^\W\d_]+(?:_[^\W\d_]+)*__")

# The parser's time grows with the square of the number of open marks, so longer texts are parsed by paragraphs.
LONGEST_PAGE = 2_000_000  # characters
LONGEST_PARAGRAPH = 20_000

# The parser's errors at the end of a truncated file.
_CUT_OFF = ("no element found", "unclosed token", "partial character")


class Page(NamedTuple):
    """One page of an export.

    Attributes
    ----------
    title : str
        With its namespace prefix, if it has one.
    text : str
        Wikitext of the last revision, with XML entities replaced.
    is_whole : bool
        False if the file ends within the page.
    namespace : str
        Number of the namespace, if the export states it.
    is_redirect : bool
        Whether the export marks the page as a redirect.
    """

    title: str
    text: str
    is_whole: bool = True
    namespace: str = ""
    is_redirect: bool = False


class Export:
    """A MediaWiki XML export, of any schema version.

    Parameters
    ----------
    chunks : iterable of bytes
        The file, piece by piece. It may end anywhere, even within a UTF-8 sequence or an entity:
        enwik8 is the first 10^8 bytes of a longer file.
    name : str
        Name of the file in errors.

    Attributes
    ----------
    namespaces : set of str
        Case-folded names of all namespaces except that of articles: MediaWiki's standard names, and after the header
        has been read also the names in it.
    invisible : InvisibleNamespaces
        The namespaces of media and categories.
    """

    def __init__(self, chunks: Iterable[bytes], name: str):
        self.namespaces = set(STANDARD_NAMESPACES)
        self.invisible = IN_ENGLISH
        self._chunks = chunks
        self._name = name
        self._open: list[str] = []  # open elements, from the root
        self._characters: list[str] = []  # content of the innermost element
        self._page = Page("", "")
        self._key = ""  # of a namespace
        self._pages: list[Page] = []

    def read_pages(self) -> Iterator[Page]:
        """Yield pages in the order of the file; call this once.

        Raises
        ------
        InputError
            If the file is not XML, or has no ``mediawiki`` root.
        """
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end_element
        parser.CharacterDataHandler = self._characters.append
        for chunk in self._chunks:
            self._parse(parser, chunk, final=False)
            yield from self._pages
            self._pages.clear()
        self._parse(parser, b"", final=True)
        parser.buffer_text = False  # flushes text that an error has left in the buffer
        if "page" in self._open:
            text = "".join(self._characters) if self._open[-1] == "text" else self._page.text
            yield self._page._replace(text=text, is_whole=False)

    def _parse(self, parser: expat.XMLParserType, chunk: bytes, *, final: bool) -> None:
        try:
            parser.Parse(chunk, final)
        except expat.ExpatError as error:
            if final and self._open and expat.ErrorString(error.code) in _CUT_OFF:
                return
            raise InputError(
                f"{self._name} is not a MediaWiki XML export ({error}): give another file in "
                "corpus.sources, or format: text if it is plain text"
            ) from error

    def is_article(self, page: Page) -> bool:
        """Return whether a page is in the namespace of articles; a title may contain a colon, as titles of films do."""
        if page.namespace:
            return page.namespace == "0"
        prefix, colon, _ = page.title.partition(":")
        return not colon or fold_case(prefix) not in self.namespaces

    def _start(self, element: str, attributes: dict[str, str]) -> None:
        if not self._open and element != "mediawiki":
            raise InputError(
                f"{self._name} is not a MediaWiki XML export (its root is <{element}>): give "
                "another file in corpus.sources"
            )
        self._open.append(element)
        self._characters.clear()
        if element == "page":
            self._page = Page("", "")
        elif element == "namespace":
            self._key = attributes.get("key", "")

    def _end_element(self, element: str) -> None:
        content = "".join(self._characters)
        if element == "namespace" and content:
            self._add_namespace(fold_case(content))
        elif element == "title":
            self._page = self._page._replace(title=content)
        elif element == "text":
            self._page = self._page._replace(text=content)
        elif element == "ns":
            self._page = self._page._replace(namespace=content.strip())
        elif element == "redirect":
            self._page = self._page._replace(is_redirect=True)
        elif element == "page":
            self._pages.append(self._page)
        self._open.pop()
        self._characters.clear()

    def _add_namespace(self, name: str) -> None:
        self.namespaces.add(name)
        media, categories = self.invisible
        if self._key in MEDIA_KEYS:
            self.invisible = InvisibleNamespaces(media | {name}, categories)
        elif self._key == CATEGORY_KEY:
            self.invisible = InvisibleNamespaces(media, categories | {name})


class CleanedPage(NamedTuple):
    """The text of a page, with a line per paragraph, heading or list item, and whether it was parsed by paragraphs."""

    text: str
    is_split: bool = False


def is_redirect(wikitext: str) -> bool:
    """Return whether a page is a redirect, which begins with a magic word and a link."""
    beginning = wikitext[:1000]
    return beginning.lstrip()[:9].casefold() == "#redirect" or bool(_REDIRECT.match(beginning))


def clean_page(wikitext: str, invisible: InvisibleNamespaces = IN_ENGLISH) -> CleanedPage:
    """Extract the running text that a reader of a page sees.

    Parameters
    ----------
    wikitext : str
        Wikitext of a page, with XML entities replaced. Any markup may be unclosed.
    invisible : InvisibleNamespaces
        Namespaces of media and categories.

    Returns
    -------
    CleanedPage
        The text without templates, tables, comments, links to media, categories and other languages, and without the
        elements in `DROPPED_ELEMENTS`. Other links keep their anchor, and headings, list items, bold and italic text
        and all other elements keep their words. HTML entities are replaced once. White space of any kind and length
        becomes one space.

    Notes
    -----
    Markup that remains in the result is removed, too: mostly it is half of a pair, sometimes an article about HTML
    quotes it. If the parser fails on a page, the page is parsed by paragraphs, without paragraphs that are longer than
    `LONGEST_PARAGRAPH` or on which the parser fails.
    """
    wikitext = _cut_open_comment(wikitext)
    if len(wikitext) <= LONGEST_PAGE and (text := _parse_wikitext(wikitext, invisible)) is not None:
        return CleanedPage(text)
    short = [part for part in wikitext.split("\n\n") if len(part) <= LONGEST_PARAGRAPH]
    parts = (_parse_wikitext(part, invisible) for part in short)
    return CleanedPage("\n".join(filter(None, parts)), is_split=True)


def _cut_open_comment(wikitext: str) -> str:
    """Cut a page at an unclosed comment, since readers do not see the text after it."""
    place, endless_elements = 0, set()
    while match := _COMMENT.search(wikitext, place):
        place, element = match.end(), (match[1] or "").lower()
        if not element:
            end = wikitext.find("-->", place)
            if end < 0:
                return wikitext[: match.start()]
            place = end + len("-->")
        elif element not in endless_elements:
            end_tag = re.compile(f"</{element}\\s*>", re.IGNORECASE).search(wikitext, place)
            if end_tag:
                place = end_tag.end()
            else:
                endless_elements.add(element)
    return wikitext


def _parse_wikitext(wikitext: str, invisible: InvisibleNamespaces) -> str | None:
    """Return the readable lines of a wikitext; None if the parser fails."""
    try:
        lines = [" ".join(line.split()) for line in _parse(wikitext, invisible).split("\n")]
        rows = _find_table_rows(lines)
        readable = [
            _strip_residue(line, invisible)
            for line, is_row in zip(lines, rows, strict=True)
            if not is_row
        ]
    except (ParserError, RecursionError):
        return None
    return "\n".join(filter(None, readable))


def _find_table_rows(lines: list[str]) -> list[bool]:
    """Return for each line whether it is a row of a table that is unclosed, or that a template opens.

    A header row begins with an exclamation mark, but so may a sentence or a name. The line is a row if it has a second
    cell or an attribute, or if the line before or after it is a row.
    """
    is_row = [line.startswith(("|", "{|")) for line in lines]
    may_be_header = [line.startswith("!") for line in lines]
    for order in (range(len(lines)), reversed(range(len(lines)))):
        is_neighbour_row = False
        for place in order:
            line = lines[place]
            if may_be_header[place]:
                has_cells = "!!" in line.lstrip("!") or ("=" in line and "|" in line)
                is_row[place] |= is_neighbour_row or has_cells
            is_neighbour_row = is_row[place] or (is_neighbour_row and not line)
    return is_row


def _parse(wikitext: str, invisible: InvisibleNamespaces) -> str:
    """Parse a wikitext, and return its readable text."""
    plain, restore = hide_costly_marks(wikitext)
    return restore(_show_nodes(mwparserfromhell.parse(plain), invisible))


def _show_nodes(code: Wikicode, invisible: InvisibleNamespaces) -> str:
    return "".join(_show_node(node, invisible) for node in code.nodes)


def _show_node(node: Node, invisible: InvisibleNamespaces) -> str:
    match node:
        case Text():
            return node.value
        case Wikilink():
            return _show_link(node, invisible)
        case ExternalLink():
            return "" if node.title is None else _show_nodes(node.title, invisible)
        case HTMLEntity():
            return html.unescape(str(node))  # unlike the node's own method, never a lone surrogate
        case Heading():
            return f"\n{_show_nodes(node.title, invisible)}\n"
        case Tag():
            return _show_element(node, invisible)
        case _:  # templates, their arguments, comments
            return ""


def _show_link(link: Wikilink, invisible: InvisibleNamespaces) -> str:
    target = str(link.title).strip()
    prefix, colon, _ = target.partition(":")
    if invisible.contains_target(target) or (colon and prefix in LANGUAGE_CODES):
        return ""
    if link.text is not None and link.text.nodes:
        return _show_nodes(link.text, invisible)
    return target.removeprefix(":")


def _show_element(element: Tag, invisible: InvisibleNamespaces) -> str:
    name = str(element.tag).strip().lower()
    if name in DROPPED_ELEMENTS:
        return ""
    content = "" if element.contents is None else _show_nodes(element.contents, invisible)
    # A list item in wiki markup already has its own line.
    breaks_line = name in LINE_BREAKING_ELEMENTS and not element.wiki_markup
    return f"\n{content}\n" if breaks_line else content


def _strip_residue(line: str, invisible: InvisibleNamespaces) -> str:
    if "<" in line or "-->" in line:
        line = _STRAY_TAG.sub("", line)
    if "__" in line:
        line = _BEHAVIOUR_SWITCH.sub("", line)
        if invisible != IN_ENGLISH:
            line = _LOCAL_SWITCH.sub(
                lambda word: "" if word[0].upper() == word[0] else word[0], line
            )
    if _has_mark(line):
        # Intact markup inside of unclosed markup parses alone.
        line = _compile_media_link(invisible.media).sub("", _parse(line, invisible))
        while _has_mark(line):  # removing a mark may join the halves of another
            for mark in _PAIRED_MARKS:
                line = line.replace(mark, "")
    if line.startswith("==") and line.endswith("=="):
        line = line.strip("=")
    return " ".join(line.split())


@cache
def _compile_media_link(names: frozenset[str]) -> re.Pattern[str]:
    """Compile the pattern of an unclosed link to media, up to the end of the line."""
    either = "|".join(re.escape(name).replace(r"\ ", "[ _]") for name in sorted(names))
    return re.compile(rf"\[\[\s*(?:{either})\s*:.*", re.IGNORECASE)


def _has_mark(line: str) -> bool:
    return any(mark in line for mark in _PAIRED_MARKS)
