"""The files of which the page is made: our own, each read as it is.

This module imports nothing heavy, because the Snakefile reads it at every start.
"""

import hashlib
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "page"
FRAME, STYLE, LICENCES = "explorer.html", "explorer.css", "licences.txt"
PROGRAM = (
    *("data.js", "view_state.js", "lines.js", "specification.js", "heat_maps.js"),
    *("table.js", "controls.js", "main.js"),
)


def page_part(name: str) -> str:
    """Read one of the files."""
    return (FOLDER / name).read_text(encoding="utf-8")


@cache
def digest_of_page() -> str:
    """Sixteen hexadecimal digits of all of them, for the page is made anew when one changes."""
    text = "\0".join(page_part(name) for name in (FRAME, STYLE, LICENCES, *PROGRAM))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
