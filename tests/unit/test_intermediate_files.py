import h5py
import numpy as np
import pytest

from shape_of_learning.errors import InputError
from shape_of_learning.metrics.measurements import (
    BATCH_COLUMNS,
    BatchValue,
    write_batch_values,
)
from shape_of_learning.metrics.neighbour_files import read_neighbours, write_neighbours
from shape_of_learning.storage.csv_table import read_rows


def test_neighbours_are_read_as_they_were_written(tmp_path):
    batches = [(5, np.arange(1.0, 7.0).reshape(3, 2)), (4, np.ones((4, 2)))]
    write_neighbours(tmp_path / "n.h5", batches, left_over=2)
    read = read_neighbours(tmp_path / "n.h5")
    assert [n for n, _ in read] == [5, 4]
    for (_, written), (_, back) in zip(batches, read, strict=True):
        np.testing.assert_array_equal(written, back)


@pytest.mark.parametrize("damage", ["missing", "truncated", "empty"])
def test_damaged_neighbours_are_one_sentence(tmp_path, damage):
    path = tmp_path / "n.h5"
    if damage == "truncated":
        write_neighbours(path, [(4, np.ones((4, 2)))], left_over=0)
        path.write_bytes(path.read_bytes()[:700])
    elif damage == "empty":
        h5py.File(path, "w").close()
    with pytest.raises(InputError, match=r"n\.h5 .*; delete it and run again"):
        read_neighbours(path)


def test_numbers_survive_the_table_and_undefined_ones_are_empty(tmp_path):
    path = tmp_path / "values.csv"
    write_batch_values(path, [BatchValue(0, 4, 3, 0.1 + 0.2), BatchValue(1, 4, 1, float("nan"))])
    rows = read_rows(path, BATCH_COLUMNS)
    assert [float(rows[0][3]), rows[1][3]] == [0.1 + 0.2, ""]


@pytest.mark.parametrize("content", ["", "batch,n\n0,1\n", "batch,n,n_unique,value\n0,1\n"])
def test_a_damaged_table_is_one_sentence(tmp_path, content):
    path = tmp_path / "values.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=r"values\.csv .*; delete it"):
        read_rows(path, BATCH_COLUMNS)
