"""A label is drawn as it is written, whatever it would mean to a typesetter, or refused when it is read."""

import re
import unicodedata
import warnings
from dataclasses import replace

import pandas as pd
import PIL.Image
import pytest
from jsonschema import ValidationError
from matplotlib.font_manager import FontProperties, findfont
from matplotlib.ft2font import FT2Font
from matplotlib.lines import Line2D
from matplotlib.text import Text

from figure_tables import draw, inputs_of, rows_of_model, verdicts_on
from shape_of_learning.errors import InputError
from shape_of_learning.figures.inputs import DrawnModel
from shape_of_learning.figures.output import PAPERS, paper_function, save
from shape_of_learning.figures.style import THEME, theme
from shape_of_learning.metrics.registry import MEASURES
from shape_of_learning.plan.entries import Entry, Printed
from shape_of_learning.plan.paper_models import with_chosen_measures
from shape_of_learning.plan.papers import read_papers
from shape_of_learning.plan.refusals import validated

PAPER = next(each for each in read_papers(PAPERS) if each.name == "shape_of_learning")
FIGURES = with_chosen_measures(
    PAPER.figures,
    {"figures": {"measures": {}}, "measurement": {"estimators": ["anisotropy", "two_nn", "mle"]}},
)
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
REFUSED = [
    "",
    " ",
    "a ",
    " a",
    "-a",
    "=1+1",
    "+a",
    "@a",
    "a\n",
    "a\nb",
    "a\tb",
    "a\x00b",
    "a\x1b[2J",
    "a\x7f",
    "a\u0085b",
    "a\u00a0",
    "a\u00adb",
    "a\u200bb",
    "a\u2028b",
    "a\u202eb",
    "a\u2066b",
    "\ufeffa",
    "\U0001f600",
    "a\ufe0f",
    "e\u0301",
    "\u05d0",
    "\u0627",
    "\u4e2d",
    "a" * 61,
    "a" * 10_000,
    3,
    True,
    ["a"],
]


def test_the_font_has_every_character_that_a_label_may_hold():
    drawn = FT2Font(findfont(FontProperties(family=THEME["font.family"]))).get_charmap()
    allowed = [chr(code) for code in range(0x11000) if re.search(PRINTED, f"a{chr(code)}a")]
    assigned = [c for c in allowed if unicodedata.category(c) != "Cn"]
    assert len(assigned) > 1000
    assert [c for c in assigned if ord(c) not in drawn] == []
    kinds = {unicodedata.category(c) for c in assigned}
    assert not kinds & {"Cc", "Cf", "Cs", "Co", "Mn", "Me", "Zl", "Zp"}
    assert {unicodedata.bidirectional(c) for c in assigned}.isdisjoint({"R", "AL", "RLE", "RLO"})


@pytest.mark.parametrize("key", ["label", "family"])
@pytest.mark.parametrize("words", HARD)
def test_hard_labels_are_read(key, words):
    validated(Entry, {"repository": "a/b", key: words}, "model `m`")


