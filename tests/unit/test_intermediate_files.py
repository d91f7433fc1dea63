import subprocess

import h5py
import numpy as np
import pytest

from shape_of_learning.errors import InputError
from shape_of_learning.metrics.batch_files import read_batches, write_batches
from shape_of_learning.metrics.batches import Batch, Spectra
from shape_of_learning.metrics.measurements import (
    LAYER_COLUMNS,
    LEFT_OUT_COLUMNS,
    BatchValue,
    Estimate,
    Measured,
    write_left_out,
    write_measurements,
)
from shape_of_learning.metrics.neighbour_lists import NeighbourLists
from shape_of_learning.storage.csv_table import read_rows
from shape_of_learning.storage.digests import add_digest, digest_file

LISTS = NeighbourLists(
    np.arange(1.0, 7.0).reshape(3, 2),
    np.array([[1, 2], [0, 2], [0, 1]]),
    np.array([0, 1, 2, 0, 1]),
    np.float64(2),
)
OTHER_LISTS = LISTS._replace(distances=LISTS.distances + 1)


def test_batches_are_read_as_they_were_written(tmp_path):
    batches = [
        Batch(3, np.arange(5) + 300, LISTS),
        Batch.not_finite(np.arange(5)),
        Batch(2, np.arange(4), Spectra(np.ones(3), np.full((16, 3), np.nan))),
    ]
    write_batches(tmp_path / "n.h5", batches)
    for written, read in zip(batches, read_batches(tmp_path / "n.h5"), strict=True):
        assert (read.n, read.n_unique) == (written.n, written.n_unique)
        np.testing.assert_array_equal(read.windows, written.windows)
        assert type(read.content) is type(written.content)
        for there, here in zip(read.content or (), written.content or (), strict=True):
            np.testing.assert_array_equal(there, here)
            assert there.dtype.kind in (here.dtype.kind, "u")


@pytest.mark.parametrize(("m", "bytes_each"), [(200, 1), (60_000, 2), (70_000, 4)])
def test_indices_take_as_few_bytes_as_they_fit_in(tmp_path, m, bytes_each):
    indices = np.arange(m)[:, None]
    lists = NeighbourLists(np.ones((m, 1)), indices, indices[:, 0], np.float64(2))
    write_batches(tmp_path / "n.h5", [Batch(m, np.zeros(m, int), lists)])
    with h5py.File(tmp_path / "n.h5") as file:
        assert file["batch_0/indices"].dtype.itemsize == bytes_each
    np.testing.assert_array_equal(read_batches(tmp_path / "n.h5")[0].content.indices, indices)


@pytest.mark.parametrize("damage", ["missing", "truncated", "replaced", "without its digest"])
def test_a_damaged_file_is_one_sentence(tmp_path, damage):
    path, other = tmp_path / "n.h5", tmp_path / "other.h5"
    write_batches(path, [Batch(4, np.arange(4), LISTS)])
    write_batches(other, [Batch(4, np.arange(4), OTHER_LISTS)])
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:700])
    elif damage == "replaced":
        other.rename(path)
    else:
        (path if damage == "missing" else digest_file(path)).unlink()
    with pytest.raises(InputError, match=r"n\.h5 .*; delete it and run again"):
        read_batches(path)


def test_sha256sum_takes_the_digest(tmp_path):
    write_batches(tmp_path / "n.h5", [Batch(4, np.arange(4), LISTS)])
    check = ["sha256sum", "--check", "--quiet", tmp_path / "n.h5.sha256"]
    subprocess.run(check, cwd=tmp_path.parents[1], check=True)


def test_numbers_survive_the_tables_and_undefined_ones_are_empty(tmp_path):
    values = [BatchValue(0, 4, 3, 0.1 + 0.2), BatchValue(1, 4, 1, float("nan"))]
    left_out = (0.1 + 0.2, float("nan"), *range(14))
    estimate = Estimate(float("nan"), 0.5, 4, 2, float("nan"), 20, left_out)
    write_measurements(tmp_path / "values.csv", {7: Measured(values, estimate)})
    write_left_out(tmp_path / "left_out.csv", {7: Measured(values, estimate)})
    rows = read_rows(tmp_path / "values.csv", LAYER_COLUMNS)
    assert [row[:4] for row in rows] == [["7", "0", "4", "3"], ["7", "1", "4", "1"]]
    assert [float(rows[0][4]), rows[1][4]] == [0.1 + 0.2, ""]
    assert ",".join(LEFT_OUT_COLUMNS).startswith(
        "layer,value,batch_sd,n,n_unique,near_duplicates,windows,without_0,without_1,"
    )
    (row,) = read_rows(tmp_path / "left_out.csv", LEFT_OUT_COLUMNS)
    assert row[:7] == ["7", "", "0.5", "4", "2", "", "20"]
    assert [float(row[7]), *row[8:]] == [0.1 + 0.2, "", *map(str, range(14))]


def test_a_table_of_other_columns_is_one_sentence(tmp_path):
    path = tmp_path / "values.csv"
    path.write_text("batch,n\n0,1\n")
    add_digest(path)
    with pytest.raises(InputError, match=r"values\.csv has the columns .*; delete it"):
        read_rows(path, LAYER_COLUMNS)
