"""A small explorer of made-up numbers, drawn by the script of the workflow, and its page in a browser."""

import csv
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

import draw_explorer
from figure_tables import (
    SUSPECT,
    VERDICT_HEADER,
    clear_value,
    make_model_rows,
    make_verdicts,
    write_rows,
)
from shape_of_learning.explorer.job import (
    ExplorerJob,
    ShownClaim,
    ShownModel,
    ShownPaper,
    make_shown_measures,
)
from shape_of_learning.metrics.registry import MEASURES
from shape_of_learning.metrics.tidy import CLAIM_COLUMNS

STEPS = (0, 1, 8, 64, 512)
TUNED_STEPS = (0, 8, 24)
CHOICES = ("claim", "choice", "reference", "option", "verdict_of_reference", "verdict", "flips")
SPECIFICATION_COLUMNS = (
    "claim",
    "rank",
    "is_reference",
    "verdict",
    "estimate",
    "low",
    "high",
    "n",
    "token_types",
    "centring",
    "because",
)
MEASURED = ("anisotropy", "average_cosine", "two_nn")
# A label that would break an element, a script, a template and a formula of Vega.
HOSTILE = "</script><b onclick=alert(1)>\"'${x}%%STYLE%% datum.x"
LABELS = {"one": HOSTILE, "two": "Model two", "still": "Without steps"}
TUNED = ShownModel("tuned", "Fine-tuned", "fine-tuning")
FINDINGS = ("Model two: nothing stands out.",)


def scale_row(row: dict, factor: float) -> dict:
    """Return the value of a row and its interval times a factor."""
    return {key: factor * row[key] for key in ("value", "low", "high")}


def make_measures(*names: str) -> tuple:
    """Return measures of the page."""
    return make_shown_measures(MEASURES[name].configure(name, {}) for name in names)


def make_shown_claim(view: str, *, measures=(), tables=()) -> ShownClaim:
    return ShownClaim(measures, tables, view, ("Figure 3",))


JOB = ExplorerJob(
    models=tuple(ShownModel(name, label) for name, label in LABELS.items()),
    measures=make_measures(*MEASURED),
    sample="48 windows of 512 characters of a text",
    papers=(
        ShownPaper("paper_a", "A & B", ("one",), ("two_nn",)),
        ShownPaper(
            "paper_b", "C", ("one", "still"), MEASURED, ("verdicts", "finetuning_structure")
        ),
    ),
    claims={
        ("paper_b", "growth"): make_shown_claim("step", measures=("anisotropy",)),
        ("paper_b", "fall"): make_shown_claim("layer", measures=("two_nn",)),
        ("paper_b", "structure"): make_shown_claim("step", tables=("finetuning_structure",)),
        ("paper_b", "probes"): make_shown_claim("step", tables=("finetuning_probes",)),
    },
    notes=("These numbers are made up.",),
    curves={"finetuning_structure": {"estimator": "quantity", "selection": "sample"}},
)


def make_rows() -> list[dict]:
    """Return rows of two models with steps, one with a selection of its own, and of a model without steps."""
    rows = make_model_rows("one", layers=4, steps=STEPS, estimators=MEASURED)
    rows += make_model_rows("two", layers=6, steps=STEPS[1:], estimators=MEASURED)
    rows += make_model_rows("still", layers=3, estimators=MEASURED[:1])
    rows += [
        row | {"selection": "without_first_token", "value": row["value"] * 1.1}
        for row in make_model_rows("two", layers=6, steps=STEPS[1:], estimators=MEASURED[:1])
    ]
    for row in rows:
        if row["model"] == "two" and row["estimator"] == "two_nn" and row["layer"] == 2:
            row |= SUSPECT
        if row["estimator"] == "average_cosine" and row["layer"] == 0:
            row |= {key: 100 * row[key] for key in ("value", "low", "high")}
    place = next(n for n, row in enumerate(rows) if row["step"] == 64 and row["layer"] == 3)
    rows[place] = clear_value(rows[place])
    return rows


