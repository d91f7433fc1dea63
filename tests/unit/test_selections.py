import numpy as np
import pytest

from shape_of_learning.metrics.selections import Selection

SPECIAL = np.array([True, False, False, True, False, False])
POSITIONS = np.array([0, 1, 2, 3, 0, 1])  # the second window begins with a token of its text


@pytest.mark.parametrize(
    ("special_tokens", "first_token", "rows"),
    [
        ("keep", "keep", [0, 1, 2, 3, 4, 5]),
        ("drop", "keep", [1, 2, 4, 5]),
        ("keep", "drop", [1, 2, 3, 5]),
        ("drop", "drop", [1, 2, 5]),
    ],
)
def test_rows_that_are_kept_ascend(special_tokens, first_token, rows):
    selection = Selection(special_tokens, first_token)
    chosen = selection.rows(SPECIAL, POSITIONS)
    assert chosen.dtype == np.int64
    np.testing.assert_array_equal(chosen, rows)
    assert Selection.from_json(selection.to_json()) == selection


def test_a_selection_is_named_by_what_it_leaves_out():
    assert Selection().name == "all"
    assert Selection(first_token="drop").name == "without_first_token"
    assert Selection("drop", "drop").name == "without_first_token+without_special_tokens"
