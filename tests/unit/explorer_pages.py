"""A small explorer of made-up numbers, by the script that draws the real one, and its page in a browser."""

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
from figure_tables import SUSPECT, VERDICT_HEADER, rows_of_model, undefined, verdicts_on, write_rows
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
SPECIFIED = (
    *("claim", "rank", "is_reference", "verdict", "estimate", "low", "high", "n"),
    *("token_types", "centring", "because"),
)
MEASURED = ("anisotropy", "average_cosine", "two_nn")
# Of an element, a script, a template and a formula of Vega.
HOSTILE = "</script><b onclick=alert(1)>\"'${x}%%STYLE%% datum.x"
LABELS = {"one": HOSTILE, "two": "Model two", "still": "Without steps"}
TUNED = ShownModel("tuned", "Fine-tuned", "fine-tuning")
FINDINGS = ("Model two: nothing stands out.",)


def scaled(row: dict, factor: float) -> dict:
    """The value of a row and its interval, so many times as large."""
    return {key: factor * row[key] for key in ("value", "low", "high")}


def shown(*names: str) -> tuple:
    """Measures of the page."""
    return make_shown_measures(MEASURES[name].configure(name, {}) for name in names)


def shown_claim(view: str, *, measures=(), tables=()) -> ShownClaim:
    return ShownClaim(measures, tables, view, ("Figure 3",))


JOB = ExplorerJob(
    models=tuple(ShownModel(name, label) for name, label in LABELS.items()),
    measures=shown(*MEASURED),
    sample="48 windows of 512 characters of a text",
    papers=(
        ShownPaper("paper_a", "A & B", ("one",), ("two_nn",)),
        ShownPaper(
            "paper_b", "C", ("one", "still"), MEASURED, ("verdicts", "finetuning_structure")
        ),
    ),
    claims={
        ("paper_b", "growth"): shown_claim("step", measures=("anisotropy",)),
        ("paper_b", "fall"): shown_claim("layer", measures=("two_nn",)),
        ("paper_b", "structure"): shown_claim("step", tables=("finetuning_structure",)),
        ("paper_b", "probes"): shown_claim("step", tables=("finetuning_probes",)),
    },
    notes=("These numbers are made up.",),
    curves={"finetuning_structure": {"estimator": "quantity", "selection": "sample"}},
)


def made_rows() -> list[dict]:
    """Two models with steps, one of them with a selection of its own, and one without steps."""
    rows = rows_of_model("one", layers=4, steps=STEPS, estimators=MEASURED)
    rows += rows_of_model("two", layers=6, steps=STEPS[1:], estimators=MEASURED)
    rows += rows_of_model("still", layers=3, estimators=MEASURED[:1])
    rows += [
        row | {"selection": "without_first_token", "value": row["value"] * 1.1}
        for row in rows_of_model("two", layers=6, steps=STEPS[1:], estimators=MEASURED[:1])
    ]
    for row in rows:
        if row["model"] == "two" and row["estimator"] == "two_nn" and row["layer"] == 2:
            row |= SUSPECT
        if row["estimator"] == "average_cosine" and row["layer"] == 0:
            row |= {key: 100 * row[key] for key in ("value", "low", "high")}
    at = next(n for n, row in enumerate(rows) if row["step"] == 64 and row["layer"] == 3)
    rows[at] = undefined(rows[at])
    return rows


def made_claim(claim: str, verdict: str, **others: object) -> dict[str, object]:
    sentence = f"Claimed: {claim} & <i>more</i>"
    common = {"where": "figure 2", "because": "one of one models"}
    return {"claim": claim, "sentence": sentence, "verdict": verdict, **common, **others}


SUMMARY = "Anisotropy is 0.1 at step 0 and 0.35 at step 64, so it grows."
# As wide as that of a real claim.
CRITERION = [
    "mean linearity of the encoder less that of the decoder, over the blocks of both",
    "A decoder of 1.4B (4 bits) / An encoder, fine-tuned",
    "-0.00656",
    "-0.0731 to -0.0579",
    "at least -0.005",
    "yes",
]


def made_specifications() -> list[dict[str, object]]:
    """A claim under four combinations of choices, of which the last one has no estimate."""
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
    """Write a page of all models and a fine-tuning, which counts its steps anew."""
    tuned = rows_of_model("tuned", layers=4, steps=TUNED_STEPS, estimators=MEASURED[:1])
    return draw(folder, JOB._replace(models=(*JOB.models, TUNED)), rows=made_rows() + tuned)