def make_claim_row(claim: str, verdict: str, **cells: object) -> dict[str, object]:
    sentence = f"Claimed: {claim} & <i>more</i>"
    common = {"where": "figure 2", "because": "one of one models"}
    return {"claim": claim, "sentence": sentence, "verdict": verdict, **common, **cells}


SUMMARY = "Anisotropy is 0.1 at step 0 and 0.35 at step 64, so it grows."
# As wide as the criterion of a real claim.
CRITERION = [
    "mean linearity of the encoder less that of the decoder, over the blocks of both",
    "A decoder of 1.4B (4 bits) / An encoder, fine-tuned",
    "-0.00656",
    "-0.0731 to -0.0579",
    "at least -0.005",
    "yes",
]


def make_specifications() -> list[dict[str, object]]:
    """Return a claim under four combinations of choices; the last one has no estimate."""
    cells = [
        ("yes", "supported", 0.1, -0.1, 0.25, "all", "anisotropy"),
        ("no", "supported", 0.25, 0.2, 0.5, "all", "anisotropy_uncentered"),
        ("no", "contradicted", 0.5, "", "", "one", "anisotropy"),
        ("no", "not measured", "", "", "", "one", "anisotropy_uncentered"),
    ]
    names = ("is_reference", "verdict", "estimate", "low", "high", "token_types", "centring")
    common = {"claim": "growth", "n": "900", "because": "of its numbers"}
    return [
        {**common, "rank": rank, **dict(zip(names, row, strict=True))}
        for rank, row in enumerate(cells, 1)
    ]


def draw_with_fine_tuning(folder: Path) -> Path:
    """Write a page of all models and a fine-tuning, whose steps begin at 0 again."""
    finetuning_rows = make_model_rows("tuned", layers=4, steps=TUNED_STEPS, estimators=MEASURED[:1])
    return draw(
        folder, JOB._replace(models=(*JOB.models, TUNED)), rows=make_rows() + finetuning_rows
    )


def draw(
    folder: Path,
    job: ExplorerJob = JOB,
    *,
    rows: list[dict] | None = None,
    growth_verdict: str = "supported",
) -> Path:
    """Write the tables and the page."""
    folders = {name: folder / name for name in ("verdicts", "claims", "finetuning_structure")}
    for table_folder in folders.values():
        table_folder.mkdir(parents=True, exist_ok=True)
    estimates = write_rows(folder / "estimates.csv", make_rows() if rows is None else rows)
    faults = {8: ("same weights as step64", "hollow"), 64: ("broken: loss", "no")}
    two_verdicts = make_verdicts("two", STEPS[1:])
    two_verdicts[0]["loss"] = ""
    verdicts = [
        write_rows(
            folders["verdicts"] / f"{model_rows[0]['model']}.csv", model_rows, VERDICT_HEADER
        )
        for model_rows in (make_verdicts("one", STEPS, faults), two_verdicts)
    ]
    growth = {"estimate": 0.25, "low": 0.125, "high": 0.5, "models": "two"}
    growth |= {"summary": SUMMARY, "criteria": json.dumps([CRITERION])}
    other_verdicts = (
        "also without massive tokens: undecided",
        "two_nn: supported",
        "beyond untrained: no",
    )
    growth |= {"besides": ";".join((*other_verdicts, "also held out: not measured"))}
    endless = {"estimate": 0.5, "low": -inf, "high": inf, "models": "still"}
    claim_rows = [
        make_claim_row("fall", "not measured"),
        make_claim_row("growth", growth_verdict, **growth, selections="all"),
        make_claim_row("structure", "undecided", **endless),
        make_claim_row("probes", "undecided", models="still", because="`still` lacks `two_nn`."),
    ]
    claims = write_rows(folders["claims"] / "paper_b.csv", claim_rows, CLAIM_COLUMNS)
    common = {"model": "still", "sample": "topic", "quantity": "share_between_types", "n": 900}
    shares = [
        {**common, "revision": f"step{s}", "step": s, "layer": i, "value": 0.1 * i + 0.01 * s}
        for s in (0, 64)
        for i in range(4)
    ]
    shares.append(shares[-1] | {"clusters": 27, "value": 0.5})
    columns = (*common, "revision", "step", "layer", "clusters", "value")
    structure = write_rows(folders["finetuning_structure"] / "still.csv", shares, columns)
    page = folder / "explorer.html"
    flips = [
        ("token_types", "all", "one", "contradicted", "yes"),
        ("text", "own", "b", "supported", "no"),
    ]
    choices = write_rows(
        folder / "claims/choices.csv",
        [
            dict(zip(CHOICES, ("growth", *cells[:3], "supported", *cells[3:]), strict=True))
            for cells in flips
        ],
        CHOICES,
    )
    curve = write_rows(
        folder / "specification_growth.csv", make_specifications(), SPECIFICATION_COLUMNS
    )
    findings = folder / "findings.txt"
    findings.write_text("".join(f"{sentence}\n" for sentence in FINDINGS))
    inputs = estimates, findings, verdicts, [structure], [claims], [choices, curve]
    draw_explorer.main(job, *inputs, page)
    return page


