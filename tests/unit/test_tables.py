"""Estimates and changes follow from left-out values: against sums done one number at a time."""

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
# Of Student's t with 15 degrees of freedom, at 0.975: R, qt(0.975, 15).
QUANTILE = 2.131449545559323
ROUNDING = 1e-12  # a few roundings of numbers of one size


def checkpoint_rows(seed, *, shared=0.0, undefined=(), lost=()):
    """Values of one checkpoint per layer and batch, and left-out values of its layers.

    What `shared` multiplies is the same in every layer and at every seed. In layers `undefined` no value is
    defined, in layers `lost` the value without group 5.
    """
    numbers = np.random.default_rng(seed)
    common = np.random.default_rng(99).normal(size=GROUPS)
    batches, jackknife = [], []
    for layer in range(LAYERS + 1):
        values = numbers.uniform(10, 20, BATCHES)
        without = values.mean() + shared * common + numbers.normal(scale=0.1, size=GROUPS)
        if layer in lost:
            without[5] = math.nan
        if layer in undefined:
            values, without = np.full(BATCHES, math.nan), np.full(GROUPS, math.nan)
        batches += [[layer, batch, 600, 590, value] for batch, value in enumerate(values)]
        near = layer / 10
        sd = float(np.std(values, ddof=1))
        jackknife.append([layer, values.mean(), sd, 600, 590, near, 0.5, 128, *without])
    return batches, jackknife


def write_checkpoint(folder, revision, rows, family, names):
    batches, jackknife = rows
    for layer, value, _, n, n_unique, near, same, windows, *without in jackknife:
        rows = []
        for name in names:
            own = (row for row in batches if row[0] == layer)
            rows += [
                TidyRow(name, "all", layer, *row[1:4], None, None, None, row[4]) for row in own
            ]
            of_layer = (None, n, n_unique, near, same, windows, value, tuple(without))
            rows.append(TidyRow(name, "all", layer, *of_layer))
        tidy.write_tidy(tidy.layer_table(folder / "m" / revision, family, layer), rows)


KINDS = {
    "measurements": tidy.MEASUREMENT_COLUMNS,
    "estimates": tidy.ESTIMATE_COLUMNS,
    "changes": tidy.CHANGE_COLUMNS,
    "jackknife": tidy.JACKKNIFE_COLUMNS,
}


def table(path, columns):
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        assert tuple(reader.fieldnames) == columns
        return list(reader)


def gathered(folder, *checkpoints, names=("two_nn",), average_over="block_outputs", **curve):
    """The tables of these checkpoints, by the script, as dictionaries."""
    family = curve.get("family", "dimension")
    for step, rows in zip(STEPS, checkpoints, strict=False):
        write_checkpoint(folder, f"step{step}", rows, family, names)
    steps = STEPS[: len(checkpoints)]
    found = [(f"step{step}", step, step * 2048) for step in steps]
    model = MeasuredModel("m", "decoder", LAYERS, found, average_over)
    revisions = [f"step{step}" for step in steps]
    given = {"family": family, "conditions": Conditions(), "revisions": revisions} | curve
    curves = [MeasuredSeries(name, **given) for name in names]
    files = {kind: folder / f"{kind}.csv" for kind in KINDS}
    write_model_tables(folder / "m", model, curves, files)
    return [table(files[kind], columns) for kind, columns in KINDS.items()][:3]


def error_of(jackknife):
    """The jackknife's standard error, one number at a time."""
    mean = statistics.fmean(jackknife)
    squares = math.fsum((value - mean) ** 2 for value in jackknife)
    return math.sqrt((GROUPS - 1) / GROUPS * squares)


def assert_is(row, name, value, jackknife):
    """Value, standard error and interval of a row."""
    error = error_of(jackknife)
    expected = [value, error, value - QUANTILE * error, value + QUANTILE * error]
    found = [float(row[key]) for key in (name, "standard_error", "low", "high")]
    assert found == pytest.approx(expected, rel=ROUNDING)


def test_each_layer_has_the_interval_of_its_left_out_values(tmp_path):
    rows = checkpoint_rows(1)
    _, estimates, _ = gathered(tmp_path, rows)
    jackknife = table(tmp_path / "jackknife.csv", tidy.JACKKNIFE_COLUMNS)
    for row, kept, of_layer in zip(estimates, jackknife, rows[1], strict=False):
        layer, value, sd, *_, windows = of_layer[:8]
        assert (row["layer"], row["depth"]) == (str(layer), str(layer / LAYERS))
        assert_is(row, "value", value, of_layer[8:])
        assert float(row["batch_sd"]) == sd
        assert (row["n"], row["n_unique"], row["windows"]) == ("600", "590", str(windows))
        assert row["layers"] == "1"
        assert float(row["near_duplicates"]) == layer / 10
        assert (kept["revision"], kept["layer"], kept["batch"]) == ("step0", str(layer), "")
        assert [float(kept[f"without_{group}"]) for group in range(GROUPS)] == of_layer[8:]


