"""Estimates and changes follow from jackknife values, compared with sums of one number at a time."""

import csv
import math
import statistics

import numpy as np
import pytest

import gather_tables
from shape_of_learning.errors import InputError
from shape_of_learning.metrics import tidy
from shape_of_learning.metrics.series import MeasuredModel, MeasuredSeries, TablesJob
from shape_of_learning.metrics.suspects import Conditions
from shape_of_learning.metrics.tables import write_model_tables
from shape_of_learning.metrics.tidy import GROUPS, TidyRow

LAYERS, BATCHES = 3, 3
STEPS = [0, 4, 16]
# Student's t with 15 degrees of freedom at 0.975, from R: qt(0.975, 15).
QUANTILE = 2.131449545559323
ROUNDING = 1e-12  # a few roundings of numbers of one size


def draw_checkpoint(seed, *, common_weight=0.0, undefined_layers=(), layers_without_group=()):
    """Draw values of a checkpoint by layer and batch, and jackknife values of its layers.

    `common_weight` multiplies noise that all layers and seeds share. Layers in `undefined_layers` have no values,
    layers in `layers_without_group` no jackknife value without group 5.
    """
    numbers = np.random.default_rng(seed)
    common = np.random.default_rng(99).normal(size=GROUPS)
    batches, jackknife = [], []
    for layer in range(LAYERS + 1):
        values = numbers.uniform(10, 20, BATCHES)
        jackknife_values = (
            values.mean() + common_weight * common + numbers.normal(scale=0.1, size=GROUPS)
        )
        if layer in layers_without_group:
            jackknife_values[5] = math.nan
        if layer in undefined_layers:
            values, jackknife_values = np.full(BATCHES, math.nan), np.full(GROUPS, math.nan)
        batches += [[layer, batch, 600, 590, value] for batch, value in enumerate(values)]
        near = layer / 10
        sd = float(np.std(values, ddof=1))
        jackknife.append([layer, values.mean(), sd, 600, 590, near, 0.5, 128, *jackknife_values])
    return batches, jackknife


def write_checkpoint(folder, revision, rows, family, names):
    batches, jackknife = rows
    for layer, value, _, n, n_unique, near, same, windows, *jackknife_values in jackknife:
        rows = []
        for name in names:
            layer_batches = (row for row in batches if row[0] == layer)
            rows += [
                TidyRow(name, "all", layer, *row[1:4], None, None, None, row[4])
                for row in layer_batches
            ]
            layer_cells = (None, n, n_unique, near, same, windows, value, tuple(jackknife_values))
            rows.append(TidyRow(name, "all", layer, *layer_cells))
        tidy.write_tidy(tidy.name_layer_table(folder / "m" / revision, family, layer), rows)


KINDS = {
    "measurements": tidy.MEASUREMENT_COLUMNS,
    "estimates": tidy.ESTIMATE_COLUMNS,
    "changes": tidy.CHANGE_COLUMNS,
    "jackknife": tidy.JACKKNIFE_COLUMNS,
}


def read_table(path, columns):
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        assert tuple(reader.fieldnames) == columns
        return list(reader)


def gather_rows(folder, *checkpoints, names=("two_nn",), average_over="block_outputs", **changes):
    """Write the tables of these checkpoints; return their rows as dictionaries."""
    family = changes.get("family", "dimension")
    for step, rows in zip(STEPS, checkpoints, strict=False):
        write_checkpoint(folder, f"step{step}", rows, family, names)
    steps = STEPS[: len(checkpoints)]
    checkpoint_steps = [(f"step{step}", step, step * 2048) for step in steps]
    model = MeasuredModel("m", "decoder", LAYERS, checkpoint_steps, average_over)
    revisions = [f"step{step}" for step in steps]
    fields = {"family": family, "conditions": Conditions(), "revisions": revisions} | changes
    curves = [MeasuredSeries(name, **fields) for name in names]
    files = {kind: folder / f"{kind}.csv" for kind in KINDS}
    write_model_tables(folder / "m", model, curves, files)
    return [read_table(files[kind], columns) for kind, columns in KINDS.items()][:3]


def compute_error(jackknife):
    """Compute the jackknife's standard error, one number at a time."""
    mean = statistics.fmean(jackknife)
    squares = math.fsum((value - mean) ** 2 for value in jackknife)
    return math.sqrt((GROUPS - 1) / GROUPS * squares)


def assert_values(row, name, value, jackknife):
    """Compare value, standard error and interval of a row."""
    error = compute_error(jackknife)
    expected = [value, error, value - QUANTILE * error, value + QUANTILE * error]
    numbers = [float(row[key]) for key in (name, "standard_error", "low", "high")]
    assert numbers == pytest.approx(expected, rel=ROUNDING)


