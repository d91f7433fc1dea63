"""What the names and hashes of files that the Hub lists say: which are weights, and whether all are there."""

import re
from collections.abc import Mapping
from pathlib import Path, PurePath

from shape_of_learning.checkpoints.lock import MISSING, NO_WEIGHTS, Listing, WeightFile
from shape_of_learning.checkpoints.shapes import WEIGHTS, join_path
from shape_of_learning.file_hashes import remember_sha256
from shape_of_learning.files import compute_git_blob

# In the order of WEIGHTS.
WEIGHT_FILES = tuple(
    rf"{stem}(-\d+-of-(?P<total>\d+))?\.{suffix}"
    for stem, suffix in (whole.split(".") for whole, _ in WEIGHTS)
)

Files = Mapping[str, WeightFile]


def hash_like(file: Path, listed: str) -> str:
    """Hash a file in the way of a listed hash: ``sha256:...``, or ``git:...`` as git names its content."""
    if listed.startswith("git:"):
        return f"git:{compute_git_blob(file)}"
    return f"sha256:{remember_sha256(file)}"


def is_weight_file(path: str) -> bool:
    """Whether a path ends like a file of weights, whole or a shard."""
    return any(re.fullmatch(each, PurePath(path).name) for each in WEIGHT_FILES)


def folders_of(files: Files) -> set[str]:
    """The folders that have files of weights."""
    return {f"{PurePath(path).parent}" for path in files if is_weight_file(path)}


def listing_by_names(files: Files, commit: str, subfolder: str) -> Listing:
    """What is listed of a commit by the names of its files alone: no index of shards is read.

    Shards are numbered, so that one that is not there is missed.
    """
    formats: list[dict[str, WeightFile]] = []
    for pattern in WEIGHT_FILES:
        sets: dict[str, dict[str, WeightFile]] = {}
        for path, file in files.items():
            name = PurePath(path).name
            if join_path(subfolder, name) == path and (found := re.fullmatch(pattern, name)):
                sets.setdefault(found["total"] or "", {})[name] = file
        whole = [own for total, own in sets.items() if len(own) == int(total or 1)]
        if sets and not whole:
            total, own = next(iter(sets.items()))
            there = {int(name.split("-")[-3]) for name in own}
            lacking = ", ".join(str(n) for n in range(1, int(total) + 1) if n not in there)
            return Listing(commit=commit, problem=f"{MISSING}: shard {lacking} of {int(total)}")
        formats += whole[:1]
    if not formats:
        return Listing(commit=commit, problem=NO_WEIGHTS)
    return Listing(commit=commit, files=formats[0], other_format=formats[1] if formats[1:] else {})
