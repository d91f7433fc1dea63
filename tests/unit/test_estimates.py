"""Estimates and changes follow from left-out values: against sums done one number at a time."""

import json
import math
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gather_checkpoints
import gather_tables
from shape_of_learning.errors import InputError
from shape_of_learning.metrics.estimates import MeasuredCurve
from shape_of_learning.metrics.measurements import COLUMNS, LAYER_COLUMNS, LEFT_OUT_COLUMNS
from shape_of_learning.metrics.table_columns import CHANGE_COLUMNS, ESTIMATE_COLUMNS, GROUPS
from shape_of_learning.storage.csv_table import read_rows, write_table

LAYERS, BATCHES = 3, 3
STEPS = [0, 4, 16]
QUANTILE = (
    2.131449545559323  # of Student's t with 15 degrees of freedom, at 0.975: R, qt(0.975, 15)
)
ROUNDING = 1e-12  # a few roundings of numbers of one size


def checkpoint_rows(seed, *, shared=0.0, undefined=(), lost=()):
    """Values of one checkpoint per layer and batch, and left-out values of its layers.

    What `shared` multiplies is the same in every layer and at every seed. In layers `undefined` no value is
    defined, in layers `lost` the value without group 5.
    """
    numbers = np.random.default_rng(seed)
    common = np.random.default_rng(99).normal(size=GROUPS)
    batches, left_out = [], []
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
        left_out.append([layer, values.mean(), sd, 600, 590, near, 128, *without])
    return batches, left_out


def write_checkpoint(folder, revision, rows, estimator="two_nn"):
    for kind, columns, table in zip(
        ("measurements", "left_out"), (LAYER_COLUMNS, LEFT_OUT_COLUMNS), rows, strict=True
    ):
        path = folder / kind / "m" / revision / f"{estimator}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_table(path, columns, table)


def gathered(folder, *checkpoints, **options):
    """The three tables of these checkpoints, by the script, as dictionaries."""
    for step, rows in zip(STEPS, checkpoints, strict=False):
        write_checkpoint(folder, f"step{step}", rows)
    given = {
        **{"model": "m", "role": "decoder", "estimator": "two_nn", "selection": "all"},
        **{"layers": LAYERS, "average_over": "block_outputs", "interval": True},
        "checkpoints": [(f"step{step}", step, step * 2048) for step in STEPS[: len(checkpoints)]],
    }
    curve = MeasuredCurve.from_json(json.dumps(given | options))
    files = [folder / f"{t}.csv" for t in ("measurements", "estimates", "changes", "without")]
    gather_checkpoints.main(curve, folder, files)
    return [
        [dict(zip(columns, row, strict=True)) for row in read_rows(file, columns)]
        for file, columns in zip(files, (COLUMNS, ESTIMATE_COLUMNS, CHANGE_COLUMNS), strict=False)
    ]


def test_blocks_are_numbered_from_one(tmp_path):
    def blocks(seed):
        batches, left_out = checkpoint_rows(seed)
        return [row for row in batches if row[0]], [row for row in left_out if row[0]]

    _, every, differences = gathered(tmp_path, checkpoint_rows(1), checkpoint_rows(2))
    _, estimates, changes = gathered(tmp_path, blocks(1), blocks(2), first_layer=1)
    assert estimates == [row for row in every if row["layer"] != "0"]
    assert changes == [row for row in differences if row["layer"] != "0"]
    over_all = gathered(tmp_path, blocks(1), first_layer=1, average_over="all_layers")[1]
    assert over_all == estimates[: len(over_all)]
    with pytest.raises(InputError, match="does not hold all batches of the layers 1 to 3"):
        gathered(tmp_path, checkpoint_rows(1), first_layer=1)


def error_of(left_out):
    """The jackknife's standard error, one number at a time."""
    mean = statistics.fmean(left_out)
    squares = math.fsum((value - mean) ** 2 for value in left_out)
    return math.sqrt((GROUPS - 1) / GROUPS * squares)


def assert_is(row, name, value, left_out):
    """Value, standard error and interval of a row."""
    error = error_of(left_out)
    expected = [value, error, value - QUANTILE * error, value + QUANTILE * error]
    found = [float(row[key]) for key in (name, "standard_error", "low", "high")]
    assert found == pytest.approx(expected, rel=ROUNDING)