def draw(
    folder: Path,
    job: ExplorerJob = JOB,
    *,
    rows: list[dict] | None = None,
    growth_verdict: str = "supported",
) -> Path:
    """Write the tables and the page."""
    folders = {name: folder / name for name in ("verdicts", "claims", "finetuning_structure")}
    for each in folders.values():
        each.mkdir(parents=True, exist_ok=True)
    estimates = write_rows(folder / "estimates.csv", made_rows() if rows is None else rows)
    flagged = {8: ("same weights as step64", "hollow"), 64: ("broken: loss", "no")}
    of_two = verdicts_on("two", STEPS[1:])
    of_two[0]["loss"] = ""
    verdicts = [
        write_rows(folders["verdicts"] / f"{of[0]['model']}.csv", of, VERDICT_HEADER)
        for of in (verdicts_on("one", STEPS, flagged), of_two)
    ]
    growth = {"estimate": 0.25, "low": 0.125, "high": 0.5, "models": "two"}
    growth |= {"summary": SUMMARY, "criteria": json.dumps([CRITERION])}
    besides = "also without massive tokens: undecided", "two_nn: supported", "beyond untrained: no"
    growth |= {"besides": ";".join((*besides, "also held out: not measured"))}
    endless = {"estimate": 0.5, "low": -inf, "high": inf, "models": "still"}
    judged = [
        made_claim("fall", "not measured"),
        made_claim("growth", growth_verdict, **growth, selections="all"),
        made_claim("structure", "undecided", **endless),
        made_claim("probes", "undecided", models="still", because="`still` lacks `two_nn`."),
    ]
    claims = write_rows(folders["claims"] / "paper_b.csv", judged, CLAIM_COLUMNS)
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
    curve = write_rows(folder / "specification_growth.csv", made_specifications(), SPECIFIED)
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
# What is drawn, what is said of it, and the address, once both are there.
SEEN = """async () => {
    const chart = document.getElementById("chart");
    let frames = 0; // a page that has failed stays busy
    do await new Promise(requestAnimationFrame); while (chart.ariaBusy === "true" && ++frames < 600);
    const canvas = chart.querySelector("canvas");
    return [canvas ? canvas.toDataURL() : "", document.getElementById("summary").textContent];
}"""


@contextmanager
def launched() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # Chromium refuses its sandbox to root, as whom continuous integration runs; the page is ours.
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"] if os.geteuid() == 0 else []
        )
        yield browser
        browser.close()


class Opened:
    """A page of the explorer, which must be silent and ask for nothing."""

    def __init__(self, browser: Browser, file: Path, address: str = "", **options: object) -> None:
        options = {"viewport": DESKTOP, "accept_downloads": True, **options}
        self.context = browser.new_context(**options)
        self.page: Page = self.context.new_page()
        self.said: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        # Of the page itself, downloads and pictures that it has made.
        own = (file.as_uri(), "blob:", "data:")
        self.page.on(
            "request", lambda r: None if r.url.startswith(own) else self.said.append(r.url)
        )
        self.page.goto(f"{file.as_uri()}{address}")
        self.seen()

    def seen(self) -> tuple[str, str]:
        drawn, said = self.page.evaluate(SEEN)
        return drawn, said

    def click(self, selector: str) -> None:
        self.page.locator(selector).click()

    def slide_to(self, stop: int) -> None:
        self.seen()  # its stops follow from what is drawn
        self.page.locator("#position").fill(str(stop))

    def address(self) -> str:
        # It is written when nothing has changed for a while.
        self.page.wait_for_timeout(500)
        return self.page.evaluate("location.hash")

    def saved(self, kind: str) -> bytes:
        self.seen()
        with self.page.expect_download() as download:
            self.click(f"[data-save={kind}]")
        assert download.value.suggested_filename.endswith(("all.csv", f".{kind}"))
        return Path(download.value.path()).read_bytes()

    def rows(self) -> list[dict[str, str]]:
        return list(csv.DictReader(self.saved("csv").decode().splitlines()))


@contextmanager
def silent_pages(browser: Browser) -> Iterator[Callable[..., Opened]]:
    """What opens pages; in the end all are closed, and none may have said anything."""
    opened: list[Opened] = []

    def opens(file: Path, address: str = "", **options: object) -> Opened:
        opened.append(Opened(browser, file, address, **options))
        return opened[-1]

    yield opens
    for each in opened:
        each.context.close()
    assert [said for each in opened for said in each.said] == []
