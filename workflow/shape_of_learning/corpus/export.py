"""Pages of a MediaWiki XML export, read as a stream."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from xml.parsers import expat

from shape_of_learning.errors import InputError

# What a MediaWiki installation has before anyone configures it; an export lists its own on top.
STANDARD_NAMESPACES = frozenset(
    name.casefold()
    for subject in ("User", "Project", "File", "Image", "MediaWiki", "Template", "Help", "Category")
    for name in (subject, f"{subject} talk")
) | {"media", "special", "talk"}

_CUT_OFF = {
    expat.errors.codes[error]
    for error in (
        expat.errors.XML_ERROR_NO_ELEMENTS,
        expat.errors.XML_ERROR_UNCLOSED_TOKEN,
        expat.errors.XML_ERROR_PARTIAL_CHAR,
    )
}


@dataclass(frozen=True)
class Page:
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
            if final and self._open and error.code in _CUT_OFF:
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
