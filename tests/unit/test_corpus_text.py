"""A corpus file becomes the running text of its pages, an alphabet, and windows."""

import hashlib
import json
import lzma
import random
from collections import Counter
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
import pytest

from exports import HEAD, exported
from shape_of_learning.corpus import mediawiki
from shape_of_learning.corpus.clean import PAGES_AT_A_TIME, clean
from shape_of_learning.corpus.fetch import demo_text
from shape_of_learning.corpus.mediawiki import Export, Page, clean_page, is_redirect
from shape_of_learning.corpus.windows import held_out_part, read_text, sample_windows, training_part
from shape_of_learning.errors import InputError
from shape_of_learning.plan.texts import Corpus
from shape_of_learning.random_streams import random_stream


def prepared(folder: Path, content: bytes, format="mediawiki", size=205, processes=1):
    (folder / "source").write_bytes(content)
    files = folder / "source", folder / "text", folder / "alphabet.json"
    description = clean(*files, format=format, alphabet_size=size, processes=processes)
    return files[1].read_bytes().decode(), description


def test_only_articles_are_kept_in_their_order(tmp_path):
    pages = [("Anarchism", "'''a'''\n\nb"), ("Template:Box", "c"), ("Portal:Science", "d")]
    pages += [("AmericanSamoa", "#REDIRECT [[American Samoa]]"), ("Picture", "[[Image:e.jpg]]")]
    pages += [("Dune: Messiah", "f &amp;mdash; <u>g</u>")]
    text, description = prepared(tmp_path, exported(*pages))
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


def test_real_wikitext_leaves_no_markup(tmp_path, real_text):
    text, description = prepared(tmp_path, lzma.decompress(real_text.read_bytes()))
    for mark in ("[[", "]]", "{{", "}}", "{|", "<ref", "'''", "''", "&amp;", "thumb|", "=="):
        assert mark not in text
    counts = {"kept": 45, "empty": 0, "redirects": 127, "other_namespaces": 0}
    assert description["pages"] == counts | {"in_pieces": 0, "truncated": 1}
    assert text.startswith("Anarchism originated as a term of abuse first used against early")
    assert text.count("\n\n") == 44
    assert "\n\n\n" not in text
    assert description["dropped"]["characters"] < 0.001 * len(text)


def test_the_text_inside_python_is_sentences_each_once():
    articles = [article.splitlines() for article in demo_text().split("\n\n")]
    lines = [line for article in articles for line in article]
    assert len(articles) > 50
    assert len({*lines}) == len(lines) > 1000
    assert all(line.endswith((".", ":")) and "::=" not in line.split() for line in lines)


MARKS = ("[[", "]]", "{{", "}}", "{|", "|}", "'''", "''", "<ref", "thumb|", "&amp;", "__TOC__")


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("a {{box|b={{c}}|d}} e", "a e"),
        ("a\n{| class=x\n! b\n|-\n| c || d\n{|\n| e\n|}\n|}\nf", "a\nf"),
        ("a<ref>b [[c]]</ref> d<ref name=e /> f", "a d f"),
        ("a <math>\\frac{b}{c}</math> d", "a d"),
        ("a\n<gallery>\nImage:b.jpg|c\n</gallery>\nd", "a\nd"),
        ("a [[Category:b|c]]", "a"),
        ("a\n[[de:b]]\n[[zh-min-nan:c]]\n[[simple:d]]", "a"),
        ("See [[:Category:a]] and [[:de:b|c]]", "See Category:a and c"),
        ("[[Dune: Messiah]], [[Terminator 2: Judgment Day|T2]]", "Dune: Messiah, T2"),
        ("[[a]] [[b|c]] [[d|''e'' f]]s", "a c e fs"),
        ("[http://a.b/c?d=e f g] [http://h.i] http://j.k l", "f g l"),
        ("__NOTOC__ a __TOC__\n__NOEDITSECTION__\nb", "a\nb"),
        ("'''a''' ''b'' '''''c''''' d's", "a b c d's"),
        ("== a ==\nb\n===''c''===\nd", "a\nb\nc\nd"),
        ("* a\n** b\n# c\n:d\n; e : f\n----\ng", "a\nb\nc\nd\ne f\ng"),
        ("a<br>b<br/>c <p>d</p> <font color=red>e</font> H<sub>2</sub>O", "a\nb\nc\nd\ne H2O"),
        ("caf&eacute; &mdash; &#8364;&#x20AC; &nbsp;&lt;a", "café — €€ <a"),
        ("&lt; <u>a</u> &amp;lt;", "< a &lt;"),
        ("&#xD800;a", "\N{REPLACEMENT CHARACTER}a"),
        ("<nowiki>'''a''' [[b]] c</nowiki>", "a b c"),
        ("a\n\n\n\nb \t c\N{NO-BREAK SPACE}d", "a\nb c d"),
        ("1 < 2 and x > y, a = b == c", "1 < 2 and x > y, a = b == c"),
        # What is left open.
        ("'''a''' is {{box\n| b = [[c|d]]", "a is box"),
        ("a [http://b.c", "a ["),
        ("a [[Image:b.jpg|thumb|c", "a"),
        ("a\n{| class=x\n|-\n| b || c", "a"),
        ("a &am", "a &am"),
        ("a }} b ]] c |} d </div> e --> f", "a b c d e f"),
        ("[''[a]'']", "a"),
    ],
)
def test_markup_goes_and_words_stay(wikitext, text):
    assert clean_page(wikitext).text == text


