"""The reference that CPython ships goes through the cleaning like an encyclopedia."""

import xml.etree.ElementTree as ElementTree
from pydoc_data.topics import topics

import pytest

import wrap_python_topics
from shape_of_learning.corpus.preparation import prepare
from shape_of_learning.corpus.python_topics import SCHEMA, wikitext


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    path = tmp_path_factory.mktemp("topics") / "topics.xml"
    wrap_python_topics.main(path)
    return path


def test_the_export_has_a_page_for_each_topic_and_redirects(export):
    root = ElementTree.parse(export).getroot()
    space = {"w": SCHEMA}
    assert root.tag == f"{{{SCHEMA}}}mediawiki"
    texts = {
        page.findtext("w:title", namespaces=space): page.findtext("w:revision/w:text", "", space)
        for page in root.iterfind("w:page", space)
    }
    assert set(topics) < set(texts)
    redirects = [text for text in texts.values() if text.startswith("#REDIRECT")]
    assert len(redirects) == len(texts) - len(topics) > 0
    assert texts["CONDITIONAL"] == "#REDIRECT [[if]]"


def test_the_cleaned_reference_is_prose_enough_for_the_protocol(export, tmp_path):
    text = tmp_path / "text.txt"
    description = prepare(
        export,
        "mediawiki",
        alphabet_size=205,
        processes=1,
        text=text,
        alphabet=tmp_path / "alphabet.json",
    )
    content = text.read_text("utf-8")
    assert 0 < description["pages"]["kept"] <= len(topics)
    assert description["pages"]["redirects"] > 0
    # The demo draws 64 windows of 768 characters; as much again to draw from.
    assert len(content) > 2 * 64 * 768
    assert "The if statement\nThe if statement is used for conditional execution:\n" in content
    assert "if_stmt" not in content
    for mark in ("'''", "{{", "{|", "<tt>", "<pre>", "+----", ">>>", "****"):
        assert mark not in content


def test_two_exports_are_the_same(export, tmp_path):
    wrap_python_topics.main(tmp_path / "again.xml")
    assert (tmp_path / "again.xml").read_bytes() == export.read_bytes()


def test_layout_becomes_markup():
    layout = (
        'Title\n*****\n\nThe "if" is\n*not* so:\n\n   if x:\n\n   >>> y\n\n* Item\n\n+--+\n| a |\n'
    )
    assert wikitext(layout) == (
        "== Title ==\n\nThe <tt><nowiki>if</nowiki></tt> is ''not'' so:\n\n"
        "<pre>\n   if x:\n</pre>\n\n<pre>\n   >>> y\n</pre>\n\n* Item\n\n{|\n|-\n| a\n|}"
    )
