"""Cleaning leaves the running text of a page."""

import random

import pytest

from shape_of_learning.corpus import mediawiki
from shape_of_learning.corpus.mediawiki import clean_page, is_redirect

MARKS = ("[[", "]]", "{{", "}}", "{|", "|}", "'''", "''", "<ref", "thumb|", "&amp;", "__TOC__")


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("a {{box|b={{c}}|d}} e", "a e"),
        ("a\n{| class=x\n! b\n|-\n| c || d\n{|\n| e\n|}\n|}\nf", "a\nf"),
        ("a\n<table><tr><td>b</td></tr></table>\nc", "a\nc"),
        ("a<ref>b [[c]]</ref> d<ref name=e /> f", "a d f"),
        ("a <math>\\frac{b}{c}</math> d", "a d"),
        ("a\n<gallery>\nImage:b.jpg|c\n</gallery>\nd", "a\nd"),
        ("[[Image:a.jpg|thumb|200px|A [[cap|tion]] by [http://b.c d]]]e", "e"),
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
        ("a <ref>b", "a b"),
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
