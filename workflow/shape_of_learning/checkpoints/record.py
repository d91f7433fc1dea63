"""``checkpoint.json``: the origin and the hashes of the files of a checkpoint."""

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
        Repository, revision and commit, or the recipe of a training. No dates, so that the same checkpoint
        always has the same record.
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
    """Return the size in bytes and the hexadecimal SHA-256 of a file."""
    return {"bytes": path.stat().st_size, "sha256": compute_sha256(path)}


def find_changed_file(folder: Path, record: Mapping[str, Any], threads: int = 1) -> str:
    """Name a file that is missing, differs from its record or has none; empty if all files match the record.

    All files are read, since sizes and times may be equal by chance, and a digest costs a tenth of the download. An
    additional file, such as ``added_tokens.json``, changes what transformers loads.
    """

    def is_as_recorded(name: str) -> bool:
        path = folder / name
        return path.is_file() and describe_file(path) == record["files"].get(name)

    present = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    names = sorted(present - {RECORD} | set(record["files"]))
    with ThreadPoolExecutor(threads) as pool:
        for name, is_same in zip(names, pool.map(is_as_recorded, names), strict=True):
            if not is_same:
                return name
    return ""


def refuse_changed(folder: Path, threads: int = 1) -> None:
    """Raise InputError if a file of a checkpoint differs from its record; `threads` files are read at a time."""
    record = read_record(folder)
    if record is None:
        raise InputError(f"{folder / RECORD} is missing or damaged; delete {folder} and run again")
    if name := find_changed_file(folder, record, threads):
        raise InputError(
            f"{folder / name} has changed since it was made; delete {folder} and run again"
        )
