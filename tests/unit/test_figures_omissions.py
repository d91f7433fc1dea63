"""Sentences on what is left out and what is hollow, and the footnote that shows them."""

import pytest
from matplotlib.figure import Figure

from figure_tables import models_named, verdicts_on, write_verdicts
from shape_of_learning.figures.footnotes import add_footnote
from shape_of_learning.figures.omissions import omissions, without_sources
from shape_of_learning.figures.style import COLUMN_WIDTH, TEXT_WIDTH, theme
from shape_of_learning.figures.table_reader import VERDICTS, read_table

STEPS = [0, 1, 2, 4, 8, 1000, 2000, 3000, 4000, 5000]
SAME = ("same weights as step 5000", "no")
URL = "https://example.org/discussions/2"
LONG = "Left out: " + ", ".join(f"Model-{i} step {i},000 (broken: a)" for i in range(30)) + "."
TEXTS = ["Hollow: a step 1 (odd).", LONG, "$" * 300, "il.," * 90, "n " * 150]


def sentences(folder, flagged, *, models=("a",), **options):
    """Of models that are all flagged alike."""
    rows = [row for name in models for row in verdicts_on(name, STEPS, flagged)]
    verdicts = read_table([write_verdicts(folder / "verdicts.csv", rows)], VERDICTS)
    return omissions(verdicts, models_named(models, [f"M-{name}" for name in models]), **options)


def same(*steps):
    return dict.fromkeys(steps, SAME)


def test_nothing_is_said_where_everything_is_shown(tmp_path):
    assert sentences(tmp_path, {}) == []


def test_nothing_is_said_without_verdicts():
    assert omissions(None, models_named(["a"])) == []


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        ([1000], "step 1,000 (same weights as step 5000)"),
        ([0, 8], "steps 0 and 8 (same weights as step 5000)"),
        ([0, 1, 2], "steps 0, 1 and 2 (same weights as step 5000)"),
        (STEPS[:6], "steps 0 to 1,000 (6 checkpoints: same weights as step 5000)"),
        (
            [*STEPS[:5], 3000, 4000],
            "steps 0 to 8, 3,000 and 4,000 (7 checkpoints: same weights as step 5000)",
        ),
    ],
)
def test_steps_of_one_verdict_are_named_together(tmp_path, steps, text):
    assert sentences(tmp_path, same(*steps)) == [f"Left out: M-a {text}."]


def test_a_range_never_spans_a_shown_checkpoint_silently(tmp_path):
    rows = verdicts_on("a", range(20), same(*range(0, 20, 2)))
    verdicts = read_table([write_verdicts(tmp_path / "verdicts.csv", rows)], VERDICTS)
    (sentence,) = omissions(verdicts, models_named(["a"]))
    assert "steps 0 to 18 with gaps (10 checkpoints: same" in sentence


def test_steps_of_different_verdicts_are_named_apart(tmp_path):
    flagged = same(2, 4) | {1000: ("missing", "no"), 8: ("mixed shards", "no")}
    assert sentences(tmp_path, flagged) == [
        "Left out: M-a steps 2 and 4 (same weights as step 5000), 8 (mixed shards) and 1,000 "
        "(missing)."
    ]


def test_hollow_checkpoints_have_a_sentence_of_their_own(tmp_path):
    assert sentences(tmp_path, {1: ("missing", "no"), 2: ("odd", "hollow")}) == [
        "Left out: M-a step 1 (missing).",
        "Hollow: M-a step 2 (odd).",
    ]


def test_every_drawn_model_is_named(tmp_path):
    assert sentences(tmp_path, {1: ("missing", "no")}, models=("b", "a")) == [
        "Left out: M-b step 1 (missing); M-a step 1 (missing)."
    ]


def test_sources_are_kept_or_dropped(tmp_path):
    flagged = {
        1: (f"known bad: perplexity of 9 ({URL})", "no"),
        2: ("known bad: perplexity of 9", "no"),
    }
    assert sentences(tmp_path, flagged) == [
        f"Left out: M-a steps 1 (known bad: perplexity of 9 ({URL})) and 2 (known bad: perplexity "
        "of 9)."
    ]
    assert sentences(tmp_path, flagged, sources=False) == [
        "Left out: M-a steps 1 and 2 (known bad: perplexity of 9)."
    ]


@pytest.mark.parametrize(
    ("verdict", "text"),
    [
        (f"bad ({URL})", "bad"),
        (f"bad ({URL}, {URL})", "bad"),
        (f"bad: {URL}", "bad"),
        (f"bad, see {URL} (twice)", "bad, see (twice)"),
        (URL, URL),
        ("perplexity (of 9)", "perplexity (of 9)"),
    ],
)
def test_a_verdict_loses_its_sources_only(verdict, text):
    assert without_sources(verdict) == text


def noted(width, notes, dpi=100):
    """A figure of that width; its panel's height in inches, its footnote if there is one."""
    figure = Figure(figsize=(width, 2.5), dpi=dpi)
    axes = figure.subplots()
    axes.set(xlabel="x", ylabel="y", title="title")
    add_footnote(figure, notes)
    figure.draw_without_rendering()
    return figure, axes.get_window_extent().height / figure.dpi, figure.findobj(_is_footnote)


def _is_footnote(artist):
    return artist.get_gid() == "footnote"


def test_there_is_no_footnote_without_words():
    with theme():
        figure, _, notes = noted(COLUMN_WIDTH, [])
    assert notes == []
    assert figure.get_figheight() == 2.5


# The second resolution is so fine that pixels hardly matter and letters are set as in the PDF.
@pytest.mark.parametrize("dpi", [300, 1200])
@pytest.mark.parametrize("width", [COLUMN_WIDTH, TEXT_WIDTH])
@pytest.mark.parametrize("text", TEXTS)
def test_the_margins_of_a_footnote_are_as_wide_on_the_right_as_on_the_left(width, text, dpi):
    with theme():
        figure, _, (note,) = noted(width, [text], dpi)
        extent = note.get_window_extent()
    assert extent.x0 > 0
    assert extent.x1 <= figure.bbox.x1 - extent.x0


@pytest.mark.parametrize("width", [COLUMN_WIDTH, TEXT_WIDTH])
@pytest.mark.parametrize("text", TEXTS)
def test_a_footnote_stays_under_the_panel_and_leaves_it_its_size(width, text):
    with theme():
        _, height, _ = noted(width, [])
        figure, beside_note, (note,) = noted(width, [text])
        extent = note.get_window_extent()
    pixel = 1 / figure.dpi  # constrained layout works in whole pixels
    assert beside_note == pytest.approx(height, abs=2 * pixel)
    assert 0 <= extent.y0 < extent.y1 < figure.axes[0].get_tightbbox().y0
    assert "".join(note.get_text().split()) == "".join(text.split())


def test_sentences_of_a_footnote_begin_on_lines_of_their_own():
    with theme():
        _, _, (note,) = noted(TEXT_WIDTH, ["Left out: a.", "Hollow: b."])
    assert note.get_text().splitlines() == ["Left out: a.", "Hollow: b."]


def test_a_step_stays_on_the_line_of_its_number():
    with theme():
        _, _, (note,) = noted(COLUMN_WIDTH, [LONG])
    lines = note.get_text().splitlines()
    assert len(lines) > 5
    assert not any(line.endswith(("step", "steps")) for line in lines)
