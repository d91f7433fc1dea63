"""``checkpoint.json``: where the files of a checkpoint come from and what they are."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shape_of_learning.storage.digests import sha256_of

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
        What the source knows: repository, revision and commit, or the recipe of a local
        pretraining. No dates, so that the same checkpoint always has the same record.
    """
    content = {**provenance, "files": dict(sorted(files.items()))}
    text = json.dumps(content, indent=2, ensure_ascii=False)
    (folder / RECORD).write_text(text + "\n", encoding="utf-8")


def is_recorded(folder: Path, provenance: Mapping[str, Any]) -> bool:
    """Tell whether a folder holds a whole checkpoint of this provenance, by its record and sizes."""
    try:
        content = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        files = content.pop("files")
        sizes = {name: (folder / name).stat().st_size for name in files}
    except (OSError, ValueError, AttributeError, KeyError):
        return False
    return content == dict(provenance) and all(
        sizes[name] == entry["bytes"] for name, entry in files.items()
    )


def file_entry(path: Path) -> dict[str, int | str]:
    """Size in bytes and hexadecimal SHA-256 of a file."""
    return {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
