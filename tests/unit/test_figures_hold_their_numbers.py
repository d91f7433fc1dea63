"""The artists of every figure of every paper hold exactly the numbers of its CSV."""

import re
import runpy
from importlib import import_module
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection, PolyCollection, QuadMesh

import draw_figure
from figure_tables import (
    BY_LAYER,
    BY_STEP,
    HEADER,
    SUSPECT,
    clear_value,
    make_model_rows,
    make_table,
    make_verdicts,
    write_rows,
)
from shape_of_learning.checkpoints.verdict import COLUMNS as VERDICT_HEADER
from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.figures.job import DrawnMeasure, DrawnModel, FigureJob, make_drawn_measures
from shape_of_learning.figures.output import fix_layout
from shape_of_learning.figures.style import use_theme
from shape_of_learning.files import read_yaml
from shape_of_learning.metrics.registry import MEASURES
from shape_of_learning.metrics.tidy import (
    CONTROL_COLUMNS,
    MASSIVE_TABLE_COLUMNS,
    WEIGHT_COLUMNS,
    WEIGHT_POINT_COLUMNS,
)
from shape_of_learning.plan.jobs import describe_measures, format_opening, make_drawn_models
from shape_of_learning.plan.papers import choose_figure_measures, collect_figures, read_papers
from shape_of_learning.plan.run import add_defaults, read_run
from shape_of_learning.training.train import TRAINING_COLUMNS

ROOT = Path(__file__).parents[2]

PAPERS = read_papers(ROOT / "workflow/papers")
DEMO = add_defaults(read_yaml(ROOT / "config/demo.yaml"), ROOT / "config/config.yaml")
RUN = read_run(
    {**DEMO, "papers": [paper.name for paper in PAPERS]}, ROOT / "config/models", papers=PAPERS
)
FIGURES = choose_figure_measures(collect_figures(PAPERS), DEMO["measurement"]["estimators"])
# The made_tables.py of each paper describes its figures by the names of their functions:
#   TABLES    of a kind, the columns and the rows of one model
#   AXES      the columns of the CSV along both axes; none if an axis has places of its own
#   DRAWN     the part of the CSV that is drawn, if not all of it
#   SOURCES   the text that the footer names, if not the windows of the run
#   AT_EDGE   figures whose curves may end at the edge of their panel
#   NO_CURVES figures that are not compared here
MADE = [runpy.run_path(str(ROOT / f"tests/papers/{paper.name}/made_tables.py")) for paper in PAPERS]


def gather(name):
    """Join the mappings of all papers under a name."""
    return {key: value for tables in MADE for key, value in tables.get(name, {}).items()}


AXES = {
    **dict.fromkeys(("profiles_by_step", "overview"), BY_LAYER),
    **{"means_by_step": BY_STEP, "controls_by_step": BY_STEP, "heat_maps": ((), ("value",))},
    "controls_by_layer": (("layer",), ("value", "difference", "ratio")),
    **gather("AXES"),
}
DRAWN, SOURCES = gather("DRAWN"), gather("SOURCES")
AT_EDGE, NO_CURVES = (
    {function for tables in MADE for function in tables.get(name, ())}
    for name in ("AT_EDGE", "NO_CURVES")
)
TARGETS = [
    target
    for target in sorted({*RUN.shown_models} & {*FIGURES})
    if FIGURES[target].draw.partition(":")[2] not in NO_CURVES
]
JACKKNIFE_COLUMNS = ("model", "step", "estimator", "layer", "value")
JACKKNIFE_COLUMNS += tuple(f"without_{group}" for group in range(16))
SAMPLE = "128 windows of 512 characters of enwik8"
KINDS_OF_CONTROLS = ("shuffled_within_windows", "shuffled_unigram", "untrained", "gaussian")
NUMBERS = np.random.default_rng(0)
NO_CURVE = {"_hollow", "_marked", "_dots", "_undefined", "_break", "_marks", "_middle", "_bare"}


def list_steps(model):
    """List the steps of a model; a model without steps gets one."""
    return [checkpoint.step for checkpoint in model.checkpoints if checkpoint.step is not None] or [
        1000
    ]