@pytest.mark.parametrize(("average_over", "first"), [("block_outputs", 1), ("all_layers", 0)])
def test_an_average_over_layers_is_that_of_its_left_out_values(tmp_path, average_over, first):
    batches, jackknife = checkpoint_rows(1, shared=0.3)
    _, estimates, _ = gathered(tmp_path, (batches, jackknife), average_over=average_over)
    (row,) = [row for row in estimates if row["layer"] == ""]
    layers = jackknife[first:]
    without = [statistics.fmean(layer[8 + group] for layer in layers) for group in range(GROUPS)]
    assert row["depth"] == ""
    assert_is(row, "value", statistics.fmean(layer[1] for layer in layers), without)
    values = np.array([row[4] for row in batches]).reshape(LAYERS + 1, BATCHES)
    by_batch = values[first:].mean(axis=0)
    assert float(row["batch_sd"]) == pytest.approx(statistics.stdev(by_batch), rel=ROUNDING)
    assert float(row["near_duplicates"]) == 0.3  # the largest of its layers'
    assert row["layers"] == str(LAYERS + 1 - first)
    assert (row["n"], row["n_unique"], row["windows"]) == ("600", "590", "128")


def test_changes_are_paired_layer_by_layer_and_over_layers(tmp_path):
    checkpoints = [checkpoint_rows(seed, shared=0.3) for seed in (1, 2, 3)]
    _, _, changes = gathered(tmp_path, *checkpoints)
    pairs = list(dict.fromkeys((row["from_revision"], row["to_revision"]) for row in changes))
    assert pairs == [("step0", "step4"), ("step4", "step16"), ("step0", "step16")]
    expected = iter(changes)
    for i, j in ((0, 1), (1, 2), (0, 2)):
        before, after = checkpoints[i][1], checkpoints[j][1]
        differences = [
            [b - a for a, b in zip(before[layer][1:], after[layer][1:], strict=True)]
            for layer in range(LAYERS + 1)
        ]
        for layer, each in enumerate(differences):
            row = next(expected)
            assert row["layer"] == str(layer)
            assert_is(row, "difference", each[0], each[7:])
        average = [statistics.fmean(column) for column in zip(*differences[1:], strict=True)]
        row = next(expected)
        assert row["layer"] == ""
        assert_is(row, "difference", average[0], average[7:])
        visible = QUANTILE * float(row["standard_error"])
        assert float(row["smallest_visible"]) == pytest.approx(visible, rel=ROUNDING)


def test_a_change_of_the_average_compares_the_same_layers(tmp_path):
    before, after = checkpoint_rows(1, undefined=[2]), checkpoint_rows(2)
    _, estimates, changes = gathered(tmp_path, before, after)
    first, then = (np.mean([rows[1][1], rows[1][3]], axis=0) for rows in (before, after))
    difference, without = then[1] - first[1], (then - first)[8:]
    (row,) = [row for row in changes if row["layer"] == ""]
    assert_is(row, "difference", difference, without)
    assert next(row for row in changes if row["layer"] == "2")["difference"] == ""
    average = next(row for row in estimates if row["layer"] == "")
    assert float(average["value"]) == pytest.approx(first[1], rel=ROUNDING)
    # The averages of the two checkpoints are of two layers and of three, and the table says so.
    assert [row["layers"] for row in estimates if row["layer"] == ""] == ["2", "3"]


def bars(row):
    return [row[key] for key in ("standard_error", "low", "high")]


def test_undefined_values_are_empty_and_logged_if_the_vectors_are_distinct(tmp_path, caplog):
    batches, jackknife = checkpoint_rows(1, undefined=range(LAYERS + 1))
    for few in (1, 60):  # as of a broken checkpoint, or fewer than a measure has neighbours
        rows = [[*row[:3], few, row[4]] for row in batches], jackknife
        _, estimates, changes = gathered(tmp_path, rows, checkpoint_rows(2))
        for row in estimates[: LAYERS + 2]:
            assert [row["value"], *bars(row), row["batch_sd"]] == [""] * 5
        assert estimates[LAYERS + 1]["layers"] == "0"
        assert {(row["difference"], row["smallest_visible"]) for row in changes} == {("", "")}
    assert "two_nn" not in caplog.text
    _, estimates, _ = gathered(tmp_path, (batches, jackknife))
    assert {row["value"] for row in estimates} == {""}
    assert "m/step0 has no value of `two_nn`" in caplog.text


