"""Every figure of every paper, on made-up numbers: its artists hold what its CSV says, and nothing else."""

from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection, PolyCollection, QuadMesh

import draw_figure
import synthetic_tables
from figure_tables import rows_of_model, write_rows
from shape_of_learning.figures.inputs import DrawnMeasure, DrawnModel, FigureInputs
from shape_of_learning.figures.style import theme
from shape_of_learning.files import read_yaml
from shape_of_learning.plan.configuration import read_run, with_defaults
from shape_of_learning.plan.figures import drawn_measures, drawn_models, options_of
from shape_of_learning.plan.paper_models import with_chosen_measures
from shape_of_learning.plan.papers import figures_of, read_papers

ROOT = Path(__file__).parents[2]

PAPERS = read_papers(ROOT / "workflow/papers")
DEMO = with_defaults(read_yaml(ROOT / "config/demo.yaml"), ROOT / "config/config.yaml")
RUN = read_run(DEMO, ROOT / "config/models", papers=PAPERS)
FIGURES = with_chosen_measures(figures_of(PAPERS), DEMO)
# By function, the columns of its CSV along both axes; none where an axis has places of its own.
BY_DEPTH, BY_LAYER, BY_STEP = (((name,), ("value",)) for name in ("depth", "layer", "step"))
AXES = {
    **dict.fromkeys(("profiles_by_role", "anisotropy_measures", "first_tokens"), BY_DEPTH),
    **dict.fromkeys(("linearity_by_depth", "norm_ratio_by_depth", "final_norm_by_depth"), BY_DEPTH),
    **dict.fromkeys(("profiles_by_step", "overview", "isotropy_by_layer"), BY_LAYER),
    **dict.fromkeys(("means_by_step", "isotropy_by_step", "final_norm_by_step"), BY_STEP),
    **dict.fromkeys(("heat_maps", "spectra", "probe_scores", "local_structure"), ((), ("value",))),
    "dimension_by_scale": (("n1",), ("value",)),
    "loss_by_step": (("step",), ("loss",)),
    "perplexity_of_changed_blocks": ((), ("perplexity",)),
    "errors_of_tokens": (("layer",), ("quantile_0.5", "share_of_worst_tokens")),
    "changes_by_finetuning": (("change",), ()),
    "isotropy_by_model": (("value",), ()),
    "planes": (("x",), ("y",)),
    "isotropy_and_loss": (("loss",), ("value",)),
}
NO_CURVE = {"_hollow", "_suspect", "_dots", "_undefined", "_break", "_marks", "_middle"}


def in_figure(table, function):
    """What the CSV has beyond what is drawn is left out."""
    if function == "linearity_by_depth":
        return table[table["estimator"].str.contains("adjusted|held_out")]
    if function == "final_norm_by_depth":
        before = table["estimator"].str.contains("before_norm")
        return table[
            ~before | (table.groupby(["model", "estimator"]).cumcount(ascending=False) < 2)
        ]
    return table


def given(target):
    """What the function of a figure is told, and the tables that it reads."""
    figure, names = FIGURES[target], RUN.shown[target]
    models = [RUN.models[name] for name in names]
    measures = [RUN.every_measure[name] for name in figure.estimators]
    last = not figure.needs_training_steps
    revisions = {m.name: f"step{synthetic_tables.steps_of(m)[-1][0]}" for m in models if last}
    tables = {kind: synthetic_tables.further(kind, models, measures) for kind in figure.reads}
    tables |= {"estimates": synthetic_tables.estimates(models, measures, False)} if measures else {}
    tables |= {} if last else {"verdicts": synthetic_tables.verdicts(models)}
    inputs = FigureInputs(
        [DrawnModel(**each) for each in drawn_models(models, revisions)],
        [DrawnMeasure(**each) for each in drawn_measures(measures)],
        "Protocol.",
        tables,
    )
    return figure.draw, inputs, options_of(figure, names, DEMO)