def test_each_layer_has_the_interval_of_its_jackknife_values(tmp_path):
    rows = draw_checkpoint(1)
    _, estimates, _ = gather_rows(tmp_path, rows)
    jackknife = read_table(tmp_path / "jackknife.csv", tidy.JACKKNIFE_COLUMNS)
    for row, jackknife_row, layer_values in zip(estimates, jackknife, rows[1], strict=False):
        layer, value, sd, *_, windows = layer_values[:8]
        assert (row["layer"], row["depth"]) == (str(layer), str(layer / LAYERS))
        assert_values(row, "value", value, layer_values[8:])
        assert float(row["batch_sd"]) == sd
        assert (row["n"], row["n_unique"], row["windows"]) == ("600", "590", str(windows))
        assert row["layers"] == "1"
        assert float(row["near_duplicates"]) == layer / 10
        assert (jackknife_row["revision"], jackknife_row["layer"], jackknife_row["batch"]) == (
            "step0",
            str(layer),
            "",
        )
        assert [
            float(jackknife_row[f"without_{group}"]) for group in range(GROUPS)
        ] == layer_values[8:]


@pytest.mark.parametrize(("average_over", "first"), [("block_outputs", 1), ("all_layers", 0)])
def test_an_average_over_layers_has_the_interval_of_its_jackknife_values(
    tmp_path, average_over, first
):
    batches, jackknife = draw_checkpoint(1, common_weight=0.3)
    _, estimates, _ = gather_rows(tmp_path, (batches, jackknife), average_over=average_over)
    (row,) = [row for row in estimates if row["layer"] == ""]
    layers = jackknife[first:]
    jackknife_averages = [
        statistics.fmean(layer[8 + group] for layer in layers) for group in range(GROUPS)
    ]
    assert row["depth"] == ""
    assert_values(row, "value", statistics.fmean(layer[1] for layer in layers), jackknife_averages)
    values = np.array([row[4] for row in batches]).reshape(LAYERS + 1, BATCHES)
    batch_averages = values[first:].mean(axis=0)
    assert float(row["batch_sd"]) == pytest.approx(statistics.stdev(batch_averages), rel=ROUNDING)
    assert float(row["near_duplicates"]) == 0.3  # the largest of its layers'
    assert row["layers"] == str(LAYERS + 1 - first)
    assert (row["n"], row["n_unique"], row["windows"]) == ("600", "590", "128")


def test_changes_are_paired_by_layer_and_over_layers(tmp_path):
    checkpoints = [draw_checkpoint(seed, common_weight=0.3) for seed in (1, 2, 3)]
    _, _, changes = gather_rows(tmp_path, *checkpoints)
    pairs = list(dict.fromkeys((row["from_revision"], row["to_revision"]) for row in changes))
    assert pairs == [("step0", "step4"), ("step4", "step16"), ("step0", "step16")]
    rows = iter(changes)
    for i, j in ((0, 1), (1, 2), (0, 2)):
        first_layers, last_layers = checkpoints[i][1], checkpoints[j][1]
        differences = [
            [b - a for a, b in zip(first_layers[layer][1:], last_layers[layer][1:], strict=True)]
            for layer in range(LAYERS + 1)
        ]
        for layer, layer_differences in enumerate(differences):
            row = next(rows)
            assert row["layer"] == str(layer)
            assert_values(row, "difference", layer_differences[0], layer_differences[7:])
        average = [statistics.fmean(column) for column in zip(*differences[1:], strict=True)]
        row = next(rows)
        assert row["layer"] == ""
        assert_values(row, "difference", average[0], average[7:])
        visible = QUANTILE * float(row["standard_error"])
        assert float(row["smallest_visible"]) == pytest.approx(visible, rel=ROUNDING)


def test_a_change_of_the_average_compares_the_same_layers(tmp_path):
    first_rows, last_rows = draw_checkpoint(1, undefined_layers=[2]), draw_checkpoint(2)
    _, estimates, changes = gather_rows(tmp_path, first_rows, last_rows)
    first_average, last_average = (
        np.mean([rows[1][1], rows[1][3]], axis=0) for rows in (first_rows, last_rows)
    )
    difference = last_average[1] - first_average[1]
    jackknife_differences = (last_average - first_average)[8:]
    (row,) = [row for row in changes if row["layer"] == ""]
    assert_values(row, "difference", difference, jackknife_differences)
    assert next(row for row in changes if row["layer"] == "2")["difference"] == ""
    average = next(row for row in estimates if row["layer"] == "")
    assert float(average["value"]) == pytest.approx(first_average[1], rel=ROUNDING)
    # The table counts the layers of each average: two and three.
    assert [row["layers"] for row in estimates if row["layer"] == ""] == ["2", "3"]


def list_interval(row):
    return [row[key] for key in ("standard_error", "low", "high")]


def test_undefined_values_are_empty_and_logged_if_the_vectors_are_distinct(tmp_path, caplog):
    batches, jackknife = draw_checkpoint(1, undefined_layers=range(LAYERS + 1))
    for few in (1, 60):  # a broken checkpoint, or fewer vectors than neighbours
        rows = [[*row[:3], few, row[4]] for row in batches], jackknife
        _, estimates, changes = gather_rows(tmp_path, rows, draw_checkpoint(2))
        for row in estimates[: LAYERS + 2]:
            assert [row["value"], *list_interval(row), row["batch_sd"]] == [""] * 5
        assert estimates[LAYERS + 1]["layers"] == "0"
        assert {(row["difference"], row["smallest_visible"]) for row in changes} == {("", "")}
    assert "two_nn" not in caplog.text
    _, estimates, _ = gather_rows(tmp_path, (batches, jackknife))
    assert {row["value"] for row in estimates} == {""}
    assert "m/step0 has no value of `two_nn`" in caplog.text


