"""The artists of a figure hold the numbers of its CSV, and equal input gives equal bytes."""

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from figure_tables import (
    ALL,
    CHANGE_HEADER,
    changes_of,
    draw,
    inputs_of,
    measures_named,
    models_named,
    read_csv,
    rows_of_model,
    undefined,
    verdicts_on,
    write_rows,
    write_verdicts,
)
from shape_of_learning.errors import InputError
from shape_of_learning.figures.output import save
from shape_of_learning.figures.style import theme

WORKFLOW = Path(__file__).parents[2] / "workflow"
STEPS = [0, 1, 8, 64, 512]
TRAINED = rows_of_model("a", steps=STEPS) + rows_of_model("b", steps=[2, 100], layers=5)
FINAL = rows_of_model("a") + rows_of_model("b", layers=4) + rows_of_model("c", role="encoder")
NAMES = {"decoder": "Decoders", "encoder": "Encoders"}


def drawn(name, rows, models, folder, *estimators, **options):
    """Draw `rows`; the figure and its CSV, read back."""
    drawing = draw(name, inputs_of(folder, models, *estimators, rows=rows), **options)
    drawing.table.to_csv(folder / "figure.csv", index=False)
    return drawing.figure, read_csv(folder / "figure.csv")


def lines_of(axes):
    return {line.get_label(): line for line in axes.get_lines() if line.get_label()[0] != "_"}


def column(points, name):
    return np.array([float(point[name] or "nan") for point in points])


def assert_line_is(line, points, x):
    np.testing.assert_array_equal(line.get_xdata(), column(points, x))
    np.testing.assert_array_equal(line.get_ydata(), column(points, "value"))


def assert_bands_are(axes, points, x):
    """Every band of the panel passes through the ends of the intervals of its points."""
    corners = np.concatenate(
        [path.vertices for band in axes.collections for path in band.get_paths()]
    )
    places, low, high = (column(points, name) for name in (x, "low", "high"))
    expected = np.concatenate([np.column_stack([places, low]), np.column_stack([places, high])])
    assert {tuple(corner) for corner in expected} == {tuple(corner) for corner in corners}


def test_profiles_by_role_draw_their_csv(tmp_path):
    figure, points = drawn("profiles_by_role", FINAL, ["a", "b", "c"], tmp_path, "anisotropy")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["Decoders", "Encoders"]
    for axes in figure.axes:
        panel = [point for point in points if NAMES[point["role"]] == axes.get_title(loc="left")]
        assert_bands_are(axes, panel, "depth")
        for name, line in lines_of(axes).items():
            assert_line_is(line, [point for point in panel if point["model"] == name], "depth")
    assert [set(lines_of(axes)) for axes in figure.axes] == [{"a", "b"}, {"c"}]


def test_profiles_by_role_show_one_panel_if_there_is_one_role(tmp_path):
    figure, _ = drawn("profiles_by_role", FINAL, ["c"], tmp_path, "anisotropy")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["Encoders"]


def test_anisotropy_measures_draw_their_csv(tmp_path):
    figure, points = drawn("anisotropy_measures", FINAL, ["a", "c"], tmp_path, *ALL[:4])
    titles = {
        ("Anisotropy", "Not centred"): "anisotropy_uncentered",
        ("Anisotropy", "Centred"): "anisotropy",
        ("Average cosine", "Not centred"): "average_cosine",
        ("Average cosine", "Centred"): "average_cosine_centered",
    }
    assert len(figure.axes) == 4
    for axes in figure.axes:
        estimator = titles.pop((axes.get_ylabel(), axes.get_title(loc="left")))
        panel = [point for point in points if point["estimator"] == estimator]
        assert_bands_are(axes, panel, "depth")
        for name, line in lines_of(axes).items():
            assert_line_is(line, [point for point in panel if point["model"] == name], "depth")


def test_labels_are_joined_to_the_lines_of_the_panel_beside_them(tmp_path):
    figure, points = drawn("anisotropy_measures", FINAL, ["a", "c"], tmp_path, *ALL[:4])
    ends = [note.xy for axes in figure.axes for note in axes.texts if hasattr(note, "xy")]
    cosines = [
        float(p["value"])
        for p in points
        if p["estimator"] == "average_cosine" and p["depth"] == "1.0"
    ]
    assert [end[1] for end in ends] == cosines


def test_training_profile_draws_its_csv_from_early_to_late(tmp_path):
    figure, points = drawn("training_profile", TRAINED, ["a"], tmp_path, "anisotropy")
    lines = lines_of(figure.axes[0])
    assert list(lines) == [str(step) for step in STEPS]
    assert_bands_are(figure.axes[0], points, "layer")
    for step, line in lines.items():
        assert_line_is(line, [point for point in points if point["step"] == step], "layer")