# --- In a browser

CHROMIUM = shutil.which("chromium")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no Chromium here: apt-get install chromium"
)
DESKTOP = {"width": 1280, "height": 900}
# Returns the picture and its summary, once the page is no longer busy.
VIEW = """async () => {
    const chart = document.getElementById("chart");
    let frames = 0; // a page that has failed stays busy
    do await new Promise(requestAnimationFrame); while (chart.ariaBusy === "true" && ++frames < 600);
    const canvas = chart.querySelector("canvas");
    return [canvas ? canvas.toDataURL() : "", document.getElementById("summary").textContent];
}"""


@contextmanager
def launch_browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # Chromium refuses its sandbox to root, as whom continuous integration runs; the page is ours.
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"] if os.geteuid() == 0 else []
        )
        yield browser
        browser.close()


class OpenPage:
    """An open page of the explorer, which must write no message and request nothing."""

    def __init__(self, browser: Browser, file: Path, address: str = "", **options: object) -> None:
        options = {"viewport": DESKTOP, "accept_downloads": True, **options}
        self.context = browser.new_context(**options)
        self.page: Page = self.context.new_page()
        self.messages: list[str] = []
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        # The page may request itself, and downloads and pictures that it has made.
        own_addresses = (file.as_uri(), "blob:", "data:")
        self.page.on(
            "request",
            lambda r: None if r.url.startswith(own_addresses) else self.messages.append(r.url),
        )
        self.page.goto(f"{file.as_uri()}{address}")
        self.read_view()

    def read_view(self) -> tuple[str, str]:
        picture, summary = self.page.evaluate(VIEW)
        return picture, summary

    def click(self, selector: str) -> None:
        self.page.locator(selector).click()

    def slide_to(self, stop: int) -> None:
        self.read_view()  # its stops depend on the picture
        self.page.locator("#position").fill(str(stop))

    def read_address(self) -> str:
        # The page writes its address a while after the last change.
        self.page.wait_for_timeout(500)
        return self.page.evaluate("location.hash")

    def save(self, kind: str) -> bytes:
        self.read_view()
        with self.page.expect_download() as download:
            self.click(f"[data-save={kind}]")
        assert download.value.suggested_filename.endswith(("all.csv", f".{kind}"))
        return Path(download.value.path()).read_bytes()

    def read_rows(self) -> list[dict[str, str]]:
        return list(csv.DictReader(self.save("csv").decode().splitlines()))


@contextmanager
def open_silent_pages(browser: Browser) -> Iterator[Callable[..., OpenPage]]:
    """Yield a function that opens pages; close them in the end, and check that they wrote no message."""
    pages: list[OpenPage] = []

    def open_page(file: Path, address: str = "", **options: object) -> OpenPage:
        pages.append(OpenPage(browser, file, address, **options))
        return pages[-1]

    yield open_page
    for page in pages:
        page.context.close()
    assert [message for page in pages for message in page.messages] == []
