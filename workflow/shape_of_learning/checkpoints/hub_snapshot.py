"""A checkpoint of the Hub without a lock, in the user's cache: its bytes are those that the Hub lists."""

import re
from functools import partial
from pathlib import Path

from huggingface_hub import snapshot_download

from shape_of_learning.checkpoints import hub
from shape_of_learning.checkpoints.lock import WeightFile
from shape_of_learning.checkpoints.shapes import (
    CONFIGURATION,
    WEIGHTS,
    refuse_listed_adapter,
    tokenizer_paths,
)
from shape_of_learning.errors import InputError


def download_snapshot(model: str, revision: str) -> Path:
    """Bring configuration, weights and tokenizer of a revision into the user's cache, and compare all with the list.

    Files that are there already are compared, too; what differs is removed from the cache and asked for once more.

    Raises
    ------
    InputError
        If there is no such revision, it has no weights, the Hub cannot be reached, or files stay other ones.
    """
    where = f"model `{model}`, which is no folder here"
    # The branch may move between a list and a download.
    commit = hub.commit_of(model, revision, where=where) or revision
    files = hub.files_at(model, revision, commit, where=where)
    wanted = _wanted(files, where, revision)
    bring = partial(snapshot_download, model, revision=commit, allow_patterns=wanted)
    wrong = ""
    for _ in range(2):
        folder = Path(hub.asked(bring, model, revision, where=where))
        changed = [name for name in wanted if _has_changed(folder / name, files.get(name))]
        if not changed:
            return folder
        wrong = changed[0]
        for name in changed:
            (folder / name).resolve().unlink(missing_ok=True)
            (folder / name).unlink(missing_ok=True)
    raise InputError(
        f"{where}: {wrong} at revision `{revision}` is not what the Hub lists ({files[wrong].hash}, "
        f"{files[wrong].bytes} bytes), also when it is fetched again; check HF_ENDPOINT and the network"
    )


def _wanted(files: hub.Files, where: str, revision: str) -> list[str]:
    """Choose the files of a checkpoint at the top of a repository, with the weights in one format."""
    refuse_listed_adapter(files, "", where)
    for whole, index in WEIGHTS:
        if whole in files or index in files:
            stem, suffix = whole.split(".")
            weights = [n for n in files if re.fullmatch(rf"{stem}.*\.{suffix}(\.index\.json)?", n)]
            return [CONFIGURATION, *tokenizer_paths(files, ""), *weights]
    raise InputError(f"{where}: revision `{revision}` has no weights; choose another revision")


def _has_changed(file: Path, listed: WeightFile | None) -> bool:
    """Return whether a file is not what is listed; what is not listed is missed when it is read."""
    if listed is None:
        return False
    if not file.is_file() or file.stat().st_size != listed.bytes:
        return True
    return hub.hash_like(file, listed.hash) != listed.hash
