"""Pages of a MediaWiki XML export, read as a stream, and the readable words of their wikitext."""

import html
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from xml.parsers import expat

import mwparserfromhell
from mwparserfromhell.nodes import ExternalLink, Heading, HTMLEntity, Node, Tag, Text, Wikilink
from mwparserfromhell.parser import ParserError
from mwparserfromhell.wikicode import Wikicode

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
INVISIBLE_NAMESPACES = frozenset({"category", "file", "image", "media"})

# Marks that come in pairs: one without its other half is text to the parser, and none to a reader.
_PAIRED_MARKS = ("[[", "]]", "{{", "}}", "{|", "|}", "'''", "''")
_STRAY_TAG = re.compile(
    r"</?(?:abbr|b|big|blockquote|br|caption|center|cite|code|dd|del|div|dl|dt|em|font|gallery|"
    r"h[1-6]|hr|i|imagemap|includeonly|ins|kbd|li|math|noinclude|nowiki|ol|p|poem|pre|q|references|"
    r"ref|s|samp|small|source|span|strike|strong|sub|sup|table|td|th|timeline|tr|tt|u|ul|var)\b"
    r"[^<>]*>|<!--|-->",
    re.IGNORECASE,
)
_STRAY_MEDIA_LINK = re.compile(r"\[\[\s*(?:file|image|media)\s*:.*", re.IGNORECASE)
_BEHAVIOUR_SWITCH = re.compile(r"__[A-Z]{3,}__")  # __TOC__ and its kin

# The parser takes time with the square of what is left open: longer texts are parsed piece by piece.
LONGEST_PAGE, LONGEST_PARAGRAPH = 2_000_000, 20_000

# What a MediaWiki installation has before anyone configures it; an export lists its own on top.
STANDARD_NAMESPACES = frozenset(
    name.casefold()
    for subject in ("User", "Project", "File", "Image", "MediaWiki", "Template", "Help", "Category")
    for name in (subject, f"{subject} talk")
) | {"media", "special", "talk"}

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
    """

    title: str
    text: str
    whole: bool = True


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
    """

    def __init__(self, chunks: Iterable[bytes], name: str):
        self.namespaces = set(STANDARD_NAMESPACES)
        self._chunks = chunks
        self._name = name
        self._open: list[str] = []  # elements from the root to where the parser is
        self._characters: list[str] = []  # of the innermost element
        self._title = ""
        self._text = ""
        self._pages: list[Page] = []

    def pages(self) -> Iterator[Page]:
        """Yield pages in the order of the file; can be called once.

        Raises
        ------
        InputError
            Where the file is not XML, or is XML without a ``mediawiki`` root.
        """
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters.append
        for chunk in self._chunks:
            self._parse(parser, chunk, final=False)
            yield from self._pages
            self._pages.clear()
        self._parse(parser, b"", final=True)
        parser.buffer_text = False  # hands over what an error has left in the buffer
        if "page" in self._open:
            text = "".join(self._characters) if self._open[-1] == "text" else self._text
            yield Page(self._title, text, whole=False)

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

    def is_article(self, title: str) -> bool:
        """Whether a title lies in no namespace; a colon alone, as in a film's name, makes none."""
        prefix, colon, _ = title.partition(":")
        return not colon or prefix.replace("_", " ").strip().casefold() not in self.namespaces

    def _start(self, element: str, attributes: dict[str, str]) -> None:
        if not self._open and element != "mediawiki":
            raise InputError(
                f"{self._name} is not a MediaWiki XML export (its root is <{element}>): give "
                "another file in corpus.sources"
            )
        self._open.append(element)
        self._characters.clear()
        if element == "page":
            self._title = self._text = ""

    def _end(self, element: str) -> None:
        content = "".join(self._characters)
        if element == "namespace" and content:
            self.namespaces.add(content.casefold())
        elif element == "title":
            self._title = content
        elif element == "text":
            self._text = content
        elif element == "page":
            self._pages.append(Page(self._title, self._text))
        self._open.pop()
        self._characters.clear()


