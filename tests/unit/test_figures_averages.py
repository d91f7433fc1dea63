"""What figures draw, against sums done one number at a time."""

import math
import statistics

import pytest

from figure_tables import inputs_of, read_csv, rows_of_model
from shape_of_learning.errors import InputError
from shape_of_learning.figures.averages import by_layer, over_layers
from shape_of_learning.figures.drawn_rows import drawn_measurements

# A sum of three numbers and its square root: a few roundings; the deviations from the mean cancel
# at most two digits, since the seeded values scatter as widely as they are large.
ROUNDING = 1e-12


def measured(folder, rows, estimator):
    models = sorted({row["model"] for row in rows})
    return drawn_measurements(inputs_of(folder, models, estimator, rows=rows))


def test_profiles_are_means_and_sample_deviations_over_batches(tmp_path):
    rows = rows_of_model("a", steps=[0, 4]) + rows_of_model("b")
    measurements = measured(tmp_path, rows, "anisotropy")
    table = by_layer(measurements)
    assert len(table) == 3 * 4
    for point in table.itertuples():
        values = [
            float(row["value"])
            for row in read_csv(tmp_path / "measurements.csv")
            if (row["model"], row["revision"]) == (point.model, point.revision)
            and (int(row["layer"]), row["estimator"]) == (point.layer, "anisotropy")
        ]
        assert point.batches == len(values) == 3
        assert point.mean == pytest.approx(statistics.fmean(values), rel=ROUNDING)
        assert point.sd == pytest.approx(statistics.stdev(values), rel=ROUNDING)


@pytest.mark.parametrize(("average_over", "first"), [("block_outputs", 1), ("all_layers", 0)])
def test_layers_are_averaged_within_a_batch_before_batches_are_compared(
    tmp_path, average_over, first
):
    rows = rows_of_model("a", steps=[0, 4])
    table = over_layers(measured(tmp_path, rows, "two_nn"), average_over)
    assert len(table) == 2
    for point in table.itertuples():
        averages = [
            statistics.fmean(
                row["value"]
                for row in rows
                if (row["revision"], row["estimator"]) == (point.revision, "two_nn")
                and row["batch"] == batch
                and row["layer"] >= first
            )
            for batch in range(3)
        ]
        assert (point.layers, point.layers_left_out, point.batches) == (4 - first, 0, 3)
        assert point.mean == pytest.approx(statistics.fmean(averages), rel=ROUNDING)
        assert point.sd == pytest.approx(statistics.stdev(averages), rel=ROUNDING)


def test_a_layer_with_an_undefined_batch_is_left_out_of_every_batch(tmp_path):
    rows = rows_of_model("a", steps=[4], estimators=["mada"])
    whole = [row for row in rows if row["layer"] != 2]
    undefined = [
        row | {"value": ""} if (row["layer"], row["batch"]) == (2, 1) else row for row in rows
    ]
    (point,) = over_layers(measured(tmp_path, undefined, "mada")).itertuples()
    (expected,) = over_layers(measured(tmp_path, whole, "mada")).itertuples()
    assert (point.mean, point.sd) == (expected.mean, expected.sd)
    assert (point.layers, point.layers_left_out) == (2, 1)


def test_undefined_values_are_counted_and_never_zero(tmp_path):
    rows = rows_of_model("a", estimators=["mom"])
    for row in rows:
        if row["layer"] == 0 or (row["layer"], row["batch"]) == (1, 0):
            row["value"] = ""
    table = by_layer(measured(tmp_path, rows, "mom")).set_index("layer")
    assert math.isnan(table.loc[0, "mean"])
    assert math.isnan(table.loc[0, "sd"])
    assert list(table["undefined_batches"]) == [3, 1, 0, 0]
    defined = [row["value"] for row in rows if row["layer"] == 1 and row["batch"]]
    assert table.loc[1, "mean"] == pytest.approx(statistics.fmean(defined), rel=ROUNDING)


def test_one_batch_has_no_deviation(tmp_path):
    rows = [row for row in rows_of_model("a") if row["batch"] == 0]
    assert by_layer(measured(tmp_path, rows, "anisotropy"))["sd"].isna().all()


def test_a_lost_batch_is_not_averaged_over(tmp_path):
    rows = rows_of_model("a", steps=[4], estimators=["two_nn"])
    with pytest.raises(InputError, match="incomplete for a step4"):
        over_layers(measured(tmp_path, rows[:-1], "two_nn"))


def test_a_lost_layer_is_not_averaged_over(tmp_path):
    rows = rows_of_model("a", steps=[4, 8], estimators=["two_nn"])
    lost = [row for row in rows if (row["step"], row["layer"]) != (8, 3)]
    with pytest.raises(InputError, match="incomplete for a step8"):
        over_layers(measured(tmp_path, lost, "two_nn"))
