"""A corpus file becomes the running text of its pages, an alphabet, and windows."""

import hashlib
import json
import logging
import lzma
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
import pytest
import yaml

from checkouts import REPOSITORY
from exports import HEAD, format_head, make_export
from shape_of_learning.corpus import mediawiki, open_marks, windows
from shape_of_learning.corpus.changes import read_removed_text
from shape_of_learning.corpus.clean import PAGES_AT_A_TIME, clean
from shape_of_learning.corpus.fetch import read_demo_text
from shape_of_learning.corpus.mediawiki import Export, Page, clean_page, is_redirect
from shape_of_learning.corpus.windows import (
    cut_held_out_part,
    draw_windows_of_file,
    read_held_out_part,
    read_text,
    sample_windows,
)
from shape_of_learning.errors import InputError
from shape_of_learning.plan.settings import Corpus
from shape_of_learning.random_streams import random_stream
from shape_of_learning.validation import validate_yaml


def prepare_text(folder: Path, content: bytes, format="mediawiki", size=205, processes=1):
    (folder / "source").write_bytes(content)
    files = folder / "source", folder / "text", folder / "alphabet.json"
    description = clean(*files, format=format, alphabet_size=size, processes=processes)
    return files[1].read_bytes().decode(), description


def test_only_articles_are_kept_in_their_order(tmp_path):
    pages = [("Anarchism", "'''a'''\n\nb"), ("Template:Box", "c"), ("Portal:Science", "d")]
    pages += [("AmericanSamoa", "#REDIRECT [[American Samoa]]"), ("Picture", "[[Image:e.jpg]]")]
    pages += [("Dune: Messiah", "f &amp;mdash; <u>g</u>")]
    text, description = prepare_text(tmp_path, make_export(*pages))
    assert text == "a\nb\n\nf &mdash; g\n"
    counts = {"kept": 2, "empty": 1, "redirects": 1, "other_namespaces": 2}
    assert description["pages"] == counts | {"in_pieces": 0, "truncated": 0}


def test_a_truncated_file_is_read_up_to_its_end():
    text = "Über <b>&amp; 漢字 😀</b> end"
    whole = make_export(("A", "first"), ("B", text))
    begin = whole.index(b"\xc3\x9cber")
    end = whole.index(b"</text>", begin)
    for cut in range(begin, len(whole)):
        *_, page = Export([whole[: cut - 3], whole[cut - 3 : cut]], "cut").read_pages()
        source = whole[begin:cut].decode(errors="ignore")
        if cut >= end:
            assert page.text == text
        else:
            # A truncated entity is dropped.
            text_so_far = escape(page.text)
            assert source.startswith(text_so_far)
            assert len(source) - len(text_so_far) < len("&amp;")
            assert not page.is_whole
    pages = list(
        Export([make_export(("A", "first"), has_end=False) + b"<page><ti"], "cut").read_pages()
    )
    assert pages == [Page("A", "first"), Page("", "", is_whole=False)]


@pytest.mark.parametrize(
    ("content", "format"),
    [
        *((content, "mediawiki") for content in (b"plain text", b"<html><p>a</p></html>", b"")),
        (HEAD.encode() + b"<page></a>", "mediawiki"),
        ("déjà vu".encode("latin-1"), "text"),
        (b"", "text"),
    ],
)
def test_a_file_of_another_format_is_refused_and_nothing_is_written(tmp_path, content, format):
    with pytest.raises(InputError, match=r"source.*corpus\.sources"):
        prepare_text(tmp_path, content, format)
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


