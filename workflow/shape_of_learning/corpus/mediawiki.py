"""Pages of a MediaWiki XML export, read as a stream, and the readable words of their wikitext."""

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

from shape_of_learning.corpus.languages import LANGUAGE_CODES
from shape_of_learning.corpus.namespaces import (
    CATEGORY_KEY,
    IN_ENGLISH,
    MEDIA_KEYS,
    STANDARD_NAMESPACES,
    InvisibleNamespaces,
    fold_case,
)
from shape_of_learning.corpus.open_marks import hide_costly_marks
from shape_of_learning.errors import InputError

# Elements whose content is no running text: code, formulas, media, tables, notes.
DROPPED_ELEMENTS = frozenset(
    {
        "categorytree", "ce", "charinsert", "chem", "code", "gallery", "graph", "hiero",
        "imagemap", "includeonly", "indicator", "inputbox", "mapframe", "maplink", "math",
        "pre", "ref", "references", "score", "script", "section", "source", "style",
        "syntaxhighlight", "table", "templatedata", "templatestyles", "timeline",
    }
)  # fmt: skip
# Elements that end a line of the page as it is shown.
LINE_BREAKING_ELEMENTS = frozenset(
    {
        "blockquote", "br", "center", "dd", "div", "dl", "dt", "h1", "h2", "h3", "h4", "h5",
        "h6", "hr", "li", "ol", "p", "poem", "ul",
    }
)  # fmt: skip


# Marks that come in pairs: one without its other half is text to the parser, and none to a reader.
_PAIRED_MARKS = ("[[", "]]", "{{", "}}", "{|", "|}", "'''", "''")
_STRAY_TAG = re.compile(
    r"</?(?:abbr|b|big|blockquote|br|caption|center|cite|code|dd|del|div|dl|dt|em|font|gallery|"
    r"h[1-6]|hr|i|imagemap|includeonly|ins|kbd|li|math|noinclude|nowiki|ol|p|poem|pre|q|references|"
    r"ref|s|samp|small|source|span|strike|strong|sub|sup|table|td|th|timeline|tr|tt|u|ul|var)\b"
    r"[^<>]*>|<!--|-->",
    re.IGNORECASE,
)
# A redirect's magic word, in any language, before its link. Unlike a list, nothing like it follows.
_REDIRECT = re.compile(r"\s*#[^\s\[\]#*:;]+\s*:?\s*\[\[[^\[\]\n]+\]\](?![^\n]*\n\s*#)")
# A comment, or an element within which no comment begins.
_COMMENT = re.compile(
    r"<!--|<(nowiki|pre|math|gallery|timeline|source|syntaxhighlight)\b[^<>]*(?<!/)>", re.IGNORECASE
)
_BEHAVIOUR_SWITCH = re.compile(r"__[A-Z]{3,}__")  # __TOC__ and its kin
_LOCAL_SWITCH = re.compile(
    r"__[^\W\d_]+(?:_[^\W\d_]+)*__"
)  # as __KEIN_INHALTSVERZEICHNIS__ or __目次__

# The parser takes time with the square of what is left open: longer texts are parsed piece by piece.
LONGEST_PAGE, LONGEST_PARAGRAPH = 2_000_000, 20_000

# What the parser says at the end of a file that is cut off.
_CUT_OFF = ("no element found", "unclosed token", "partial character")


class Page(NamedTuple):
    """One page of an export.

    Attributes
    ----------
    title : str
        With its namespace prefix, if it has one.
    text : str
        Wikitext of the last revision, XML entities already replaced.
    whole : bool
        False for a page within which the file ends.
    namespace : str
        Its number, where the export says it for each page.
    redirect : bool
        Whether the export says that the page only sends its reader to another one.
    """

    title: str
    text: str
    whole: bool = True
    namespace: str = ""
    redirect: bool = False


class Export:
    """A MediaWiki XML export, of any schema version.

    Parameters
    ----------
    chunks : iterable of bytes
        The file, piece by piece. It may stop anywhere, even within a UTF-8 sequence or an entity:
        enwik8 is the first 10^8 bytes of a longer file.
    name : str
        What to call it in an error message.

    Attributes
    ----------
    namespaces : set of str
        Case-folded names of all namespaces other than that of articles: MediaWiki's own, and those
        in the export's header once that has been read.
    invisible : Invisible
        Those of them that links to media and categories begin with.
    """

    def __init__(self, chunks: Iterable[bytes], name: str):
        self.namespaces = set(STANDARD_NAMESPACES)
        self.invisible = IN_ENGLISH
        self._chunks = chunks
        self._name = name
        self._open: list[str] = []  # elements from the root to where the parser is
        self._characters: list[str] = []  # of the innermost element
        self._page = Page("", "")
        self._key = ""  # of a namespace
        self._pages: list[Page] = []

    def read_pages(self) -> Iterator[Page]:
        """Yield pages in the order of the file; can be called once.

        Raises
        ------
        InputError
            Where the file is not XML, or is XML without a ``mediawiki`` root.
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
        parser.buffer_text = False  # hands over what an error has left in the buffer
        if "page" in self._open:
            text = "".join(self._characters) if self._open[-1] == "text" else self._page.text
            yield self._page._replace(text=text, whole=False)

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
        """Whether a page lies in no namespace; a colon alone, as in a film's name, makes none."""
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
            self._page = self._page._replace(redirect=True)
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
    """Text of one page, a paragraph, heading or list item a line, and whether it was parsed by paragraphs."""

    text: str
    in_pieces: bool = False


