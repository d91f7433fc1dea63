"""Tables are read as they were written, and what would make a figure wrong is refused."""

import math

import pytest

from figure_tables import (
    CHANGE_HEADER,
    HEADER,
    inputs_of,
    rows_of_model,
    undefined,
    verdicts_on,
    write_rows,
    write_verdicts,
)
from shape_of_learning.errors import InputError
from shape_of_learning.figures.drawn_rows import drawn_estimates
from shape_of_learning.figures.table_reader import (
    CHANGES,
    ESTIMATES,
    VERDICTS,
    read_further_tables,
    read_table,
)
from shape_of_learning.storage.digests import add_digest


def test_several_files_are_one_table(tmp_path):
    paths = [
        write_rows(tmp_path / f"{name}.csv", rows_of_model(name)) for name in ("a", "b", "c", "d")
    ]
    table = read_table(paths, ESTIMATES)
    assert set(table.rows["model"]) == set("abcd")
    assert table.source.endswith("c.csv and 1 more")


def test_numbers_keep_every_bit_and_names_stay_text(tmp_path):
    rows = rows_of_model("NA", estimators=["mada"])
    for row in rows:
        row["revision"] = "1000"
    rows[0] = undefined(rows[0])
    table = read_table([write_rows(tmp_path / "table.csv", rows)], ESTIMATES).rows
    assert math.isnan(table["value"][0])
    assert list(table["value"][1:]) == [row["value"] for row in rows[1:]]
    assert (table["model"][0], table["revision"][0]) == ("NA", "1000")


def test_further_tables_are_read_by_kind(tmp_path):
    rows = [{"model": "NA", "revision": "1", "kind": "dropped", "k": 2, "loss": 2.5}]
    rows.append(rows[0] | {"revision": "2", "loss": ""})
    paths = [
        ("edits", write_rows(tmp_path / "a.csv", rows, list(rows[0]))),
        ("edits", write_rows(tmp_path / "b.csv", [rows[0] | {"model": "b"}], list(rows[0]))),
        ("weights", write_rows(tmp_path / "c.csv", rows[:1], ["model", "k"])),
    ]
    tables = read_further_tables(paths)
    assert tables["edits"]["model"].tolist() == ["NA", "NA", "b"]
    assert tables["edits"]["revision"].tolist() == ["1", "2", "1"]
    assert tables["edits"]["loss"].tolist()[::2] == [2.5, 2.5]
    assert math.isnan(tables["edits"]["loss"][1])
    assert list(tables["weights"]) == ["model", "k"]
    for columns in (["kind", "k"], ["model", "k"]):
        other = ("edits", write_rows(tmp_path / "d.csv", rows, columns))
        with pytest.raises(InputError, match=r"d\.csv has the columns .* of `edits` are needed"):
            read_further_tables([*paths, other])


def test_a_loss_may_be_infinite_or_not_measured(tmp_path):
    rows = verdicts_on("a", [0, 1, 2], losses={1: "inf"})
    rows[2] |= {"loss": "", "predicted_tokens": "", "vocabulary": "", "tokens": ""}
    path = write_verdicts(tmp_path / "verdicts.csv", rows)
    losses = read_table([path], VERDICTS).rows["loss"]
    assert (losses[0], losses[1]) == (2.0, math.inf)
    assert math.isnan(losses[2])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "is missing"),
        ("", "No columns to parse"),
        (",".join(HEADER) + "\n", "has 0 rows of the columns model"),
        ("model,value\na,1\n", "has 1 rows of the columns model, value"),
        (",".join(HEADER) + "\n" + ",".join(["a"] * len(HEADER)) + "\n", "cannot be read"),
    ],
)
def test_what_is_no_table_is_refused_in_one_sentence(tmp_path, content, reason):
    path = tmp_path / "table.csv"
    if content is not None:
        path.write_text(content)
        add_digest(path)
    with pytest.raises(InputError, match=reason) as refused:
        read_table([path], ESTIMATES)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_one_checkpoint_has_no_changes(tmp_path):
    assert read_table([write_rows(tmp_path / "a.csv", [], CHANGE_HEADER)], CHANGES).rows.empty


def chosen(folder, rows, models, *estimators):
    return drawn_estimates(inputs_of(folder, models, *estimators, rows=rows)).rows


def test_an_unknown_model_is_refused(tmp_path):
    with pytest.raises(InputError, match="no model 'c'"):
        chosen(tmp_path, rows_of_model("a"), ["a", "c"], "anisotropy")


def test_a_missing_estimator_is_refused(tmp_path):
    rows = rows_of_model("a", estimators=["mada"]) + rows_of_model("b")
    with pytest.raises(InputError, match="has no mom of a main"):
        chosen(tmp_path, rows, ["a", "b"], "mada", "mom")


def test_intrinsic_dimensions_of_different_batch_sizes_are_not_mixed(tmp_path):
    rows = rows_of_model("a", n=4096) + rows_of_model("b", n=2048)
    with pytest.raises(InputError, match="batches of 2048 and 4096 vectors in two_nn"):
        chosen(tmp_path, rows, ["a", "b"], "two_nn")


def test_anisotropies_of_different_batch_sizes_may_meet(tmp_path):
    rows = rows_of_model("a", n=4096) + rows_of_model("b", n=4700)
    assert len(chosen(tmp_path, rows, ["a", "b"], "anisotropy")) == 2 * (4 + 1)


def test_batch_sizes_of_models_that_are_not_drawn_do_not_matter(tmp_path):
    rows = rows_of_model("a", n=4096) + rows_of_model("b", n=2048)
    assert set(chosen(tmp_path, rows, ["b"], "two_nn")["n"]) == {2048}


def test_a_value_that_is_there_twice_is_refused(tmp_path):
    with pytest.raises(InputError, match="anisotropy of layer 0 twice for a, revision main"):
        chosen(tmp_path, rows_of_model("a") * 2, ["a"], "anisotropy")


def test_two_revisions_of_one_step_are_refused(tmp_path):
    rows = rows_of_model("a", steps=[8])
    again = [row | {"revision": "other"} for row in rows]
    with pytest.raises(InputError, match="twice for a, step 8"):
        chosen(tmp_path, rows + again, ["a"], "anisotropy")
