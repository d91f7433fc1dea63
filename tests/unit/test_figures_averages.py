"""Which rows of the estimates a figure draws, and what it counts of their layers."""

import math

from figure_tables import inputs_of, rows_of_model, undefined
from shape_of_learning.figures.averages import by_layer, over_layers, uneven_averages, with_labels
from shape_of_learning.figures.drawn_rows import drawn_estimates

STEPS = [0, 4]


def drawn(folder, rows, estimator="two_nn"):
    inputs = inputs_of(folder, ["a"], estimator, rows=rows)
    return drawn_estimates(inputs), inputs.measures


def with_near_duplicates(rows, shares):
    """`rows` with the share of near-duplicates of each (step, layer)."""
    return [
        row | {"near_duplicates": shares.get((row["step"], row["layer"]), row["near_duplicates"])}
        for row in rows
    ]


def test_profiles_are_the_rows_of_layers_and_averages_the_others(tmp_path):
    rows = rows_of_model("a", steps=STEPS, estimators=["two_nn"])
    estimates = drawn(tmp_path, rows)
    values = [row["value"] for row in rows]
    assert list(by_layer(*estimates)["value"]) == values[0:4] + values[5:9]
    assert list(over_layers(*estimates)["value"]) == [values[4], values[9]]


def test_layers_of_an_average_are_counted(tmp_path):
    rows = rows_of_model("a", steps=STEPS, estimators=["two_nn"])
    rows = [undefined(row) if (row["step"], row["layer"]) == (4, 2) else row for row in rows]
    estimates = drawn(tmp_path, rows)
    table = over_layers(*estimates)
    assert list(table["layers"]) == [3, 2]
    assert list(table["layers_left_out"]) == [0, 1]
    assert list(over_layers(*estimates, "all_layers")["layers"]) == [4, 3]


def test_points_whose_averages_lack_layers_are_counted_in_words(tmp_path):
    lost = {(1, 2), (4, 1), (4, 3), *((9, layer) for layer in range(4))}
    rows = rows_of_model("a", steps=[0, 1, 4, 9], estimators=["two_nn", "mada"])
    rows = [
        undefined(row)
        if row["estimator"] == "two_nn"
        and ((row["step"], row["layer"]) in lost or (row["step"], row["layer"]) == (9, ""))
        else row
        for row in rows
    ]
    inputs = inputs_of(tmp_path, ["a"], "two_nn", "mada", rows=rows)
    table = with_labels(over_layers(drawn_estimates(inputs), inputs.measures), inputs.models)
    two_nn, label = inputs.measures[0].label, inputs.models[0].label
    assert uneven_averages(table, inputs.measures) == [
        f"{two_nn} is undefined in some layers, which are left out of the average: "
        f"{label} 2 of 3 points, up to 2 of 3 layers."
    ]


def test_a_layer_is_suspect_above_a_tenth_of_near_duplicates(tmp_path):
    rows = rows_of_model("a", steps=STEPS, estimators=["two_nn", "mada"])
    rows = with_near_duplicates(rows, {(4, 1): 0.1, (4, 2): 0.11})
    suspect = by_layer(*drawn(tmp_path, rows)).set_index(["step", "layer"])["suspect"]
    assert list(suspect[suspect].index) == [(4, 2)]
    assert not by_layer(*drawn(tmp_path, rows, "mada"))["suspect"].any()


def test_an_average_is_suspect_if_any_of_its_layers_is(tmp_path):
    rows = rows_of_model("a", steps=[0, 1, 2], estimators=["two_nn"])
    shares = {(0, 0): 0.9, (1, 2): 0.2, (1, 3): 0.3, (2, 3): 0.5}
    rows = with_near_duplicates(rows, shares)
    rows = [undefined(row) if (row["step"], row["layer"]) == (2, 3) else row for row in rows]
    table = over_layers(*drawn(tmp_path, rows))
    assert list(table["suspect_layers"]) == [0, 2, 0]
    assert list(table["suspect"]) == [False, True, False]


def test_measures_without_near_duplicates_are_never_suspect(tmp_path):
    rows = rows_of_model("a", steps=STEPS, estimators=["anisotropy"])
    table = by_layer(*drawn(tmp_path, rows, "anisotropy"))
    assert not table["suspect"].any()
    assert all(map(math.isnan, table["near_duplicates"]))
