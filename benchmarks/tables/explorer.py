"""The explorer in headless Chromium, with the largest tables that it is for: 154 steps, 33 layers, 12
measures and 3 models, made up. *Opening* ends when the chart is drawn. *Using* moves both sliders
twenty times and works every other control in each of the three views; an interaction ends with the
frame that shows it.
"""

from pathlib import Path

from benchmarks.contest import Contender, Measured, contest
from benchmarks.explorer_pages import write_page
from benchmarks.targets import Target

TITLE = "Explorer"
SIZE = "154 x 33 x 12 x 3"
OPENING, USING = "opening", "using"
OWN = (OPENING, USING)
SHOWN = "seconds"


def measure(folder: Path, tiny: bool, repeats: int | None) -> list[Measured]:
    """Write the page once, and open and use it."""
    page = folder / "explorer.html"
    write_page(page, folder, **({"steps": 4, "layers": 3, "measures": 2} if tiny else {}))
    contenders = [
        Contender(name, f"benchmarks.browsing:{name}", {"file": page}, SIZE, needs="playwright")
        for name in OWN
    ]
    return contest(contenders, repeats)


TARGETS = [
    Target("opening the page", 1, lambda r: r[SIZE, OPENING].seconds, " s"),
    Target("size of the page", 3, lambda r: r[SIZE, OPENING].values["megabytes"], " MB"),
    Target(
        "an interaction, 95th percentile", 200, lambda r: r[SIZE, USING].values["p95_ms"], " ms"
    ),
    Target("messages in the console", 0, lambda r: r[SIZE, USING].values["messages"], ""),
]
AGREEMENTS = []
