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
from figure_tables import rows_of_model
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
    with made.launched() as browser:
        yield browser


@pytest.fixture
def opening(browser, file) -> Iterator[Callable[..., made.Opened]]:
    with made.silent_pages(browser) as opens:
        yield partial(opens, file)


def content_in(page: Path) -> dict:
    (packed,) = re.findall(r'id="content">([^<]*)<', page.read_text())
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def rows_in(content: dict) -> list[dict]:
    """The rows of a page, each with its series and checkpoint."""
    names = ("estimator", "model", "selection")
    return [
        dict(zip(names, of, strict=True))
        | content["checkpoints"][at]
        | dict(zip((*NUMBERS_OF_PAGE, "reason"), cells, strict=True))
        for *of, rows in content["series"]
        for at, *cells in rows
    ]


def test_a_page_holds_what_the_tables_say(file):
    keys = ("model", "estimator", "selection", "revision", "layer")
    rows = rows_in(content_in(file))
    found = {tuple(row[key] for key in keys): row for row in rows}
    for row in made.made_rows():
        got = found[tuple(row[key] if row[key] != "" else None for key in keys)]
        assert got["step"] == (row["step"] if row["step"] != "" else None)
        assert got["n"] == row["n"]
        for name in NUMBERS:
            wanted = None if row[name] == "" else pytest.approx(row[name], rel=5e-6)
            assert got[name] == wanted
    # Of model two, the first step has no loss.
    losses = [row["step"] for row in rows if (row["estimator"], row["model"]) == ("loss", "two")]
    assert losses == [8, 64, 512]
    shares = [
        (row["depth"], row["value"]) for row in rows if row["estimator"] == "share_between_types"
    ]
    assert shares[:2] == [(0, 0), (0.333333, 0.1)]
    assert len(shares) == 8  # without what is of clusters


def test_a_page_is_one_file_whose_text_is_no_program(file, tmp_path):
    page = file.read_text()
    assert made.draw(tmp_path).read_text() == page
    assert content_in(file)["models"][0]["label"] == made.HOSTILE
    assert made.HOSTILE not in page
    assert re.findall(r'(?:src|href|action)="[^#"]', page.partition('id="drawing"')[0]) == []
    assert f"<li>{made.FINDINGS[0]}</li>" in page  # also without a program
    assert "default-src 'none'" in page
    assert "connect-src" not in page


@made.needs_chromium
def test_an_address_restores_what_controls_chose(opening):
    opened = opening()
    opened.slide_to(2)
    opened.click("#keep")
    opened.click("input[name=view][value=step]")
    opened.click("input[name=measure][value=anisotropy]")
    opened.click("input[name=by][value=tokens]")
    opened.click("input[name=intervals]")
    opened.page.get_by_label("From", exact=True).select_option(str(8 * 2048))
    opened.slide_to(2)
    address, seen = opened.address(), opened.seen()
    assert {row["step"] for row in opened.rows()} == {"8", "512", "64"}
    again = opening(address)
    assert again.seen() == seen
    assert again.rows() == opened.rows()
    again.click("#reset")
    assert again.seen()[1].startswith("Anisotropy, TwoNN by relative depth, last checkpoint")


@made.needs_chromium
@pytest.mark.parametrize("view", ["layer", "step", "heat"])
def test_what_is_drawn_told_and_downloaded_is_what_the_tables_hold(opening, view):
    start = f"#view={view}&left_out=yes&at=64&across=layer&layer=3&model=one&model=two&measure=anisotropy"
    opened = opening(start)
    chosen = {
        "layer": lambda row: row["step"] == 64 and row["layer"] != "",
        "step": lambda row: row["layer"] == 3,
        "heat": lambda row: row["layer"] != "",
    }[view]
    of_measure = [row for row in made.made_rows() if row["estimator"] == "anisotropy"]
    wanted = [row for row in of_measure if row["model"] != "still" and chosen(row)]
    keys = ("model", "revision", "step", "layer", "estimator", "selection", "n")
    got = {tuple(row[key] for key in keys): row for row in opened.rows()}
    assert len(got) == len(wanted) > 0
    for row in wanted:
        one = got[tuple(str(row[key]) for key in keys)]
        drawn, told = ([float(of[key] or "nan") for key in NUMBERS] for of in (one, row))
        assert drawn == pytest.approx(told, rel=5e-6, nan_ok=True)
    box = opened.page.locator("#chart canvas").bounding_box()
    x, y = box["x"] + 0.3 * box["width"], box["y"] + 0.45 * box["height"]
    opened.page.mouse.move(x - 5, y)
    opened.page.mouse.move(x, y)
    told = opened.page.locator("#tip")
    expect(told).to_be_visible()
    terms, texts = (told.locator(tag).all_inner_texts() for tag in ("dt", "dd"))
    words = dict(zip(terms, texts, strict=True))
    assert words["model"] in (made.HOSTILE, made.LABELS["two"])
    assert words["n"] == "4,096"
    assert opened.saved("png").startswith(b"\x89PNG")