def test_a_page_that_is_too_long_for_the_parser_is_read_by_paragraphs(monkeypatch):
    monkeypatch.setattr(mediawiki, "LONGEST_PAGE", 1000)
    monkeypatch.setattr(mediawiki, "LONGEST_PARAGRAPH", 500)
    page = clean_page("First paragraph.\n\n" + "{{a|b " * 200 + "\n\nLast '''paragraph'''.")
    assert page == ("First paragraph.\nLast paragraph.", True)


def test_no_arrangement_of_markup_raises():
    rng = random.Random(0)
    pieces = [*MARKS, "<", ">", "</", "<b>", "</b>", "<table>", "|", "=", "\n", "*", ":", ";", "&"]
    pieces += ["#65;", "http://a.b", "[", "]", "{", "}", "Image:", "a", "b c", "-->", "<!--", "'"]
    for _ in range(1500):
        cleaned = clean_page("".join(rng.choices(pieces, k=40))).text
        cleaned.encode()
        assert not any(mark in cleaned for mark in MARKS[:8])


def test_a_redirect_is_recognised_in_any_case():
    texts = "#REDIRECT [[a]]", "\n #redirect[[a]]", "a #REDIRECT [[b]]"
    assert list(map(is_redirect, texts)) == [True, True, False]


ALL_DIFFERENT = "".join(chr(0x4E00 + i) for i in range(1003))


def starts(windows):
    """Where they are: no character of the text is there twice."""
    return [ALL_DIFFERENT.index(window[0]) for window in windows]


def test_windows_are_aligned_and_never_drawn_twice_in_an_order_that_the_stream_decides():
    windows = sample_windows(ALL_DIFFERENT, 100, 10, random_stream(1, "windows"))
    drawn = starts(windows)
    assert windows == [ALL_DIFFERENT[start : start + 10] for start in drawn]
    assert sorted(drawn) == list(range(0, 1000, 10)) != drawn
    assert sample_windows(ALL_DIFFERENT, 5, 10, random_stream(1, "windows")) == windows[:5]
    assert sample_windows(ALL_DIFFERENT, 100, 10, random_stream(2, "windows")) != windows


def test_a_corpus_too_small_is_refused_with_what_to_change():
    with pytest.raises(InputError) as failure:
        sample_windows(
            ALL_DIFFERENT, 101, 10, np.random.default_rng(0), corpus="results/corpus/text.txt"
        )
    for named in ("results/corpus/text.txt", "100 windows of 10", "101", "sampling.windows"):
        assert named in str(failure.value)


def test_text_is_read_without_a_change_and_a_file_that_is_no_text_is_refused(tmp_path):
    content = "a\r\nb\n\x0cc\u2028d\n"
    (tmp_path / "text").write_bytes(content.encode())
    assert read_text(tmp_path / "text") == content
    (tmp_path / "text").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="text is not UTF-8"):
        read_text(tmp_path / "text")


@pytest.mark.parametrize("trained_on", [0, 953, 954, 970, 1003])
@pytest.mark.parametrize("length", [1, 7, 10, 50, 51])
def test_held_out_windows_reach_to_the_end_and_no_training_text_into_them(length, trained_on):
    training, held_out = (
        training_part(ALL_DIFFERENT),
        held_out_part(ALL_DIFFERENT, length, trained_on),
    )
    assert len(training) == 953  # 1003 less a twentieth
    assert ALL_DIFFERENT.startswith(training)
    assert ALL_DIFFERENT.endswith(held_out)
    start = len(ALL_DIFFERENT) - len(held_out)
    assert start >= max(953, trained_on)
    assert len(held_out) % length == 0
    assert start - max(953, trained_on) < length


def test_a_file_is_a_source_without_an_entry(tmp_path):
    file = tmp_path / "my text.v2.txt"
    file.write_text("a text")
    corpus = Corpus(
        source=str(file), sources={"other": {"builtin": "python_topics", "format": "text"}}
    )
    assert corpus.source == "my_text_v2"
    assert corpus.sources["my_text_v2"].urls == [str(file)]
    assert set(corpus.sources) == {"other", "my_text_v2"}
