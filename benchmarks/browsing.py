"""The explorer in Chromium: how long until it is there, and until it shows what was asked for."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from playwright.sync_api import Page, sync_playwright

from shape_of_learning.errors import InputError

WINDOW = {"width": 1280, "height": 900}
# Milliseconds since the page was asked for, once the chart is drawn.
OPENED = """async () => {
    const chart = document.getElementById("chart");
    while (chart.ariaBusy !== "false") await new Promise(requestAnimationFrame);
    return performance.now();
}"""
# Milliseconds from a change of a control until the frame that shows it.
SHOWN = """async ([selector, value]) => {
    const [chart, control] = [document.getElementById("chart"), document.querySelector(selector)];
    const start = performance.now();
    if (value === null) control.click();
    else {
        control.value = value;
        control.dispatchEvent(new Event("input"));
    }
    while (chart.ariaBusy === "true") await new Promise(requestAnimationFrame);
    return performance.now() - start;
}"""


def new_page() -> tuple[Page, list[str]]:
    """Start a browser; what its console says goes to the list."""
    chromium = shutil.which("chromium")
    if chromium is None:
        raise InputError("there is no Chromium here; install Debian's package chromium")
    # Chromium refuses its sandbox to root; the page is ours.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    playwright = sync_playwright().start()
    browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
    page, said = browser.new_page(viewport=WINDOW), []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    return page, said


def opening(file: str) -> Callable[[], dict[str, float]]:
    """Open the page."""
    page, said = new_page()

    def open_page() -> dict[str, float]:
        page.goto("about:blank")
        page.goto(Path(file).as_uri())
        seconds = page.evaluate(OPENED) / 1000
        megabytes = Path(file).stat().st_size / 1e6
        return {"seconds": seconds, "megabytes": megabytes, "messages": len(said)}

    return open_page


def using(file: str) -> Callable[[], dict[str, float]]:
    """Use all that is on the page, as someone does who looks for something."""
    page, said = new_page()

    def use() -> dict[str, float]:
        page.goto("about:blank")
        page.goto(Path(file).as_uri())
        page.evaluate(OPENED)
        times = [page.evaluate(SHOWN, list(each)) / 1000 for each in interactions(page)]
        return {
            "seconds": float(np.median(times)),
            "p95_ms": float(np.percentile(times, 95)) * 1000,
            "greatest_ms": max(times) * 1000,
            "interactions": len(times),
            "messages": len(said),
        }

    return use


def interactions(page: Page) -> Iterator[tuple[str, str | None]]:
    """Controls and what they are set to; None is a click."""
    boxes = ("model", "measure")
    names = {
        box: page.eval_on_selector_all(f"input[name={box}]", "all => all.map(each => each.value)")
        for box in boxes
    }
    for view in ("layer", "step", "heat"):
        yield f"input[name=view][value={view}]", None
        if view != "heat":
            last = int(page.get_attribute("#position", "max") or 0)
            for stop in np.linspace(0, last, 20).astype(int):
                yield "#position", str(stop)
            yield "#keep", None
        for box in boxes:
            for name in names[box][1:3]:
                yield f"input[name={box}][value={name}]", None
        for key in ("across][value=depth", "across][value=layer", "by][value=tokens"):
            yield f"input[name={key}]", None
        for key in ("by][value=step", "log", "intervals", "leftOut"):
            yield f"input[name={key}]", None