@made.needs_chromium
def test_under_a_step_there_is_no_value_of_another_step(opening):
    # Model two begins at step 1; the last one has no steps.
    opened = opening("#measure=anisotropy&model=one&model=two&model=still&rows=all&at=0")
    assert {(row["model"], row["step"]) for row in opened.rows()} == {("one", "0")}
    assert "No checkpoint there: Model two, Without steps" in opened.seen()[1]


@made.needs_chromium
def test_steps_of_a_fine_tuning_are_apart_from_those_of_a_pretraining(browser, tmp_path):
    page = made.draw_with_fine_tuning(tmp_path)
    chosen = "#measure=anisotropy&model=two&model=tuned&rows=all"
    with made.silent_pages(browser) as opens:
        opened = opens(page, "#measure=anisotropy&model=tuned")
        assert opened.page.locator("#position").get_attribute("max") == "3"  # 0, 8, 24, the last
        opened = opens(page, f"{chosen}&at=8")
        assert {row["model"] for row in opened.rows()} == {"two"}
        opened = opens(page, f"{chosen}&at=fine-tuning 8")
        assert {(row["model"], row["step"]) for row in opened.rows()} == {("tuned", "8")}
        assert "step 8 of fine-tuning" in opened.seen()[1]
        # A range is of the pretraining.
        opened = opens(page, f"{chosen}&from=64&at=fine-tuning 8")
        assert {(row["model"], row["step"]) for row in opened.rows()} == {("tuned", "8")}
        options = opened.page.get_by_label("From", exact=True).locator("option").all_inner_texts()
        assert options == ["the first", "step 1", "step 8", "step 64", "step 512"]
        opened = opens(page, f"{chosen}&view=step")
        titles = opened.saved("svg").decode()
        assert titles.count(">Training step<") == titles.count(">Fine-tuning step<") == 1
        assert (
            opens(page, "#model=tuned&measure=anisotropy&view=heat&across=layer")
            .seen()[1]
            .startswith("Anisotropy by layer and fine-tuning step")
        )


@made.needs_chromium
def test_claims_that_are_not_measured_are_folded_and_others_lead_to_their_values(opening):
    opened = opening()
    claims = opened.page.locator("article")
    counted = "4 claims: 1 supported, 2 undecided, 1 not measured"
    assert opened.page.get_by_role("button", name=counted).count()
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
    folded = opened.page.locator("#claims details li")
    assert not folded.is_visible()
    opened.page.get_by_text("This run cannot judge 1 claim").click()
    assert "Claimed: fall" in folded.inner_text()
    claims.first.get_by_role("link").click()
    summary = opened.page.locator("#summary")
    expect(summary).to_contain_text("Anisotropy by training step, average over layers: 1 line")
    # Just what the verdict rests on: no figure of this paper draws that model.
    assert {(row["model"], row["selection"]) for row in opened.rows()} == {("two", "all")}
    claims.nth(1).get_by_role("link").click()
    expect(summary).to_contain_text("Share between types by training step")
    assert [row["value"] for row in opened.rows()] == ["0.3", "0.94"]


