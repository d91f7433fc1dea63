"""Words and looks of a figure: what captions say, labels that cover nothing, styles that differ, axes."""

import re
import unicodedata
import warnings
from itertools import combinations, pairwise

import numpy as np
import pandas as pd
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
from shape_of_learning.figures.inputs import DrawnMeasure
from shape_of_learning.figures.marks import spread
from shape_of_learning.figures.output import save
from shape_of_learning.figures.scales import (
    begin_at_zero,
    on_progress,
    progress_column,
    set_progress_axis,
    set_rank_ticks,
)
from shape_of_learning.figures.style import THEME, lightness, line_styles, step_colours, theme
from shape_of_learning.plan.entries import Entry, Printed
from shape_of_learning.refusals import validated

MEANS, PROFILES = "by_step:means_by_step", "by_layer:profiles_by_step"
STEPS = [0, 1, 2, 4, 8, 1000, 2000, 3000, 4000, 5000]
SAME = ("same weights as step 5000", "no")
URL = "https://example.org/discussions/2"
PRINTED = Printed.__metadata__[0].metadata[0].pattern
HARD = ["$x$", "$\\frac{", r"\alpha_{i}^2 {n} %s #1 & ~", "{models} {0} {", "a $b"]
HARD += ["100 % 'of' \"it\" `id` <b>|</b>", "Größe é Ωж ≤ ∞ …", "W" * 60]
REFUSED = ["", " ", "a ", "-a", "=1+1", "@a", "a\nb", "a\tb", "a\x1b[2J", "a\u00a0", "a\u200bb"]
REFUSED += ["a\u202eb", "\U0001f600", "e\u0301", "\u05d0", "\u4e2d", "a" * 61, 3, ["a"]]


def said(flagged, **options):
    given = inputs_of(models_named("a", ["M-a"]), verdicts=verdicts_on("a", STEPS, flagged))
    return omissions(given, **options)


# Captions


def test_many_steps_of_one_verdict_are_named_by_the_first_and_the_last():
    flagged = dict.fromkeys([*STEPS[:5], 3000, 4000], SAME)
    assert said(flagged) == [f"Left out: M-a steps 0 to 4,000 (7 of 9 checkpoints: {SAME[0]})."]


def test_a_footnote_drops_web_addresses_and_then_joins_equal_verdicts():
    flagged = {1: (f"known bad: loss ({URL})", "no"), 2: ("known bad: loss", "no")}
    assert said(flagged, sources=False) == ["Left out: M-a steps 1 and 2 (known bad: loss)."]
    assert URL in said(flagged)[0]
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


def test_numbers_are_written_short():
    known = {0: "0", 512: "512", 1000: "1k", 1024: "1024", 1430: "1.43k", 337_250: "337k"}
    known |= {999_999: "1M", 3e12: "3T"}
    assert {number: short_number(number) for number in known} == known


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


def test_what_can_be_drawn_is_read_and_all_else_refused_in_one_sentence():
    for words in HARD:
        validated(Entry, {"repository": "a/b", "label": words}, "model `m`")
    for words in REFUSED:
        with pytest.raises(InputError, match="`label`") as caught:
            validated(Entry, {"repository": "a/b", "label": words}, "model `m`")
        assert str(caught.value).isprintable()


HARD_LABELS = [f"{HARD[0]} {HARD[2]}", HARD[1], HARD[6]]
LONG_LABELS = ["W" * 60, f"{'Model ' * 9}W-2.8B", f"EleutherAI/{'pythia-' * 7}"]
OF = {"by_layer:heat_maps": ["anisotropy", "two_nn"], PROFILES: ["two_nn"]}
OF |= {MEANS: ["two_nn", "mada"], "papers.shape_of_learning.figures:loss_by_step": []}


@pytest.mark.parametrize("function", OF)
@pytest.mark.parametrize("labels", [HARD_LABELS, LONG_LABELS], ids=["hard", "long"])
def test_hard_and_long_labels_are_drawn_within_the_figure(function, labels, tmp_path):
    measures = OF[function]
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
        corners = np.concatenate([text.get_window_extent().get_points() for text in named])
        assert (corners >= -1).all()
        assert (corners <= drawing.figure.bbox.max + 1).all()
    assert set(drawing.table["label"]) == set(labels)
    assert "".join(labels[0].split()) in "".join(footnote(drawing).split())
    assert PIL.Image.open(tmp_path / "f.png").text["Description"] == drawing.caption


# Looks and axes

