"""Verdicts are checked at the door."""

import math

import pytest

from figure_tables import VERDICT_HEADER, verdicts_on, write_rows, write_verdicts
from shape_of_learning.errors import InputError
from shape_of_learning.figures.verdicts import read_verdicts


def read(folder, rows):
    return read_verdicts([write_verdicts(folder / "verdicts.csv", rows)])


def test_verdicts_of_several_models_are_one_table_by_step(tmp_path):
    first = write_verdicts(tmp_path / "a.csv", verdicts_on("a", [8, 0]))
    second = write_verdicts(tmp_path / "b.csv", verdicts_on("b", [4]))
    rows = read_verdicts([first, second]).rows
    assert list(zip(rows["model"], rows["step"], strict=True)) == [("a", 0), ("b", 4), ("a", 8)]


def test_a_loss_may_be_infinite_or_not_measured(tmp_path):
    empty = {"loss": "", "predicted_tokens": "", "vocabulary": "", "tokens": ""}
    rows = verdicts_on("a", [0, 1, 2], losses={1: "inf"})
    rows[2] |= empty
    losses = read(tmp_path, rows).rows["loss"]
    assert (losses[0], losses[1]) == (2.0, math.inf)
    assert math.isnan(losses[2])


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none\.csv does not exist: write the verdicts first"):
        read_verdicts([tmp_path / "none.csv"])


def test_missing_columns_are_named(tmp_path):
    header = [name for name in VERDICT_HEADER if name not in ("loss", "shown")]
    path = write_rows(tmp_path / "verdicts.csv", verdicts_on("a", [0]), header)
    with pytest.raises(InputError, match=r"verdicts\.csv lacks the columns loss, shown"):
        read_verdicts([path])


def test_a_header_alone_is_refused(tmp_path):
    with pytest.raises(InputError, match="holds no verdict"):
        read(tmp_path, [])


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("step", ""),
        ("step", "1.5"),
        ("step", "-1"),
        ("tokens", "many"),
        ("loss", "nan"),
        ("loss", "-inf"),
        ("loss", "-0.1"),
        ("loss", "high"),
        ("predicted_tokens", "2.5"),
        ("vocabulary", "inf"),
        ("model", ""),
        ("revision", " "),
        ("verdict", ""),
        ("shown", ""),
        ("shown", "maybe"),
    ],
)
def test_a_cell_that_does_not_belong_is_refused_with_its_line(tmp_path, column, text):
    rows = verdicts_on("a", [0, 1, 2])
    rows[1][column] = text
    with pytest.raises(InputError, match=f"line 3: '{text}' is no valid {column}"):
        read(tmp_path, rows)


@pytest.mark.parametrize(
    ("again", "reason"),
    [({"step": 5}, "a, revision step1 twice"), ({"revision": "x"}, "a, step 1 twice")],
)
def test_a_checkpoint_is_listed_once(tmp_path, again, reason):
    rows = verdicts_on("a", [0, 1])
    with pytest.raises(InputError, match=reason):
        read(tmp_path, [*rows, rows[1] | again])
