"""The explorer of tables that are hard to draw, in a browser; without one these tests skip."""

from collections.abc import Callable, Iterator
from math import inf, nan
from xml.etree import ElementTree

import numpy as np
import pytest
from playwright.sync_api import Browser

import made_explorer
from figure_tables import rows_of_model
from opened_explorer import PHONE, Opened, launched, needs_chromium, silent_pages
from shape_of_learning.explorer.explorer_page import explorer_page
from shape_of_learning.explorer.page_parts import PROGRAM, page_part

pytestmark = needs_chromium
ONE = "#model=one&measure=anisotropy"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@pytest.fixture
def opening(browser, tmp_path) -> Iterator[Callable[..., Opened]]:
    with silent_pages(browser) as opens:
        yield lambda rows, *address, **options: opens(
            made_explorer.draw(tmp_path, rows=rows), *address, **options
        )


def rows_of_one(layers: int = 3) -> list[dict]:
    return rows_of_model("one", layers=layers, steps=(0, 8), estimators=("anisotropy",))


def words(opened: Opened) -> list[str]:
    return [text.strip() for text in ElementTree.fromstring(opened.saved("svg")).itertext()]


def test_what_is_infinite_is_said_and_takes_no_colour_from_the_others(opening):
    rows = rows_of_one()
    for row, value in zip(rows, (inf, -inf, nan), strict=False):
        row.update(value=value, low=value, high=value)
    opened = opening(rows, f"{ONE}&view=heat")
    said = opened.seen()[1]
    assert "1 undefined (blank), 2 infinite (blank)." in said
    assert "Infinity" not in said
    assert [row["value"] for row in opened.rows()][:3] == ["Infinity", "-Infinity", ""]
    assert len({text for text in words(opened) if text[:2] == "0."}) > 2


def test_an_interval_without_an_end_is_not_drawn(opening):
    rows = rows_of_one()
    next(row for row in rows if row["step"] == 8 and row["layer"] == 1)["high"] = inf
    opened = opening(rows, ONE)
    drawing = ElementTree.fromstring(opened.saved("svg"))
    (band,) = drawing.findall(".//*[@aria-roledescription='area mark']")
    assert band.attrib["d"].count("M") == 2


def test_a_heat_map_of_one_value_has_its_layer_and_no_scale(opening):
    rows = [row for row in rows_of_one(layers=1) if row["step"] == 8 and row["layer"] == 0]
    found = words(opening(rows, f"{ONE}&view=heat"))
    assert [text for text in found if text[-1:].isdecimal()] == ["8", "0"]


@pytest.mark.parametrize("scale", [1e9, 1e-9])
@pytest.mark.parametrize("view", ["layer", "heat"])
def test_long_numbers_and_names_do_not_push_charts_off_the_page(opening, monkeypatch, scale, view):
    monkeypatch.setitem(made_explorer.LABELS, "one", "A long name of a model " * 6)
    rows = rows_of_one()
    for row in rows:
        row |= {key: scale * row[key] for key in ("value", "low", "high")}
    opened = opening(rows, f"{ONE}&view={view}", viewport=PHONE)
    width = "each => each.clientWidth"
    drawn = opened.page.locator("#chart canvas").evaluate(width)
    assert drawn <= opened.page.locator("#chart").evaluate(width)


def test_a_heat_map_may_have_a_million_values(browser):
    page = browser.new_page()
    program = "\n".join(map(page_part, PROGRAM[:-1]))
    depths = page.evaluate(
        f"""() => {{
            {program}
            const layer = new Uint16Array(1e6).map((_, at) => at % 50);
            const checkpoint = new Uint16Array(1e6).map((_, at) => Math.floor(at / 50));
            const columns = {{ layer, checkpoint, depth: Float32Array.from(layer, (each) => each / 49) }};
            const checkpoints = Array.from({{ length: 20000 }}, (_, step) => ({{ step }}));
            const rows = Array.from(layer.keys());
            return gridOf({{ columns, checkpoints }}, {{ by: "step" }}, {{ rows }}).depths;
        }}"""
    )
    page.close()
    assert depths == [0, 1]


def test_a_table_without_rows_is_said_to_be_empty(browser, tmp_path):
    keys = ("models", "measures", "papers", "claims", "notes", "checkpoints", "series")
    names = ("depth", "value", "below", "more_above", "n", "near_duplicates")
    columns = {name: np.array([], np.float32) for name in names}
    columns |= {name: np.array([], np.uint16) for name in ("checkpoint", "layer")}
    file = tmp_path / "explorer.html"
    file.write_text(explorer_page({key: [] for key in keys}, columns))
    opened = Opened(browser, file)
    assert opened.seen()[1].strip() == "Nothing is drawn: the table of estimates is empty."
    assert opened.said == []
    opened.context.close()


def test_a_picture_is_no_taller_than_browsers_can_save(opening):
    opened = opening(rows_of_one(), ONE)
    before = opened.saved("png")
    opened.page.add_style_tag(content="#chart canvas { height: 64000px !important }")
    after = opened.saved("png")
    widths = [int.from_bytes(each[16:20], "big") for each in (before, after)]
    assert widths[0] == pytest.approx(6 * widths[1], abs=6)