def test_an_average_over_layers_of_which_one_is_broken_is_undefined(tmp_path):
    """An undefined value of sound vectors is left out; a block of NaN or of one vector is not."""
    batches, jackknife = checkpoint_rows(1, undefined=[2])
    sound = checkpoint_rows(2)
    for n_unique, layers in ((60, "2"), (1, "0")):
        rows = [[*row[:3], n_unique if row[0] == 2 else row[3], row[4]] for row in batches]
        for order in ([(rows, jackknife), sound], [sound, (rows, jackknife)]):
            _, estimates, changes = gathered(tmp_path, *order)
            means = {row["layers"]: row for row in estimates if row["layer"] == ""}
            assert set(means) == {layers, "3"}
            is_undefined = layers == "0"
            assert [means[layers][key] == "" for key in ("value", "low", "batch_sd")] == (
                [is_undefined] * 3
            )
            (change,) = [row["difference"] for row in changes if row["layer"] == ""]
            assert (change == "") == is_undefined


def test_a_value_without_a_group_that_is_undefined_leaves_no_interval(tmp_path):
    _, estimates, changes = gathered(tmp_path, checkpoint_rows(1, lost=[2]), checkpoint_rows(2))
    empty = [row["layer"] for row in estimates[: LAYERS + 2] if bars(row) == ["", "", ""]]
    assert empty == ["2", ""]
    assert all(row["value"] for row in estimates)
    assert [row["layer"] for row in changes if not row["smallest_visible"]] == ["2", ""]


def test_where_intervals_do_not_cover_there_are_none_of_layers_averages_or_changes(tmp_path):
    rows = [checkpoint_rows(1), checkpoint_rows(2)]
    for found in gathered(tmp_path, *rows, conditions=Conditions(has_interval=False))[1:]:
        assert {row["layer"] for row in found} >= {"", "1"}
        assert {(*bars(row), row.get("smallest_visible", "")) for row in found} == {("",) * 4}


def test_a_measure_of_some_checkpoints_has_those_alone(tmp_path):
    checkpoints = [checkpoint_rows(seed) for seed in (1, 2, 3)]
    some = gathered(tmp_path, *checkpoints, revisions=["step0", "step16"])
    assert {row["revision"] for row in some[1]} == {"step0", "step16"}
    assert {(r["from_revision"], r["to_revision"]) for r in some[2]} == {("step0", "step16")}


def test_all_tables_have_the_curves_that_are_asked_for_in_their_order(tmp_path):
    gathered(tmp_path, checkpoint_rows(1), checkpoint_rows(2), names=("mom", "two_nn", "mle"))
    for kind in ("measurements", "estimates", "changes"):
        file, output = tmp_path / f"{kind}.csv", tmp_path / "all.csv"
        series = (("m", "two_nn"), ("m", "mom"), ("n", "mom"))
        gather_tables.main(TablesJob(kind, series), [file], output)
        rows = table(file, KINDS[kind])
        expected = [row for name in ("two_nn", "mom") for row in rows if row["estimator"] == name]
        assert table(output, KINDS[kind]) == expected
    gather_tables.main(TablesJob("measurements", ()), [], output)
    assert table(output, tidy.MEASUREMENT_COLUMNS) == []


def test_numbers_survive_the_tidy_table_and_undefined_ones_are_empty(tmp_path):
    without = (0.1 + 0.2, math.nan, *(float(n) for n in range(14)))
    rows = [
        TidyRow("mom", "all", 7, 0, 4, 3, None, None, None, 0.1 + 0.2),
        TidyRow("mom", "all", 7, None, 4.5, 3, 0.0, 0.25, 20, math.inf, without, 7.5),
    ]
    tidy.write_tidy(tmp_path / "t.csv", rows)
    assert (
        (tmp_path / "t.csv").read_text().splitlines()[1].startswith("mom,all,7,0,4,3,,,,,0.30000")
    )
    batch, layer = tidy.read_tidy(tmp_path / "t.csv")
    assert (batch[:6], batch.value) == (rows[0][:6], 0.1 + 0.2)
    assert (layer[:9], layer.effective_windows) == (rows[1][:9], 7.5)
    np.testing.assert_array_equal(layer.jackknife_values, without)
    (tmp_path / "t.csv").write_text("batch,n\n0,1\n")
    with pytest.raises(InputError, match=r"t\.csv has the columns .*; delete it"):
        tidy.read_tidy(tmp_path / "t.csv")
