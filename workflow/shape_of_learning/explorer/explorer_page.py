"""One HTML file that holds its numbers, its program and its look."""

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "page"
FRAME, STYLE, LICENCES = "explorer.html", "explorer.css", "licences.txt"
PROGRAM = (
    *("data.js", "state.js", "lines.js", "words.js", "chart.js"),
    *("controls.js", "claims.js", "main.js"),
)


def explorer_page(content: Mapping[str, Any]) -> str:
    """Write the page; equal content gives an equal page, and no text of it can become an element.

    Parameters
    ----------
    content : mapping
        What :func:`.content_of` returns.
    """
    import vl_convert  # the Snakefile, which has no such package, reads this module

    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    parts = {
        "STYLE": _part(STYLE),
        "LICENCES": escape(_part(LICENCES)),
        "CONTENT": base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode("ascii"),
        "DRAWING": _closed(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")),
        "PROGRAM": _closed("\n".join(map(_part, PROGRAM))),
    }
    pieces = _part(FRAME).split("%%")
    return "".join(parts[piece] if place % 2 else piece for place, piece in enumerate(pieces))


@cache
def digest_of_page() -> str:
    """Sixteen hexadecimal digits of the files of the page, for it is made anew when one changes."""
    text = "\0".join(map(_part, (FRAME, STYLE, LICENCES, *PROGRAM)))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _part(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _closed(program: str) -> str:
    """Keep the strings of a program from ending its script element."""
    return program.replace("</script", "<\\/script").replace("<!--", "<\\!--")
