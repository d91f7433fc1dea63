"""The explorer in a real browser, Debian's Chromium; without one these tests skip.

What each test sees is kept as pictures in the folder that SCREENSHOTS names, or in the tests' own.
"""

import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser, expect

from made_explorer import HOSTILE, LABELS, draw, made_rows
from opened_explorer import DESKTOP, PHONE, Opened, launched, needs_chromium, silent_pages

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    return draw(tmp_path_factory.mktemp("explorer"))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory) -> Path:
    kept = os.environ.get("SCREENSHOTS")
    folder = Path(kept) if kept else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@pytest.fixture
def opening(browser, file) -> Iterator[Callable[..., Opened]]:
    with silent_pages(browser) as opens:
        yield partial(opens, file)


# In the other views, those that are about their axes and marks; a log scale is no matter of layers.
ALL = "#controls input:not([name=log]), #controls button, #views input, #position"
OF_AXES = "[name=across], [name=by], [name=leftOut]"


@pytest.mark.parametrize(
    ("view", "controls"),
    [("layer", ALL), ("step", f"{OF_AXES}, [name=log], [name=intervals]"), ("heat", OF_AXES)],
    ids=["layer", "step", "heat"],
)
def test_every_control_changes_what_it_says(opening, view, controls):
    start = (
        f"#view={view}&measure=two_nn&measure=anisotropy&model=one&model=two&by=tokens&at=131072"
    )
    opened = opening(start)
    found = [each for each in opened.page.locator(controls).all() if each.is_visible()]
    idle = []
    for control in found:
        if control.get_attribute("type") == "radio" and control.is_checked():
            continue
        before = opened.seen(), opened.slider()
        if control.get_attribute("type") == "range":
            control.fill("0")
        else:
            control.click()
        if (opened.seen(), opened.slider()) == before:
            idle.append(control.evaluate("each => each.outerHTML"))
        opened.go(start)
    assert idle == []
    assert len(found) > 4


def test_the_slider_goes_through_the_steps(opening):
    opened = opening("#measure=anisotropy&model=one")
    values = opened.page.locator("#position-value")
    words = []
    for stop in range(int(opened.page.get_attribute("#position", "max")) + 1):
        opened.slide_to(stop)
        opened.seen()
        words.append(values.inner_text())
        assert opened.page.get_attribute("#position", "aria-valuetext").startswith(words[-1])
    # Step 64 is not shown, since its checkpoint is broken.
    assert words == ["step 0", "step 1", "step 8", "step 512", "last checkpoint"]
    opened.click("input[name=leftOut]")
    opened.seen()
    assert opened.page.get_attribute("#position", "max") == "5"


def test_a_range_of_steps_and_stops_that_are_kept(opening):
    opened = opening("#measure=anisotropy&model=two&rows=all")
    opened.page.get_by_label("From", exact=True).select_option("8")
    opened.page.get_by_label("To", exact=True).select_option("64")
    opened.slide_to(0)
    opened.page.get_by_role("button", name="Keep for comparison").click()
    opened.slide_to(1)
    opened.seen()
    assert {row["step"] for row in opened.rows()} == {"8", "64"}
    opened.page.get_by_role("button", name="Remove step 8").click()
    opened.seen()
    assert {row["step"] for row in opened.rows()} == {"64"}


@pytest.mark.parametrize("view", ["layer", "step", "heat"])
def test_what_is_downloaded_is_what_the_tables_hold(opening, view):
    opened = opening(f"#view={view}&left_out=yes&at=64&layer=3&model=one&model=two")
    got = opened.rows()
    chosen = {
        "layer": lambda row: row["step"] == 64 and row["layer"] != "",
        "step": lambda row: row["layer"] == 3,
        "heat": lambda row: row["layer"] != "",
    }[view]
    wanted = [
        row
        for row in made_rows()
        if row["model"] != "still" and row["estimator"] == "anisotropy" and chosen(row)
    ]
    assert len(got) == len(wanted) > 0
    for one, other in zip(got, wanted, strict=True):
        keys = ("model", "revision", "step", "layer", "estimator", "selection", "n")
        assert [one[key] for key in keys] == [str(other[key]) for key in keys]
        for key in ("value", "low", "high"):
            if other["value"] == "":
                assert one[key] == ""
            else:
                assert float(one[key]) == pytest.approx(other[key], rel=1e-5, abs=1e-6)


