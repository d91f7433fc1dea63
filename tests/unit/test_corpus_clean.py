"""A corpus file becomes text and alphabet, whatever the number of processes."""

import hashlib
import json
import lzma
from collections import Counter
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from exports import HEAD, exported
from shape_of_learning.corpus.clean import PAGES_AT_A_TIME, clean
from shape_of_learning.corpus.fetch import prose
from shape_of_learning.corpus.mediawiki import Export, Page
from shape_of_learning.errors import InputError

ENWIK6 = Path(__file__).parents[3] / "shared" / "data" / "enwik6.xz"


def prepared(folder: Path, content: bytes, format="mediawiki", size=205, processes=1):
    (folder / "source").write_bytes(content)
    files = folder / "source", folder / "text", folder / "alphabet.json"
    description = clean(*files, format=format, alphabet_size=size, processes=processes)
    return files[1].read_bytes().decode(), description


@pytest.fixture(scope="module")
def enwik6() -> bytes:
    if not ENWIK6.exists():
        pytest.skip("the first 10^6 bytes of enwik8 are not at ../shared/data/enwik6.xz")
    return lzma.decompress(ENWIK6.read_bytes())


def test_only_articles_are_kept_in_their_order(tmp_path):
    text, description = prepared(
        tmp_path,
        exported(
            ("Anarchism", "'''a'''\n\nb"),
            ("Template:Box", "c"),
            ("Portal:Science", "d"),
            ("AmericanSamoa", "#REDIRECT [[American Samoa]]"),
            ("Picture", "[[Image:e.jpg]]"),
            ("Dune: Messiah", "f &amp;mdash; <u>g</u>"),
        ),
    )
    assert text == "a\nb\n\nf &mdash; g\n"
    counts = {"kept": 2, "empty": 1, "redirects": 1, "other_namespaces": 2}
    assert description["pages"] == counts | {"in_pieces": 0, "truncated": 0}


def test_wherever_a_file_is_cut_the_text_up_to_there_is_read():
    text = "Über <b>&amp; 漢字 😀</b> end"
    whole = exported(("A", "first"), ("B", text))
    begin = whole.index(b"\xc3\x9cber")
    end = whole.index(b"</text>", begin)
    for cut in range(begin, len(whole)):
        *_, page = Export([whole[: cut - 3], whole[cut - 3 : cut]], "cut").pages()
        shown = whole[begin:cut].decode(errors="ignore")
        if cut >= end:
            assert page.text == text
        else:
            # Of an entity that is cut, nothing is left.
            known = escape(page.text)
            assert shown.startswith(known)
            assert len(shown) - len(known) < len("&amp;")
            assert not page.whole
    pages = list(Export([exported(("A", "first"), closed=False) + b"<page><ti"], "cut").pages())
    assert pages == [Page("A", "first"), Page("", "", whole=False)]


@pytest.mark.parametrize(
    ("content", "format"),
    [
        *((content, "mediawiki") for content in (b"plain text", b"<html><p>a</p></html>", b"")),
        (HEAD.encode() + b"<page></a>", "mediawiki"),
        ("déjà vu".encode("latin-1"), "text"),
        (b"", "text"),
    ],
)
def test_what_is_not_of_its_format_is_refused_and_nothing_is_written(tmp_path, content, format):
    with pytest.raises(InputError, match=r"source.*corpus\.sources"):
        prepared(tmp_path, content, format)
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


@pytest.mark.parametrize("source_format", ["mediawiki", "text"])
def test_the_alphabet_counts_the_text(tmp_path, source_format):
    words = "abc ]^-\\ é漢" * 3 + "漢é" * 2 + " x]"
    content = words.encode() if source_format == "text" else exported(("A", words))
    text, description = prepared(tmp_path, content, source_format, size=8)
    kept = {entry["character"]: entry["count"] for entry in description["alphabet"]}
    assert kept == Counter(text)
    assert len(kept) == 8
    dropped = {entry["character"]: entry["count"] for entry in description["dropped"]["each"]}
    assert len(dropped) == description["dropped"]["distinct"]
    assert Counter(words + "\n") == Counter(kept) + Counter(dropped)
    assert description["text"]["sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert description["source"]["sha256"] == hashlib.sha256(content).hexdigest()
    assert json.loads((tmp_path / "alphabet.json").read_text("utf-8")) == description


@pytest.mark.parametrize(
    ("content", "size", "expected"),
    [
        (b"  [[a]] &amp;\r\nb\rc\n\n\n''d''", 205, "  [[a]] &amp;\nb\nc\n\n\n''d''\n"),
        ("aé漢".encode()[:-1], 205, "aé\n"),  # it ends within a character
        ("cccbbaaéd".encode(), 4, "cccbbaa\n"),  # of equal counts the lower code points are kept
    ],
)
def test_text_is_taken_as_it_is_but_for_the_ends_of_lines_and_rare_characters(
    tmp_path, content, size, expected
):
    assert prepared(tmp_path, content, "text", size)[0] == expected


def test_processes_do_not_change_a_byte(tmp_path):
    # Articles of very different length, enough of them for several processes.
    sentence = "There are [[word|words]], and ''many'' more of them that need no parsing. " * 3
    pages = [(f"Page {i}", f"'''{i}''' " + sentence * (7919 * i % 401)) for i in range(40)]
    content = exported(*pages)[:-1000]
    assert len(pages) > PAGES_AT_A_TIME
    one, description = prepared(tmp_path, content, processes=1)
    two, description_of_two = prepared(tmp_path, content, processes=2)
    assert (one, description) == (two, description_of_two)


def test_real_wikitext_leaves_no_markup(tmp_path, enwik6):
    text, description = prepared(tmp_path, enwik6)
    for mark in ("[[", "]]", "{{", "}}", "{|", "<ref", "'''", "''", "&amp;", "thumb|", "=="):
        assert mark not in text
    counts = {"kept": 45, "empty": 0, "redirects": 127, "other_namespaces": 0}
    assert description["pages"] == counts | {"in_pieces": 0, "truncated": 1}
    assert text.startswith("Anarchism originated as a term of abuse first used against early")
    assert text.count("\n\n") == 44
    assert "\n\n\n" not in text
    assert description["dropped"]["characters"] < 0.001 * len(text)


def test_layout_of_a_topic_goes_and_words_stay():
    layout = (
        'Title\n*****\n\nThe "if" is\n*not* so:\n\n   if x:\n\n   >>> y\n\n* **Item** <https://a.b>\n\n'
        "+--+\n| a |\n\nNew in version 3.1: At https://c.d/e.\n"
    )
    assert prose(layout) == ["Title", "The if is not so:", "Item", "At ."]
