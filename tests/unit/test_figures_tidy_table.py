import pytest

from figure_tables import HEADER, rows_of_model, write_rows
from shape_of_learning.errors import InputError
from shape_of_learning.figures.tidy_table import last_checkpoints, read_measurements, select


def read(folder, rows, header=HEADER):
    return read_measurements([write_rows(folder / "measurements.csv", rows, header)])


def test_several_files_are_one_table(tmp_path):
    first = write_rows(tmp_path / "a.csv", rows_of_model("a"))
    second = write_rows(tmp_path / "b.csv", rows_of_model("b"))
    assert set(read_measurements([first, second]).rows["model"]) == {"a", "b"}


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none\.csv does not exist"):
        read_measurements([tmp_path / "none.csv"])


def test_a_file_without_the_columns_is_refused(tmp_path):
    header = [name for name in HEADER if name not in ("depth", "n")]
    with pytest.raises(InputError, match=r"measurements\.csv lacks the columns depth, n"):
        read(tmp_path, rows_of_model("a"), header)


def test_a_header_alone_is_refused(tmp_path):
    with pytest.raises(InputError, match="holds no measurement"):
        read(tmp_path, [])


def test_an_empty_file_is_refused(tmp_path):
    path = tmp_path / "measurements.csv"
    path.touch()
    with pytest.raises(InputError, match="is no table of measurements"):
        read_measurements([path])


@pytest.mark.parametrize(
    ("column", "text"), [("value", "inf"), ("value", "high"), ("layer", "1.5"), ("n", "")]
)
def test_what_is_no_number_is_refused_with_its_line(tmp_path, column, text):
    rows = rows_of_model("a")
    rows[4][column] = text
    with pytest.raises(InputError, match=f"line 6: '{text}' is no valid {column}"):
        read(tmp_path, rows)


def test_an_unknown_model_is_refused_and_the_known_ones_are_named(tmp_path):
    measurements = read(tmp_path, rows_of_model("a") + rows_of_model("b"))
    with pytest.raises(InputError, match="no model 'c', only a, b"):
        select(measurements, ["a", "c"], ["anisotropy"])


def test_a_missing_estimator_is_refused(tmp_path):
    measurements = read(tmp_path, rows_of_model("a", estimators=["mada"]))
    with pytest.raises(InputError, match="has no two_nn and no mom of a"):
        select(measurements, ["a"], ["two_nn", "mada", "mom"])


def test_intrinsic_dimensions_of_different_batch_sizes_are_not_mixed(tmp_path):
    measurements = read(tmp_path, rows_of_model("a", n=4096) + rows_of_model("b", n=2048))
    with pytest.raises(InputError, match="batches of 2048 and 4096 vectors in two_nn"):
        select(measurements, ["a", "b"], ["two_nn"])


def test_anisotropies_of_different_batch_sizes_may_meet(tmp_path):
    measurements = read(tmp_path, rows_of_model("a", n=4096) + rows_of_model("b", n=4700))
    assert len(select(measurements, ["a", "b"], ["anisotropy"]).rows) == 2 * 4 * 3


def test_batch_sizes_of_models_that_are_not_drawn_do_not_matter(tmp_path):
    measurements = read(tmp_path, rows_of_model("a", n=4096) + rows_of_model("b", n=2048))
    assert set(select(measurements, ["b"], ["two_nn"]).rows["n"]) == {2048}


def test_the_same_file_twice_is_refused(tmp_path):
    path = write_rows(tmp_path / "measurements.csv", rows_of_model("a"))
    with pytest.raises(InputError, match="batch 0 of anisotropy twice for a, revision main"):
        select(read_measurements([path, path]), ["a"], ["anisotropy"])


def test_two_revisions_of_one_step_are_refused(tmp_path):
    rows = rows_of_model("a", steps=[8])
    again = [row | {"revision": "other"} for row in rows]
    with pytest.raises(InputError, match="twice for a, step 8"):
        select(read(tmp_path, rows + again), ["a"], ["anisotropy"])


def test_the_last_checkpoint_is_the_one_with_the_largest_step(tmp_path):
    measurements = read(tmp_path, rows_of_model("a", steps=[0, 16, 2]) + rows_of_model("b"))
    kept = last_checkpoints(measurements).rows
    assert set(zip(kept["model"], kept["revision"], strict=True)) == {
        ("a", "step16"),
        ("b", "main"),
    }


def test_no_revision_is_last_where_steps_are_not_known(tmp_path):
    measurements = read(tmp_path, rows_of_model("a") + rows_of_model("a", steps=[8]))
    with pytest.raises(InputError, match="several revisions of a"):
        last_checkpoints(measurements)