@made.needs_chromium
def test_a_claim_says_which_bounds_it_shows_and_which_other_verdicts_differ(browser, tmp_path):
    bounds, verdicts = {}, {}
    place = name_criteria_columns("supported").index("Bound")
    with made.silent_pages(browser) as opens:
        for verdict in ("supported", "contradicted"):
            opened = opens(made.draw(tmp_path / verdict, growth_verdict=verdict))
            claim = opened.page.locator("article").first
            bounds[verdict] = claim.locator("th").all_inner_texts()[place]
            verdicts[verdict] = claim.locator(".verdict").inner_text()
    assert bounds["supported"] == "Bound"
    assert "contradict" in bounds["contradicted"]
    assert "without massive tokens: undecided" in verdicts["supported"]
    assert "TwoNN" not in verdicts["supported"]
    assert "TwoNN: supported" in verdicts["contradicted"]
    assert not any(re.search("untrained|held out", words) for words in verdicts.values())


@made.needs_chromium
def test_all_is_drawn_for_a_printer_and_where_there_are_no_frames(browser, file):
    context = browser.new_context(viewport=made.DESKTOP)
    context.add_init_script("window.requestAnimationFrame = () => 0")
    page = context.new_page()
    page.goto(file.as_uri())
    expect(page.locator("#chart canvas")).to_be_visible()
    page.pdf()
    expect(page.locator("article figure canvas")).to_have_count(1)
    context.close()


@made.needs_chromium
def test_layers_are_relative_at_first_where_models_differ_in_depth(browser, tmp_path):
    rows = {
        "alike": rows_of_model("one", layers=4) + rows_of_model("two", layers=4),
        "apart": rows_of_model("one", layers=4) + rows_of_model("two", layers=6),
    }
    with made.silent_pages(browser) as opens:
        alike, apart = (
            opens(made.draw(tmp_path / name, rows=of)).seen()[1] for name, of in rows.items()
        )
    assert "by layer" in alike
    assert "by relative depth" in apart


@made.needs_chromium
def test_a_view_that_would_be_empty_is_not_offered(opening):
    opened = opening("#view=heat&measure=loss&model=one")
    assert [row["layer"] for row in opened.rows()] == [""] * 4
    views = opened.page.locator("input[name=view]")
    assert [views.nth(place).is_enabled() for place in range(3)] == [False, True, False]


@made.needs_chromium
def test_all_is_reached_and_read_by_the_keyboard(opening):
    opened = opening("#model=one&model=two&rows=all&measure=anisotropy")
    page = opened.page
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "chart"
    read = []
    for key in ("ArrowRight", "ArrowRight", "End", "ArrowDown"):
        page.keyboard.press(key)
        read.append(page.locator("#reading").inner_text())
    assert ["layer 0," in read[0], "layer 1," in read[1], "layer 4," in read[2]] == [True] * 3
    assert made.LABELS["two"] in read[3]
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate("(e => e.name || e.id || e.dataset.save)(document.activeElement)")
        )
    controls = {"position", "keep", "csv", "all", "view", "model", "measure", "rows", "reset"}
    assert controls <= reached


@made.needs_chromium
def test_hard_tables_are_drawn_on_a_phone_and_what_is_amiss_is_marked(browser, tmp_path):
    size = {"width": 390, "height": 844}
    rows = [
        row for row in made.made_rows() if row["model"] != "one" or row["estimator"] != "two_nn"
    ]
    rows[0] |= {"value": inf, "low": -inf, "high": inf}
    for row in rows:
        if row["estimator"] == "average_cosine":
            row |= {key: 1e9 * row[key] for key in NUMBERS}
    page = made.draw(tmp_path, rows=rows)
    with made.silent_pages(browser) as opens:
        opened = opens(page, "#measure=gone&at=now&constructor=1", viewport=size, has_touch=True)
        assert "ignored: measure “gone”, at “now”, constructor “1”" in opened.seen()[1]
        for view in ("layer", "step", "heat"):
            opened.page.locator(f"input[name=view][value={view}]").check()
            opened.seen()
            assert opened.page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        assert "1 value undefined or infinite" in opened.seen()[1]
        drawing = ElementTree.fromstring(opened.saved("svg"))
        # Of model one a checkpoint is not ok; of model two a layer has near-duplicates at four steps.
        assert len(drawing.findall(".//*[@aria-roledescription='point']")) == 1 + 4
        wide = opens(page, "#view=heat&measure=average_cosine&model=two", viewport=size)
        assert "log scale" in wide.saved("svg").decode()
        losses = opens(page, "#view=step&measure=loss&model=one", viewport=size)
        assert [row["step"] for row in losses.rows()] == ["0", "1", "8", "512"]


