"""One definition of suspect values for all tables and figures, and the sentences on them."""

import math
import re
from io import StringIO

import pandas as pd
import pytest
from rich.console import Console

from shape_of_learning.figures.captions import count_blocks
from shape_of_learning.findings import NamedCheckpoint, find_all_sentences, find_sentences
from shape_of_learning.metrics.registry import MEASURES
from shape_of_learning.metrics.suspects import (
    COPIES,
    FEW_WINDOWS,
    NEAR_THE_WIDTH,
    WIDE_INTERVAL,
    find_reasons,
    format_reasons,
    read_reasons,
)
from shape_of_learning.results import Cell, format_cell, print_estimates

WIDTH = 64
CASES = {
    "a sound dimension": ("mada", (20.0, 18.0, 22.0), {}, []),
    "near-copies": ("two_nn", (20.0, 18.0, 22.0), {"near_duplicates": 0.11}, [COPIES]),
    "copies of tokens": ("two_nn", (20.0, 18.0, 22.0), {"same_token": 0.51}, [COPIES]),
    "a measure that looks further": ("mada", (20.0, 18.0, 22.0), {"same_token": 0.9}, []),
    "as many dimensions as coordinates": ("mle", (52.0, 50.0, 54.0), {}, [NEAR_THE_WIDTH]),
    "far more": ("two_nn", (1270.0, 1000.0, 1540.0), {}, [NEAR_THE_WIDTH]),
    "an interval from a quarter below to a quarter above": ("mada", (20.0, 15.0, 25.0), {}, []),
    "MADA of MiniLM's first block": ("mada", (31.4, 8.9, 53.9), {}, [WIDE_INTERVAL]),
    "TwoNN of the last block of GPT-2": ("two_nn", (1.7, 1.1, 2.4), {}, [WIDE_INTERVAL]),
    "an interval below 0": ("mada", (20.0, -3.0, 43.0), {}, [WIDE_INTERVAL]),
    "a cosine that is near 0": ("average_cosine", (0.1, -0.1, 0.3), {}, []),
    "too few windows": ("anisotropy", (0.9, math.nan, math.nan), {}, [FEW_WINDOWS]),
    "a measure without intervals": ("gride_32", (20.0, math.nan, math.nan), {}, []),
    "no value": ("two_nn", (math.nan, math.nan, math.nan), {"near_duplicates": 0.9}, []),
}


@pytest.mark.parametrize("name", CASES)
def test_a_value_is_suspect_for_the_listed_reasons(name):
    measure, numbers, shares, expected = CASES[name]
    reasons = find_reasons(MEASURES[measure].conditions, *numbers, width=WIDTH, **shares)
    assert reasons == expected
    assert read_reasons(format_reasons(reasons)) == reasons


def make_rows(estimator, values, *, half=0.01, n=4096, reason=""):
    """Make rows of layers from 0 on; an interval reaches a share of its value to both sides."""
    common_cells = {"estimator": estimator, "n": n, "windows": 128}
    reasons = dict.fromkeys(range(len(values)), reason) if isinstance(reason, str) else reason
    return [
        {
            **common_cells,
            **{"layer": layer, "value": value, "reason": reasons.get(layer, "")},
            **{"low": value * (1 - half), "high": value * (1 + half)},
        }
        for layer, value in enumerate(values)
    ]


