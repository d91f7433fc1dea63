"""What cleaning has changed in a text, in words: for the terminal, and for captions."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def describe_losses(record: Mapping[str, Any], name: str) -> str:
    """Say what a text has lost: nothing, or one sentence.

    Parameters
    ----------
    record : mapping
        What :func:`.clean` returns and writes beside the text.
    name : str
        What to call the text.
    """
    said = []
    dropped, changed = record["dropped"], record["changed"]
    if count := dropped["characters"]:
        whole = count + record["text"]["characters"]
        kinds = len(record["alphabet"])
        said.append(
            f"{count:,} of {whole:,} characters are left out, those outside of an alphabet of {kinds}"
        )
    if count := changed["bytes_cut_off"]:
        said.append(f"the last {count} bytes are left out, a part of a character")
    if count := record.get("pages", {}).get("in_pieces"):
        said.append(f"paragraphs of {count:,} pages are left out, which cannot be parsed")
    return f"Of the text {name}, {'; '.join(said)}." if said else ""


def describe_changes(record: Mapping[str, Any], name: str) -> str:
    """Say what a text has lost, and what in it is written otherwise: nothing, or one or two sentences."""
    changed, said = record["changed"], []
    if count := changed["line_ends"]:
        said.append(f"{count:,} ends of lines are written as LF")
    if changed["byte_order_mark"]:
        said.append("the byte order mark is left out")
    otherwise = f"In the text {name}, {'; '.join(said)}." if said else ""
    return " ".join(filter(None, [describe_losses(record, name), otherwise]))


def read_losses(record: Path) -> str:
    """Say what a text has lost, by the file that lies beside it; nothing where there is no such file."""
    if not record.is_file():
        return ""
    content = json.loads(record.read_text(encoding="utf-8"))
    return describe_losses(content, record.parent.name) if "changed" in content else ""