def test_later_steps_are_drawn_darker(tmp_path):
    figure, _ = drawn("training_profile", TRAINED, ["a"], tmp_path, "anisotropy")
    trained = list(lines_of(figure.axes[0]).values())[1:]
    lightness = [np.dot(_rgb(line.get_color()), [0.2126, 0.7152, 0.0722]) for line in trained]
    assert lightness == sorted(lightness, reverse=True)


def test_step_0_of_a_training_profile_is_named_and_on_top(tmp_path):
    figure, _ = drawn("training_profile", TRAINED, ["a"], tmp_path, "anisotropy")
    untrained, *others = lines_of(figure.axes[0]).values()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["step 0, untrained"]
    assert untrained.get_zorder() > max(line.get_zorder() for line in others)


@pytest.mark.parametrize("progress", ["step", "tokens"])
def test_dimension_curves_draw_their_csv(tmp_path, progress):
    figure, points = drawn(
        "dimension_by_step",
        TRAINED,
        ["a", "b"],
        tmp_path,
        "two_nn",
        "mada",
        "mom",
        progress=progress,
    )
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["TwoNN", "MADA", "MOM"]
    for axes, estimator in zip(figure.axes, ["two_nn", "mada", "mom"], strict=True):
        panel = [point for point in points if point["estimator"] == estimator]
        assert_bands_are(axes, panel, progress)
        for name, line in lines_of(axes).items():
            assert_line_is(line, [point for point in panel if point["model"] == name], progress)


def test_step_0_stands_within_a_logarithmic_axis(tmp_path):
    figure, _ = drawn("dimension_by_step", TRAINED, ["a", "b"], tmp_path, "two_nn")
    (axes,) = figure.axes
    pixels = axes.transData.transform([(step, 20) for step in STEPS])[:, 0]
    left = axes.get_window_extent().x0
    assert left < pixels[0] < pixels[1]
    assert np.ptp(np.diff(pixels[1:])) < 1e-6 * pixels[-1]  # 1, 8, 64, 512 evenly: float rounding
    assert "0" in [text.get_text() for text in axes.get_xticklabels()]


def test_an_undefined_checkpoint_is_a_gap(tmp_path):
    rows = [undefined(row) if (row["model"], row["step"]) == ("a", 8) else row for row in TRAINED]
    figure, points = drawn("dimension_by_step", rows, ["a", "b"], tmp_path, "two_nn")
    line = lines_of(figure.axes[0])["a"]
    assert list(np.isnan(line.get_ydata())) == [step == 8 for step in STEPS]
    assert [point["value"] == "" for point in points if point["model"] == "a"] == [
        step == 8 for step in STEPS
    ]


def test_a_point_between_two_gaps_is_marked(tmp_path):
    rows = [undefined(row) if row["layer"] in (0, 2) else row for row in rows_of_model("a")]
    figure, _ = drawn("profiles_by_role", rows, ["a"], tmp_path, "anisotropy")
    line = lines_of(figure.axes[0])["a"]
    assert list(line.get_markevery()) == [False, True, False, True]
    assert line.get_marker() == "o"


def test_a_model_without_any_value_is_named_as_undefined(tmp_path):
    rows = FINAL + [undefined(row) | {"model": "d"} for row in rows_of_model("a")]
    figure, _ = drawn("profiles_by_role", rows, ["a", "d"], tmp_path, "anisotropy")
    assert "d: undefined" in [text.get_text() for text in figure.axes[0].texts]


def test_models_without_steps_have_no_training_curve(tmp_path):
    with pytest.raises(InputError, match="no step for checkpoints of c"):
        drawn("dimension_by_step", TRAINED + rows_of_model("c"), ["a", "c"], tmp_path, "two_nn")


def test_a_training_profile_has_a_panel_and_a_bar_of_colours_for_each_model(tmp_path):
    figure, points = drawn("training_profile", TRAINED, ["a", "b"], tmp_path, "anisotropy")
    bars = [axes for axes in figure.axes if axes.get_ylabel() == "Training step"]
    panels = [axes for axes in figure.axes if axes not in bars]
    assert len(bars) == 2
    assert [axes.get_title(loc="left") for axes in panels] == ["a", "b"]
    for axes, model in zip(panels, "ab", strict=True):
        of_model = [point for point in points if point["model"] == model]
        assert_bands_are(axes, of_model, "layer")
        for step, line in lines_of(axes).items():
            assert_line_is(line, [p for p in of_model if str(p["step"]) == step], "layer")