def test_a_sentence_lists_anisotropic_blocks_and_their_anisotropy_without_massive_tokens():
    rows = make_rows("anisotropy", [0.9, 0.2, 0.6, 0.98, 0.99, 0.3, 0.7, 0.4])
    reduced_rows = make_rows(
        "anisotropy_without_massive_tokens", [0.1, 0.1, 0.2, 0.07, 0.08, 0.1, 0.3, 0.1]
    )
    reduced_rows = [row | {"n": 4055} for row in reduced_rows]
    [sentence] = find_sentences("M", rows + reduced_rows)
    assert "128 windows" in sentence
    assert "0.5 or more in blocks 2 to 4 and 6 (0.98 to 0.99 in blocks 3 and 4)" in sentence
    assert (
        "(1.0 % of the vectors) it is 0.07 to 0.20 in blocks 2 to 4 and 0.30 in block 6" in sentence
    )
    anisotropic_rows = make_rows("anisotropy_without_massive_tokens", [0.9] * 7 + [0.4], n=4055)
    [sentence] = find_sentences("M", rows + anisotropic_rows)
    assert (
        "(1.0 % of the vectors) it is 0.90 there, still 0.5 or more in blocks 2 to 4 and 6"
        in sentence
    )


def test_a_sentence_names_blocks_whose_anisotropy_is_undefined():
    for values in ([0.9, 0.1, math.nan, 0.2, math.nan], [0.9, 0.8, math.nan, 0.2, math.nan]):
        [sentence] = find_sentences("M", make_rows("anisotropy", values))
        assert sentence.endswith("; undefined in blocks 2 and 4.")


def test_no_other_block_stands_for_the_undefined_last_block_of_a_broken_model():
    [sentence] = find_sentences("M", make_rows("mada", [40, 20, 12, math.nan, math.nan]))
    assert "in the last" not in sentence
    assert "undefined in blocks 3 and 4" in sentence


def test_a_sentence_states_the_bound_of_anisotropic_blocks():
    values = [0.9, 0.1, 0.2, 0.15]
    rows = make_rows("anisotropy", values)
    [sentence] = find_sentences("M", rows)
    assert "no block is anisotropic (0.5 or more)" in sentence
    assert "the highest anisotropy is 0.20, in block 2" in sentence
    assert "massive" not in sentence
    [sentence] = find_sentences("M", rows + make_rows("anisotropy_without_massive_tokens", values))
    assert "no block has massive tokens" in sentence
    reduced_rows = make_rows("anisotropy_without_massive_tokens", [0.8, 0.1, 0.1, 0.15], n=4055)
    [sentence] = find_sentences("M", rows + reduced_rows)
    assert (
        "without the tokens that are massive in any layer (1.0 % of the vectors) it is 0.10"
        in sentence
    )


def test_a_peak_has_an_interval_above_those_of_other_blocks():
    values = [0.3, 0.1, 0.191, 0.188, 0.1]
    [sentence] = find_sentences("M", make_rows("anisotropy", values))
    assert "0.19, in blocks 2 and 3" in sentence
    [sentence] = find_sentences("M", make_rows("anisotropy", values, half=2))
    assert "anisotropy is 0.10 to 0.19" in sentence
    assert "block 2" not in sentence
    [sentence] = find_sentences("M", make_rows("mada", [42, *[14.1, 14.2, 14.0] * 3, 13]))
    assert "highest in blocks 1 to 9 of M (14; 13 in the last, 42 in the embeddings)" in sentence
    [sentence] = find_sentences("M", make_rows("mada", [42, 30, 10], half=2))
    assert "10 to 30 in all blocks of M (42 in the embeddings)" in sentence


def test_a_sentence_counts_blocks_with_suspect_dimensions():
    mada_rows = make_rows("mada", [40, 30, 99, 20, 10], reason={2: "wide interval"})
    two_nn_rows = make_rows("two_nn", [9, 8, 7, 6, 5], reason=dict.fromkeys((0, 1, 2, 3), "copies"))
    [sentence] = find_sentences("M", mada_rows + two_nn_rows)
    assert "highest in block 1 of M (30; 10 in the last, 40 in the embeddings)" in sentence
    assert f"TwoNN is suspect in 3 of 4 blocks ({COPIES.cause})" in sentence
    assert f"MADA is suspect in 1 of 4 blocks ({WIDE_INTERVAL.cause})" in sentence


