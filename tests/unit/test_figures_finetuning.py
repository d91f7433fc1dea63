"""The figures of the paper on fine-tuning hold the numbers of their CSV, and count as their words say."""

import random

import numpy as np
import pandas as pd
import pytest

from figure_tables import models_named
from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.figures.output import paper_function
from shape_of_learning.figures.style import theme
from shape_of_learning.tasks.task_tables import CHECKPOINT, TABLES

LAYERS, STEPS, KEPT = 3, (0, 1, 16), 64
SHARES = ("share_between_token_types", "share_between_frequency_bands")
MEASURES = ("log_partition_isotropy", "average_cosine", "participation_ratio")
TOPS = ("top_1_share", "top_10_share")


def tables_of(models):
    """All four tables of models, seeded numbers of plausible size."""
    numbers = random.Random(0)
    rows = {name: [] for name in TABLES}
    for model in models:
        for step in STEPS:
            add = {
                name: lambda *cells, name=name, at=(model, f"step{step}", step): rows[name].append(
                    (*at, "topic/held_out", *cells)
                )
                for name in TABLES
            }
            for layer in range(LAYERS + 1):
                for estimator in (*MEASURES, *TOPS):
                    value = numbers.uniform(-9, 0) if estimator == MEASURES[0] else numbers.random()
                    add["finetuning_layers"](layer, estimator, 500, value)
                for place in range(1, KEPT + 1):
                    eigenvalue = (2 + step) * numbers.uniform(9, 11) / place**2
                    cells = (layer, 500, 0.02, 30.0, place, eigenvalue)
                    add["finetuning_spectra"](*cells)
                for quantity in SHARES:
                    add["finetuning_structure"](layer, quantity, np.nan, 500, numbers.random())
            for clusters in (1, 5, 27):
                cells = (LAYERS, MEASURES[0], clusters, 500, numbers.uniform(-9, 0))
                add["finetuning_structure"](*cells)
            adjusted = [("none", np.nan, np.nan, "nothing")]
            for fitted_on in ("training", "each split"):
                for k in (0, 1, 8, 32):
                    adjusted.append(("without_directions", 1, k, fitted_on))
                adjusted += [("only_directions", 1, k, fitted_on) for k in (1, 8, 32)]
                adjusted += [("cluster_based", 27, k, fitted_on) for k in (0, 12)]
            for cells in adjusted:
                score = ("accuracy", numbers.uniform(0.5, 1))
                add["finetuning_probes"](LAYERS, *cells, 500, 0, -3.0, 0.1, *score)
    return {name: pd.DataFrame(rows[name], columns=[*CHECKPOINT, *TABLES[name]]) for name in TABLES}


NAMES, FAMILIES = ["a0", "a1", "b0"], ["A", "A", "B"]
TABLES_OF_ALL = tables_of(NAMES)


def drawn(name, tables=TABLES_OF_ALL, names=NAMES, families=FAMILIES, **options):
    inputs = FigureInputs(
        models_named(names, families=families), caption="What is drawn.", tables=tables
    )
    with theme():
        drawing = paper_function(f"finetuning:{name}")(inputs, **options)
        drawing.figure.draw_without_rendering()
    return drawing


def points(drawing):
    """The points of all lines that are curves, as pairs of numbers."""
    return {
        (float(x), float(y))
        for axes in drawing.figure.axes
        for line in axes.get_lines()
        if line.get_label() == "_other" or not line.get_label().startswith("_")
        for x, y in zip(*line.get_data(), strict=True)
    }


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("isotropy_by_layer", ["layer"]),
        ("spectra", ["place", "layer"]),
        ("probe_scores", ["directions"]),
        ("local_structure", ["clusters", "layer"]),
    ],
)
def test_every_value_of_the_csv_is_a_point_and_no_point_is_another(name, places):
    drawing = drawn(name)
    values = {float(value) for value in drawing.table["value"]}
    assert {y for _, y in points(drawing)} == values
    if name != "probe_scores":  # whose clusters have places of their own
        first = drawing.table[places].bfill(axis=1).iloc[:, 0]
        assert {x for x, _ in points(drawing)} == set(first.astype(float))
    assert "Means over 1 to 2 seeds" in drawing.caption
    assert "500 tokens" in drawing.caption