@made.needs_chromium
def test_a_page_opens_with_two_pictures_above_all_controls(browser, tmp_path):
    rows = rows_of_model("one", layers=4, steps=made.STEPS, estimators=("anisotropy",))
    massive = "anisotropy_without_massive_tokens"
    selected = {"estimator": massive, "selection": "without_massive_tokens"}
    equal = rows + [row | selected for row in rows]
    rows += [row | selected | made.scaled(row, 0.5) for row in rows]
    equal += rows_of_model("one", layers=4, steps=made.STEPS, estimators=("two_nn", "mada"))
    job = made.JOB._replace(measures=made.shown(*made.MEASURED, massive, "mada"))
    pages = {
        # Without massive tokens the second picture would be the first once more.
        made.draw(tmp_path / "equal", job, rows=equal): (
            "Anisotropy by layer and step",
            "Intrinsic dimension (MADA) by layer and step",
        ),
        made.draw(tmp_path / "with", job, rows=rows): (
            "Anisotropy by layer and step",
            "Anisotropy with and without massive tokens by layer and step",
        ),
        made.draw(tmp_path / "without"): (
            "Anisotropy by layer and step",  # of the only model that the sentences name
            "Intrinsic dimension (TwoNN) by layer and step",
        ),
    }
    with made.silent_pages(browser) as opens:
        for page, titles in pages.items():
            opened = opens(page)
            figures = opened.page.locator("#pictures figure")
            assert tuple(figures.locator("h2").all_inner_texts()) == titles
            controls = opened.page.locator("#page").bounding_box()["y"]
            for drawing in figures.locator(".picture > svg").all():
                box = drawing.bounding_box()
                assert box["height"] > 200
                assert box["y"] + box["height"] < controls
            sample = f"{made.JOB.sample}; 4,096 vectors a batch"
            captions = figures.locator("figcaption").all_inner_texts()
            assert all(caption.startswith(sample) for caption in captions)
            assert opened.page.locator("#sample").inner_text() == sample


@made.needs_chromium
def test_the_opening_shows_the_models_of_its_sentences_and_begins_with_mada(browser, tmp_path):
    rows = [
        row
        for model in ("two", "one", "still")
        for row in rows_of_model(model, layers=4, estimators=("anisotropy", "two_nn", "mada"))
    ]
    job = made.JOB._replace(measures=made.shown("anisotropy", "two_nn", "mada"))
    page = made.draw(tmp_path, job, rows=rows)
    assert [label in made.FINDINGS[0] for label in made.LABELS.values()] == [False, True, False]
    with made.silent_pages(browser) as opens:
        opened = opens(page)
        pictures = opened.page.locator("#pictures .picture > svg")
        assert [pictures.nth(n).locator("path[fill=none]").count() for n in (0, 1)] == [1, 1]
        chosen = opened.page.locator("input[name=measure]:checked")
        assert {box.get_attribute("value") for box in chosen.all()} == {"anisotropy", "mada"}


@made.needs_chromium
def test_lines_without_massive_tokens_are_those_of_models_that_have_some(browser, tmp_path):
    massive = "anisotropy_without_massive_tokens"
    rows = []
    for model, factor in {"with": 0.5, "without": 1.0}.items():
        own = rows_of_model(model, layers=4, estimators=("anisotropy",))
        rows += own
        rows += [
            row | {"estimator": massive, "n": 4000 + 96 * factor} | made.scaled(row, factor)
            for row in own
        ]
    page = tmp_path / "page.html"
    page.write_text(make_explorer([[row.get(key, "") for key in ESTIMATE_COLUMNS] for row in rows]))
    with made.silent_pages(browser) as opens:
        opened = opens(page)
        pictures = opened.page.locator("#pictures .picture > svg")
        lines = [pictures.nth(place).locator("path[fill=none]").count() for place in range(2)]
        assert lines == [2, 3]
        caption = opened.page.locator("#pictures figcaption").nth(1).inner_text()
        assert re.search(r"No massive tokens.*: without$", caption)
        # Vectors are counted by measure, as figures count them.
        of_measure = r"4,096 vectors a batch \(Anisotropy\); 4,048 .* \(Anisotropy, without massive"
        assert re.search(of_measure, caption)