@pytest.mark.parametrize("source_format", ["mediawiki", "text"])
def test_the_alphabet_counts_the_text(tmp_path, source_format):
    words = "abc ]^-\\ é漢" * 3 + "漢é" * 2 + " x]\n"
    content = words.encode() if source_format == "text" else make_export(("A", words))
    text, description = prepare_text(tmp_path, content, source_format, size=8)
    kept_counts = {entry["character"]: entry["count"] for entry in description["alphabet"]}
    assert kept_counts == Counter(text)
    assert len(kept_counts) == 8
    dropped_counts = {
        entry["character"]: entry["count"] for entry in description["dropped"]["each"]
    }
    assert len(dropped_counts) == description["dropped"]["distinct"]
    assert Counter(words) == Counter(kept_counts) + Counter(dropped_counts)
    assert description["text"]["sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert description["source"]["sha256"] == hashlib.sha256(content).hexdigest()
    assert json.loads((tmp_path / "alphabet.json").read_text("utf-8")) == description


@pytest.mark.parametrize(
    ("content", "size", "expected"),
    [
        (b"  [[a]] &amp;\r\nb\rc\n\n\n''d''", 205, "  [[a]] &amp;\nb\nc\n\n\n''d''"),
        ("aé漢".encode()[:-1], 205, "aé"),  # the last character is truncated
        (
            "cccbbaaéd".encode(),
            4,
            "cccbbaad",
        ),  # characters with equal counts: the lower code point is kept
    ],
)
def test_text_loses_only_carriage_returns_and_rare_characters(tmp_path, content, size, expected):
    assert prepare_text(tmp_path, content, "text", size)[0] == expected


def test_text_keeps_every_character_unless_its_source_has_an_alphabet(tmp_path, caplog):
    everything = "".join(map(chr, [*range(0x20, 0x7F), 9, 0x85, *range(0x4E00, 0x6E00)]))
    words = everything + "한국어 😀\u2028\u200b\ufffe\n"
    text, description = prepare_text(tmp_path, words.encode(), "text", size=None)
    assert text == words
    assert description["dropped"]["characters"] == 0
    assert (caplog.text, read_removed_text(tmp_path / "alphabet.json")) == ("", "")
    source = yaml.safe_load((REPOSITORY / "config/config.yaml").read_text())["corpus"]
    assert source["alphabet_size"] is None
    sizes = {name: entry.get("alphabet_size") for name, entry in source["sources"].items()}
    assert sizes == {"enwik8": 205, "enwik88": 205, "python_topics": None}


def test_losses_of_a_text_are_counted_and_reported(tmp_path, caplog):
    content = "\ufeffaab\r\naac\raa漢".encode()[:-1]
    with caplog.at_level(logging.WARNING):
        text, description = prepare_text(tmp_path, content, "text", size=2)
    assert text == "aa\naa\naa"
    assert description["dropped"]["characters"] == 2
    changes = {"line_ends": 2, "byte_order_mark": 1, "bytes_cut_off": 2}
    assert description["changed"] == changes
    losses = read_removed_text(tmp_path / "alphabet.json")
    for words in ("2 of 10 characters", "outside of an alphabet of 2", "last 2 bytes"):
        assert words in losses
        assert words in caplog.text
    for words in ("2 ends of lines", "byte order mark"):
        assert words in caplog.text
        assert words not in losses


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("a text\n".encode("utf-16"), "UTF-16"),
        ("a text\n".encode("utf-16-le"), "NUL characters"),
        (b"a\0b", "NUL characters"),
        (b"text \xff\xfe", "at byte 6"),
        (b"a" * (1 << 20) + "é".encode()[:1] + b"a", f"at byte {(1 << 20) + 1:,}"),
        (b" \n\t\r\n", "nothing but white space"),
        (b"", "no text"),
    ],
)
def test_a_file_that_is_no_text_is_refused_in_one_sentence(tmp_path, content, reason):
    with pytest.raises(InputError, match=reason) as refusal:
        prepare_text(tmp_path, content, "text")
    assert "\n" not in str(refusal.value)


def test_a_missing_or_special_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name, reason in {"pipe": "a pipe", "folder": "a folder", "none": "missing"}.items():
        files = tmp_path / name, tmp_path / "text", tmp_path / "alphabet.json"
        with pytest.raises(InputError, match=f"{name} is {reason}"):
            clean(*files, format="text")


