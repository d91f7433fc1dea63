"""MediaWiki exports that tests write."""

from itertools import islice
from pathlib import Path
from pydoc_data.topics import topics
from xml.sax.saxutils import escape


def format_head(namespaces: dict[int, str]) -> str:
    """Return the beginning of an export, with its namespaces by their numbers."""
    elements = "".join(
        f"<namespace key='{key}'>{name}</namespace>" for key, name in namespaces.items()
    )
    return (
        '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.3/" version="0.3" xml:lang="en">\n'
        f"<siteinfo><namespaces><namespace key='0' />{elements}</namespaces></siteinfo>\n"
    )


HEAD = format_head({100: "Portal"})


def make_export(
    *pages: tuple[str, str],
    has_end: bool = True,
    head: str = HEAD,
    facts: dict[str, str] | None = None,
) -> bytes:
    """Return an export of pages (title, wikitext); `facts` has further elements of a page by its title."""
    body = "".join(
        f"<page><title>{escape(title)}</title><id>1</id>{(facts or {}).get(title, '')}"
        f"<revision><comment>no text</comment>"
        f'<text xml:space="preserve">{escape(text)}</text></revision></page>\n'
        for title, text in pages
    )
    return (head + body + "</mediawiki>\n" * has_end).encode()


def write_export(path: Path, pages: dict[str, str]) -> None:
    """Write an export of pages by their titles."""
    path.write_bytes(make_export(*pages.items()))


def make_pages(limit: int | None = None) -> dict[str, str]:
    """Return Python's help texts, a page for each topic; their layout is read as wikitext."""
    return {
        title: "\n\n".join(" ".join(block.split()) for block in text.split("\n\n"))
        for title, text in islice(sorted(topics.items()), limit)
    }