def test_a_profile_by_depth_shows_one_checkpoint_of_each_model(tmp_path):
    with pytest.raises(InputError, match="has 5 checkpoints of a, but the figure draws one"):
        drawn("profiles_by_role", TRAINED, ["a"], tmp_path, "anisotropy")


@pytest.mark.parametrize(
    ("name", "rows", "estimators"),
    [
        ("profiles_by_role", FINAL, ["anisotropy"]),
        ("training_profile", TRAINED, ["anisotropy"]),
        ("heat_map", TRAINED, ["anisotropy", "mada"]),
        ("dimension_by_step", TRAINED, ["two_nn", "mom"]),
        ("loss_by_step", TRAINED, []),
    ],
)
def test_equal_estimates_give_equal_bytes(tmp_path, name, rows, estimators, monkeypatch):
    flagged = {1: ("broken: perplexity is infinite", "no"), 8: ("mixed shards", "hollow")}
    verdicts = verdicts_on("a", STEPS, flagged) if rows is TRAINED else None
    inputs = inputs_of(tmp_path, ["a"], *estimators, rows=rows, verdicts=verdicts)
    written = []
    for epoch in ("1000000000", "2000000000"):
        # the date that matplotlib and fontTools write where they write one
        monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
        (tmp_path / epoch).mkdir()
        files = [tmp_path / epoch / f"f.{suffix}" for suffix in ("pdf", "png", "csv", "md")]
        drawing = draw(name, inputs)
        with theme():
            save(drawing, *files)
        written.append([file.read_bytes() for file in files])
    assert written[0] == written[1]


def run_script(folder, function, models, *arguments):
    """Run the script; what ran, and its PDF, PNG, CSV and caption."""
    outputs = [folder / f"figure.{kind}" for kind in ("pdf", "png", "csv", "md")]
    measures = measures_named("two_nn" if "dimension" in function else "anisotropy")
    figure = {
        "models": [asdict(model) for model in models_named(models, [f"M {n}" for n in models])],
        "measures": [asdict(measure) for measure in measures],
        "options": {},
    }
    named = ["--function", f"shape_of_learning:{function}", "--figure", json.dumps(figure)]
    named += ["--caption", "Protocol.", "--log", folder / "log"]
    named += ["--output", *outputs]
    command = [sys.executable, WORKFLOW / "scripts" / "draw_figure.py", *named, *arguments]
    ran = subprocess.run(
        list(map(str, command)),
        env=os.environ | {"PYTHONPATH": str(WORKFLOW)},
        capture_output=True,
        text=True,
        check=False,
    )
    return ran, outputs


def test_the_script_writes_pdf_png_and_csv(tmp_path):
    path = write_rows(tmp_path / "estimates.csv", FINAL)
    ran, (pdf, png, csv, md) = run_script(
        tmp_path, "profiles_by_role", ["a", "b"], "--estimates", path
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert pdf.read_bytes().startswith(b"%PDF")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert {row["label"] for row in read_csv(csv)} == {"M a", "M b"}
    assert md.read_text().startswith("**figure.** Protocol. Lines: mean over batches of 4,096")


@pytest.mark.parametrize("function", ["dimension_by_step", "loss_by_step"])
def test_the_script_reads_verdicts_and_the_loss_needs_no_estimates(tmp_path, function):
    path = write_rows(tmp_path / "estimates.csv", TRAINED)
    flagged = {8: ("same weights as step 1", "no"), 64: ("mixed shards", "hollow")}
    verdicts = write_verdicts(tmp_path / "verdicts.csv", verdicts_on("a", STEPS, flagged))
    changes = write_rows(tmp_path / "changes.csv", changes_of(TRAINED), CHANGE_HEADER)
    estimates = ["--estimates", path, "--changes", changes]
    given = [] if function == "loss_by_step" else estimates
    ran, (_, png, csv, _) = run_script(tmp_path, function, ["a"], "--verdicts", verdicts, *given)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "Left out: M a step 8 (same weights as step 1)." in (tmp_path / "log").read_text()
    verdict_at = {row["step"]: row["verdict"] for row in read_csv(csv)}
    assert verdict_at == {"0": "ok", "1": "ok", "64": "mixed shards", "512": "ok"}
    assert b"Hollow: M a step 64 (mixed shards)." in png.read_bytes()


def test_the_script_says_in_one_sentence_what_is_wrong_and_leaves_nothing(tmp_path):
    path = write_rows(tmp_path / "estimates.csv", TRAINED)
    ran, outputs = run_script(tmp_path, "profiles_by_role", ["z"], "--estimates", path)
    assert ran.returncode == 1
    assert "has no model 'z'" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert not any(file.exists() for file in outputs)


def _rgb(colour):
    return [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