def test_each_layer_has_the_interval_of_its_left_out_values(tmp_path):
    rows = checkpoint_rows(1)
    _, estimates, _ = gathered(tmp_path, rows)
    for layer, (row, (_, value, sd, *_, windows)) in enumerate(
        zip(estimates, [left_out[:7] for left_out in rows[1]], strict=False)
    ):
        assert (row["layer"], row["depth"]) == (str(layer), str(layer / LAYERS))
        assert_is(row, "value", value, rows[1][layer][7:])
        assert float(row["batch_sd"]) == sd
        assert (row["n"], row["n_unique"], row["windows"]) == ("600", "590", str(windows))
        assert float(row["near_duplicates"]) == layer / 10


@pytest.mark.parametrize(("average_over", "first"), [("block_outputs", 1), ("all_layers", 0)])
def test_an_average_over_layers_is_that_of_its_left_out_values(tmp_path, average_over, first):
    batches, left_out = checkpoint_rows(1, shared=0.3)
    _, estimates, _ = gathered(tmp_path, (batches, left_out), average_over=average_over)
    (row,) = [row for row in estimates if row["layer"] == ""]
    layers = left_out[first:]
    without = [statistics.fmean(layer[7 + group] for layer in layers) for group in range(GROUPS)]
    assert row["depth"] == ""
    assert_is(row, "value", statistics.fmean(layer[1] for layer in layers), without)
    by_batch = [
        statistics.fmean(
            value for layer, b, _, _, value in batches if b == batch and layer >= first
        )
        for batch in range(BATCHES)
    ]
    assert float(row["batch_sd"]) == pytest.approx(statistics.stdev(by_batch), rel=ROUNDING)
    assert float(row["near_duplicates"]) == 0.3  # the largest of its layers'
    assert (row["n"], row["n_unique"], row["windows"]) == ("600", "590", "128")


def test_layers_that_move_together_are_no_surer_together(tmp_path):
    shared, own = checkpoint_rows(1, shared=5), checkpoint_rows(1)
    errors = {}
    for name, rows in (("shared", shared), ("own", own)):
        _, estimates, _ = gathered(tmp_path, rows)
        errors[name] = [float(row["standard_error"]) for row in estimates]
    assert errors["shared"][-1] > 0.95 * statistics.fmean(errors["shared"][1:-1])
    assert errors["own"][-1] < 0.8 * statistics.fmean(errors["own"][1:-1])


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
            assert_is(row, "difference", each[0], each[6:])
        average = [statistics.fmean(column) for column in zip(*differences[1:], strict=True)]
        row = next(expected)
        assert row["layer"] == ""
        assert_is(row, "difference", average[0], average[6:])
        visible = QUANTILE * float(row["standard_error"])
        assert float(row["smallest_visible"]) == pytest.approx(visible, rel=ROUNDING)


def test_what_checkpoints_share_is_not_in_the_error_of_their_difference(tmp_path):
    checkpoints = [checkpoint_rows(seed, shared=2.0) for seed in (1, 2)]
    _, estimates, changes = gathered(tmp_path, *checkpoints)
    errors = [float(row["standard_error"]) for row in estimates]
    for number, row in enumerate(changes):
        unpaired = math.hypot(errors[number], errors[number + LAYERS + 2])
        assert float(row["standard_error"]) < unpaired / 5


def test_one_checkpoint_has_no_changes(tmp_path):
    assert gathered(tmp_path, checkpoint_rows(1))[2] == []


def test_a_change_of_the_average_compares_the_same_layers(tmp_path):
    before, after = checkpoint_rows(1, undefined=[2]), checkpoint_rows(2)
    _, estimates, changes = gathered(tmp_path, before, after)
    means = [
        [
            statistics.fmean(left_out[layer][column] for layer in (1, 3))
            for _, left_out in (before, after)
        ]
        for column in (1, *range(7, 7 + GROUPS))
    ]
    difference, *without = [then - first for first, then in means]
    (row,) = [row for row in changes if row["layer"] == ""]
    assert_is(row, "difference", difference, without)
    assert next(row for row in changes if row["layer"] == "2")["difference"] == ""
    first = next(row for row in estimates if row["layer"] == "")
    assert float(first["value"]) == pytest.approx(means[0][0], rel=ROUNDING)


BARS = ("standard_error", "low", "high")


def bars(row):
    return [row[key] for key in BARS]