def make_estimates(models, measures):
    """Make estimates with values that are undefined or suspect in a layer at step 1."""
    rows = []
    for model in models:
        layers, steps = model.shape.layers or 24, list_steps(model)
        for first in (0, 1):
            names = [m.name for m in measures if m.first_layer == first and m.family != "weights"]
            model_rows = make_model_rows(model.name, layers=layers, steps=steps, estimators=names)
            rows += [row for row in model_rows if row["layer"] != 0 or not first]
    for row in rows:
        row["role"] = next(model.shape.role for model in models if model.name == row["model"])
        if row["step"] == 1 and row["layer"] == 2:
            row |= clear_value(row) if row["estimator"] == "mada" else SUSPECT
    return make_table("estimates", rows, HEADER)


def make_model_verdicts(models):
    """Make verdicts: the second step of a model is broken or, in every other model, hollow."""
    rows = []
    for number, model in enumerate(models):
        fault = ("mixed shards", "hollow") if number % 2 else ("broken: perplexity of 320322", "no")
        losses = {step: 2 + 9 / (1 + step) for step in list_steps(model)}
        second = {step: fault for step in list_steps(model)[1:2]}
        rows += make_verdicts(model.name, losses, second, losses=losses)
    return make_table("verdicts", rows, VERDICT_HEADER)


def make_further_table(kind, models, measures):
    """Make a further table that a figure `reads`."""
    columns, make = FURTHER[kind]
    rows = [row for model in models for row in make(model, measures)]
    return pd.DataFrame(rows, columns=[*columns])


def make_training_rows(model, _):
    facts = {"model": model.name, "step": 1000, "revision": "step1000", **model.recipe}
    if model.kind == "pretraining":
        facts["held_out_loss"] = 3 + NUMBERS.random()
    if model.kind == "finetuning":
        facts |= {"origin": model.origin.name, "score": 0.9}
    yield tuple(facts.get(name) for name in TRAINING_COLUMNS)


def make_jackknife_rows(model, measures):
    for step, measure, layer in product(list_steps(model), measures, range(1, 4)):
        value = NUMBERS.random()
        yield model.name, step, measure.name, layer, value, *(value + NUMBERS.normal(size=16))


def make_weight_rows(model, measures, first=0):
    for step in list_steps(model)[first:]:
        checkpoint = (model.name, model.shape.role, f"step{step}", step, 2048 * step)
        for matrix, measure in product(("input", "output"), measures):
            if not measure.matrix or matrix != "output":
                value = NUMBERS.uniform(0.1, 2) * (1 if measure.matrix else -1)
                yield *checkpoint, measure.matrix or matrix, measure.name, 50_000, 2048, value


