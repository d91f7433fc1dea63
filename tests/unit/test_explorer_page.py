"""The page of the explorer as a file: what is packed, and that no text in it can become a program."""

import base64
import json
import re
import zlib
from html.parser import HTMLParser

import numpy as np
import pytest

from figure_tables import rows_of_model, verdicts_on, write_rows, write_verdicts
from made_explorer import HOSTILE, MEASURED, STEPS, draw, made_rows
from shape_of_learning.errors import InputError
from shape_of_learning.explorer.curves import AVERAGE, read_curves
from shape_of_learning.explorer.further_tables import further_rows, without_entry
from shape_of_learning.explorer.packed_columns import layout, pack, rounded
from shape_of_learning.explorer.page_parts import FOLDER, FRAME, LICENCES, PROGRAM, STYLE
from shape_of_learning.storage.csv_table import write_table

MODELS = ["one", "two", "still"]


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> str:
    return draw(tmp_path_factory.mktemp("explorer")).read_text()


class Scripts(HTMLParser):
    """The elements of a page, and what is in its scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.scripts: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.links += [value for key, value in attrs if key in ("src", "href", "action")]
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self.names[-1:] == ["script"]:
            self.scripts[-1] += data


def test_columns_are_read_as_they_were_packed():
    columns = {
        "a": np.array([1, 2, 65535], dtype=np.uint16),
        "b": np.array([0.1, np.nan, np.inf], dtype=np.float32),
    }
    planes = zlib.decompress(base64.b64decode(pack(columns)))
    for name, kind in layout(columns):
        width = int(kind[1])
        plane = np.frombuffer(planes[: 3 * width], np.uint8).reshape(width, 3)
        read = np.ascontiguousarray(plane.T).view(f"<{kind}")[:, 0]
        np.testing.assert_array_equal(read, columns[name])
        planes = planes[3 * width :]
    assert planes == b""


def test_no_rows_are_no_bytes():
    columns = {"a": np.array([], np.uint16), "b": np.array([], np.float32)}
    assert zlib.decompress(base64.b64decode(pack(columns))) == b""


def test_rounding_is_to_sixteen_bits():
    values = np.random.default_rng(0).normal(size=1000) * 10.0 ** np.arange(-10, 10).repeat(50)
    assert np.max(np.abs(rounded(values) / values - 1)) <= 2**-16
    np.testing.assert_array_equal(rounded(np.array([0, np.inf, np.nan])), [0, np.inf, np.nan])


def test_curves_are_what_the_table_says(tmp_path):
    rows = made_rows()
    estimates = write_rows(tmp_path / "estimates.csv", rows)
    curves = read_curves(estimates, [], MODELS, MEASURED)
    start, columns = 0, curves.columns
    found = {}
    for model, estimator, selection, count in curves.series:
        for at in range(start, start + count):
            revision = curves.checkpoints[columns["checkpoint"][at]][1]
            layer = "" if columns["layer"][at] == AVERAGE else int(columns["layer"][at])
            key = (model, estimator, selection, revision, layer)
            found[key] = {name: columns[name][at] for name in columns}
        start += count
    assert len(found) == len(rows) == len(columns["value"])
    for row in rows:
        got = found[tuple(row[k] for k in ("model", "estimator", "selection", "revision", "layer"))]
        if row["value"] == "":
            assert np.isnan(got["value"])
            continue
        assert got["value"] == np.float32(row["value"])
        assert got["value"] - got["below"] == pytest.approx(row["low"], rel=1e-5, abs=1e-6)
        high = got["value"] + got["below"] + got["more_above"]
        assert high == pytest.approx(row["high"], rel=1e-5, abs=1e-6)
        assert got["n"] == row["n"]


def test_other_tables_are_curves_of_the_same_checkpoints(tmp_path):
    rows = rows_of_model("one", layers=2, steps=(0, 8), estimators=MEASURED[:1])
    estimates = write_rows(tmp_path / "estimates.csv", rows)
    losses = [row for model in ("one", "origin") for row in verdicts_on(model, (0, 8))]
    losses[1]["loss"] = ""
    verdicts = write_verdicts(tmp_path / "verdicts.csv", losses)
    layers = tmp_path / "layers.csv"
    columns = ("model", "revision", "step", "sample", "layer", "estimator", "n", "value")
    write_table(layers, columns, [["one", "step8", 8, "a task", 2, "top_1_share", 50, 0.25]])
    found = further_rows([("verdicts", verdicts), ("finetuning_layers", layers)], ["one"])
    further = [row for of in found.values() for row in of]
    entries = without_entry(found, [*MEASURED, "top_1_share"])
    assert [(each["name"], each["label"]) for each in entries] == [("loss", "Cross-entropy")]
    names = [*MEASURED, "top_1_share", "loss"]
    curves = read_curves(estimates, [], ["one"], names, further)
    assert curves.series == [
        ["one", MEASURED[0], "all", len(rows)],
        ["one", "top_1_share", "a task", 1],
        ["one", "loss", "all", 1],
    ]
    assert [each[:4] for each in curves.checkpoints] == [
        ["one", "step0", 0, rows[0]["tokens"]],
        ["one", "step8", 8, rows[-1]["tokens"]],
    ]
    columns = curves.columns
    assert columns["checkpoint"][-2:].tolist() == [1, 0]
    assert columns["layer"][-2:].tolist() == [2, AVERAGE]
    assert columns["depth"][-2] == 1
    assert columns["value"][-2:].tolist() == [0.25, 2]
    assert np.isnan(columns["below"][-2:]).all()


def test_an_interval_may_reach_farther_above(tmp_path):
    row = rows_of_model("one", layers=1, estimators=MEASURED[:1])[0]
    row |= {"value": 10.0, "low": 9.0, "high": 13.0}
    curves = read_curves(write_rows(tmp_path / "estimates.csv", [row]), [], MODELS, MEASURED)
    assert (curves.columns["below"][0], curves.columns["more_above"][0]) == (1, 2)


def test_another_model_than_those_of_the_run_is_refused(tmp_path):
    estimates = write_rows(tmp_path / "estimates.csv", made_rows())
    with pytest.raises(InputError, match="has the model `one`, which this run has not"):
        read_curves(estimates, [], ["two", "still"], MEASURED)


def test_equal_numbers_give_an_equal_page(tmp_path, page):
    assert draw(tmp_path / "again").read_text() == page


def test_no_label_becomes_an_element_or_a_program(page):
    read = Scripts()
    read.feed(page)
    assert HOSTILE not in page
    assert len(read.scripts) == 4
    description = json.loads(read.scripts[0])
    assert description["models"][0]["label"] == HOSTILE
    assert "b" not in read.names
    assert "i" not in read.names


def test_the_page_names_nothing_outside_it(page):
    read = Scripts()
    read.feed(page)
    assert [link for link in read.links if not link.startswith("#")] == []
    assert "default-src 'none'" in page
    assert "connect-src" not in page


def test_each_part_of_the_page_is_used():
    assert {path.name for path in FOLDER.iterdir()} == {FRAME, STYLE, LICENCES, *PROGRAM}


def test_licences_name_what_draws(page):
    assert "University of Washington Interactive Data Lab" in page
    assert re.search(r"Redistributions in binary form must reproduce", page)


def test_series_are_in_the_order_of_steps(tmp_path):
    rows = list(reversed(made_rows()))
    curves = read_curves(write_rows(tmp_path / "estimates.csv", rows), [], MODELS, MEASURED)
    steps = [step for model, _, step, *_ in curves.checkpoints if model == "one"]
    assert steps == list(STEPS)