MEMORY = """
import re, sys
from pathlib import Path
import numpy as np
from shape_of_learning.corpus.clean import clean
from shape_of_learning.corpus.windows import draw_windows_of_file
source, text, format, size = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
clean(source, text, text.with_suffix(".json"), format=format, alphabet_size=size or None)
draw_windows_of_file(text, 8, 512, np.random.default_rng(0))
print(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.parametrize(("format", "size"), [("text", 0), ("text", 9), ("mediawiki", 0)])
def test_memory_does_not_grow_with_a_text(tmp_path, format, size):
    line = "words of a text, once more with 漢字 and 😀, and a few more of them\n" * 20
    kilobytes = []
    for megabytes in (4, 12):
        number = megabytes * 1_000_000 // len(line.encode())
        content = (line * number).encode()
        if format == "mediawiki":
            content = make_export(*((f"Page {i}", line) for i in range(number)))
        source = tmp_path / f"{megabytes}"
        source.write_bytes(content)
        command = (sys.executable, "-c", MEMORY, source, tmp_path / "text", format, str(size))
        environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "workflow")}
        run = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        kilobytes.append(int(run.stdout))
    assert kilobytes[1] - kilobytes[0] < 7_000  # kB


def test_processes_do_not_change_a_byte(tmp_path):
    # Articles of very different length, enough of them for several processes.
    sentence = "There are [[word|words]], and ''many'' more of them that need no parsing. " * 3
    pages = [(f"Page {i}", f"'''{i}''' " + sentence * (7919 * i % 401)) for i in range(40)]
    content = make_export(*pages)[:-1000]
    assert len(pages) > PAGES_AT_A_TIME
    text, description = prepare_text(tmp_path, content, processes=1)
    text_of_two, description_of_two = prepare_text(tmp_path, content, processes=2)
    assert (text, description) == (text_of_two, description_of_two)


def test_real_wikitext_leaves_no_markup(tmp_path, real_text):
    text, description = prepare_text(tmp_path, lzma.decompress(real_text.read_bytes()))
    for mark in ("[[", "]]", "{{", "}}", "{|", "<ref", "'''", "''", "&amp;", "thumb|", "=="):
        assert mark not in text
    counts = {"kept": 45, "empty": 0, "redirects": 127, "other_namespaces": 0}
    assert description["pages"] == counts | {"in_pieces": 0, "truncated": 1}
    assert text.startswith("Anarchism originated as a term of abuse first used against early")
    assert text.count("\n\n") == 44
    assert "\n\n\n" not in text
    assert description["dropped"]["characters"] < 0.001 * len(text)


def test_the_text_inside_python_consists_of_different_sentences():
    articles = [article.splitlines() for article in read_demo_text().split("\n\n")]
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
        # Marks that are not closed.
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


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        # Header rows of a table that a template opens, and words that look like a header row.
        ('{{table}}\n! scope="col" | A !! B\n|-\n| c || d\n|}\ne', "e"),
        ("{{table}}\n! A\n! B\n|-\n| c\n|}\ne", "e"),
        ("|-\n\n!A\ne", "e"),
        ("a\n!Kung is a language.\n!!! is a band.", "a\n!Kung is a language.\n!!! is a band."),
        # A comment without an end hides the rest; a comment shown as code is no comment.
        ("a <!-- b --> c <!-- d\n\ne", "a c"),
        ("a <nowiki><!--</nowiki> b", "a b"),
        ("a <pre><!--</pre> b <!-- c", "a b"),
        # Other sites keep the words of their links, other languages do not.
        ("[[mw:Help|a]], [[rfc:1149|b]], [[doi:10.1/2|c]]", "a, b, c"),
        ("a\n[[tokipona:b]]\n[[be-x-old:c]]\n[[got:d]]", "a"),
    ],
)
def test_tables_comments_and_links_are_read_as_mediawiki_does(wikitext, text):
    assert clean_page(wikitext).text == text


def test_an_export_in_another_language_names_files_and_categories_in_its_language(tmp_path):
    head = format_head({6: "Fichier", 14: "Catégorie", 100: "Portail", -2: "Média"})
    pages = [("Ruisseau", "[[fichier : r.jpg|vignette|b]]\nUn [[eau|cours]].\n[[Catégorie:Eau]]")]
    pages += [("Mer", "Une [[Média:m.ogg|voix]] mer, [[:Catégorie:Eau|d'eau]]. [[Fichier:a|b")]
    # The header has neither another name of files nor switches of a page.
    pages += [("Lac", "[[Illustration:l.jpg|vignette|b]]Un lac.\n__AUCUN_SOMMAIRE__ __目次__")]
    pages += [("Portail:Eau", "c"), ("Rivière", "#REDIRECTION [[Ruisseau]]\n{{modèle}}")]
    pages += [("Fleuve", "Ailleurs."), ("Catégorie:Eau", "d"), ("Page: une", "e")]
    facts = {"Fleuve": '<ns>0</ns><redirect title="Mer" />', "Page: une": "<ns>102</ns>"}
    text, description = prepare_text(tmp_path, make_export(*pages, head=head, facts=facts))
    assert text == "Un cours.\n\nUne mer, d'eau.\n\nUn lac.\n"
    counts = {key: description["pages"][key] for key in ("kept", "redirects", "other_namespaces")}
    assert counts == {"kept": 3, "redirects": 2, "other_namespaces": 3}


OPEN = ["[[a|[[b|", "[[a|", "{{a|", "{{{a|", "{{a|[[b|", "{|\n|a\n", "<ref>a ", "<b><i>", "<div "]
OPEN += [
    "<a b='",
    "{",
    "[http://a.b c ",
    "''a ",
    "* ",
    "<!-- a ",
    "[[File:a|thumb|b ",
    "<nowiki>a",
    "*",
]


@pytest.mark.parametrize("mark", [*OPEN, *(f"alternating {mark}" for mark in OPEN[:4])])
def test_a_page_of_open_marks_is_cleaned_in_seconds(mark):
    closing = {"[": "]]", "{": "}}"} if mark.startswith("alternating ") else {}
    mark = mark.removeprefix("alternating ")
    page = (mark + closing.get(mark[0], "")) * (40_000 // len(mark)) + "\n\nLast words."
    began = time.process_time()
    text = clean_page(page).text
    assert time.process_time() - began < 20
    hides_the_rest = mark.startswith(("<!--", "<nowiki"))
    assert hides_the_rest or closing or text.endswith("Last words.")
    assert not any(bracket in text for bracket in MARKS[:8])


@pytest.mark.parametrize("mark", OPEN)
def test_hiding_open_marks_from_the_parser_does_not_change_the_text(mark, monkeypatch):
    lines = ["'''a''' [[b|c]] {{d|{{{e}}}}}", "<b>f</b> [http://g.h i]<br>j", "{|\n| k\n|}\nl"]
    pages = ["\n".join([*lines[:i], mark, *lines[i:]]) for i in range(4)]
    texts = [clean_page(page).text for page in pages]
    monkeypatch.setattr(open_marks, "MOST_CHARACTERS_READ_TWICE", -1)
    assert [clean_page(page).text for page in pages] == texts


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
        text = clean_page("".join(rng.choices(pieces, k=40))).text
        text.encode()
        assert not any(mark in text for mark in MARKS[:8])


def test_a_redirect_is_recognised_in_any_case():
    texts = "#REDIRECT [[a]]", "\n #redirect[[a]]", "a #REDIRECT [[b]]"
    assert list(map(is_redirect, texts)) == [True, True, False]
    foreign_texts = "#WEITERLEITUNG [[a]]", "#перенаправление: [[a#b|c]]", "#重定向[[a]]\n{{b}}"
    assert all(map(is_redirect, foreign_texts))
    lists = "# [[a]]", "#a b [[c]]", "#one [[a]]\n#two [[b]]", "## [[a]]"
    assert not any(map(is_redirect, lists))


ALL_DIFFERENT = "".join(chr(0x4E00 + i) for i in range(1003))


def find_starts(windows):
    """Find the starts of windows; no character of the text occurs twice."""
    return [ALL_DIFFERENT.index(window[0]) for window in windows]


def test_windows_are_aligned_distinct_and_in_the_order_of_the_random_stream():
    hundred = sample_windows(ALL_DIFFERENT, 100, 10, random_stream(1, "windows"))
    places = find_starts(hundred)
    assert hundred == [ALL_DIFFERENT[start : start + 10] for start in places]
    assert sorted(places) == list(range(0, 1000, 10)) != places
    assert sample_windows(ALL_DIFFERENT, 5, 10, random_stream(1, "windows")) == hundred[:5]
    assert sample_windows(ALL_DIFFERENT, 100, 10, random_stream(2, "windows")) != hundred


@pytest.mark.parametrize("part", [1, 7, 10, 64, 1 << 20])
def test_windows_of_a_file_are_those_of_its_text(tmp_path, monkeypatch, part):
    monkeypatch.setattr(windows, "PART_CHARACTERS", part)
    text = ALL_DIFFERENT[:500] + "\r\n\x0c😀" + ALL_DIFFERENT[500:]
    (tmp_path / "text").write_bytes(text.encode())
    for count, length in ((100, 10), (3, 100), (1, 1007), (1, 1)):
        samples = [
            draw(where, count, length, random_stream(1, "windows"))
            for draw, where in ((sample_windows, text), (draw_windows_of_file, tmp_path / "text"))
        ]
        assert samples[0] == samples[1]


def test_a_corpus_that_is_too_small_is_refused_with_a_remedy():
    with pytest.raises(InputError) as failure:
        sample_windows(
            ALL_DIFFERENT, 101, 10, np.random.default_rng(0), corpus="results/corpus/text.txt"
        )
    for words in ("results/corpus/text.txt", "100 windows of 10", "101", "sampling.windows"):
        assert words in str(failure.value)


def test_text_is_read_unchanged_and_a_file_that_is_no_text_is_refused(tmp_path):
    content = "a\r\nb\n\x0cc\u2028d\n"
    (tmp_path / "text").write_bytes(content.encode())
    assert read_text(tmp_path / "text") == content
    (tmp_path / "text").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="text is not UTF-8"):
        read_text(tmp_path / "text")


@pytest.mark.parametrize("trained_on", [0, 953, 954, 970, 1003])
@pytest.mark.parametrize("length", [1, 7, 10, 50, 51])
def test_held_out_windows_reach_to_the_end_and_hold_no_training_text(length, trained_on):
    training, held_out = (
        cut_held_out_part(ALL_DIFFERENT),
        read_held_out_part(ALL_DIFFERENT, length, trained_on),
    )
    assert len(training) == 953  # 1003 less a twentieth
    assert ALL_DIFFERENT.startswith(training)
    assert ALL_DIFFERENT.endswith(held_out)
    start = len(ALL_DIFFERENT) - len(held_out)
    assert start >= max(953, trained_on)
    assert len(held_out) % length == 0
    assert start - max(953, trained_on) < length


def test_a_source_that_is_a_folder_or_missing_is_refused_with_its_path(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name, reason in {"": "a folder", "pipe": "a pipe", "none.txt": "missing"}.items():
        with pytest.raises(InputError, match=f"names the source .*, which is {reason}"):
            validate_yaml(Corpus, {"source": str(tmp_path / name)}, "configuration")


def test_a_file_is_a_source_without_an_entry(tmp_path):
    file = tmp_path / "my text.v2.txt"
    file.write_text("a text")
    corpus = Corpus(
        source=str(file), sources={"other": {"builtin": "python_topics", "format": "text"}}
    )
    assert corpus.source == "my_text_v2"
    assert corpus.sources["my_text_v2"].urls == [str(file)]
    assert set(corpus.sources) == {"other", "my_text_v2"}
