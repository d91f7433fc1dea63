import subprocess

import numpy as np
import pytest

from shape_of_learning.errors import InputError
from shape_of_learning.metrics.batch_files import read_batches, write_batches
from shape_of_learning.metrics.batches import Batch
from shape_of_learning.metrics.measurements import LAYER_COLUMNS, BatchValue, write_measurements
from shape_of_learning.storage.csv_table import read_rows
from shape_of_learning.storage.digests import add_digest, digest_file


def test_batches_are_read_as_they_were_written(tmp_path):
    batches = [
        Batch(5, 3, np.arange(1.0, 7.0).reshape(3, 2)),
        Batch.not_finite(5),
        Batch(4, 2, np.ones(3)),
    ]
    write_batches(tmp_path / "n.h5", batches)
    for written, read in zip(batches, read_batches(tmp_path / "n.h5"), strict=True):
        assert (read.n, read.n_unique) == (written.n, written.n_unique)
        if written.content is None:
            assert read.content is None
        else:
            np.testing.assert_array_equal(read.content, written.content)


@pytest.mark.parametrize("damage", ["missing", "truncated", "replaced", "without its digest"])
def test_a_damaged_file_is_one_sentence(tmp_path, damage):
    path, other = tmp_path / "n.h5", tmp_path / "other.h5"
    write_batches(path, [Batch(4, 4, np.ones((4, 2)))])
    write_batches(other, [Batch(4, 4, np.zeros((4, 2)))])
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:700])
    elif damage == "replaced":
        other.rename(path)
    else:
        (path if damage == "missing" else digest_file(path)).unlink()
    with pytest.raises(InputError, match=r"n\.h5 .*; delete it and run again"):
        read_batches(path)


def test_sha256sum_takes_the_digest(tmp_path):
    write_batches(tmp_path / "n.h5", [Batch(4, 4, np.ones((4, 2)))])
    check = ["sha256sum", "--check", "--quiet", tmp_path / "n.h5.sha256"]
    subprocess.run(check, cwd=tmp_path.parents[1], check=True)


def test_numbers_survive_the_table_and_undefined_ones_are_empty(tmp_path):
    path = tmp_path / "values.csv"
    values = [BatchValue(0, 4, 3, 0.1 + 0.2), BatchValue(1, 4, 1, float("nan"))]
    write_measurements(path, {7: values})
    rows = read_rows(path, LAYER_COLUMNS)
    assert [row[:4] for row in rows] == [["7", "0", "4", "3"], ["7", "1", "4", "1"]]
    assert [float(rows[0][4]), rows[1][4]] == [0.1 + 0.2, ""]


def test_a_table_of_other_columns_is_one_sentence(tmp_path):
    path = tmp_path / "values.csv"
    path.write_text("batch,n\n0,1\n")
    add_digest(path)
    with pytest.raises(InputError, match=r"values\.csv has the columns .*; delete it"):
        read_rows(path, LAYER_COLUMNS)
