"""A page of the explorer in a browser, as its tests use it."""

import csv
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = shutil.which("chromium")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no Chromium here: apt-get install chromium"
)
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
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
    """The browser."""
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
        assert download.value.suggested_filename.endswith(f".{kind}")
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