@made.needs_chromium
def test_the_axis_of_anisotropy_begins_at_zero(browser, tmp_path):
    rows = rows_of_model("model", layers=4, estimators=("anisotropy", "two_nn"))
    for row in rows:
        row |= made.scaled(row, 0.1) if row["estimator"] == "anisotropy" else {}
        row["value"] += 0.3 if row["estimator"] == "anisotropy" else 0
    page = tmp_path / "page.html"
    page.write_text(make_explorer([[row.get(key, "") for key in ESTIMATE_COLUMNS] for row in rows]))
    with made.silent_pages(browser) as opens:
        opened = opens(page, "#measure=anisotropy")
        picture = opened.page.locator("#pictures .picture > svg").first
        assert "0" in picture.locator("text[text-anchor=end]").all_text_contents()
        axis = opened.saved("svg").decode()
        assert re.search(r"Y-axis[^\"]*values from 0(\.0*)? to", axis)


@made.needs_chromium
def test_a_page_shows_names_of_legends_and_no_identifiers(opening):
    opened = opening("#model=two&measure=two_nn&measure=average_cosine&measure=anisotropy")
    opened.page.evaluate(
        "for (const each of document.querySelectorAll('details')) each.open = true"
    )
    opened.seen()
    text = opened.page.inner_text("body")
    assert "Without steps lacks TwoNN." in text
    assert re.findall("two_nn|average_cosine|without_first_token", text) == []


@made.needs_chromium
def test_a_heading_sorts_the_table_and_all_values_download(opening, file):
    opened = opening("#model=one&model=two&rows=all&measure=anisotropy")
    opened.page.get_by_text("Data table", exact=True).click()
    table = opened.page.locator("#table")
    columns = len(table.locator("th").all())
    cells = table.locator("tbody td").all_inner_texts()
    assert all(any(cells[at::columns]) for at in range(columns))
    place = table.locator("th").all_inner_texts().index("Value") + 1
    heading = table.get_by_role("button", name="Value")
    for order in ("ascending", "descending"):
        heading.focus()
        opened.page.keyboard.press("Enter")
        cells = table.locator(f"td:nth-child({place})").all_inner_texts()
        values = [float(cell) for cell in cells if cell]
        assert values == sorted(values, reverse=order == "descending")
        assert cells.index("") == len(values) if "" in cells else True
        assert table.locator(f"th[aria-sort={order}]").inner_text().startswith("Value")
    saved = list(csv.DictReader(opened.saved("all").decode().splitlines()))
    wanted = rows_in(content_in(file))
    assert len(saved) == len(wanted)
    assert {row["model_label"] for row in saved} == {*made.LABELS.values()}


@made.needs_chromium
def test_measures_are_searched_and_chosen_by_the_keyboard(browser, tmp_path):
    names = ("anisotropy", "average_cosine", "two_nn", "mada", "mom", "mle", "gride_1", "gride_2")
    names += ("gride_4",)
    rows = rows_of_model("one", layers=3, estimators=names)
    page = made.draw(tmp_path, made.JOB._replace(measures=made.shown(*names)), rows=rows)
    with made.silent_pages(browser) as opens:
        opened = opens(page, "#measure=anisotropy")
        search = opened.page.get_by_label("Search measures")
        search.focus()
        opened.page.keyboard.type("mad")
        shown = opened.page.locator("[data-list=measure] label:visible")
        assert shown.all_inner_texts() == ["MADA"]
        opened.page.keyboard.press("Enter")
        assert {row["estimator"] for row in opened.rows()} == {"anisotropy", "mada"}
        # A name that no measure has can be corrected, and a start without it is reached.
        search.fill("zzz")
        assert shown.all_inner_texts() == []
        assert search.is_visible()
        assert "zzz" in opened.page.locator("#not-found").inner_text()
        search.fill("mom")
        assert shown.all_inner_texts() == ["MOM"]
        search.fill("zzz")
        opened.click("#reset")
        assert search.input_value() == ""
        assert shown.count() >= len(names)


