"""``results/checkpoints/{model}.csv``: what the gate found, one row per revision."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from shape_of_learning.checkpoints.lock import Lock
from shape_of_learning.checkpoints.weight_listing import WeightFile
from shape_of_learning.errors import InputError
from shape_of_learning.storage.csv_table import read_rows, write_table

COLUMNS = ("step", "tokens", "revision", "commit", "files", "bytes", "hash", "verdict")


def write_integrity_table(path: Path, lock: Lock) -> None:
    """Write the table of a lock's curve, by step.

    Empty cells: steps and tokens of models without training steps, files of revisions without weights.
    """
    write_table(path, COLUMNS, _rows(lock))


def integrity_table_is(path: Path, lock: Lock) -> bool:
    """Whether a table is the one that :func:`write_integrity_table` would write."""
    try:
        return read_rows(path, COLUMNS) == _rows(lock)
    except InputError:
        return False


def _rows(lock: Lock) -> list[list[str]]:
    rows = []
    for name, verdict in lock.curve.items():
        locked = lock.revisions[name]
        files = locked.listed.files
        size = sum(file.bytes for file in files.values())
        numbers = ["" if number is None else str(number) for number in (locked.step, locked.tokens)]
        listing = [" ".join(sorted(files)), str(size) if files else "", combined_hash(files)]
        rows.append([*numbers, locked.revision, locked.listed.commit, *listing, verdict])
    return rows


def combined_hash(files: Mapping[str, WeightFile]) -> str:
    """One hash of all weight files: of a single file its own, of shards the SHA-256 of theirs.

    Parameters
    ----------
    files : mapping of str to WeightFile
        Empty gives an empty text.

    Returns
    -------
    str
        ``sha256:`` or ``git:`` and hexadecimal digits. Of shards: the SHA-256 of the lines
        ``{name} {hash}``, sorted by name and each ended by a line feed.
    """
    if len(files) <= 1:
        return "".join(file.hash for file in files.values())
    lines = "".join(f"{name} {file.hash}\n" for name, file in sorted(files.items()))
    return f"sha256:{hashlib.sha256(lines.encode()).hexdigest()}"
