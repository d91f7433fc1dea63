"""Words and looks of a figure: what captions say, labels that cover nothing, styles that differ, axes."""

import re
import unicodedata
import warnings
from itertools import combinations

import numpy as np
import pandas as pd
import PIL.Image
import pytest
from matplotlib.font_manager import FontProperties, findfont
from matplotlib.ft2font import FT2Font
from matplotlib.text import Text

from figure_tables import changes_of, draw, inputs_of, models_named, rows_of_model, verdicts_on
from shape_of_learning.errors import InputError
from shape_of_learning.figures.captions import omissions
from shape_of_learning.figures.output import save
from shape_of_learning.figures.scales import on_progress, progress_column
from shape_of_learning.figures.style import THEME, lightness, line_styles, theme
from shape_of_learning.plan.entries import Entry, Printed
from shape_of_learning.plan.refusals import validated

MEANS, PROFILES = "by_step:means_by_step", "by_layer:profiles_by_step"
URL = "https://example.org/discussions/2"
PRINTED = Printed.__metadata__[0].metadata[0].pattern
HARD = ["$x$", "$\\frac{", r"\alpha_{i}^2 {n} %s #1 & ~", "{models} {0} {", "a $b"]
HARD += ["100 % 'of' \"it\" `id` <b>|</b>", "Größe é Ωж ≤ ∞ …", "W" * 60]
REFUSED = ["", " ", "a ", "-a", "=1+1", "@a", "a\nb", "a\tb", "a\x1b[2J", "a\u00a0", "a\u200bb"]
REFUSED += ["a\u202eb", "\U0001f600", "e\u0301", "\u05d0", "\u4e2d", "a" * 61, 3, ["a"]]


# Captions


def test_a_footnote_drops_web_addresses_and_then_joins_equal_verdicts():
    flagged = {1: (f"known bad: loss ({URL})", "no"), 2: ("known bad: loss", "no")}
    given = inputs_of(models_named("a"), verdicts=verdicts_on("a", [0, 1, 2, 4], flagged))
    expected = ["Left out: a steps 1 and 2 (known bad: loss)."]
    assert omissions(given, sources=False) == expected
    assert URL in omissions(given)[0]


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


# Labels


def test_the_font_has_every_character_that_a_label_may_hold():
    drawn = FT2Font(findfont(FontProperties(family=THEME["font.family"]))).get_charmap()
    allowed = [chr(code) for code in range(0x11000) if re.search(PRINTED, f"a{chr(code)}a")]
    assigned = [c for c in allowed if unicodedata.category(c) != "Cn"]
    assert len(assigned) > 1000
    assert [c for c in assigned if ord(c) not in drawn] == []


def test_what_can_be_drawn_is_read_and_all_else_refused_in_one_sentence():
    for words in HARD:
        validated(Entry, {"repository": "a/b", "label": words}, "model `m`")
    for words in REFUSED:
        with pytest.raises(InputError, match="`label`") as caught:
            validated(Entry, {"repository": "a/b", "label": words}, "model `m`")
        assert str(caught.value).isprintable()


LABELS = [f"{HARD[0]} {HARD[2]}", HARD[1], "W" * 60]
OF = {"by_layer:heat_maps": ["anisotropy", "two_nn"], PROFILES: ["two_nn"]}
OF |= {MEANS: ["two_nn", "mada"], "papers.shape_of_learning.figures:loss_by_step": []}


@pytest.mark.parametrize("function", OF)
def test_hard_and_long_labels_are_drawn_within_the_figure(function, tmp_path):
    measures = OF[function]
    steps, flagged = [0, 1, 8], {8: ("same weights as step 1", "hollow")}
    rows = [row for m in "abc" for row in rows_of_model(m, steps=steps)]
    verdicts = [row for m in "abc" for row in verdicts_on(m, steps, flagged)]
    models = models_named("abc", LABELS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # such as of a glyph that is missing, or of too little room
        drawing = draw(function, inputs_of(models, *measures, rows=rows, verdicts=verdicts))
        with theme():
            save(drawing, *(tmp_path / f"f.{kind}" for kind in ("pdf", "png", "csv", "md")))
            drawing.figure.draw_without_rendering()  # else places are those in the PNG
    texts = [text for text in drawing.figure.findobj(Text) if text.get_text()]
    assert not [text for text in texts if text.get_parse_math()]
    for label in LABELS:
        squeezed = "".join(label.split())
        named = [text for text in texts if squeezed in "".join(text.get_text().split())]
        assert named
        corners = np.concatenate([text.get_window_extent().get_points() for text in named])
        assert (corners >= -1).all()
        assert (corners <= drawing.figure.bbox.max + 1).all()
    assert set(drawing.table["label"]) == set(LABELS)
    assert PIL.Image.open(tmp_path / "f.png").text["Description"] == drawing.caption


# Looks and axes

JUST_NOTICED = 2.3  # in CIE Lab
# Families of the paper's Figure 1 and of linear_figure_1, which has most.
FAMILIES = {"opt": 6, "gpt2": 4, "llama": 3, "falcon": 2, "gptj": 1, "bert": 2, "roberta": 2}
FAMILIES |= {"albert": 4, "bloom": 4, "pythia": 2, "phi": 2, "mistral": 1}


def test_models_differ_in_dashes_or_clearly_in_lightness():
    families = [name for name, size in FAMILIES.items() for _ in range(size)]
    models = models_named([str(number) for number in range(len(families))], families=families)
    styles = [(style.dashes, lightness(style.colour)) for style in line_styles(models).values()]
    for (dashes, one), (others_dashes, other) in combinations(styles, 2):
        assert dashes != others_dashes or abs(one - other) > 2 * JUST_NOTICED


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