def is_redirect(wikitext: str) -> bool:
    """Whether a page only sends its reader to another one: it begins with a magic word and a link."""
    beginning = wikitext[:1000]
    return beginning.lstrip()[:9].casefold() == "#redirect" or bool(_REDIRECT.match(beginning))


def clean_page(wikitext: str, invisible: InvisibleNamespaces = IN_ENGLISH) -> CleanedPage:
    """Keep what a reader of the page would read in running text.

    Parameters
    ----------
    wikitext : str
        Wikitext of a page, XML entities already replaced. Markup may be left open anywhere.
    invisible : Invisible
        Names of the namespaces of media and categories.

    Returns
    -------
    CleanedPage
        Gone with their content are templates, tables, comments, links to media, categories and
        other languages, and the elements in `DROPPED_ELEMENTS`. Links leave their anchor; headings,
        list items, bold and italic text and all other elements leave their words. HTML entities are
        replaced once. White space of any kind and length becomes one space.

    Notes
    -----
    What looks like markup in the result is taken out as well. Mostly it is half of a pair; now and
    then an article about HTML meant it. A page that the parser gives up on is parsed by paragraphs, and one
    of these that it gives up on, or that is longer than `LONGEST_PARAGRAPH`, is left out.
    """
    wikitext = _cut_open_comment(wikitext)
    if len(wikitext) <= LONGEST_PAGE and (text := _parse_wikitext(wikitext, invisible)) is not None:
        return CleanedPage(text)
    short = [part for part in wikitext.split("\n\n") if len(part) <= LONGEST_PARAGRAPH]
    parts = (_parse_wikitext(part, invisible) for part in short)
    return CleanedPage("\n".join(filter(None, parts)), in_pieces=True)


def _cut_open_comment(wikitext: str) -> str:
    """Cut a page where a comment begins that nothing ends: a reader sees no more of it."""
    place, unclosed = 0, set()
    while found := _COMMENT.search(wikitext, place):
        place, element = found.end(), (found[1] or "").lower()
        if not element:
            end = wikitext.find("-->", place)
            if end < 0:
                return wikitext[: found.start()]
            place = end + len("-->")
        elif element not in unclosed:
            closed = re.compile(f"</{element}\\s*>", re.IGNORECASE).search(wikitext, place)
            if closed:
                place = closed.end()
            else:
                unclosed.add(element)
    return wikitext


def _parse_wikitext(wikitext: str, invisible: InvisibleNamespaces) -> str | None:
    """Readable lines of a wikitext; None if the parser gives up on it."""
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
    """Say of each line whether it is the row of a table that a template opens or nothing closes.

    A header row begins with an exclamation mark, as a sentence or a name may: it has a second cell or an
    attribute, or another row stands beside it.
    """
    is_row = [line.startswith(("|", "{|")) for line in lines]
    heads = [line.startswith("!") for line in lines]
    for order in (range(len(lines)), reversed(range(len(lines)))):
        beside = False
        for place in order:
            line = lines[place]
            if heads[place]:
                cells = line.lstrip("!")
                is_row[place] |= beside or "!!" in cells or ("=" in line and "|" in line)
            beside = is_row[place] or (beside and not line)
    return is_row


def _parse(wikitext: str, invisible: InvisibleNamespaces) -> str:
    """Let the parser read a wikitext, and return the words that it shows."""
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
    if invisible.has_link(target) or (colon and prefix in LANGUAGE_CODES):
        return ""
    if link.text is not None and link.text.nodes:
        return _show_nodes(link.text, invisible)
    return target.removeprefix(":")


def _show_element(element: Tag, invisible: InvisibleNamespaces) -> str:
    name = str(element.tag).strip().lower()
    if name in DROPPED_ELEMENTS:
        return ""
    content = "" if element.contents is None else _show_nodes(element.contents, invisible)
    # A list item in wiki markup has a line of its own already.
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
        # Often intact, but within something that is not: alone, it can be parsed.
        line = _compile_media_link(invisible.media).sub("", _parse(line, invisible))
        while _has_mark(line):  # taking out a mark may join the halves of another
            for mark in _PAIRED_MARKS:
                line = line.replace(mark, "")
    if line.startswith("==") and line.endswith("=="):
        line = line.strip("=")
    return " ".join(line.split())


@cache
def _compile_media_link(names: frozenset[str]) -> re.Pattern[str]:
    """Build the pattern of a link to media that nothing closes, to the end of the line."""
    either = "|".join(re.escape(name).replace(r"\ ", "[ _]") for name in sorted(names))
    return re.compile(rf"\[\[\s*(?:{either})\s*:.*", re.IGNORECASE)


def _has_mark(line: str) -> bool:
    return any(mark in line for mark in _PAIRED_MARKS)
