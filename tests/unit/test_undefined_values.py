"""A table without values is taken where nothing could be measured, and nowhere else."""

import pytest

from shape_of_learning.errors import InputError
from shape_of_learning.metrics.undefined_values import require_some_value


def rows(*cells):
    return [dict(zip(("n", "n_unique", "value"), map(str, row), strict=True)) for row in cells]


@pytest.mark.parametrize(
    "cells",
    [
        [(4096, 4000, 1.5), (4096, 4000, "")],  # one batch of many
        [(4096, 1, ""), (4096, 1, "")],  # NaN or infinity from the first layer on
        [(4096, 60, ""), (4096, 1, "")],  # few distinct ones, then NaN
    ],
)
def test_what_cannot_be_measured_is_empty(tmp_path, cells):
    require_some_value(tmp_path / "mom.csv", rows(*cells))


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([(4096, 4000, ""), (4096, 4096, "")], "holds no value, though its vectors are distinct"),
        ([(4096, 60, ""), (4096, 4096, "")], "holds no value, though its vectors are distinct"),
        ([], "holds no row"),
    ],
)
def test_what_can_be_is_not(tmp_path, cells, said):
    with pytest.raises(InputError, match=rf"mom\.csv {said}; delete it and run again"):
        require_some_value(tmp_path / "mom.csv", rows(*cells))