class CleanedPage(NamedTuple):
    """Text of one page, a paragraph, heading or list item a line, and whether it was parsed by paragraphs."""

    text: str
    in_pieces: bool = False


def is_redirect(wikitext: str) -> bool:
    """Whether a page only sends its reader to another one."""
    return wikitext[:100].lstrip()[:9].casefold() == "#redirect"


def clean_page(wikitext: str) -> CleanedPage:
    """Keep what a reader of the page would read in running text.

    Parameters
    ----------
    wikitext : str
        Wikitext of a page, XML entities already replaced. Markup may be left open anywhere.

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
    if len(wikitext) <= LONGEST_PAGE and (text := _parsed(wikitext)) is not None:
        return CleanedPage(text)
    short = (each for each in wikitext.split("\n\n") if len(each) <= LONGEST_PARAGRAPH)
    return CleanedPage("\n".join(filter(None, map(_parsed, short))), in_pieces=True)


def _parsed(wikitext: str) -> str | None:
    """Readable lines of a wikitext; None if the parser gives up on it."""
    try:
        lines = _shown(mwparserfromhell.parse(wikitext)).split("\n")
        readable = [_without_residue(" ".join(line.split())) for line in lines]
    except ParserError:
        return None
    return "\n".join(filter(None, readable))


def _shown(code: Wikicode) -> str:
    return "".join(map(_shown_node, code.nodes))


def _shown_node(node: Node) -> str:
    match node:
        case Text():
            return node.value
        case Wikilink():
            return _shown_link(node)
        case ExternalLink():
            return "" if node.title is None else _shown(node.title)
        case HTMLEntity():
            return html.unescape(str(node))  # unlike the node's own method, never a lone surrogate
        case Heading():
            return f"\n{_shown(node.title)}\n"
        case Tag():
            return _shown_element(node)
        case _:  # templates, their arguments, comments
            return ""


def _shown_link(link: Wikilink) -> str:
    target = str(link.title).strip()
    namespace, colon, _ = target.partition(":")
    if colon and (namespace.strip().casefold() in INVISIBLE_NAMESPACES or _is_language(namespace)):
        return ""
    if link.text is not None and link.text.nodes:
        return _shown(link.text)
    return target.removeprefix(":")


def _is_language(prefix: str) -> bool:
    """Whether a prefix leads to another language's Wikipedia, as ``de``, ``simple``, ``zh-tw``."""
    return prefix == "simple" or (
        prefix.islower() and prefix.isascii() and len(prefix.partition("-")[0]) in (2, 3)
    )


def _shown_element(element: Tag) -> str:
    name = str(element.tag).strip().lower()
    if name in DROPPED_ELEMENTS:
        return ""
    content = "" if element.contents is None else _shown(element.contents)
    # A list item in wiki markup has a line of its own already.
    breaks_line = name in LINE_BREAKING_ELEMENTS and not element.wiki_markup
    return f"\n{content}\n" if breaks_line else content


def _without_residue(line: str) -> str:
    if line.startswith(("|", "{|")):  # row of a table that a template opens or nothing closes
        return ""
    if "<" in line or "-->" in line:
        line = _STRAY_TAG.sub("", line)
    if "__" in line:
        line = _BEHAVIOUR_SWITCH.sub("", line)
    if _has_mark(line):
        # Often intact, but within something that is not: alone, it can be parsed.
        line = _STRAY_MEDIA_LINK.sub("", _shown(mwparserfromhell.parse(line)))
        while _has_mark(line):  # taking out a mark may join the halves of another
            for mark in _PAIRED_MARKS:
                line = line.replace(mark, "")
    if line.startswith("==") and line.endswith("=="):
        line = line.strip("=")
    return " ".join(line.split())


def _has_mark(line: str) -> bool:
    return any(mark in line for mark in _PAIRED_MARKS)
