"""The parser does a bounded amount of work, and within the bound what mwparserfromhell does."""

import random
import subprocess
import sys
import time
from pathlib import Path

import mwparserfromhell
import pytest

from shape_of_learning.corpus.bounded_parser import BeyondParser, allowed_steps, parse
from shape_of_learning.corpus.python_topics import pages
from shape_of_learning.corpus.wikitext import clean_page

# Beginnings of all that wikitext has, as they are repeated by nobody but to do harm.
BEGINNINGS = (
    "[http://a ", "[//a ", "[mailto:a", "[[a|b ", "[[http://a ", "[[File:a|", "{{a|b ", "{{a|b=", "{{a\n|",
    "{{", "{{{a|", "{{{{{a", "<ref>a ", '<ref name="', "<a ", '<a b="c ', "<b a={{c|", "<b a=<c ", "<pre>",
    "<nowiki>a ", "<math>x", "<!-- ", "<!--{{a|", "{|\n| a\n", "{|\n|-\n", "{|\n|a||", "{|\n! a !! ",
    "{|\n|''a\n", '{|\n|a="b|', "''a ", "'''a ", "'''''a ", "''a '''b ", "= a ", "\n== a ", "=", "=<b>",
    "=[http://a ", "{{a|\n=", "&", "&a", "&#", "http://a:", "http://a&", ";a:", ";[http://a ", "\n*", "</a",
    '</br x="', "{{a|[[b|", "[[a|{{b|", "<ref>{{a|", "{{a|<ref>", "[http://a <b>", "''<b>",
    "[http://a <b>]</b>", "{{a|[[b}}]]", "[[a|''b]]", "<b>{{a|</b>}}", "''<b>''</b>", "<b><i></b>",
    "{{a|[[b|<ref>''[http://c ", '<li a="', "[[<''",
)  # fmt: skip
ENDS = ("}}", "]]", "|}", "</b>", "</ref>", "''", "\n", "=", "-->", "]", ">", '"', "|", "a", "\n\n")


FEW_SECONDS = 5  # of a processor, on a slow or busy machine: mostly a tenth of it


def seconds(page: str) -> float:
    began = time.process_time()
    clean_page(page)
    return time.process_time() - began


def same(wikitext: str) -> bool:
    return parse(wikitext) == mwparserfromhell.parse(wikitext)


def test_what_people_write_is_parsed_as_mwparserfromhell_does():
    written = dict(pages())
    assert len(written) > 50
    assert all(map(same, written.values()))


def test_short_texts_of_any_marks_are_parsed_as_mwparserfromhell_does():
    rng = random.Random(0)
    for _ in range(500):
        assert same("".join(rng.choices([*BEGINNINGS, *ENDS], k=8)))


@pytest.mark.parametrize("length", [10, 1_000, 30_000, 1_000_000])
def test_what_a_text_may_take_grows_with_its_length_alone(length):
    assert allowed_steps(length) <= 2_000 + 20 * length
    assert allowed_steps(10 * length) <= 10 * allowed_steps(length)


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_a_page_of_nothing_but_beginnings_takes_seconds(beginning):
    """Unbounded, this length takes some of them minutes."""
    assert seconds(beginning * (20_000 // len(beginning))) < FEW_SECONDS


@pytest.mark.parametrize("seed", range(20))
def test_so_does_a_page_of_their_mixtures(seed):
    rng = random.Random(seed)
    few = rng.choices([*BEGINNINGS, *ENDS], k=5)
    for page in ("".join(few) * 200, "".join(rng.choices(few, k=1000))):
        assert seconds(page[:5000]) < FEW_SECONDS


def test_closed_before_it_is_opened_is_not_closed():
    with pytest.raises(BeyondParser):
        parse("}}" * 2000 + "{{a|" * 2000)


COUNT = """
import sys
from shape_of_learning.corpus.bounded_parser import parse
def deeper(frames):
    if frames:
        return deeper(frames - 1)
    try:
        parse("=a" * 200)
        return "parsed"
    except Exception as error:
        return type(error).__name__
print(deeper(int(sys.argv[1])))
"""


def test_what_is_beyond_it_does_not_depend_on_who_asks():
    """Not on the depth of Python's own stack, which differs between processes."""
    environment = {"PYTHONPATH": str(Path(__file__).parents[2] / "workflow")}
    said = {
        subprocess.run(
            [sys.executable, "-c", COUNT, frames], env=environment, capture_output=True, text=True
        ).stdout
        for frames in ("0", "200")
    }
    assert said == {"BeyondParser\n"}
