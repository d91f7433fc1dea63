"""One HTML file that holds its numbers, its program and its look."""

import json
from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np
import vl_convert

from shape_of_learning.explorer.packed_columns import layout, pack
from shape_of_learning.explorer.page_parts import FRAME, LICENCES, PROGRAM, STYLE, page_part


def explorer_page(description: Mapping[str, Any], columns: Mapping[str, np.ndarray]) -> str:
    """Write the page; equal numbers give an equal page.

    Parameters
    ----------
    description : mapping
        What the page says besides numbers, see `page/data.js`; text may hold anything.
    columns : mapping of str to ndarray, shape (n,)
        As :func:`.pack` takes them.
    """
    parts = {
        "STYLE": page_part(STYLE),
        "LICENCES": escape(page_part(LICENCES)),
        "DESCRIPTION": in_script({**description, "columns": layout(columns)}),
        "NUMBERS": pack(columns),
        "DRAWING": closed(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")),
        "PROGRAM": closed("\n".join(map(page_part, PROGRAM))),
    }
    pieces = page_part(FRAME).split("%%")
    return "".join(parts[piece] if place % 2 else piece for place, piece in enumerate(pieces))


def in_script(content: object) -> str:
    """Write JSON that a script element can hold: no character of it can end the element."""
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def closed(program: str) -> str:
    """Keep the strings of a program from ending its script element."""
    return program.replace("</script", "<\\/script").replace("<!--", "<\\!--")
