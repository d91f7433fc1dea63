"""``checkpoint.json``: where the files of a checkpoint come from and what they are."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from shape_of_learning.errors import InputError
from shape_of_learning.files import compute_sha256

RECORD = "checkpoint.json"


def write_record(folder: Path, **provenance: Any) -> None:
    """Write the record of a checkpoint into its folder, with size and hash of each file there.

    Parameters
    ----------
    folder : Path
        Holds configuration, weights and tokenizer, side by side.
    **provenance
        What the source knows: repository, revision and commit, or the recipe of a training. No dates, so
        that the same checkpoint always has the same record.
    """
    files = {path.name: describe_file(path) for path in sorted(folder.iterdir())}
    content = {**provenance, "files": files}
    text = json.dumps(content, indent=2, ensure_ascii=False)
    (folder / RECORD).write_text(text + "\n", encoding="utf-8")


def read_record(folder: Path) -> dict[str, Any] | None:
    """Read the record of a checkpoint; None if there is none, or it is damaged."""
    try:
        content = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) and "files" in content else None


def describe_file(path: Path) -> dict[str, int | str]:
    """Size in bytes and hexadecimal SHA-256 of a file."""
    return {"bytes": path.stat().st_size, "sha256": compute_sha256(path)}


def find_changed_file(folder: Path, record: Mapping[str, Any], threads: int = 1) -> str:
    """Name a file that is missing, is not what was recorded or was not recorded; empty if there is none.

    All are read: a size and a time are soon equal, and a digest costs a tenth of the download. A file more,
    such as ``added_tokens.json``, changes what transformers loads.
    """

    def is_as_recorded(name: str) -> bool:
        path = folder / name
        return path.is_file() and describe_file(path) == record["files"].get(name)

    there = {path.name for path in folder.iterdir() if not path.name.startswith(".")} - {RECORD}
    names = sorted(there | set(record["files"]))
    with ThreadPoolExecutor(threads) as pool:
        same = list(pool.map(is_as_recorded, names))
    return next((name for name, good in zip(names, same, strict=True) if not good), "")


def refuse_changed(folder: Path, threads: int = 1) -> None:
    """Raise InputError if a checkpoint that is to be used is not what was recorded as it came.

    So many `threads` read its files at the same time.
    """
    record = read_record(folder)
    if record is None:
        raise InputError(f"{folder / RECORD} is missing or damaged; delete {folder} and run again")
    if name := find_changed_file(folder, record, threads):
        raise InputError(
            f"{folder / name} is not what it was when it came; delete {folder} and run again"
        )