def test_two_models_have_one_sentence_on_their_dimensions():
    def make_model_rows(model, reason):
        model_rows = make_rows("anisotropy", [0.1, 0.2]) + make_rows("mada", [9, 8])
        model_rows += make_rows("two_nn", [9, 8], reason=reason)
        return [row | {"model": model, "revision": "main"} for row in model_rows]

    models = [NamedCheckpoint("a", "A", "main"), NamedCheckpoint("b", "B", "main")]
    sentences = find_all_sentences(
        make_model_rows("a", "") + make_model_rows("b", "copies"), models
    )
    assert len(sentences) == 3
    assert re.search("TwoNN is suspect in the only block of B", sentences[-1])
    sentences = find_all_sentences(
        make_model_rows("a", "copies") + make_model_rows("b", "copies"), models
    )
    assert re.search("suspect in the only block of A and the only block of B", sentences[-1])


def test_not_all_blocks_have_a_dimension_if_some_are_suspect_or_undefined():
    model = [NamedCheckpoint("a", "A", "main")]
    rows = make_rows("mle", [5, 12, 12, 12, 40])
    rows[-1]["reason"] = "wide interval"
    undefined = make_rows("mle", [5, 12, 12, 12, float("nan")])
    for some_rows in (rows, undefined):
        named_rows = [row | {"model": "a", "revision": "main"} for row in some_rows]
        (*_, sentence) = find_all_sentences(named_rows, model)
        assert "12 in blocks 1 to 3 of A" in sentence


def test_a_sentence_names_the_median_of_local_dimensions_and_a_mean_far_above_it():
    medians, means = make_rows("mada_median", [9, 6, 10, 14]), make_rows("mada", [30, 24, 16, 15])
    [sentence] = find_sentences("M", medians + means)
    assert "median of MADA is highest in block 3 of M (14; 9 in the embeddings)" in sentence
    assert re.search(r"mean.* 1.5 times .* in 2 of 3 blocks of M \(16 to 24\)", sentence)
    [sentence] = find_sentences("M", medians + make_rows("mada", [9, 6.5, 11, 15]))
    assert "mean" not in sentence


def test_a_footer_counts_blocks_and_embeddings_separately():
    layers = pd.Series([0, 1, 2, 3])
    assert count_blocks(layers, pd.Series([True, True, True, False])) == (
        "2 of 3 blocks and the embeddings (layer 0)"
    )
    assert count_blocks(layers, pd.Series([False, True, True, False])) == "2 of 3 blocks"
    assert count_blocks(layers, layers == 0) == "the embeddings (layer 0)"
    layers_of_two_steps = pd.Series([0, 1, 2, 3, 0, 1, 2, 3])
    assert "6 values (3 blocks, 2 steps)" in count_blocks(
        layers_of_two_steps, layers_of_two_steps > 0, 2
    )


@pytest.mark.parametrize(
    ("numbers", "text"),
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
def test_a_number_is_printed_with_the_digits_of_its_interval(numbers, text):
    assert format_cell(Cell(*numbers)) == text


def test_no_heading_on_the_terminal_can_be_read_as_a_difference():
    names = ("anisotropy", "anisotropy_without_massive_tokens", "two_nn", "mada", "mle")
    rows = [
        {"layer": 1, "estimator": name, "value": 0.5, "low": 0.4, "high": 0.6, "reason": ""}
        for name in names
    ]
    output = StringIO()
    print_estimates(rows, Console(file=output, width=80))
    heading = output.getvalue().splitlines()[0]
    assert not re.search(r"(^| )[-\u2212+] ?\w", heading)
    assert len(heading) <= 80


def test_no_interval_of_a_dimension_is_printed_below_0():
    row = {"layer": 1, "value": 42.0, "low": -3.0, "high": 86.0, "reason": "wide interval"}
    rows = [{**row, "estimator": "mada"}, {**row, "estimator": "average_cosine_centered"}]
    output = StringIO()
    print_estimates(rows, Console(file=output, width=80))
    assert "42 [0, 86]?" in output.getvalue()
    assert "42 [-3, 86]?" in output.getvalue()
