"""Published values beside measured ones, on tables that are made for it."""

from pathlib import Path

import pytest

from figure_tables import HEADER, rows_of_model, write_rows
from shape_of_learning.errors import InputError
from shape_of_learning.figures.inputs import DrawnMeasure, DrawnModel, FigureInputs
from shape_of_learning.figures.output import paper_function, save
from shape_of_learning.figures.style import theme
from shape_of_learning.figures.table_reader import ESTIMATES, read_table
from shape_of_learning.metrics.registry import MEASURES
from shape_of_learning.plan.models import read_entries, read_models
from shape_of_learning.plan.papers import COLUMNS, read_published

REPOSITORY = Path(__file__).parents[2]
FILES = sorted(REPOSITORY.glob("workflow/papers/*/published.csv"))
LAYERS = {"opt-125m": 12, "llama-2-7b": 32}
NAMES = {"anisotropy": "Anisotropy", "two_nn_authors": "TwoNN (authors' code)"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_published_values_are_of_models_layers_and_measures_that_there_are(file):
    rows = read_published(file)
    entries = read_entries(REPOSITORY / "config/models")
    layers = {name: model.shape.layers for name, model in read_models(entries, [*LAYERS]).items()}
    assert layers == LAYERS
    for row in rows:
        # The state after the final norm was never published.
        assert 1 <= row["layer"] < LAYERS[row["model"]]
        assert row["reading_error"] > 0
        if MEASURES[row["estimator"]].axis in ("Anisotropy", "Linearity"):
            assert 0 < row["value"] <= 1
    series = {(row["model"], row["estimator"], row["source"], row["layer"]) for row in rows}
    assert len(series) == len(rows)


def test_the_published_numbers_that_are_known_are_in_it():
    # Read from the same printed figures by eye, a pixel more or less.
    rows = read_published(REPOSITORY / "workflow/papers/shape_of_learning/published.csv")
    by_eye = [15.3, 15.85, 13.3, 13.3, 12.9, 12.5, 13.55, 12.6, 12.9, 11.3, 11.4]
    of = [r for r in rows if r["model"] == "opt-125m" and r["source"].endswith("905920a")]
    dimensions = [r for r in of if r["estimator"] == "two_nn_authors"]
    assert [r["layer"] for r in dimensions] == list(range(1, 12))
    for row, value in zip(dimensions, by_eye, strict=True):
        assert row["value"] == pytest.approx(value, abs=0.05)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("model,layer\nx,1\n", r"published\.csv must have the columns model, estimator"),
        (
            f"{','.join(COLUMNS)}\nm,e,1,high,0.1,s,p\n",
            r"line 2: `value` is 'high', which is no number",
        ),
        (f"{','.join(COLUMNS)}\nm,e\n", r"line 2: `layer` is None, which is no number"),
    ],
)
def test_what_is_no_table_of_published_values_is_refused(tmp_path, content, message):
    file = tmp_path / "published.csv"
    with pytest.raises(InputError, match="cannot be read"):
        read_published(file)
    file.write_text(content)
    with pytest.raises(InputError, match=message):
        read_published(file)


def rows_of(models):
    return [
        row
        for name in models
        for row in rows_of_model(name, layers=LAYERS[name], estimators=list(NAMES))
    ]


def drawn_beside(tmp_path, models, rows):
    """The figure of the rows of some models, and what was published of these."""
    published = [
        row
        for row in read_published(REPOSITORY / "workflow/papers/shape_of_learning/published.csv")
        if row["model"] in models
    ]
    inputs = FigureInputs(
        models=[DrawnModel(name, name.upper(), "family", "decoder") for name in models],
        measures=[DrawnMeasure(name, label, label, False) for name, label in NAMES.items()],
        caption="Measured and published.",
        estimates=read_table([write_rows(tmp_path / "estimates.csv", rows, HEADER)], ESTIMATES),
    )
    with theme():
        drawing = paper_function("shape_of_learning:published_values")(inputs, published)
        paths = [tmp_path / f"published.{kind}" for kind in ("pdf", "png", "csv", "md")]
        save(drawing, *paths)
    return drawing, published


@pytest.mark.parametrize("models", [["opt-125m"], ["opt-125m", "llama-2-7b"]])
def test_measured_values_are_drawn_beside_published_ones(tmp_path, models):
    rows = rows_of(models)
    for row in rows:
        if row["estimator"] == "anisotropy" and row["layer"] == 3:
            row["value"] = 0.9
    drawing, published = drawn_beside(tmp_path, models, rows)
    table = drawing.table
    assert len(table) == len(published)
    third = table[(table["estimator"] == "anisotropy") & (table["layer"] == 3)]
    third = third[third["model"] == "opt-125m"]
    assert third["difference"].tolist() == pytest.approx([0.9 - 0.9951], abs=1e-9)
    assert len(drawing.figure.axes) == 2 * len(models)
    sources = {row["source"] for row in published}
    (legend,) = drawing.figure.legends
    assert {text.get_text() for text in legend.get_texts()} == sources
    assert "the first 4096 of 13764 tokens" in drawing.caption


def test_a_measure_that_is_undefined_in_all_layers_has_no_difference(tmp_path):
    rows = rows_of(["opt-125m"])
    for row in rows:
        if row["estimator"] == "two_nn_authors":
            row |= dict.fromkeys(("value", "standard_error", "low", "high"), "")
    caption = drawn_beside(tmp_path, ["opt-125m"], rows)[0].caption
    assert "Median absolute difference: Anisotropy 0." in caption
    assert "nan" not in caption
