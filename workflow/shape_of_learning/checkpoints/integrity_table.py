"""``results/checkpoints/{model}.csv``: what the Hub lists of each revision, and the verdict on it."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from shape_of_learning.checkpoints.judged_checkpoint import JudgedCheckpoint
from shape_of_learning.checkpoints.lock import Lock, LockedRevision
from shape_of_learning.checkpoints.weight_listing import WeightFile
from shape_of_learning.storage.csv_table import write_table

COLUMNS = ("step", "tokens", "revision", "commit", "files", "bytes", "hash", "verdict")


def write_integrity_table(path: Path, checkpoints: Sequence[JudgedCheckpoint], lock: Lock) -> None:
    """Write the table of a curve's checkpoints, one row each.

    Parameters
    ----------
    path : Path
        CSV file to write. Empty cells: steps and tokens of models without training steps, files of
        revisions without weights.
    checkpoints : sequence of JudgedCheckpoint
        By step.
    lock : Lock
        What was listed of each.
    """
    write_table(path, COLUMNS, [_row(each, lock.revisions[each.name]) for each in checkpoints])


def _row(checkpoint: JudgedCheckpoint, locked: LockedRevision) -> list[object]:
    files = locked.listed.files
    size = sum(file.bytes for file in files.values()) if files else None
    listing = [" ".join(sorted(files)), size, combined_hash(files)]
    where = [checkpoint.step, checkpoint.tokens, locked.revision, locked.listed.commit]
    return [*where, *listing, checkpoint.verdict]


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