@pytest.mark.parametrize("key", ["label", "family"])
@pytest.mark.parametrize("words", REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_drawn_is_refused_in_one_sentence(key, words):
    with pytest.raises(InputError) as caught:
        validated(Entry, {"repository": "a/b", key: words}, "model `m` in x.yaml")
    assert f"model `m` in x.yaml: `{key}`" in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500
    assert not isinstance(caught.value, ValidationError)


def rows_and_verdicts(estimators):
    """Three models by step and at their end, with everything that a figure writes a label on."""
    steps = [0, 1, 8, 64]
    models = {"a": "decoder", "b": "decoder", "c": "encoder"}
    settings = {"steps": steps, "estimators": estimators or ("anisotropy",)}
    rows = [row for m, role in models.items() for row in rows_of_model(m, role=role, **settings)]
    flagged = {8: ("same weights as step 1", "no")}
    verdicts = [row for m in models for row in verdicts_on(m, steps, flagged, losses={64: 9.0})]
    return models, rows, verdicts


def squeezed(words):
    """Without spaces and ends of lines."""
    return "".join(words.split())


@pytest.mark.parametrize(
    "three",
    [
        [f"{HARD[0]} {HARD[2]}", HARD[1], HARD[6]],
        ["W" * 60, f"{'Model ' * 9}W-2.8B", f"EleutherAI/{'pythia-' * 7}"],
    ],
    ids=["hard", "long"],
)
@pytest.mark.parametrize("name", FIGURES)
def test_hard_and_long_labels_are_drawn_as_they_are_written(name, three, tmp_path):
    figure = FIGURES[name]
    models, rows, verdicts = rows_and_verdicts(figure.estimators)
    labels = dict(zip(models, three, strict=True))
    last = not figure.needs_training_steps
    rows = [row for row in rows if row["step"] == 64 or not last]
    drawn = [DrawnModel(m, labels[m], HARD[3], role) for m, role in models.items()]
    drawn = drawn[: figure.most_models]
    rows = [row for row in rows if row["model"] in {model.name for model in drawn}]
    verdicts = [row for row in verdicts if row["model"] in {model.name for model in drawn}]
    inputs = replace(
        inputs_of(
            tmp_path,
            drawn,
            *figure.estimators,
            rows=rows,
            verdicts=None if last else verdicts,
        ),
        caption=" ".join(HARD),
    )
    with_parameters = [
        replace(measure, parameters=MEASURES[measure.name].chosen("", {}).parameters)
        for measure in inputs.measures
    ]
    inputs = replace(inputs, measures=with_parameters)
    choices = {"average_over": "block_outputs", "progress": "auto"}
    settings = {key: choices[key] for key in figure.settings}
    if figure.published:
        settings["published"] = [
            row | {"model": model.name}
            for model in drawn
            for row in figure.published
            if row["model"] == "opt-125m" and row["layer"] < 3
        ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # such as of a glyph that is missing, or of too little room
        drawing = draw(figure.draw, inputs, **figure.options, **settings)
        with theme():
            save(drawing, *(tmp_path / f"f.{kind}" for kind in ("pdf", "png", "csv", "md")))
            drawing.figure.draw_without_rendering()  # else places are those in the PNG
    texts = [text for text in drawing.figure.findobj(Text) if text.get_text()]
    assert not [text.get_text() for text in texts if text.get_parse_math()]
    for model in drawn:
        named = [text for text in texts if squeezed(model.label) in squeezed(text.get_text())]
        assert named
        for text in named:
            (left, low), (right, high) = text.get_window_extent().get_points()
            assert min(left, low) >= -1
            assert right <= drawing.figure.bbox.width + 1
            assert high <= drawing.figure.bbox.height + 1
    written = pd.read_csv(tmp_path / "f.csv", dtype=str, keep_default_na=False)
    if "label" in written:
        assert set(written["label"]) <= set(labels.values())
    assert PIL.Image.open(tmp_path / "f.png").text["Description"].startswith(" ".join(HARD))


def test_a_table_shows_hard_labels_as_they_are_written():
    training_recipes = paper_function("shape_of_learning:training_recipes")
    numbers = dict.fromkeys(("layers", "hidden_size", "attention_heads", "vocabulary"), 1)
    numbers |= {"batch_size": 1, "learning_rate": 0.1, "training_tokens": 1}
    table, text = training_recipes([{"model": label, **numbers} for label in HARD])
    assert list(table["model"]) == HARD
    for line, label in zip(text.splitlines()[2:], HARD, strict=True):
        cell = re.split(r"(?<!\\)(?:\\\\)*\|", line)[1].strip()
        assert re.sub(r"\\(?=[\\`*_{}\[\]<>&#|~])(.)", r"\1", cell) == label
        assert not re.search(r"(?<!\\)(?:\\\\)*[`*_{}\[\]<>&#~]", cell)


def test_many_labels_are_listed_in_the_order_of_models_and_samples_have_no_markers(tmp_path):
    names = list("dbcae")
    rows = [row for m in names for row in rows_of_model(m, steps=[1, 8], estimators=["two_nn"])]
    axes = draw("dimension_by_step", inputs_of(tmp_path, names, "two_nn", rows=rows)).figure.axes[0]
    words = [text for text in axes.texts if text.get_text() in names]
    assert [text.get_text() for text in sorted(words, key=lambda t: -t.get_position()[1])] == names
    outside = [line for line in axes.findobj(Line2D) if line.get_label() == "_sample"]
    assert len(outside) == len(names)
    assert {line.get_marker() for line in outside} == {""}
    assert {line.get_marker() for line in axes.get_lines() if line.get_label() in names} == {
        *"osD^v"
    }
