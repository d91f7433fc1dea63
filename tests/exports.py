"""MediaWiki exports, written by the tests."""

from itertools import islice
from pathlib import Path
from pydoc_data.topics import topics
from xml.sax.saxutils import escape


def head_of(namespaces: dict[int, str]) -> str:
    """What an export begins with: its namespaces by their numbers."""
    named = "".join(
        f"<namespace key='{key}'>{name}</namespace>" for key, name in namespaces.items()
    )
    return (
        '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.3/" version="0.3" xml:lang="en">\n'
        f"<siteinfo><namespaces><namespace key='0' />{named}</namespaces></siteinfo>\n"
    )


HEAD = head_of({100: "Portal"})


def exported(
    *pages: tuple[str, str],
    closed: bool = True,
    head: str = HEAD,
    facts: dict[str, str] | None = None,
) -> bytes:
    """An export of pages, each a title and its wikitext; `facts` are elements of a page by its title."""
    body = "".join(
        f"<page><title>{escape(title)}</title><id>1</id>{(facts or {}).get(title, '')}"
        f"<revision><comment>no text</comment>"
        f'<text xml:space="preserve">{escape(text)}</text></revision></page>\n'
        for title, text in pages
    )
    return (head + body + "</mediawiki>\n" * closed).encode()


def write_export(path: Path, pages: dict[str, str]) -> None:
    """Write an export of pages by their titles."""
    path.write_bytes(exported(*pages.items()))


def pages(most: int | None = None) -> dict[str, str]:
    """Python's help texts, a page for each topic, the layout of which counts for wikitext."""
    return {
        title: "\n\n".join(" ".join(block.split()) for block in text.split("\n\n"))
        for title, text in islice(sorted(topics.items()), most)
    }
