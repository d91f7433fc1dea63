"""Which values are suspect, in one definition for all tables and pictures, and what is said of them."""

import math

import pytest

from shape_of_learning.findings import find_sentences
from shape_of_learning.metrics.registry import MEASURES
from shape_of_learning.metrics.suspects import (
    COPIES,
    FEW_WINDOWS,
    NEAR_THE_WIDTH,
    REACHES_0,
    find_reasons,
    read_reasons,
    write_reasons,
)
from shape_of_learning.terminal_table import Cell, format_cell

WIDTH = 64
CASES = {
    "a sound dimension": ("mada", (20.0, 18.0), {}, []),
    "near-copies": ("two_nn", (20.0, 18.0), {"near_duplicates": 0.11}, [COPIES]),
    "copies of tokens": ("two_nn", (20.0, 18.0), {"same_token": 0.51}, [COPIES]),
    "a measure that looks further": ("mada", (20.0, 18.0), {"same_token": 0.9}, []),
    "as many dimensions as coordinates": ("mle", (52.0, 50.0), {}, [NEAR_THE_WIDTH]),
    "far more": ("two_nn", (1270.0, 900.0), {}, [NEAR_THE_WIDTH]),
    "an interval below 0": ("mada", (20.0, -3.0), {}, [REACHES_0]),
    "a cosine below 0": ("average_cosine", (0.1, -0.1), {}, []),
    "too few windows": ("anisotropy", (0.9, math.nan), {}, [FEW_WINDOWS]),
    "a measure without intervals": ("gride_32", (20.0, math.nan), {}, []),
    "no value": ("two_nn", (math.nan, math.nan), {"near_duplicates": 0.9}, []),
}


@pytest.mark.parametrize("name", CASES)
def test_a_value_is_suspect_for_these_reasons_and_no_others(name):
    measure, (value, low), shares, expected = CASES[name]
    found = find_reasons(MEASURES[measure].conditions, value, low, width=WIDTH, **shares)
    assert found == expected
    assert read_reasons(write_reasons(found)) == found


def rows_of(estimator, values, *, n=4096, reason=""):
    named = {"estimator": estimator, "n": n, "reason": reason}
    return [{**named, "layer": layer, "value": value} for layer, value in enumerate(values)]


def test_sentences_say_where_a_model_is_anisotropic_and_whether_few_tokens_make_it_so():
    rows = rows_of("anisotropy", [0.9, 0.2, 0.98, 0.99, 0.97, 0.3])
    few = rows_of("anisotropy_without_massive_tokens", [0.1, 0.1, 0.07, 0.08, 0.09, 0.1], n=4055)
    assert find_sentences("M", rows + few) == [
        "M: anisotropy is 0.97 to 0.99 in blocks 2 to 4; without massive tokens (1.0 % of the vectors) it is 0.07 "
        "to 0.09 there."
    ]
    all_along = rows_of("anisotropy_without_massive_tokens", [0.9] * 6)
    [sentence] = find_sentences("M", rows + all_along)
    assert "without massive tokens still 0.90" in sentence
    [sentence] = find_sentences("M", rows_of("anisotropy", [0.9, 0.1, 0.2]))
    assert sentence == "M: no block is anisotropic; the highest anisotropy is 0.20, in block 2."


def test_a_sentence_says_which_dimensions_not_to_trust():
    rows = rows_of("mada", [40, 30, 20, 10]) + rows_of("two_nn", [9, 8, 7, 6], reason="copies")
    [sentence] = find_sentences("M", rows)
    assert "by MADA peaks at 30 in block 1 and is 10 in the last block" in sentence
    assert "do not trust 3 of 3 values of TwoNN (copies)" in sentence


@pytest.mark.parametrize(
    ("numbers", "printed"),
    [
        ((34.1, 23.9, 44.3), "34 [24, 44]"),
        ((1.42, 1.31, 1.53), "1.4 [1.3, 1.5]"),
        ((0.99812, 0.99801, 0.99823), "1.0 [1.0, 1.0]"),
        ((0.084, 0.079, 0.089), ".08 [.08, .09]"),
        ((-0.31, -0.42, -0.2), "-.3 [-.4, -.2]"),
        ((1270.0, 900.0, 1640.0), "1270 [900, 1640]"),
        ((0.5, math.nan, math.nan), ".50"),
        ((math.nan, math.nan, math.nan), "undefined"),
    ],
)
def test_a_number_is_printed_as_its_interval_allows(numbers, printed):
    assert format_cell(Cell(*numbers)) == printed
