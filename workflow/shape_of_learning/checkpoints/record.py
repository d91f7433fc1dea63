"""``checkpoint.json``: where the files of a checkpoint come from and what they are."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from shape_of_learning.checkpoints.shapes import is_file_name
from shape_of_learning.errors import InputError
from shape_of_learning.files import sha256_of

RECORD = "checkpoint.json"


def write_record(folder: Path, files: Mapping[str, Mapping[str, Any]], **provenance: Any) -> None:
    """Write the record of a checkpoint into its folder.

    Parameters
    ----------
    folder : Path
        Holds configuration, weights and tokenizer, side by side.
    files : mapping
        File name -> what :func:`file_entry` says of it.
    **provenance
        What the source knows: repository, revision and commit, or the recipe of a training. No dates, so
        that the same checkpoint always has the same record.
    """
    content = {**provenance, "files": dict(sorted(files.items()))}
    text = json.dumps(content, indent=2, ensure_ascii=False)
    (folder / RECORD).write_text(text + "\n", encoding="utf-8")


def read_record(folder: Path) -> dict[str, Any] | None:
    """Read the record of a checkpoint; None if there is none that :func:`write_record` could have written."""
    try:
        content = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        files = content["files"]
        whole = all(
            is_file_name(name) and set(files[name]) == {"bytes", "sha256"} for name in files
        )
    except (OSError, ValueError, AttributeError, KeyError, TypeError, RecursionError):
        return None
    return content if whole else None


def file_entry(path: Path) -> dict[str, int | str]:
    """Size in bytes and hexadecimal SHA-256 of a file."""
    return {"bytes": path.stat().st_size, "sha256": sha256_of(path)}


def changed_file(folder: Path, record: Mapping[str, Any], threads: int = 1) -> str:
    """Name a file that is missing, is not what was recorded or was not recorded; empty if there is none.

    All are read: a size and a time are soon equal, and a digest costs a tenth of the download. A file more,
    such as ``added_tokens.json``, changes what transformers loads.
    """

    def is_as_recorded(name: str) -> bool:
        path = folder / name
        return path.is_file() and file_entry(path) == record["files"].get(name)

    there = {path.name for path in folder.iterdir() if not path.name.startswith(".")} - {RECORD}
    names = sorted(there | set(record["files"]))
    with ThreadPoolExecutor(threads) as pool:
        same = list(pool.map(is_as_recorded, names))
    return next((name for name, good in zip(names, same, strict=True) if not good), "")


def refuse_changed(folder: Path, receipt: Path, threads: int = 1) -> None:
    """Compare a checkpoint that is to be used with what was recorded as it came.

    Parameters
    ----------
    folder : Path
        Holds the files.
    receipt : Path
        The record in the folder, a copy of it, or the digests of the records of all steps of a training,
        by the names of their folders.
    threads : int
        Files that are read at the same time.

    Raises
    ------
    InputError
        If a file is not what it was when it came, or another checkpoint has taken its place.
    """
    record = read_record(folder)
    try:
        known = json.loads(receipt.read_text(encoding="utf-8"))
        expected = sha256_of(receipt) if "files" in known else known[folder.name]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        raise InputError(f"{receipt} is missing or damaged; delete it and run again") from None
    if record is None or sha256_of(folder / RECORD) != expected:
        raise InputError(
            f"{folder} is gone, or its {RECORD} is not what {receipt} says; delete both and run again"
        )
    if name := changed_file(folder, record, threads):
        raise InputError(
            f"{folder / name} is not what it was when it came; delete {folder} and run again"
        )