JUST_NOTICED = 2.3  # in CIE Lab
TINYLLAMA = 14  # steps; as many as there are of TinyLlama, the most that a figure of the paper has bands for
# Families of the paper's Figure 1 and of linear_figure_1, which has most.
FAMILIES = {"opt": 6, "gpt2": 4, "llama": 3, "falcon": 2, "gptj": 1, "bert": 2, "roberta": 2}
FAMILIES |= {"albert": 4, "bloom": 4, "pythia": 2, "phi": 2, "mistral": 1}


def test_lightness_is_that_of_cie():
    known = {"#000000": 0, "#ffffff": 100, "#777777": 50.034, "#0173b2": 46.285}
    assert {colour: lightness(colour) for colour in known} == pytest.approx(known, abs=0.01)


def test_steps_go_from_light_to_dark_and_neighbours_differ():
    levels = [lightness(colour) for colour in step_colours(range(1, TINYLLAMA + 1)).values()]
    assert min(lighter - darker for lighter, darker in pairwise(levels)) > 2 * JUST_NOTICED


def test_models_differ_in_dashes_or_clearly_in_lightness():
    families = [name for name, size in FAMILIES.items() for _ in range(size)]
    models = models_named([str(number) for number in range(len(families))], families=families)
    styles = [(style.dashes, lightness(style.colour)) for style in line_styles(models).values()]
    for (dashes, one), (others_dashes, other) in combinations(styles, 2):
        assert dashes != others_dashes or abs(one - other) > 2 * JUST_NOTICED


def test_step_0_stands_left_of_a_break_within_a_logarithmic_axis():
    steps = [0, 1, 8, 64, 512]
    rows = rows_of_model("a", steps=steps, estimators=["two_nn"])
    (axes,) = draw(MEANS, inputs_of(["a"], "two_nn", rows=rows)).figure.axes
    pixels = axes.transData.transform([(step, 20) for step in steps])[:, 0]
    assert axes.get_window_extent().x0 < pixels[0] < pixels[1]
    assert np.ptp(np.diff(pixels[1:])) < 1e-6 * pixels[-1]  # 1, 8, 64, 512 evenly: float rounding
    assert "0" in [text.get_text() for text in axes.get_xticklabels()]
    assert len([line for line in axes.get_lines() if line.get_label() == "_break"]) == 2


def trained(**tokens_per_step):
    rows = [
        (model, step, None if size is None else step * size)
        for model, size in tokens_per_step.items()
        for step in (0, 10, 100)
    ]
    return pd.DataFrame(rows, columns=["model", "step", "tokens"]).astype({"tokens": "Int64"})


def test_tokens_are_counted_where_batch_sizes_differ_unless_the_configuration_says_steps():
    different = trained(a=2048, b=4096)
    assert progress_column(different, "auto") == "tokens"
    for alike in ({"b": 2048}, {"b": 2050}, {"b": 4096, "c": None}):  # one rounds its tokens
        assert progress_column(trained(a=2048, **alike), "auto") == "step"
    assert progress_column(different, "step") == "step"
    assert "equal steps are not equal tokens" in on_progress(different, "step")
    with pytest.raises(InputError, match=r"`figures.progress` asks for tokens, which .* of b do"):
        progress_column(trained(a=2048, b=None), "tokens")


@pytest.mark.parametrize(
    "values", [[0], [0, 5], [7], [3, 4], [0, 1, 2, 4, 300], [1000, 600_000], [0, 2e6, 3e11, 3e12]]
)
def test_a_progress_axis_labels_its_range(values):
    axes = Figure().subplots()
    axes.plot(values, values)
    set_progress_axis(axes, values)
    low, high = axes.get_xlim()
    ticks = [tick for tick in axes.get_xticks() if low <= tick <= high]
    assert len(ticks) >= min(2, len(values))
    assert (0 in ticks) == (0 in values)
    assert all(low < value < high for value in values)


def test_steps_that_are_the_same_in_short_are_labelled_in_full():
    axes, steps = Figure().subplots(), [100_000, 100_010, 100_020, 100_030]
    set_rank_ticks(axes.xaxis, steps, 8)
    assert [label.get_text() for label in axes.get_xticklabels()] == [f"{s:,}" for s in steps]


@pytest.mark.parametrize("from_zero", [True, False])
def test_shares_begin_at_zero(from_zero):
    axes = Figure().subplots()
    axes.plot([0, 1], [0.98, 0.99])
    begin_at_zero(axes, [DrawnMeasure("linearity", "Linearity", "Share", from_zero)])
    assert (axes.get_ylim()[0] == 0) == from_zero