@made.needs_chromium
def test_values_without_steps_and_a_range_without_checkpoints_are_said(opening):
    opened = opening("#measure=anisotropy&model=one&model=still&view=step")
    assert {row["model"] for row in opened.rows()} == {"one"}
    assert "Without steps, so without a line: Without steps" in opened.seen()[1]
    opened = opening("#measure=anisotropy&model=one&from=64&to=8")
    assert opened.seen()[1].startswith("Nothing is drawn: From is after To")


@made.needs_chromium
def test_measures_of_weights_are_of_no_text(browser, tmp_path):
    measures = (*made.JOB.measures[:1], ShownMeasure("of_weights", "Of weights", "I", "weights"))
    rows = rows_of_model("one", layers=3, steps=(0, 8), estimators=("anisotropy", "of_weights"))
    page = made.draw(tmp_path, made.JOB._replace(measures=measures), rows=rows)
    with made.silent_pages(browser) as opens:
        sample = opens(page, "#measure=of_weights&model=one").page.locator("#sample")
        assert "no text" in sample.inner_text()
        assert "vectors" not in sample.inner_text()
        sample = opens(page, "#measure=anisotropy&model=one").page.locator("#sample")
        assert "vectors" in sample.inner_text()
        assert "weights" not in sample.inner_text()


@made.needs_chromium
def test_titles_of_panels_are_whole(browser, tmp_path):
    label = "A measure of many words, whose name is wider than the panel that it stands above"
    names = ("anisotropy", "two_nn", "mada")
    measures = tuple(ShownMeasure(name, f"{label}, {name}", "An axis") for name in names)
    rows = rows_of_model("one", layers=3, estimators=names)
    page = made.draw(tmp_path, made.JOB._replace(measures=measures), rows=rows)
    with made.silent_pages(browser) as opens:
        opened = opens(page, "&".join(["#model=one", *(f"measure={name}" for name in names)]))
        assert "…" not in opened.saved("svg").decode()


@made.needs_chromium
@pytest.mark.parametrize("width", [390, 1280])
def test_a_legend_is_whole_however_long_its_labels_are(browser, tmp_path, width):
    long = "A decoder of many words, fine-tuned on a task whose name has many words too"
    models = tuple(made.ShownModel(name, f"{long}, {name}") for name in made.LABELS)
    page = made.draw(tmp_path, made.JOB._replace(models=models))
    chosen = "#at=8&keep=last&keep=64&measure=anisotropy&model=one&model=two&rows=all"
    with made.silent_pages(browser) as opens:
        opened = opens(page, chosen, viewport={"width": width, "height": 844})
        drawing = opened.saved("svg").decode()
        assert "…" not in drawing
        assert "last checkpoint" in drawing
        chart, canvas = (
            opened.page.locator(f"#chart{inner}").bounding_box() for inner in ("", " canvas")
        )
        assert canvas["width"] <= chart["width"]
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width


@made.needs_chromium
def test_a_page_of_one_checkpoint_has_no_control_that_does_nothing(browser, tmp_path):
    rows = rows_of_model("model", layers=4, estimators=("anisotropy", "two_nn"))
    page = tmp_path / "one.html"
    page.write_text(make_explorer([[row.get(key, "") for key in ESTIMATE_COLUMNS] for row in rows]))
    with made.silent_pages(browser) as opens:
        opened = opens(page)
        inputs = opened.page.locator("input:visible, select:visible")
        names = {inputs.nth(at).get_attribute("name") for at in range(inputs.count())}
        assert names == {"measure", "intervals"}
        assert opened.page.locator("#pictures .picture > svg").count() == 2
        legends = opened.page.locator("#controls legend:visible")
        assert legends.all_inner_texts() == ["Measures", "Details"]


def test_a_page_is_smaller_than_its_limit(file):
    assert file.stat().st_size < MOST_BYTES