def test_what_is_undefined_is_empty(tmp_path):
    batches, left_out = checkpoint_rows(1, undefined=range(LAYERS + 1))
    rows = [[*row[:3], 1, row[4]] for row in batches], left_out  # as of a broken checkpoint
    _, estimates, changes = gathered(tmp_path, rows, checkpoint_rows(2))
    for row in estimates[: LAYERS + 2]:
        assert [row["value"], *bars(row), row["batch_sd"]] == [""] * 5
    assert {row["difference"] for row in changes} == {""}
    assert {row["smallest_visible"] for row in changes} == {""}


def test_a_value_without_a_group_that_is_undefined_leaves_no_interval(tmp_path):
    _, estimates, changes = gathered(tmp_path, checkpoint_rows(1, lost=[2]), checkpoint_rows(2))
    empty = [row["layer"] for row in estimates[: LAYERS + 2] if bars(row) == ["", "", ""]]
    assert empty == ["2", ""]
    assert all(row["value"] for row in estimates)
    assert [row["layer"] for row in changes if not row["smallest_visible"]] == ["2", ""]


def test_fewer_windows_than_groups_have_values_and_no_intervals(tmp_path):
    batches, left_out = checkpoint_rows(1)
    few = [[*row[:6], 12, *[math.nan] * GROUPS] for row in left_out]
    _, estimates, _ = gathered(tmp_path, (batches, few))
    assert all(bars(row) == ["", "", ""] and float(row["value"]) for row in estimates)
    assert {row["windows"] for row in estimates} == {"12"}


def test_where_intervals_of_layers_do_not_cover_only_averages_have_some(tmp_path):
    rows = [checkpoint_rows(1), checkpoint_rows(2)]
    _, all_estimates, all_changes = gathered(tmp_path, *rows)
    _, estimates, changes = gathered(tmp_path, *rows, interval=False)
    for found, expected in ((estimates, all_estimates), (changes, all_changes)):
        assert [row for row in found if not row["layer"]] == [r for r in expected if not r["layer"]]
        of_layers = [row for row in found if row["layer"]]
        assert all(bars(row) == ["", "", ""] for row in of_layers)
    assert all(float(row["value"]) for row in estimates)
    assert {row["smallest_visible"] for row in changes if row["layer"]} == {""}


def test_measurements_are_those_of_the_batches(tmp_path):
    rows = checkpoint_rows(1)
    measurements, _, _ = gathered(tmp_path, rows)
    assert [
        (row["revision"], row["depth"], int(row["layer"]), int(row["batch"]), float(row["value"]))
        for row in measurements
    ] == [("step0", str(r[0] / LAYERS), r[0], r[1], r[4]) for r in rows[0]]


@pytest.mark.parametrize(
    ("kind", "cut"),
    [
        ("measurements", lambda rows: rows[:-1]),
        ("measurements", lambda rows: rows[:0]),
        ("measurements", lambda rows: [row for row in rows if row[0] != 2]),
        ("left_out", lambda rows: rows[:-1]),
        ("left_out", lambda rows: [rows[1], rows[0], *rows[2:]]),
        ("left_out", lambda rows: [*rows, rows[-1]]),
        ("left_out", lambda rows: [[*row[:-1], "1.2.3"] for row in rows]),
    ],
)
def test_a_damaged_table_is_refused_by_name_and_nothing_is_written(tmp_path, kind, cut):
    batches, left_out = checkpoint_rows(1)
    rows = (cut(batches), left_out) if kind == "measurements" else (batches, cut(left_out))
    with pytest.raises(InputError, match=rf"{kind}/m/step0/two_nn\.csv.*delete it and run again"):
        gathered(tmp_path, rows)
    assert not list(tmp_path.glob("*.csv"))


def test_tables_of_one_kind_are_gathered_into_one(tmp_path):
    gathered(tmp_path, checkpoint_rows(1), checkpoint_rows(2))
    for kind, columns in (("estimates", ESTIMATE_COLUMNS), ("changes", CHANGE_COLUMNS)):
        file, output = tmp_path / f"{kind}.csv", tmp_path / "all.csv"
        gather_tables.main(kind, [file, file], output)
        assert read_rows(output, columns) == read_rows(file, columns) * 2


def test_of_no_tables_the_columns_are_left(tmp_path):
    output = tmp_path / "all.csv"
    given = ["--kind=measurements", "--tables", f"--output={output}"]
    script = Path(gather_tables.__file__)
    library = {"PYTHONPATH": str(script.parents[1])}
    subprocess.run([sys.executable, script, *given], env=library, check=True)
    assert output.read_text().splitlines() == [",".join(COLUMNS)]
