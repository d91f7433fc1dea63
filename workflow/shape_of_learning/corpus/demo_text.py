"""The language reference inside every CPython as plain prose, for runs without a network.

Its text depends on the version of Python, and on nothing else.
"""

import re
from itertools import groupby
from pydoc_data.topics import topics

_UNDERLINE = re.compile(r"([*=\-~^])\1{2,}")
_LIST_ITEM = re.compile(r"\s*(\*|\d+\.) ")
# What a line lays out with characters: emphasis and code leave their words; addresses, notes on versions,
# bullets and marks of a wiki go.
_LAYOUT = [
    (re.compile(pattern), kept)
    for pattern, kept in (
        (r"\*\*(\w[^*\n]*)\*\*", r"\1"),
        (r"(?<![*\w])\*(\w[^*\n]*)\*(?![*\w])", r"\1"),
        (r'"([^"\n]+)"', r"\1"),
        (r"<https?://[^>\s]+>|https?://\S*[\w/]", ""),
        (r"(New|Added|Changed|Deprecated) in version [\d.]+[.:]", ""),
        (r"^\* |\{\{.*?\}\}|\[\[|\]\]|''|={3,}", ""),
    )
]


def demo_text() -> str:
    """Return all topics of the reference: a paragraph a line, topics apart by a blank line.

    Long topics contain shorter ones. A paragraph is kept where it comes first: text that is there twice
    gives pairs of nearly equal hidden states, which no estimator of dimension is made for.
    """
    seen: set[str] = set()
    articles = []
    for _, text in sorted(topics.items()):
        paragraphs = {" ".join(paragraph.split()): paragraph for paragraph in text.split("\n\n")}
        new = [paragraph for words, paragraph in paragraphs.items() if words not in seen]
        seen.update(paragraphs)
        lines = prose("\n\n".join(new))
        if lines:
            articles.append("".join(f"{line}\n" for line in lines))
    return "\n".join(articles)


def prose(text: str) -> list[str]:
    """List the headings, paragraphs and list items of a topic, without code, grammar and tables.

    Parameters
    ----------
    text : str
        reStructuredText rendered as plain text, as in `pydoc_data.topics`.
    """
    blocks = [
        list(lines)
        for blank, lines in groupby(text.split("\n"), lambda line: not line.strip())
        if not blank
    ]
    found: list[str] = []
    literal_beyond: int | None = None  # indentation of a paragraph that announces a literal block
    for block in blocks:
        indentation = len(block[0]) - len(block[0].lstrip(" "))
        announced = literal_beyond is not None and indentation > literal_beyond
        if (announced and not _LIST_ITEM.match(block[0])) or "::=" in block[0]:
            continue
        found += _paragraphs([line.strip() for line in block])
        literal_beyond = indentation if block[-1].endswith(":") else None
    return list(filter(None, map(_plain, found)))


def _paragraphs(lines: list[str]) -> list[str]:
    """Paragraphs of a block: a heading, what follows it, or one paragraph; none of a table or a session."""
    if len(lines) >= 2 and _UNDERLINE.fullmatch(lines[1]):
        return [lines[0], *_paragraphs(lines[2:])]
    if not lines or lines[0].startswith(("+-", ">>>", "...")):
        return []
    return [" ".join(lines)]


def _plain(line: str) -> str:
    for pattern, kept in _LAYOUT:
        line = pattern.sub(kept, line)
    return " ".join(line.split())
