"""A checkpoint of the Hub without a lock, in the user's cache: its bytes are those that the Hub lists."""

import re
from collections.abc import Mapping
from functools import partial
from glob import escape
from pathlib import Path
from typing import Any

from huggingface_hub import snapshot_download

from shape_of_learning.checkpoints import hub
from shape_of_learning.checkpoints.listed_files import Files, hash_like
from shape_of_learning.checkpoints.lock import Place, WeightFile
from shape_of_learning.checkpoints.shapes import (
    CONFIGURATION,
    WEIGHTS,
    refuse_listed_adapter,
    tokenizer_paths,
)
from shape_of_learning.errors import InputError


def download_snapshot(model: str, revision: str) -> Path:
    """Bring configuration, weights and tokenizer of a revision into the user's cache.

    Raises
    ------
    InputError
        If there is no such revision, it has no weights, or as :func:`download_as_listed`.
    """
    where = f"model `{model}`, which is no folder here"
    # The branch may move between a list and a download.
    commit = hub.commit_of(model, revision, where=where) or revision
    files = hub.files_at(model, revision, commit, where=where)
    listed = {name: files.get(name) for name in _wanted(files, where, revision)}
    return download_as_listed(Place(model, revision), commit, listed, where=where)


def download_as_listed(
    place: Place,
    commit: str,
    listed: Mapping[str, WeightFile | None],
    *,
    where: str,
    pauses: tuple[float, ...] = hub.QUESTION_PAUSES,
    **options: Any,
) -> Path:
    """Download files of a commit, and compare all with what is listed of them.

    Files that are there already are compared, too; what differs is removed and asked for once more.

    Parameters
    ----------
    place : Place
        Of the commit, for sentences.
    commit : str
        What is downloaded.
    listed : mapping of str to WeightFile or None
        The files, by path; None where nothing is listed.
    where, pauses
        As :func:`.asked` has them.
    **options
        Of ``snapshot_download``, such as ``local_dir``.

    Returns
    -------
    Path
        The folder of the repository's files.

    Raises
    ------
    InputError
        If the Hub cannot be reached, or files stay other ones.
    """
    named = place.repository, place.revision
    patterns = [escape(name) for name in listed]
    bring = partial(
        snapshot_download, place.repository, revision=commit, allow_patterns=patterns, **options
    )
    wrong = ""
    for _ in range(2):
        folder = Path(hub.asked(bring, *named, where=where, pauses=pauses))
        changed = [name for name, file in listed.items() if _has_changed(folder / name, file)]
        if not changed:
            return folder
        wrong = changed[0]
        for name in changed:
            (folder / name).resolve().unlink(missing_ok=True)
            (folder / name).unlink(missing_ok=True)
    expected = listed[wrong]
    assert expected is not None  # else it does not count as changed
    raise InputError(
        f"{where}: {wrong} at revision `{place.revision}` is not what the Hub lists ({expected.hash}, "
        f"{expected.bytes} bytes), also when it is fetched again; check HF_ENDPOINT and the network"
    )


def _wanted(files: Files, where: str, revision: str) -> list[str]:
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
    return hash_like(file, listed.hash) != listed.hash
