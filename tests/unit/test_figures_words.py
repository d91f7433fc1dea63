"""Words of a figure: what captions and footnotes say, and labels that cover nothing, drawn as written."""

import re
import unicodedata
import warnings

import numpy as np
import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont
from matplotlib.ft2font import FT2Font
from matplotlib.text import Text

from figure_tables import (
    changes_of,
    draw,
    footnote,
    inputs_of,
    models_named,
    rows_of_model,
    verdicts_on,
)
from shape_of_learning.errors import InputError
from shape_of_learning.figures.captions import omissions, short_number, without_sources
from shape_of_learning.figures.marks import add_footnote, spread
from shape_of_learning.figures.output import save
from shape_of_learning.figures.style import COLUMN_WIDTH, TEXT_WIDTH, THEME, theme
from shape_of_learning.plan.entries import Entry, Printed
from shape_of_learning.plan.refusals import validated

MEANS, PROFILES = "by_step:means_by_step", "by_layer:profiles_by_step"
STEPS = [0, 1, 2, 4, 8, 1000, 2000, 3000, 4000, 5000]
SAME = ("same weights as step 5000", "no")
URL = "https://example.org/discussions/2"
PRINTED = Printed.__metadata__[0].metadata[0].pattern
HARD = [
    "$x$",
    "$\\frac{",
    r"\alpha_{i}^2 {n} %s #1 & ~",
    "{models} {0} {",
    "a $b",
    "100 % 'of' \"it\" `id` <b>|</b>",
    "Größe é Ωж ≤ ∞ …",
    "W" * 60,
]
REFUSED = ["", " ", "a ", "-a", "=1+1", "@a", "a\nb", "a\tb", "a\x1b[2J", "a\u00a0", "a\u200bb"]
REFUSED += ["a\u202eb", "\U0001f600", "e\u0301", "\u05d0", "\u4e2d", "a" * 61, 3, ["a"]]


def said(flagged, models=("a",), **options):
    """Of models that are all flagged alike."""
    labelled = models_named(models, [f"M-{name}" for name in models])
    verdicts = [row for name in models for row in verdicts_on(name, STEPS, flagged)]
    return omissions(inputs_of(labelled, verdicts=verdicts), **options)


# Captions


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        ([1000], "step 1,000 ({})"),
        ([0, 1, 8], "steps 0, 1 and 8 ({})"),
        (STEPS[1:], "steps 1 to 5,000 (9 of 9 checkpoints: {})"),
        ([*STEPS[:5], 3000, 4000], "steps 0 to 4,000 (7 of 9 checkpoints: {})"),
    ],
)
def test_steps_of_one_verdict_are_named_together(steps, text):
    assert said(dict.fromkeys(steps, SAME)) == [f"Left out: M-a {text.format(SAME[0])}."]


def test_a_footnote_drops_web_addresses_and_then_joins_equal_verdicts():
    flagged = {
        1: (f"known bad: perplexity of 9 ({URL})", "no"),
        2: ("known bad: perplexity of 9", "no"),
    }
    assert said(flagged, sources=False) == [
        "Left out: M-a steps 1 and 2 (known bad: perplexity of 9)."
    ]
    assert URL in said(flagged)[0]
    assert without_sources(f"bad, see {URL} (twice)") == "bad, see (twice)"
    assert without_sources(URL) == URL


def test_the_smallest_visible_change_is_a_median_over_pairs_of_drawn_neighbours():
    rows = rows_of_model("a", steps=[0, 1, 8, 64, 512], estimators=["two_nn"])
    visible = dict(zip(["step1", "step8", "step64", "step512"], [1, 2, 4, 8], strict=True))
    changes = [row | {"smallest_visible": visible[row["to_revision"]]} for row in changes_of(rows)]
    far = {"from_revision": "step0", "to_revision": "step512", "smallest_visible": 1000}
    changes += [row | far for row in changes if row["to_revision"] == "step1"]
    given = {"rows": rows, "changes": changes}
    for function, over in ((MEANS, "steps"), (PROFILES, "layers and steps")):
        words = draw(function, inputs_of(["a"], "two_nn", **given)).caption
        assert f"told from none, median over {over}: 3." in words
    verdicts = verdicts_on("a", [0, 1, 8, 64, 512], {8: ("missing", "no")})
    words = draw(MEANS, inputs_of(["a"], "two_nn", **given, verdicts=verdicts)).caption
    assert "median over steps: 4.5." in words  # of 0 to 1 and 64 to 512


@pytest.mark.parametrize(
    ("number", "text"),
    [
        *[(0, "0"), (512, "512"), (1000, "1k"), (1024, "1024"), (1430, "1.43k")],
        *[(337_250, "337k"), (999_999, "1M"), (3e12, "3T")],
    ],
)
def test_numbers_are_written_short(number, text):
    assert short_number(number) == text


# Footnotes

LONG = "Left out: " + ", ".join(f"Model-{i} step {i},000 (broken: a)" for i in range(30)) + "."