def test_pictures_are_downloaded(opening):
    opened = opening("#view=heat&measure=two_nn")
    drawing = ElementTree.fromstring(opened.saved("svg"))
    assert drawing.tag.endswith("svg")
    assert "TwoNN" in "".join(drawing.itertext())
    assert opened.saved("png").startswith(b"\x89PNG")


def test_a_heat_map_marks_what_is_hollow_in_lines(opening):
    opened = opening("#view=heat&measure=two_nn&model=one&model=two&rows=all")
    drawing = ElementTree.fromstring(opened.saved("svg"))
    marks = drawing.findall(".//*[@aria-roledescription='point']")
    # Of model one a checkpoint is not ok; of model two a layer has near-duplicates at each of four steps.
    assert len(marks) == 1 + 4
    said = opened.seen()[1]
    assert "5 values of checkpoints that are not ok: circles above their columns." in said
    assert "4 values with more near-duplicates than the measure allows: diamonds." in said


@pytest.mark.parametrize(("measure", "is_wide"), [("anisotropy", False), ("average_cosine", True)])
def test_colours_of_a_wide_range_are_logarithmic(opening, measure, is_wide):
    opened = opening(f"#view=heat&measure={measure}&model=two&rows=all")
    values = [float(row["value"]) for row in opened.rows()]
    assert (0 < 10 * min(values) < max(values)) == is_wide
    drawing = ElementTree.fromstring(opened.saved("svg"))
    assert ("log scale" in "".join(drawing.itertext())) == is_wide


def test_an_address_restores_the_view(opening):
    opened = opening()
    opened.click("input[name=view][value=step]")
    opened.click("input[name=measure][value=two_nn]")
    opened.click("input[name=by][value=tokens]")
    opened.click("input[name=across][value=depth]")
    opened.click("input[name=intervals]")
    opened.slide_to(2)
    address = opened.address()
    seen = opened.seen()
    assert re.search("layer=0.1", address)
    again = opening(address)
    assert again.seen() == seen
    assert again.rows() == opened.rows()


def test_an_address_of_other_results_is_explained(opening):
    opened = opening("#measure=gone&model=one&mode=dark&at=now")
    said = opened.seen()[1]
    assert "ignored: measure “gone”, mode “dark”, at “now”" in said
    assert {row["estimator"] for row in opened.rows()} == {"anisotropy"}


def test_what_all_objects_inherit_is_no_key_of_an_address(opening):
    said = opening("#constructor=1&__proto__=2&log=toString").seen()[1]
    assert "ignored: constructor “1”, __proto__ “2”, log “toString”" in said


def test_a_range_of_other_results_is_shown_as_it_is(opening):
    opened = opening("#view=step&from=33&to=40")
    assert opened.page.get_by_label("From", exact=True).input_value() == "33"
    assert opened.page.get_by_label("To", exact=True).input_value() == "40"
    assert "no checkpoint between From and To of" in opened.seen()[1]


def test_an_empty_choice_says_what_to_choose(opening):
    opened = opening("#model=")
    assert opened.seen()[1].startswith("Nothing is drawn: choose a model.")
    opened.click("input[name=model][value=still]")
    assert opened.seen()[1].startswith("Anisotropy by layer, last checkpoint: 1 line of 4 values.")
    opened.click("input[name=view][value=step]")
    assert "no training steps of Without steps" in opened.seen()[1]


