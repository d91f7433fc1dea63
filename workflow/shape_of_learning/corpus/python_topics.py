"""The language reference inside every CPython, as a small MediaWiki export.

It is English prose that needs no network. Written as wikitext, it takes the way of Wikipedia
through the cleaning: what the reference lays out with characters becomes markup, which is then
removed.
"""

import pydoc
import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from pydoc_data.topics import topics
from xml.sax.saxutils import XMLGenerator
from xml.sax.xmlreader import AttributesImpl

SCHEMA = "http://www.mediawiki.org/xml/export-0.3/"
NAMESPACES = {
    -2: "Media",
    -1: "Special",
    0: "",
    1: "Talk",
    6: "Image",
    10: "Template",
    14: "Category",
}
CATEGORY = "[[Category:Python language reference]]"
# The topics carry no date of their own, and the export is to be the same on every day.
TIMESTAMP = "2000-01-01T00:00:00Z"

_UNDERLINE_LEVELS = {"*": 2, "=": 3, "-": 4, "~": 5, "^": 5}
_UNDERLINE = re.compile(r"([*=\-~^])\1{2,}")
_LIST_ITEM = re.compile(r"\s*(\*|\d+\.) ")
_INLINE = (
    (re.compile(r"\*\*(\w[^*\n]*)\*\*"), r"'''\1'''"),
    (re.compile(r"(?<![*\w])\*(\w[^*\n]*)\*(?![*\w])"), r"''\1''"),
    (re.compile(r'"([^"\n]+)"'), r"<tt><nowiki>\1</nowiki></tt>"),
    (re.compile(r"<(https?://[^>\s]+)>"), r"[\1]"),
    (re.compile(r"(New|Added|Changed|Deprecated) in version ([\d.]+)[.:]"), r"{{version|\1|\2}}"),
)


def pages() -> Iterator[tuple[str, str]]:
    """Yield title and wikitext: one page per topic, one redirect per other name of a topic.

    Long topics contain shorter ones. A paragraph is kept where it comes first: text that is there
    twice gives pairs of nearly equal hidden states, which no estimator of dimension is made for.
    """
    seen: set[str] = set()
    for title, text in sorted(topics.items()):
        paragraphs = {" ".join(paragraph.split()): paragraph for paragraph in text.split("\n\n")}
        new = [paragraph for words, paragraph in paragraphs.items() if words not in seen]
        seen.update(paragraphs)
        yield title, "\n\n".join([wikitext("\n\n".join(new)), CATEGORY]) + "\n"
    for alias in sorted(pydoc.Helper.topics):
        if (topic := _meant(alias)) in topics:
            yield alias, f"#REDIRECT [[{topic}]]"


def _meant(alias: str) -> str:
    """Topic that ``help(alias)`` shows."""
    entry = pydoc.Helper.topics.get(alias, alias)  # another alias, or a topic and what is related
    if isinstance(entry, tuple):
        return entry[0]
    return entry if entry == alias else _meant(entry)


def wikitext(text: str) -> str:
    """Translate a topic's layout into wiki markup.

    Parameters
    ----------
    text : str
        reStructuredText rendered as plain text, as in `pydoc_data.topics`.

    Returns
    -------
    str
        Underlined lines as headings, boxes drawn with characters as tables, indented blocks after a
        colon as ``<pre>``, emphasis and code as wiki and HTML markup, paragraphs on one line.
    """
    blocks = [
        list(lines)
        for blank, lines in groupby(text.split("\n"), lambda line: not line.strip())
        if not blank
    ]
    written: list[str] = []
    literal_beyond: int | None = None  # indentation of a paragraph that announces a literal block
    for block in blocks:
        indentation = _indentation(block[0])
        announced = literal_beyond is not None and indentation > literal_beyond
        if (announced and not _LIST_ITEM.match(block[0])) or "::=" in block[0]:
            written.append("<pre>\n" + "\n".join(block) + "\n</pre>")
            continue
        written.append(_block(block))
        literal_beyond = indentation if block[-1].endswith(":") else None
    return "\n\n".join(written)


def write_export(target: Path, content: Mapping[str, str]) -> None:
    """Write pages as MediaWiki export 0.3.

    Parameters
    ----------
    target : Path
        File to write.
    content : mapping of str to str
        Wikitext by title.
    """
    with target.open("w", encoding="utf-8", newline="\n") as file:
        xml = XMLGenerator(file, "utf-8", short_empty_elements=True)
        _start(xml, "mediawiki", **{"xmlns": SCHEMA, "version": "0.3", "xml:lang": "en"})
        _start(xml, "siteinfo")
        for name, value in (
            ("sitename", "Python"),
            ("base", "https://docs.python.org/3/reference/"),
            ("generator", "shape_of_learning"),
            ("case", "case-sensitive"),
        ):
            _element(xml, name, value)
        _start(xml, "namespaces")
        for key, value in NAMESPACES.items():
            _element(xml, "namespace", value, key=str(key))
        xml.endElement("namespaces")
        xml.endElement("siteinfo")
        for number, (title, text) in enumerate(content.items(), start=1):
            xml.characters("\n")
            _page(xml, number, title, text)
        xml.endElement("mediawiki")
        file.write("\n")


def _start(xml: XMLGenerator, element: str, **attributes: str) -> None:
    xml.startElement(element, AttributesImpl(attributes))


def _page(xml: XMLGenerator, number: int, title: str, text: str) -> None:
    _start(xml, "page")
    _element(xml, "title", title)
    _element(xml, "id", str(number))
    _start(xml, "revision")
    _element(xml, "id", str(number))
    _element(xml, "timestamp", TIMESTAMP)
    _start(xml, "contributor")
    _element(xml, "username", "Python Software Foundation")
    _element(xml, "id", "1")
    xml.endElement("contributor")
    _element(xml, "text", text, **{"xml:space": "preserve"})
    xml.endElement("revision")
    xml.endElement("page")


def _element(xml: XMLGenerator, name: str, content: str, **attributes: str) -> None:
    _start(xml, name, **attributes)
    xml.characters(content)
    xml.endElement(name)


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _block(lines: list[str]) -> str:
    stripped = [line.strip() for line in lines]
    if stripped[0].startswith("+-"):
        return _table(stripped)
    if len(stripped) >= 2 and (mark := _UNDERLINE.fullmatch(stripped[1])):
        edge = "=" * _UNDERLINE_LEVELS[mark[1]]
        heading = f"{edge} {_inline(stripped[0])} {edge}"
        return "\n".join([heading, _block(lines[2:])] if lines[2:] else [heading])
    if stripped[0].startswith((">>>", "...")):
        return "<pre>\n" + "\n".join(lines) + "\n</pre>"
    # An indented line would be preformatted in a wiki, and a line break within a paragraph is kept
    # by some readers: one line it is.
    return _inline(" ".join(stripped))


def _table(lines: list[str]) -> str:
    rows = [
        "|-\n| " + " || ".join(_inline(cell.strip()) for cell in line.strip("|").split("|"))
        for line in lines
        if line.startswith("|") and not line.startswith(("|=", "|-"))
    ]
    return "\n".join(["{|", *rows, "|}"])


def _inline(text: str) -> str:
    for pattern, markup in _INLINE:
        text = pattern.sub(markup, text)
    return text
