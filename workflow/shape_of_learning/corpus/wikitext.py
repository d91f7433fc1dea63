"""The readable words of a page of wikitext."""

import html
import re
from dataclasses import dataclass

from mwparserfromhell.nodes import ExternalLink, Heading, HTMLEntity, Node, Tag, Text, Wikilink
from mwparserfromhell.wikicode import Wikicode

from shape_of_learning.corpus.bounded_parser import BeyondParser, parse

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

# Taking out a mark may join the halves of another. So often in turn they are in no page that people write.
_ROUNDS = 10
_CHARACTERS_OF_MARKS = str.maketrans("", "", "".join(_PAIRED_MARKS))


@dataclass(frozen=True)
class CleanedPage:
    """Text of one page.

    Attributes
    ----------
    text : str
        One paragraph, heading or list item a line, without blank lines; empty if nothing is left.
    in_pieces : bool
        True if the page as a whole was beyond the parser.
    left_out : int
        Paragraphs that were beyond it, too.
    """

    text: str
    in_pieces: bool = False
    left_out: int = 0


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
    then an article about HTML meant it.

    A page whose markup takes more work than :func:`.bounded_parser.parse` allows is parsed by paragraphs
    instead; only a paragraph for which that is true again is left out. The time that a page takes grows with
    its length alone.
    """
    try:
        return CleanedPage(_readable(wikitext))
    except BeyondParser:
        pieces, left_out = [], 0
        for paragraph in wikitext.split("\n\n"):
            try:
                pieces.append(_readable(paragraph))
            except BeyondParser:
                left_out += 1
        return CleanedPage("\n".join(filter(None, pieces)), True, left_out)


def _readable(wikitext: str) -> str:
    lines = _shown(parse(wikitext)).split("\n")
    return "\n".join(filter(None, (_without_residue(" ".join(line.split())) for line in lines)))


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
        line = _STRAY_MEDIA_LINK.sub("", _shown(parse(line)))
        for _ in range(_ROUNDS):
            for mark in _PAIRED_MARKS:
                line = line.replace(mark, "")
        if _has_mark(line):
            line = line.translate(_CHARACTERS_OF_MARKS)
    if line.startswith("==") and line.endswith("=="):
        line = line.strip("=")
    return " ".join(line.split())


def _has_mark(line: str) -> bool:
    return any(mark in line for mark in _PAIRED_MARKS)