def test_a_claim_leads_to_its_curve(opening):
    opened = opening()
    claims = opened.page.locator("article")
    assert claims.count() == 4
    counted = "4 claims: 1 supported, 2 undecided, 1 not measured"
    assert opened.page.get_by_role("button", name=counted).count()
    assert "Claimed: growth & <i>more</i>" in claims.first.inner_text()
    assert "supported" in claims.first.inner_text()
    numbers = "Estimate 0.25, 95 % interval 0.125 to 0.5; 0.1 from the bound could have been seen"
    assert numbers in claims.first.inner_text()
    claims.first.get_by_role("link").click()
    summary = opened.page.locator("#summary")
    expect(summary).to_contain_text("Anisotropy by training step, average over layers: 1 line")
    # Just what the verdict rests on: no figure of this paper draws that model.
    assert {(row["model"], row["selection"]) for row in opened.rows()} == {("two", "all")}
    opened.page.go_back()
    expect(summary).to_contain_text("Anisotropy by layer")
    expect(opened.page.get_by_text("Anisotropy is the largest squared singular")).to_be_visible()


def test_a_claim_on_another_table_leads_to_its_curve_or_names_its_figure(opening):
    opened = opening()
    claims = opened.page.locator("article")
    assert "interval -Infinity to Infinity" in claims.nth(2).inner_text()
    assert "It has no curve here: see Figure 3 of this paper." in claims.nth(3).inner_text()
    claims.nth(2).get_by_role("link").click()
    expect(opened.page.locator("#summary")).to_contain_text("Share between types by training step")
    drawn = [(row["model"], row["step"], row["selection"], row["value"]) for row in opened.rows()]
    assert drawn == [
        ("still", "0", "topic/held_out", "0.3"),
        ("still", "64", "topic/held_out", "0.94"),
    ]


def test_a_loss_is_drawn_by_step_beside_measures_of_layers(opening):
    opened = opening("#view=step&measure=loss&measure=anisotropy&model=one&rows=all&layer=2")
    losses = [row for row in opened.rows() if row["estimator"] == "loss"]
    assert [(row["step"], row["layer"]) for row in losses] == [
        (str(step), "") for step in (0, 1, 8, 512)
    ]
    opened.click("input[name=view][value=layer]")
    assert "By step only: Cross-entropy." in opened.seen()[1]
    opened.click("input[name=measure][value=anisotropy]")
    assert opened.seen()[1].startswith("Nothing is drawn: Cross-entropy has no layers")
    opened.click("input[name=view][value=step]")
    assert "Cross-entropy by training step, the whole model" in opened.seen()[1]


@pytest.mark.parametrize(("view", "at"), [("layer", (0.62, 0.5)), ("heat", (0.6, 0.4))])
def test_a_pointer_is_told_value_interval_n_and_verdict(opening, pictures, view, at):
    opened = opening(f"#view={view}&model=one&rows=all&at=8&measure=anisotropy")
    box = opened.page.locator("#chart canvas").bounding_box()
    x, y = box["x"] + at[0] * box["width"], box["y"] + at[1] * box["height"]
    opened.page.mouse.move(x - 5, y)
    opened.page.mouse.move(x, y)
    told = opened.page.locator("#tip")
    expect(told).to_be_visible()
    opened.page.screenshot(path=pictures / f"pointer_{view}.png")
    words = dict(
        zip(told.locator("dt").all_inner_texts(), told.locator("dd").all_inner_texts(), strict=True)
    )
    row = next(
        row
        for row in opened.rows()
        if words["where"].startswith(f"layer {row['layer']},")
        and words["checkpoint"].startswith(f"step {row['step']},")
    )
    assert words["model"] == HOSTILE
    assert float(words["Anisotropy"]) == pytest.approx(float(row["value"]), rel=1e-3)
    low, high = words["95 % interval"].split(" to ")
    assert float(low) == pytest.approx(float(row["low"]), rel=1e-3)
    assert float(high) == pytest.approx(float(row["high"]), rel=1e-3)
    assert words["n"] == "4,096"
    assert words["verdict"] == row["verdict"]
    opened.page.keyboard.press("Escape")
    expect(told).to_be_hidden()