def make_point_rows(model, _):
    steps = list_steps(model)
    ends = (steps[0], steps[len(steps) // 2], steps[-1])
    for step, matrix, is_centered in product(ends, ("input", "output"), ("no", "yes")):
        place = (
            model.name,
            model.shape.role,
            f"step{step}",
            step,
            2048 * step,
            matrix,
            is_centered,
        )
        yield from ((*place, entry, *NUMBERS.normal(size=2)) for entry in range(99))


def make_control_rows(model, measures):
    for step, control, measure in product(list_steps(model), KINDS_OF_CONTROLS, measures):
        place = (model.name, model.shape.role, f"step{step}", step, 2048 * step, control)
        for layer in range(measure.first_layer, 4):
            facts = (measure.name, "all", layer, None, 4096, 4096, 0.01, 0.5, 128, 50)
            value = NUMBERS.uniform(0.1, 1)
            yield *place, *facts, value, *(value + 0.01 * NUMBERS.normal(size=16))


def make_massive_rows(model, _):
    for step, layer in product(list_steps(model), range(4)):
        place = (model.name, model.shape.role, f"step{step}", step, 2048 * step, layer)
        token, coordinate, massive_share = NUMBERS.uniform(0, 1, 3)
        facts = (token, 7, coordinate, 30.0, massive_share, 2, 3, 4096, "0 (2)", '"a" (1); "b" (1)')
        yield *place, *facts


FURTHER = {
    "massive": (MASSIVE_TABLE_COLUMNS, make_massive_rows),
    "controls": (CONTROL_COLUMNS, make_control_rows),
    "training": (TRAINING_COLUMNS, make_training_rows),
    "jackknife": (JACKKNIFE_COLUMNS, make_jackknife_rows),
    "weights": (WEIGHT_COLUMNS, make_weight_rows),
    "last_weights": (WEIGHT_COLUMNS, lambda model, measures: make_weight_rows(model, measures, -1)),
    "weight_points": (WEIGHT_POINT_COLUMNS, make_point_rows),
    **gather("TABLES"),
}


def prepare_figure(target):
    """Return the function of a figure, its inputs and its options."""
    figure, names = FIGURES[target], RUN.shown_models[target]
    models = [RUN.models[name] for name in names]
    measures = [RUN.all_measures[name] for name in figure.estimators]
    last = not figure.draws_every_checkpoint
    revisions = {m.name: f"step{list_steps(m)[-1]}" for m in models if last}
    tables = {kind: make_further_table(kind, models, measures) for kind in figure.reads}
    tables |= make_estimates(models, measures) if measures else {}
    tables |= {} if last else make_model_verdicts(models)
    inputs = FigureInputs(
        make_drawn_models(models, revisions),
        make_drawn_measures(measures),
        format_opening(figure, models, measures, RUN.settings),
        tables,
        sample=SAMPLE,
    )
    return (
        figure.draw,
        inputs,
        {**figure.options, **{k: getattr(RUN.settings.figures, k) for k in figure.settings}},
    )


def find_points(axes):
    """Yield the points of the curves, dots and cells of a panel, by label."""
    for line in axes.get_lines():
        if line.get_label() not in NO_CURVE and line.get_transform() == axes.transData:
            yield line.get_label(), np.column_stack([line.get_xdata(), line.get_ydata()])
    for collection in axes.collections:
        if isinstance(collection, QuadMesh):
            cells = np.ma.filled(collection.get_array().astype(float), np.nan).ravel()
            yield "", np.column_stack([np.full(cells.shape, np.nan), cells])
        elif isinstance(collection, PathCollection):
            yield "", np.asarray(collection.get_offsets())


def find_numbers(table, columns):
    values = table[list(columns)].to_numpy("float64")
    return set(values[np.isfinite(values)])


def assert_footer_explains(footer, figure, panels):
    """Assert that the footer explains marks of suspect values, bands, and neighbouring panels with other scales."""
    line_labels = {str(line.get_label()) for axes in panels for line in axes.get_lines()}
    assert ("_marked" in line_labels) == ("Hollow with a dot" in footer)
    bands = [b for axes in panels for b in axes.collections if isinstance(b, PolyCollection)]
    has_bands = any(len(path.vertices) for band in bands for path in band.get_paths())
    has_patches = any(legend.get_patches() for legend in figure.legends)
    assert not has_bands or "ands: " in footer or has_patches
    rows = {}
    for axes in panels:
        rows.setdefault(axes.get_subplotspec().rowspan.start, []).append(axes)
    for neighbours in rows.values():
        is_one_label = sum(bool(axes.get_ylabel()) for axes in neighbours) <= 1
        if is_one_label and len({axes.get_ylim() for axes in neighbours if axes.axison}) > 1:
            assert "differ in scale" in footer


@pytest.mark.parametrize("target", TARGETS)
def test_artists_hold_the_numbers_of_the_csv(target):
    function, inputs, options = prepare_figure(target)
    module, _, name = function.partition(":")
    with use_theme():
        drawing = getattr(import_module(module), name)(inputs, **options)
    assert len(drawing.caption.split()) <= 60
    table = DRAWN[name](drawing.table) if name in DRAWN else drawing.table
    panels = [axes for axes in drawing.figure.axes if axes.get_label() != "<colorbar>"]
    if target in ("figure_1", "figure_4"):
        collections = [collection for axes in panels for collection in axes.collections]
        bands = [
            p.vertices for b in collections if isinstance(b, PolyCollection) for p in b.get_paths()
        ]
        assert set(np.concatenate(bands)[:, 1]) == find_numbers(table, ("low", "high"))
    labelled_points = [curve for axes in panels for curve in find_points(axes)]
    all_points = np.concatenate([points for _, points in labelled_points]).astype(float)
    for values, columns in zip(all_points.T, AXES[name], strict=True):
        if columns:
            assert find_numbers(table, columns)
            assert set(values[np.isfinite(values)]) == find_numbers(table, columns)
    footer = " ".join(text.get_text() for text in drawing.figure.texts if text.get_gid())
    footer = " ".join(footer.split())
    source = SOURCES.get(name, SAMPLE)
    assert source in footer
    assert source == "no text" or re.search(r"\d (vectors|tokens)", footer)
    assert_footer_explains(footer, drawing.figure, panels)
    for axes in panels if name not in AT_EDGE else ():
        low, high = sorted(axes.get_ylim())
        for _, points in find_points(axes):
            finite_points = points[np.isfinite(points.astype(float)).all(axis=1)].astype(float)
            assert ((low <= finite_points[:, 1]) & (finite_points[:, 1] <= high)).all(), (
                "a point is outside of its panel"
            )
    for label, points in labelled_points:
        if "label" in table and label in set(table["label"]):
            label_rows = table[table["label"] == label]
            for values, columns in zip(points.T.astype(float), AXES[name], strict=True):
                assert not columns or set(values[np.isfinite(values)]) <= find_numbers(
                    label_rows, columns
                )


@pytest.mark.parametrize("target", TARGETS)
def test_no_label_of_an_axis_is_cut_off(target):
    function, inputs, options = prepare_figure(target)
    module, _, name = function.partition(":")
    with use_theme():
        figure = getattr(import_module(module), name)(inputs, **options).figure
        fix_layout(figure)
        labels = [axis.label for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]
        boxes = {text.get_text(): text.get_window_extent() for text in labels if text.get_text()}
    for words, box in boxes.items():
        assert (box.min >= -1).all(), words
        assert (box.max <= figure.bbox.max + 1).all(), words


def test_a_job_draws_its_models_and_measures_from_larger_tables(tmp_path):
    # Two models have a file each: two steps and two measures, in another order than drawn.
    rows = {
        m: make_model_rows(m, steps=[1, 8], estimators=["mada", "anisotropy"]) for m in ("NA", "b")
    }
    files = [
        write_rows(tmp_path / f"{name}.csv", expected_rows) for name, expected_rows in rows.items()
    ]
    job = FigureJob(
        "papers.shape_of_learning.figures:profiles_by_role",
        models=(DrawnModel("NA", "A model", "f", "decoder", "step8"),),
        measures=(DrawnMeasure("anisotropy", "Anisotropy", "Anisotropy"),),
        options={},
        caption="What: is *drawn*.\n\n.. raw:: html",
        note="",
        sample="",
        protocol="TwoNN keeps the lowest 90 %.",
    )
    folders = [tmp_path / "once", tmp_path / "twice"]
    for folder in folders:
        draw_figure.main(
            job,
            {"estimates": files},
            tmp_path / "no_losses.json",
            {kind: folder / f"figure_1.{kind[:3]}" for kind in ("pdf", "png", "csv", "markdown")},
        )
    once, twice = ([f.read_bytes() for f in sorted(folder.iterdir())] for folder in folders)
    assert once == twice
    table = pd.read_csv(folders[0] / "figure_1.csv", keep_default_na=False)
    expected_rows = [r for r in rows["NA"] if (r["step"], r["estimator"]) == (8, "anisotropy")]
    assert list(table["value"]) == [row["value"] for row in expected_rows if row["layer"] != ""]
    assert set(table["model"]) == {"NA"}
    # A report shows the caption as reStructuredText, in which a line may begin a directive.
    (line,) = (folders[0] / "figure_1.mar").read_text().splitlines()
    assert line.startswith(r"**figure\_1.** What: is \*drawn\*. .. raw:: html Lines: mean over")
    assert line.endswith("TwoNN keeps the lowest 90 %.")


def test_captions_say_how_estimators_of_the_dimension_are_set():
    """Curves cannot be read without the number of neighbours and the kept share."""
    settings = {"two_nn": {}, "two_nn_authors": {}, "mada": {"k": 30}}
    measures = [MEASURES[name].configure(name, parameters) for name, parameters in settings.items()]
    protocol = describe_measures(measures)
    assert "lowest 90 %" in protocol
    assert "lowest 20 %" in protocol
    assert "k = 30" in protocol