def noted(width, *notes, dpi=300):
    """A figure of that width; its panel's height in inches, and its footnote if there is one."""
    with theme():
        figure = Figure(figsize=(width, 2.5), dpi=dpi)
        axes = figure.subplots()
        axes.set(xlabel="x", ylabel="y", title="title")
        add_footnote(figure, *notes)
        figure.draw_without_rendering()
        found = figure.findobj(lambda artist: artist.get_gid() == "footnote")
        return figure, axes.get_window_extent().height / dpi, found


@pytest.mark.parametrize("width", [COLUMN_WIDTH, TEXT_WIDTH])
@pytest.mark.parametrize("text", ["Hollow: a step 1 (odd).", LONG, "$" * 300, "il.," * 90])
def test_a_footnote_stays_within_its_margins_under_a_panel_that_keeps_its_size(width, text):
    _, height, nothing = noted(width, "")
    figure, beside_note, (note,) = noted(width, text)
    extent = note.get_window_extent()
    assert nothing == []
    assert extent.x0 > 0
    assert extent.x1 <= figure.bbox.x1 - extent.x0
    assert 0 <= extent.y0 < extent.y1 < figure.axes[0].get_tightbbox().y0
    assert beside_note == pytest.approx(height, abs=2 / figure.dpi)  # layouts are in whole pixels
    assert "".join(note.get_text().split()) == "".join(text.split())


# Labels


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_labels_never_cover_each_other_and_keep_their_order(wanted):
    pitch = 1 / 20
    places = spread(np.array(wanted), pitch)
    rounding = 1e-12  # a few additions of numbers below 1
    assert np.all(np.diff(np.sort(places)) >= pitch - rounding)
    assert np.all((places >= pitch / 2 - rounding) & (places <= 1 - pitch / 2 + rounding))
    assert np.all(np.diff(places[np.argsort(wanted, kind="stable")]) > 0)


def test_the_font_has_every_character_that_a_label_may_hold():
    drawn = FT2Font(findfont(FontProperties(family=THEME["font.family"]))).get_charmap()
    allowed = [chr(code) for code in range(0x11000) if re.search(PRINTED, f"a{chr(code)}a")]
    assigned = [c for c in allowed if unicodedata.category(c) != "Cn"]
    assert len(assigned) > 1000
    assert [c for c in assigned if ord(c) not in drawn] == []
    kinds = {unicodedata.category(c) for c in assigned}
    assert not kinds & {"Cc", "Cf", "Cs", "Co", "Mn", "Me", "Zl", "Zp"}
    assert {unicodedata.bidirectional(c) for c in assigned}.isdisjoint({"R", "AL", "RLE", "RLO"})


@pytest.mark.parametrize("words", [*HARD, *REFUSED], ids=range(len(HARD + REFUSED)))
def test_what_can_be_drawn_is_read_and_all_else_refused_in_one_sentence(words):
    entry = {"repository": "a/b", "label": words}
    if words in HARD:
        validated(Entry, entry, "model `m`")
        return
    with pytest.raises(InputError, match="`label`") as caught:
        validated(Entry, entry, "model `m`")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("function", "measures"),
    [
        ("by_layer:heat_maps", ["anisotropy", "two_nn"]),
        (PROFILES, ["two_nn"]),
        (MEANS, ["two_nn", "mada"]),
        ("papers.shape_of_learning.figures:loss_by_step", []),
    ],
)
@pytest.mark.parametrize(
    "labels",
    [
        [f"{HARD[0]} {HARD[2]}", HARD[1], HARD[6]],
        ["W" * 60, f"{'Model ' * 9}W-2.8B", f"EleutherAI/{'pythia-' * 7}"],
    ],
    ids=["hard", "long"],
)
def test_hard_and_long_labels_are_drawn_within_the_figure(function, measures, labels, tmp_path):
    steps, flagged = [0, 1, 8], {8: ("same weights as step 1", "hollow")}
    rows = [row for m in "abc" for row in rows_of_model(m, steps=steps)]
    verdicts = [row for m in "abc" for row in verdicts_on(m, steps, flagged)]
    models = models_named("abc", labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # such as of a glyph that is missing, or of too little room
        drawing = draw(function, inputs_of(models, *measures, rows=rows, verdicts=verdicts))
        with theme():
            save(drawing, *(tmp_path / f"f.{kind}" for kind in ("pdf", "png", "csv", "md")))
            drawing.figure.draw_without_rendering()  # else places are those in the PNG
    texts = [text for text in drawing.figure.findobj(Text) if text.get_text()]
    assert not [text for text in texts if text.get_parse_math()]
    for label in labels:
        squeezed = "".join(label.split())
        named = [text for text in texts if squeezed in "".join(text.get_text().split())]
        assert named
        for text in named:
            (left, low), (right, high) = text.get_window_extent().get_points()
            assert min(left, low) >= -1
            assert right <= drawing.figure.bbox.width + 1
            assert high <= drawing.figure.bbox.height + 1
    assert set(drawing.table["label"]) == set(labels)
    assert "".join(labels[0].split()) in "".join(footnote(drawing).split())
    assert PIL.Image.open(tmp_path / "f.png").text["Description"] == drawing.caption