def test_a_finger_is_told_as_much(opening):
    opened = opening("#view=step&model=two", viewport=PHONE, has_touch=True, is_mobile=True)
    box = opened.page.locator("#chart canvas").bounding_box()
    told = opened.page.locator("#tip")
    opened.page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(told).to_contain_text("Model two")
    opened.page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] - 30)
    expect(told).to_be_hidden()


def test_all_is_reached_and_read_by_the_keyboard(opening):
    opened = opening("#model=one&model=two&rows=all&measure=anisotropy")
    page = opened.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "chart"
    read = []
    for key in ("ArrowRight", "ArrowRight", "End", "ArrowDown", "Home"):
        page.keyboard.press(key)
        read.append(page.locator("#reading").inner_text())
    rows = opened.rows()
    of_one = [row for row in rows if row["model"] == "one"]
    for words, row in zip(read, [of_one[0], of_one[1], of_one[-1]], strict=False):
        assert f"layer {row['layer']}," in words
        assert f"Anisotropy: {float(row['value']):.4g}" in words
    assert LABELS["two"] in read[3]
    assert "layer 0," in read[4]
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                "(e => e.name || e.id || e.dataset.save || e.textContent)(document.activeElement)"
            )
        )
    wanted = {"position", "keep", "csv", "svg", "png", "link", "view", "across", "by", "model"}
    wanted |= {"measure", "paper", "rows", "log", "intervals", "leftOut", "theme"}
    assert wanted - reached == set()


def test_a_screen_reader_finds_names_and_a_table(opening):
    opened = opening("#model=one&rows=all")
    nameless = opened.page.evaluate(
        """() => [...document.querySelectorAll("input, select, button, [role]")].filter((each) =>
            !each.hidden && !each.labels?.length && !each.ariaLabel && !each.textContent.trim()
            && !["alert", "status", "presentation"].includes(each.role)).map((each) => each.outerHTML)"""
    )
    assert nameless == []
    assert opened.page.get_attribute("#chart", "aria-label").startswith("Anisotropy by layer")
    assert opened.page.get_attribute("#summary", "aria-live") == "polite"
    opened.page.get_by_text("Data table", exact=True).click()
    table = opened.page.get_by_role("table", name="The values that are drawn")
    expect(table.locator("th[scope=col]")).to_have_count(13)
    cells = [row.locator("td").all_inner_texts() for row in table.locator("tbody tr").all()]
    assert cells == [list(row.values()) for row in opened.rows()]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_it_is_readable_on_every_screen(opening, pictures, scheme, size):
    opened = opening("#view=step&measure=two_nn", viewport=size, color_scheme=scheme)
    page = opened.page
    for view in ("step", "layer", "heat"):
        if view != "step":
            page.locator(f"input[name=view][value={view}]").check()
        opened.seen()
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        name = f"{view}_{size['width']}_{scheme}.png"
        page.screenshot(path=pictures / name, full_page=True)
    shade = page.evaluate("getComputedStyle(document.body).backgroundColor")
    is_dark = sum(map(int, re.findall(r"\d+", shade)[:3])) < 200
    assert is_dark == (scheme == "dark")
    before = opened.seen()[0]
    page.locator("#theme").click()
    assert opened.seen()[0] != before
    assert page.evaluate("document.documentElement.dataset.theme") != scheme
    if size is PHONE:
        expect(page.locator("#controls")).to_be_hidden()
        page.get_by_text("Choose what is shown").click()
        expect(page.locator("#controls")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]


def test_a_page_that_is_cut_short_says_so(browser, file, tmp_path):
    cut = tmp_path / "cut.html"
    text = file.read_text()
    cut.write_text(re.sub(r'(id="numbers">.{40})[^<]*', r"\1", text))
    page = browser.new_page()
    page.goto(cut.as_uri())
    expect(page.get_by_role("alert")).to_contain_text("This page is not whole")
    page.close()