def test_values_are_means_over_the_seeds_of_a_family_and_bands_their_range():
    table = drawn("isotropy_by_layer").table
    layers = TABLES_OF_ALL["finetuning_layers"]
    for row in table.to_dict("records"):
        names = [n for n, f in zip(NAMES, ("A", "A", "b0"), strict=True) if f == row["family"]]
        same = layers[["estimator", "step", "layer"]] == [
            row[k] for k in ("estimator", "step", "layer")
        ]
        found = layers.loc[same.all(axis=1) & layers["model"].isin(names), "value"]
        assert row["value"] == pytest.approx(found.mean())
        if len(names) > 1:
            assert (row["low"], row["high"]) == (found.min(), found.max())
        else:
            assert np.isnan([row["low"], row["high"]]).all()


def test_elongated_directions_are_counted_against_the_median_of_the_start():
    """A space whose variances all double has more of them, and none of its own median."""
    rows = [
        ("m", f"step{step}", step, "t/held_out", 0, 500, scale, 9.0, place, value * scale)
        for step, scale in ((0, 1), (4, 2))
        for place, value in enumerate((30.0, 9.0, 6.0, 4.0), start=1)
    ]
    columns = [*CHECKPOINT, *TABLES["finetuning_spectra"]]
    tables = {**TABLES_OF_ALL, "finetuning_spectra": pd.DataFrame(rows, columns=columns)}
    layers = TABLES_OF_ALL["finetuning_layers"]
    tables["finetuning_layers"] = layers[layers["model"] == "a0"].assign(model="m")
    table = drawn("spectra", tables, ["m"], ["M"]).table
    counted = table[table["estimator"] == "elongated_directions"].set_index("when")["value"]
    assert counted.to_dict() == {"before": 1, "after": 3}


def test_where_all_that_is_kept_is_elongated_the_figure_says_that_there_may_be_more():
    spectra = TABLES_OF_ALL["finetuning_spectra"]
    narrow = {**TABLES_OF_ALL, "finetuning_spectra": spectra.assign(median=1e-9)}
    assert "there may be more" in drawn("spectra", narrow).caption
    assert "there may be more" not in drawn("spectra").caption


def test_the_papers_way_of_fitting_is_another_figure_and_says_so():
    usual, papers_way = drawn("probe_scores"), drawn("probe_scores", fitted_on="each split")
    assert "as in the paper" in papers_way.caption
    assert "as in the paper" not in usual.caption
    assert set(usual.table["value"]) & set(papers_way.table["value"]) == set(
        usual.table.loc[usual.table["adjustment"] == "none", "value"]
    )


def test_undefined_values_are_gaps():
    probes = TABLES_OF_ALL["finetuning_probes"]
    broken = probes.assign(score=probes["score"].where(probes["model"] != "b0"))
    drawing = drawn("probe_scores", {**TABLES_OF_ALL, "finetuning_probes": broken})
    assert "cross at the lower edge: undefined" in drawing.caption
    assert drawing.table.loc[drawing.table["family"] == "b0", "value"].isna().all()


def test_the_table_has_every_adjustment_before_and_after():
    entries = [
        {"name": name, "family": family, "model": name}
        for name, family in zip(NAMES, FAMILIES, strict=True)
    ]
    table, markdown = paper_function("finetuning:adjustments")(entries, TABLES_OF_ALL)
    assert len(table) == 2 * 19
    probes = TABLES_OF_ALL["finetuning_probes"]
    row = table[(table["family"] == "A") & (table["fitted_on"] == "training")].iloc[1]
    same = probes[
        (probes["adjustment"] == row["adjustment"])
        & (probes["directions"] == row["directions"])
        & (probes["fitted_on"] == "training")
        & probes["model"].isin(["a0", "a1"])
    ]
    for when, step in (("before", 0), ("after", 16)):
        assert row[f"score_{when}"] == pytest.approx(same.loc[same["step"] == step, "score"].mean())
    assert row["seeds"] == 2
    lines = markdown.splitlines()
    assert len(lines) == 2 + 2 * 10
    assert len({line.count("|") for line in lines}) == 1
    assert "| A | zero mean |" in markdown