def test_an_average_over_layers_is_undefined_if_a_layer_is_broken(tmp_path):
    """An undefined value of sound vectors is left out; a broken block makes the average undefined."""
    batches, jackknife = draw_checkpoint(1, undefined_layers=[2])
    sound = draw_checkpoint(2)
    for n_unique, layers in ((60, "2"), (1, "0")):
        rows = [[*row[:3], n_unique if row[0] == 2 else row[3], row[4]] for row in batches]
        for order in ([(rows, jackknife), sound], [sound, (rows, jackknife)]):
            _, estimates, changes = gather_rows(tmp_path, *order)
            means = {row["layers"]: row for row in estimates if row["layer"] == ""}
            assert set(means) == {layers, "3"}
            is_undefined = layers == "0"
            assert [means[layers][key] == "" for key in ("value", "low", "batch_sd")] == (
                [is_undefined] * 3
            )
            (change,) = [row["difference"] for row in changes if row["layer"] == ""]
            assert (change == "") == is_undefined


def test_an_undefined_jackknife_value_leaves_no_interval(tmp_path):
    _, estimates, changes = gather_rows(
        tmp_path, draw_checkpoint(1, layers_without_group=[2]), draw_checkpoint(2)
    )
    empty = [row["layer"] for row in estimates[: LAYERS + 2] if list_interval(row) == ["", "", ""]]
    assert empty == ["2", ""]
    assert all(row["value"] for row in estimates)
    assert [row["layer"] for row in changes if not row["smallest_visible"]] == ["2", ""]


def test_measures_without_coverage_have_no_intervals(tmp_path):
    rows = [draw_checkpoint(1), draw_checkpoint(2)]
    for table_rows in gather_rows(tmp_path, *rows, conditions=Conditions(has_interval=False))[1:]:
        assert {row["layer"] for row in table_rows} >= {"", "1"}
        assert {(*list_interval(row), row.get("smallest_visible", "")) for row in table_rows} == {
            ("",) * 4
        }


def test_a_measure_of_some_checkpoints_has_no_rows_of_others(tmp_path):
    checkpoints = [draw_checkpoint(seed) for seed in (1, 2, 3)]
    some = gather_rows(tmp_path, *checkpoints, revisions=["step0", "step16"])
    assert {row["revision"] for row in some[1]} == {"step0", "step16"}
    assert {(r["from_revision"], r["to_revision"]) for r in some[2]} == {("step0", "step16")}


def test_tables_of_all_models_have_the_requested_series_in_order(tmp_path):
    gather_rows(tmp_path, draw_checkpoint(1), draw_checkpoint(2), names=("mom", "two_nn", "mle"))
    for kind in ("measurements", "estimates", "changes"):
        file, output = tmp_path / f"{kind}.csv", tmp_path / "all.csv"
        series = (("m", "two_nn"), ("m", "mom"), ("n", "mom"))
        gather_tables.main(TablesJob(kind, series), [file], output)
        rows = read_table(file, KINDS[kind])
        expected = [row for name in ("two_nn", "mom") for row in rows if row["estimator"] == name]
        assert read_table(output, KINDS[kind]) == expected
    gather_tables.main(TablesJob("measurements", ()), [], output)
    assert read_table(output, tidy.MEASUREMENT_COLUMNS) == []


def test_the_tidy_table_keeps_all_digits_and_leaves_undefined_values_empty(tmp_path):
    jackknife_values = (0.1 + 0.2, math.nan, *(float(n) for n in range(14)))
    rows = [
        TidyRow("mom", "all", 7, 0, 4, 3, None, None, None, 0.1 + 0.2),
        TidyRow("mom", "all", 7, None, 4.5, 3, 0.0, 0.25, 20, math.inf, jackknife_values, 7.5),
    ]
    tidy.write_tidy(tmp_path / "t.csv", rows)
    assert (
        (tmp_path / "t.csv").read_text().splitlines()[1].startswith("mom,all,7,0,4,3,,,,,0.30000")
    )
    batch, layer = tidy.read_tidy(tmp_path / "t.csv")
    assert (batch[:6], batch.value) == (rows[0][:6], 0.1 + 0.2)
    assert (layer[:9], layer.effective_windows) == (rows[1][:9], 7.5)
    np.testing.assert_array_equal(layer.jackknife_values, jackknife_values)
    (tmp_path / "t.csv").write_text("batch,n\n0,1\n")
    with pytest.raises(InputError, match=r"t\.csv has the columns .*; delete it"):
        tidy.read_tidy(tmp_path / "t.csv")
