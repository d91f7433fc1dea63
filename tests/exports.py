"""MediaWiki exports, written by the tests."""

from itertools import islice
from pathlib import Path
from pydoc_data.topics import topics
from xml.sax.saxutils import escape

HEAD = (
    '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.3/" version="0.3" xml:lang="en">\n'
    "<siteinfo><namespaces><namespace key='0' /><namespace key='100'>Portal</namespace>"
    "</namespaces></siteinfo>\n"
)


def exported(*pages: tuple[str, str], closed: bool = True) -> bytes:
    """An export of pages, each a title and its wikitext."""
    body = "".join(
        f"<page><title>{escape(title)}</title><id>1</id><revision><comment>no text</comment>"
        f'<text xml:space="preserve">{escape(text)}</text></revision></page>\n'
        for title, text in pages
    )
    return (HEAD + body + "</mediawiki>\n" * closed).encode()


def write_export(path: Path, pages: dict[str, str]) -> None:
    """Write an export of pages by their titles."""
    path.write_bytes(exported(*pages.items()))


def pages(most: int | None = None) -> dict[str, str]:
    """Python's help texts, a page for each topic, the layout of which counts for wikitext."""
    return {
        title: "\n\n".join(" ".join(block.split()) for block in text.split("\n\n"))
        for title, text in islice(sorted(topics.items()), most)
    }
