"""Describe the changes that cleaning made in a text, for the terminal and for captions."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def describe_removed_text(record: Mapping[str, Any], name: str) -> str:
    """Describe in one sentence which parts of a text cleaning removed; empty if it removed nothing.

    Parameters
    ----------
    record : mapping
        The record that :func:`.clean` returns and writes beside the text.
    name : str
        Name of the text.
    """
    losses = []
    if count := record["dropped"]["characters"]:
        total = count + record["text"]["characters"]
        size = len(record["alphabet"])
        losses.append(
            f"{count:,} of {total:,} characters are left out, those outside of an alphabet of {size}"
        )
    if count := record["changed"]["bytes_cut_off"]:
        losses.append(f"the last {count} bytes are left out, a part of a character")
    if count := record.get("pages", {}).get("in_pieces"):
        losses.append(f"paragraphs of {count:,} pages are left out, which cannot be parsed")
    return f"Of the text {name}, {'; '.join(losses)}." if losses else ""


def describe_changes(record: Mapping[str, Any], name: str) -> str:
    """Describe removed and rewritten characters of a text in up to two sentences."""
    changes = []
    if count := record["changed"]["line_ends"]:
        changes.append(f"{count:,} ends of lines are written as LF")
    if record["changed"]["byte_order_mark"]:
        changes.append("the byte order mark is left out")
    sentence = f"In the text {name}, {'; '.join(changes)}." if changes else ""
    return " ".join(filter(None, [describe_removed_text(record, name), sentence]))


def read_removed_text(record: Path) -> str:
    """Describe the removed parts of a text by the record beside it; empty if there is no record."""
    if not record.is_file():
        return ""
    content = json.loads(record.read_text(encoding="utf-8"))
    return describe_removed_text(content, record.parent.name) if "changed" in content else ""
