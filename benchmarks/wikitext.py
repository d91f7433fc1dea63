"""An export of any size from real pages, and a plain parser's way through it."""

import lzma
from pathlib import Path

from benchmarks.contest import ROOT
from benchmarks.ours import Work
from shape_of_learning.corpus.export import Export
from shape_of_learning.corpus.wikitext import is_redirect

# The first 10^6 bytes of enwik8, beside the repository and not in it.
ENWIK6 = ROOT.parent / "shared" / "data" / "enwik6.xz"
FEW_PAGES = """\
<mediawiki>
  <page>
    <title>Point</title>
    <revision><text>A '''point''' has no [[dimension (space)|dimension]].</text></revision>
  </page>
  <page>
    <title>Line</title>
    <revision><text>A '''line'''{{ref}} has one.</text></revision>
  </page>
</mediawiki>
"""


def write_tiled(raw: bytes, size: int, path: Path) -> None:
    """Repeat the whole pages of an export until they make `size` bytes or a little more.

    They are never all in memory: a child's peak counts from what its parent has had.
    """
    first, last = raw.index(b"<page>"), raw.rindex(b"</page>") + len(b"</page>\n")
    with path.open("wb") as file:
        file.write(raw[:first])
        for _ in range(-(-size // (last - first))):
            file.write(raw[first:last])
        file.write(b"</mediawiki>\n")


def raw_pages(tiny: bool) -> bytes | None:
    """Return real pages, or a few made-up ones; None where the real ones are not at hand."""
    if tiny:
        return FEW_PAGES.encode()
    return lzma.decompress(ENWIK6.read_bytes()) if ENWIK6.exists() else None


def parsed_by_mwparserfromhell(export: str) -> Work:
    """Strip the markup of each article as mwparserfromhell's manual says, in one process."""
    import mwparserfromhell

    pages = Export([Path(export).read_bytes()], export).pages()
    texts = [page.text for page in pages if not is_redirect(page.text)]

    def work() -> dict[str, float]:
        kept = sum(len(mwparserfromhell.parse(text).strip_code()) for text in texts)
        return {"articles": len(texts), "characters": kept}

    return work