def points_of(axes):
    """All points of the curves, dots and cells of a panel, by label."""
    for line in axes.get_lines():
        if line.get_label() not in NO_CURVE and line.get_transform() == axes.transData:
            yield line.get_label(), np.column_stack([line.get_xdata(), line.get_ydata()])
    for each in axes.collections:
        if isinstance(each, QuadMesh):
            cells = np.ma.filled(each.get_array().astype(float), np.nan).ravel()
            yield "", np.column_stack([np.full(cells.shape, np.nan), cells])
        elif isinstance(each, PathCollection):
            yield "", np.asarray(each.get_offsets())


def numbers(table, columns):
    values = table[list(columns)].to_numpy("float64")
    return set(values[np.isfinite(values)])


@pytest.mark.parametrize("target", sorted({*RUN.shown} & {*FIGURES} - {"linear_figure_4"}))
def test_artists_hold_the_numbers_of_the_csv(target):
    function, inputs, options = given(target)
    module, _, name = function.partition(":")
    with theme():
        drawing = getattr(import_module(module), name)(inputs, **options)
    table = in_figure(drawing.table, name)
    panels = [axes for axes in drawing.figure.axes if axes.get_label() != "<colorbar>"]
    of_panels = [each for axes in panels for each in points_of(axes)]
    found = np.concatenate([points for _, points in of_panels]).astype(float)
    for values, columns in zip(found.T, AXES[name], strict=True):
        if columns:
            assert numbers(table, columns)
            assert set(values[np.isfinite(values)]) == numbers(table, columns)
    for label, points in of_panels:
        if "label" in table and label in set(table["label"]):
            own = table[table["label"] == label]
            for values, columns in zip(points.T.astype(float), AXES[name], strict=True):
                assert not columns or set(values[np.isfinite(values)]) <= numbers(own, columns)


@pytest.mark.parametrize("target", ["figure_1", "figure_4"])
def test_bands_end_where_the_intervals_of_the_csv_do(target):
    function, inputs, options = given(target)
    module, _, name = function.partition(":")
    with theme():
        drawing = getattr(import_module(module), name)(inputs, **options)
    bands = [
        path.vertices
        for axes in drawing.figure.axes
        for band in axes.collections
        if isinstance(band, PolyCollection)
        for path in band.get_paths()
    ]
    assert set(np.concatenate(bands)[:, 1]) == numbers(drawing.table, ("low", "high"))


def rows_of_files(tmp_path):
    """Estimates of two models in files of their own: two steps, two measures, in another order than drawn."""
    return [
        write_rows(
            tmp_path / f"{name}.csv",
            rows_of_model(name, steps=[1, 8], estimators=["mada", "anisotropy"]),
        )
        for name in ("NA", "b")
    ]


def test_a_job_draws_what_it_is_told_from_tables_that_hold_more(tmp_path):
    model = {"label": "A model", "family": "f", "role": "decoder", "revision": "step8"}
    measure = {"name": "anisotropy", "label": "Anisotropy", "axis": "Anisotropy"}
    folders = [tmp_path / "once", tmp_path / "twice"]
    for folder in folders:
        draw_figure.main(
            "papers.shape_of_learning.figures:profiles_by_role",
            [{"name": "NA", **model}],
            [measure],
            {},
            "What: is *drawn*.\n\n.. raw:: html",
            {"estimates": rows_of_files(tmp_path)},
            {kind: folder / f"figure_1.{kind[:3]}" for kind in ("pdf", "png", "csv", "markdown")},
        )
    once, twice = ([f.read_bytes() for f in sorted(folder.iterdir())] for folder in folders)
    assert once == twice
    table = pd.read_csv(folders[0] / "figure_1.csv", keep_default_na=False)
    expected = [
        row
        for row in rows_of_model("NA", steps=[1, 8], estimators=["mada", "anisotropy"])
        if (row["step"], row["estimator"]) == (8, "anisotropy") and row["layer"] != ""
    ]
    assert list(table["value"]) == [row["value"] for row in expected]
    assert set(table["model"]) == {"NA"}
    assert (folders[0] / "figure_1.pdf").read_bytes().startswith(b"%PDF")
    # A report shows the caption as reStructuredText, in which a line may begin a directive.
    (line,) = (folders[0] / "figure_1.mar").read_text().splitlines()
    assert line.startswith(r"**figure\_1.** What: is \*drawn\*. .. raw:: html Lines: mean over")
