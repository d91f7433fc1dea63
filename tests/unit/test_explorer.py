"""The explorer as a file and, where there is Debian's Chromium, in a browser."""

import base64
import csv
import gzip
import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from math import inf
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser, expect

import explorer_pages as made
from figure_tables import make_model_rows
from shape_of_learning.claims.claim import name_criteria_columns
from shape_of_learning.explorer.explorer_page import NUMBERS as NUMBERS_OF_PAGE
from shape_of_learning.explorer.job import ShownMeasure
from shape_of_learning.metrics.tidy import ESTIMATE_COLUMNS
from shape_of_learning.results import make_explorer

NUMBERS = ("value", "low", "high")
MOST_BYTES = 1_200_000


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    return made.draw(tmp_path_factory.mktemp("explorer"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with made.launch_browser() as browser:
        yield browser


@pytest.fixture
def open_explorer(browser, file) -> Iterator[Callable[..., made.OpenPage]]:
    with made.open_silent_pages(browser) as open_page:
        yield partial(open_page, file)


def read_content(page: Path) -> dict:
    (archive,) = re.findall(r'id="content">([^<]*)<', page.read_text())
    return json.loads(gzip.decompress(base64.b64decode(archive)))


def list_rows(content: dict) -> list[dict]:
    """Return the rows of a page, each with its series and checkpoint."""
    names = ("estimator", "model", "selection")
    return [
        dict(zip(names, series, strict=True))
        | content["checkpoints"][checkpoint]
        | dict(zip((*NUMBERS_OF_PAGE, "reason"), cells, strict=True))
        for *series, rows in content["series"]
        for checkpoint, *cells in rows
    ]


def test_a_page_holds_the_numbers_of_the_tables(file):
    keys = ("model", "estimator", "selection", "revision", "layer")
    rows = list_rows(read_content(file))
    rows_by_key = {tuple(row[key] for key in keys): row for row in rows}
    for row in made.make_rows():
        page_row = rows_by_key[tuple(row[key] if row[key] != "" else None for key in keys)]
        assert page_row["step"] == (row["step"] if row["step"] != "" else None)
        assert page_row["n"] == row["n"]
        for name in NUMBERS:
            value = None if row[name] == "" else pytest.approx(row[name], rel=5e-6)
            assert page_row[name] == value
    # The first step of model two has no loss.
    losses = [row["step"] for row in rows if (row["estimator"], row["model"]) == ("loss", "two")]
    assert losses == [8, 64, 512]
    shares = [
        (row["depth"], row["value"]) for row in rows if row["estimator"] == "share_between_types"
    ]
    assert shares[:2] == [(0, 0), (0.333333, 0.1)]
    assert len(shares) == 8  # rows of clusters are left out


def test_a_page_is_one_file_and_runs_no_text_as_a_program(file, tmp_path):
    page = file.read_text()
    assert made.draw(tmp_path).read_text() == page
    assert read_content(file)["models"][0]["label"] == made.HOSTILE
    assert made.HOSTILE not in page
    assert re.findall(r'(?:src|href|action)="[^#"]', page.partition('id="drawing"')[0]) == []
    assert f"<li>{made.FINDINGS[0]}</li>" in page  # it also shows without a program
    assert "default-src 'none'" in page
    assert "connect-src" not in page


@made.needs_chromium
def test_an_address_restores_the_state_of_the_controls(open_explorer):
    tab = open_explorer()
    tab.slide_to(2)
    tab.click("#keep")
    tab.click("input[name=view][value=step]")
    tab.click("input[name=measure][value=anisotropy]")
    tab.click("input[name=by][value=tokens]")
    tab.click("input[name=intervals]")
    tab.page.get_by_label("From", exact=True).select_option(str(8 * 2048))
    tab.slide_to(2)
    address, view = tab.read_address(), tab.read_view()
    assert {row["step"] for row in tab.read_rows()} == {"8", "512", "64"}
    again = open_explorer(address)
    assert again.read_view() == view
    assert again.read_rows() == tab.read_rows()
    again.click("#reset")
    assert again.read_view()[1].startswith("Anisotropy, TwoNN by relative depth, last checkpoint")


@made.needs_chromium
@pytest.mark.parametrize("view", ["layer", "step", "heat"])
def test_pictures_tips_and_downloads_have_the_numbers_of_the_tables(open_explorer, view):
    start = f"#view={view}&left_out=yes&at=64&across=layer&layer=3&model=one&model=two&measure=anisotropy"
    tab = open_explorer(start)
    is_chosen = {
        "layer": lambda row: row["step"] == 64 and row["layer"] != "",
        "step": lambda row: row["layer"] == 3,
        "heat": lambda row: row["layer"] != "",
    }[view]
    measure_rows = [row for row in made.make_rows() if row["estimator"] == "anisotropy"]
    expected_rows = [row for row in measure_rows if row["model"] != "still" and is_chosen(row)]
    keys = ("model", "revision", "step", "layer", "estimator", "selection", "n")
    page_rows = {tuple(row[key] for key in keys): row for row in tab.read_rows()}
    assert len(page_rows) == len(expected_rows) > 0
    for row in expected_rows:
        page_row = page_rows[tuple(str(row[key]) for key in keys)]
        numbers = [float(page_row[key] or "nan") for key in NUMBERS]
        expected = [float(row[key] or "nan") for key in NUMBERS]
        assert numbers == pytest.approx(expected, rel=5e-6, nan_ok=True)
    box = tab.page.locator("#chart canvas").bounding_box()
    x, y = box["x"] + 0.3 * box["width"], box["y"] + 0.45 * box["height"]
    tab.page.mouse.move(x - 5, y)
    tab.page.mouse.move(x, y)
    tip = tab.page.locator("#tip")
    expect(tip).to_be_visible()
    terms, texts = (tip.locator(tag).all_inner_texts() for tag in ("dt", "dd"))
    words = dict(zip(terms, texts, strict=True))
    assert words["model"] in (made.HOSTILE, made.LABELS["two"])
    assert words["n"] == "4,096"
    assert tab.save("png").startswith(b"\x89PNG")


@made.needs_chromium
def test_a_step_shows_no_value_of_another_step(open_explorer):
    # Model two begins at step 1; the last model has no steps.
    tab = open_explorer("#measure=anisotropy&model=one&model=two&model=still&rows=all&at=0")
    assert {(row["model"], row["step"]) for row in tab.read_rows()} == {("one", "0")}
    assert "No checkpoint there: Model two, Without steps" in tab.read_view()[1]


@made.needs_chromium
def test_steps_of_fine_tuning_and_of_pretraining_are_kept_apart(browser, tmp_path):
    page = made.draw_with_fine_tuning(tmp_path)
    address = "#measure=anisotropy&model=two&model=tuned&rows=all"
    with made.open_silent_pages(browser) as open_page:
        tab = open_page(page, "#measure=anisotropy&model=tuned")
        assert tab.page.locator("#position").get_attribute("max") == "3"  # 0, 8, 24, the last
        tab = open_page(page, f"{address}&at=8")
        assert {row["model"] for row in tab.read_rows()} == {"two"}
        tab = open_page(page, f"{address}&at=fine-tuning 8")
        assert {(row["model"], row["step"]) for row in tab.read_rows()} == {("tuned", "8")}
        assert "step 8 of fine-tuning" in tab.read_view()[1]
        # A range selects steps of pretraining only.
        tab = open_page(page, f"{address}&from=64&at=fine-tuning 8")
        assert {(row["model"], row["step"]) for row in tab.read_rows()} == {("tuned", "8")}
        options = tab.page.get_by_label("From", exact=True).locator("option").all_inner_texts()
        assert options == ["the first", "step 1", "step 8", "step 64", "step 512"]
        tab = open_page(page, f"{address}&view=step")
        titles = tab.save("svg").decode()
        assert titles.count(">Training step<") == titles.count(">Fine-tuning step<") == 1
        assert (
            open_page(page, "#model=tuned&measure=anisotropy&view=heat&across=layer")
            .read_view()[1]
            .startswith("Anisotropy by layer and fine-tuning step")
        )


@made.needs_chromium
def test_unmeasured_claims_are_folded_and_the_others_link_to_their_values(open_explorer):
    tab = open_explorer()
    claims = tab.page.locator("article")
    heading = "4 claims: 1 supported, 2 undecided, 1 not measured"
    assert tab.page.get_by_role("button", name=heading).count()
    first = claims.first.inner_text()
    assert "Claimed: growth & <i>more</i>" in first
    assert made.SUMMARY in first
    assert claims.first.locator("td").all_inner_texts() == made.CRITERION
    robust = "1 of 2 other choices of the analysis alone changes the verdict “supported”: "
    assert f"{robust}token types “one vector of each type” (contradicted)" in first
    claims.first.locator("figure").scroll_into_view_if_needed()
    expect(claims.first.locator("figure canvas")).to_be_visible()
    verdicts = "4 combinations of choices: 2 supported, 1 contradicted, 1 not measured"
    assert verdicts in claims.first.locator("figcaption").inner_text()
    assert "Robustness" not in claims.nth(1).inner_text()
    hidden_claims = tab.page.locator("#claims details li")
    assert not hidden_claims.is_visible()
    tab.page.get_by_text("This run cannot judge 1 claim").click()
    assert "Claimed: fall" in hidden_claims.inner_text()
    claims.first.get_by_role("link").click()
    summary = tab.page.locator("#summary")
    expect(summary).to_contain_text("Anisotropy by training step, average over layers: 1 line")
    # The link shows only the evidence of the verdict: no figure of this paper draws that model.
    assert {(row["model"], row["selection"]) for row in tab.read_rows()} == {("two", "all")}
    claims.nth(1).get_by_role("link").click()
    expect(summary).to_contain_text("Share between types by training step")
    assert [row["value"] for row in tab.read_rows()] == ["0.3", "0.94"]


@made.needs_chromium
def test_a_claim_names_its_bounds_and_the_other_verdicts_that_differ(browser, tmp_path):
    bounds, verdicts = {}, {}
    place = name_criteria_columns("supported").index("Bound")
    with made.open_silent_pages(browser) as open_page:
        for verdict in ("supported", "contradicted"):
            tab = open_page(made.draw(tmp_path / verdict, growth_verdict=verdict))
            claim = tab.page.locator("article").first
            bounds[verdict] = claim.locator("th").all_inner_texts()[place]
            verdicts[verdict] = claim.locator(".verdict").inner_text()
    assert bounds["supported"] == "Bound"
    assert "contradict" in bounds["contradicted"]
    assert "without massive tokens: undecided" in verdicts["supported"]
    assert "TwoNN" not in verdicts["supported"]
    assert "TwoNN: supported" in verdicts["contradicted"]
    assert not any(re.search("untrained|held out", words) for words in verdicts.values())


@made.needs_chromium
def test_pictures_are_drawn_for_a_printer_and_without_animation_frames(browser, file):
    context = browser.new_context(viewport=made.DESKTOP)
    context.add_init_script("window.requestAnimationFrame = () => 0")
    page = context.new_page()
    page.goto(file.as_uri())
    expect(page.locator("#chart canvas")).to_be_visible()
    page.pdf()
    expect(page.locator("article figure canvas")).to_have_count(1)
    context.close()


@made.needs_chromium
def test_a_page_begins_with_relative_depth_if_models_differ_in_depth(browser, tmp_path):
    rows = {
        "alike": make_model_rows("one", layers=4) + make_model_rows("two", layers=4),
        "apart": make_model_rows("one", layers=4) + make_model_rows("two", layers=6),
    }
    with made.open_silent_pages(browser) as open_page:
        alike, apart = (
            open_page(made.draw(tmp_path / name, rows=model_rows)).read_view()[1]
            for name, model_rows in rows.items()
        )
    assert "by layer" in alike
    assert "by relative depth" in apart


@made.needs_chromium
def test_a_view_that_would_be_empty_is_not_offered(open_explorer):
    tab = open_explorer("#view=heat&measure=loss&model=one")
    assert [row["layer"] for row in tab.read_rows()] == [""] * 4
    views = tab.page.locator("input[name=view]")
    assert [views.nth(place).is_enabled() for place in range(3)] == [False, True, False]


@made.needs_chromium
def test_all_controls_and_values_can_be_used_by_the_keyboard(open_explorer):
    tab = open_explorer("#model=one&model=two&rows=all&measure=anisotropy")
    page = tab.page
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "chart"
    readings = []
    for key in ("ArrowRight", "ArrowRight", "End", "ArrowDown"):
        page.keyboard.press(key)
        readings.append(page.locator("#reading").inner_text())
    assert ["layer 0," in readings[0], "layer 1," in readings[1], "layer 4," in readings[2]] == [
        True
    ] * 3
    assert made.LABELS["two"] in readings[3]
    focused_controls = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        focused_controls.add(
            page.evaluate("(e => e.name || e.id || e.dataset.save)(document.activeElement)")
        )
    controls = {"position", "keep", "csv", "all", "view", "model", "measure", "rows", "reset"}
    assert controls <= focused_controls


@made.needs_chromium
def test_hard_tables_are_drawn_on_a_phone_with_marks_and_notes(browser, tmp_path):
    size = {"width": 390, "height": 844}
    rows = [
        row for row in made.make_rows() if row["model"] != "one" or row["estimator"] != "two_nn"
    ]
    rows[0] |= {"value": inf, "low": -inf, "high": inf}
    for row in rows:
        if row["estimator"] == "average_cosine":
            row |= {key: 1e9 * row[key] for key in NUMBERS}
    page = made.draw(tmp_path, rows=rows)
    with made.open_silent_pages(browser) as open_page:
        tab = open_page(page, "#measure=gone&at=now&constructor=1", viewport=size, has_touch=True)
        assert "ignored: measure “gone”, at “now”, constructor “1”" in tab.read_view()[1]
        for view in ("layer", "step", "heat"):
            tab.page.locator(f"input[name=view][value={view}]").check()
            tab.read_view()
            assert tab.page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        assert "1 value undefined or infinite" in tab.read_view()[1]
        drawing = ElementTree.fromstring(tab.save("svg"))
        # A checkpoint of model one is not ok; a layer of model two has near-duplicates at four steps.
        assert len(drawing.findall(".//*[@aria-roledescription='point']")) == 1 + 4
        wide = open_page(page, "#view=heat&measure=average_cosine&model=two", viewport=size)
        assert "log scale" in wide.save("svg").decode()
        losses = open_page(page, "#view=step&measure=loss&model=one", viewport=size)
        assert [row["step"] for row in losses.read_rows()] == ["0", "1", "8", "512"]


@made.needs_chromium
def test_a_page_begins_with_two_pictures_above_the_controls(browser, tmp_path):
    rows = make_model_rows("one", layers=4, steps=made.STEPS, estimators=("anisotropy",))
    massive = "anisotropy_without_massive_tokens"
    selection = {"estimator": massive, "selection": "without_massive_tokens"}
    equal = rows + [row | selection for row in rows]
    rows += [row | selection | made.scale_row(row, 0.5) for row in rows]
    equal += make_model_rows("one", layers=4, steps=made.STEPS, estimators=("two_nn", "mada"))
    job = made.JOB._replace(measures=made.make_measures(*made.MEASURED, massive, "mada"))
    pages = {
        # A picture without massive tokens would be equal to the first.
        made.draw(tmp_path / "equal", job, rows=equal): (
            "Anisotropy by layer and step",
            "Intrinsic dimension (MADA) by layer and step",
        ),
        made.draw(tmp_path / "with", job, rows=rows): (
            "Anisotropy by layer and step",
            "Anisotropy with and without massive tokens by layer and step",
        ),
        made.draw(tmp_path / "without"): (
            "Anisotropy by layer and step",  # only the model that the sentences name
            "Intrinsic dimension (TwoNN) by layer and step",
        ),
    }
    with made.open_silent_pages(browser) as open_page:
        for page, titles in pages.items():
            tab = open_page(page)
            figures = tab.page.locator("#pictures figure")
            assert tuple(figures.locator("h2").all_inner_texts()) == titles
            controls = tab.page.locator("#page").bounding_box()["y"]
            for drawing in figures.locator(".picture > svg").all():
                box = drawing.bounding_box()
                assert box["height"] > 200
                assert box["y"] + box["height"] < controls
            sample = f"{made.JOB.sample}; 4,096 vectors a batch"
            captions = figures.locator("figcaption").all_inner_texts()
            assert all(caption.startswith(sample) for caption in captions)
            assert tab.page.locator("#sample").inner_text() == sample


@made.needs_chromium
def test_the_opening_shows_the_models_of_its_sentences_and_begins_with_mada(browser, tmp_path):
    rows = [
        row
        for model in ("two", "one", "still")
        for row in make_model_rows(model, layers=4, estimators=("anisotropy", "two_nn", "mada"))
    ]
    job = made.JOB._replace(measures=made.make_measures("anisotropy", "two_nn", "mada"))
    page = made.draw(tmp_path, job, rows=rows)
    assert [label in made.FINDINGS[0] for label in made.LABELS.values()] == [False, True, False]
    with made.open_silent_pages(browser) as open_page:
        tab = open_page(page)
        pictures = tab.page.locator("#pictures .picture > svg")
        assert [pictures.nth(n).locator("path[fill=none]").count() for n in (0, 1)] == [1, 1]
        boxes = tab.page.locator("input[name=measure]:checked")
        assert {box.get_attribute("value") for box in boxes.all()} == {"anisotropy", "mada"}


@made.needs_chromium
def test_lines_without_massive_tokens_belong_to_models_with_massive_tokens(browser, tmp_path):
    massive = "anisotropy_without_massive_tokens"
    rows = []
    for model, factor in {"with": 0.5, "without": 1.0}.items():
        model_rows = make_model_rows(model, layers=4, estimators=("anisotropy",))
        rows += model_rows
        rows += [
            row | {"estimator": massive, "n": 4000 + 96 * factor} | made.scale_row(row, factor)
            for row in model_rows
        ]
    page = tmp_path / "page.html"
    page.write_text(make_explorer([[row.get(key, "") for key in ESTIMATE_COLUMNS] for row in rows]))
    with made.open_silent_pages(browser) as open_page:
        tab = open_page(page)
        pictures = tab.page.locator("#pictures .picture > svg")
        lines = [pictures.nth(place).locator("path[fill=none]").count() for place in range(2)]
        assert lines == [2, 3]
        caption = tab.page.locator("#pictures figcaption").nth(1).inner_text()
        assert re.search(r"No massive tokens.*: without$", caption)
        # Vectors are counted by measure, as figures count them.
        counts = r"4,096 vectors a batch \(Anisotropy\); 4,048 .* \(Anisotropy, without massive"
        assert re.search(counts, caption)


@made.needs_chromium
def test_the_axis_of_anisotropy_begins_at_zero(browser, tmp_path):
    rows = make_model_rows("model", layers=4, estimators=("anisotropy", "two_nn"))
    for row in rows:
        row |= made.scale_row(row, 0.1) if row["estimator"] == "anisotropy" else {}
        row["value"] += 0.3 if row["estimator"] == "anisotropy" else 0
    page = tmp_path / "page.html"
    page.write_text(make_explorer([[row.get(key, "") for key in ESTIMATE_COLUMNS] for row in rows]))
    with made.open_silent_pages(browser) as open_page:
        tab = open_page(page, "#measure=anisotropy")
        picture = tab.page.locator("#pictures .picture > svg").first
        assert "0" in picture.locator("text[text-anchor=end]").all_text_contents()
        axis = tab.save("svg").decode()
        assert re.search(r"Y-axis[^\"]*values from 0(\.0*)? to", axis)


@made.needs_chromium
def test_a_page_shows_names_of_legends_and_no_identifiers(open_explorer):
    tab = open_explorer("#model=two&measure=two_nn&measure=average_cosine&measure=anisotropy")
    tab.page.evaluate(
        "for (const details of document.querySelectorAll('details')) details.open = true"
    )
    tab.read_view()
    text = tab.page.inner_text("body")
    assert "Without steps lacks TwoNN." in text
    assert re.findall("two_nn|average_cosine|without_first_token", text) == []


@made.needs_chromium
def test_a_heading_sorts_the_table_and_all_values_download(open_explorer, file):
    tab = open_explorer("#model=one&model=two&rows=all&measure=anisotropy")
    tab.page.get_by_text("Data table", exact=True).click()
    table = tab.page.locator("#table")
    columns = len(table.locator("th").all())
    cells = table.locator("tbody td").all_inner_texts()
    assert all(any(cells[column::columns]) for column in range(columns))
    place = table.locator("th").all_inner_texts().index("Value") + 1
    heading = table.get_by_role("button", name="Value")
    for order in ("ascending", "descending"):
        heading.focus()
        tab.page.keyboard.press("Enter")
        cells = table.locator(f"td:nth-child({place})").all_inner_texts()
        values = [float(cell) for cell in cells if cell]
        assert values == sorted(values, reverse=order == "descending")
        assert cells.index("") == len(values) if "" in cells else True
        assert table.locator(f"th[aria-sort={order}]").inner_text().startswith("Value")
    saved_rows = list(csv.DictReader(tab.save("all").decode().splitlines()))
    page_rows = list_rows(read_content(file))
    assert len(saved_rows) == len(page_rows)
    assert {row["model_label"] for row in saved_rows} == {*made.LABELS.values()}


@made.needs_chromium
def test_measures_are_searched_and_chosen_by_the_keyboard(browser, tmp_path):
    names = ("anisotropy", "average_cosine", "two_nn", "mada", "mom", "mle", "gride_1", "gride_2")
    names += ("gride_4",)
    rows = make_model_rows("one", layers=3, estimators=names)
    page = made.draw(tmp_path, made.JOB._replace(measures=made.make_measures(*names)), rows=rows)
    with made.open_silent_pages(browser) as open_page:
        tab = open_page(page, "#measure=anisotropy")
        search = tab.page.get_by_label("Search measures")
        search.focus()
        tab.page.keyboard.type("mad")
        labels = tab.page.locator("[data-list=measure] label:visible")
        assert labels.all_inner_texts() == ["MADA"]
        tab.page.keyboard.press("Enter")
        assert {row["estimator"] for row in tab.read_rows()} == {"anisotropy", "mada"}
        # The search stays visible for a name that no measure has, and a reset clears it.
        search.fill("zzz")
        assert labels.all_inner_texts() == []
        assert search.is_visible()
        assert "zzz" in tab.page.locator("#not-found").inner_text()
        search.fill("mom")
        assert labels.all_inner_texts() == ["MOM"]
        search.fill("zzz")
        tab.click("#reset")
        assert search.input_value() == ""
        assert labels.count() >= len(names)


@made.needs_chromium
def test_the_summary_mentions_models_without_steps_and_an_empty_range(open_explorer):
    tab = open_explorer("#measure=anisotropy&model=one&model=still&view=step")
    assert {row["model"] for row in tab.read_rows()} == {"one"}
    assert "Without steps, so without a line: Without steps" in tab.read_view()[1]
    tab = open_explorer("#measure=anisotropy&model=one&from=64&to=8")
    assert tab.read_view()[1].startswith("Nothing is drawn: From is after To")


@made.needs_chromium
def test_the_sample_of_a_measure_of_weights_mentions_no_text(browser, tmp_path):
    measures = (*made.JOB.measures[:1], ShownMeasure("of_weights", "Of weights", "I", "weights"))
    rows = make_model_rows("one", layers=3, steps=(0, 8), estimators=("anisotropy", "of_weights"))
    page = made.draw(tmp_path, made.JOB._replace(measures=measures), rows=rows)
    with made.open_silent_pages(browser) as open_page:
        sample = open_page(page, "#measure=of_weights&model=one").page.locator("#sample")
        assert "no text" in sample.inner_text()
        assert "vectors" not in sample.inner_text()
        sample = open_page(page, "#measure=anisotropy&model=one").page.locator("#sample")
        assert "vectors" in sample.inner_text()
        assert "weights" not in sample.inner_text()


@made.needs_chromium
def test_titles_of_panels_are_whole(browser, tmp_path):
    label = "A measure of many words, whose name is wider than the panel that it stands above"
    names = ("anisotropy", "two_nn", "mada")
    measures = tuple(ShownMeasure(name, f"{label}, {name}", "An axis") for name in names)
    rows = make_model_rows("one", layers=3, estimators=names)
    page = made.draw(tmp_path, made.JOB._replace(measures=measures), rows=rows)
    with made.open_silent_pages(browser) as open_page:
        tab = open_page(page, "&".join(["#model=one", *(f"measure={name}" for name in names)]))
        assert "…" not in tab.save("svg").decode()


@made.needs_chromium
@pytest.mark.parametrize("width", [390, 1280])
def test_a_legend_is_whole_however_long_its_labels_are(browser, tmp_path, width):
    long = "A decoder of many words, fine-tuned on a task whose name has many words too"
    models = tuple(made.ShownModel(name, f"{long}, {name}") for name in made.LABELS)
    page = made.draw(tmp_path, made.JOB._replace(models=models))
    address = "#at=8&keep=last&keep=64&measure=anisotropy&model=one&model=two&rows=all"
    with made.open_silent_pages(browser) as open_page:
        tab = open_page(page, address, viewport={"width": width, "height": 844})
        drawing = tab.save("svg").decode()
        assert "…" not in drawing
        assert "last checkpoint" in drawing
        chart, canvas = (
            tab.page.locator(f"#chart{inner}").bounding_box() for inner in ("", " canvas")
        )
        assert canvas["width"] <= chart["width"]
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= width


@made.needs_chromium
def test_a_page_of_one_checkpoint_has_no_control_without_effect(browser, tmp_path):
    rows = make_model_rows("model", layers=4, estimators=("anisotropy", "two_nn"))
    page = tmp_path / "one.html"
    page.write_text(make_explorer([[row.get(key, "") for key in ESTIMATE_COLUMNS] for row in rows]))
    with made.open_silent_pages(browser) as open_page:
        tab = open_page(page)
        inputs = tab.page.locator("input:visible, select:visible")
        names = {inputs.nth(place).get_attribute("name") for place in range(inputs.count())}
        assert names == {"measure", "intervals"}
        assert tab.page.locator("#pictures .picture > svg").count() == 2
        legends = tab.page.locator("#controls legend:visible")
        assert legends.all_inner_texts() == ["Measures", "Details"]


def test_a_page_is_smaller_than_its_limit(file):
    assert file.stat().st_size < MOST_BYTES
