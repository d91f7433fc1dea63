"""Files of the Hub, downloaded with the bytes that are listed of them."""

import re
from collections.abc import Mapping
from functools import partial
from glob import escape
from pathlib import Path
from typing import Any

from huggingface_hub import constants, snapshot_download

from shape_of_learning.checkpoints import hub
from shape_of_learning.checkpoints.listed_files import Files, hash_like
from shape_of_learning.checkpoints.lock import Place
from shape_of_learning.checkpoints.shapes import (
    CONFIGURATION,
    WEIGHTS,
    list_tokenizer_paths,
    refuse_listed_adapter,
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
    commit = hub.find_commit(model, revision, where=where) or revision
    files = hub.list_files(model, revision, commit, where=where)
    hashes = {
        path: files[path].hash if path in files else ""
        for path in _choose_files(files, where, revision)
    }
    return download_as_listed(Place(model, revision), commit, hashes, where=where)


def download_as_listed(
    place: Place,
    commit: str,
    hashes: Mapping[str, str],
    *,
    where: str,
    source: str = "the Hub",
    pauses: tuple[float, ...] = hub.QUESTION_PAUSES,
    **options: Any,
) -> Path:
    """Download files of a commit, and compare all with the hashes that are listed of them.

    Files that are there already are compared, too; what differs is removed and asked for once more.

    Parameters
    ----------
    place : Place
        Of the commit, for sentences.
    commit : str
        What is downloaded.
    hashes : mapping of str to str
        By path, as :func:`.hash_like` has them; empty where nothing is listed.
    where, pauses
        As :func:`.ask_hub` has them.
    source : str
        Who lists the hashes, for sentences.
    **options
        Of ``snapshot_download``, such as ``local_dir``.

    Returns
    -------
    Path
        The folder of the repository's files; what is not listed may be missing.

    Raises
    ------
    InputError
        If the Hub cannot be reached, or files stay other ones.
    """
    named = place.repository, place.revision
    patterns = [escape(path) for path in hashes]
    bring = partial(
        snapshot_download, place.repository, revision=commit, allow_patterns=patterns, **options
    )
    is_offline = constants.is_offline_mode()  # nothing that is removed would come again
    for _ in range(1 if is_offline else 2):
        folder = Path(hub.ask_hub(bring, *named, where=where, pauses=pauses))
        found = {path: _hash(folder / path, like) for path, like in hashes.items() if like}
        changed = [path for path, here in found.items() if here != hashes[path]]
        if not changed:
            return folder
        for path in () if is_offline else changed:
            (folder / path).resolve().unlink(missing_ok=True)
            (folder / path).unlink(missing_ok=True)
    path = changed[0]
    raise InputError(
        f"{where}: {path} of `{place.repository}` at revision `{place.revision}` is not what {source} lists for "
        f"commit {commit[:10]}: expected {hashes[path]}, found {found[path]}; check the network, HF_ENDPOINT "
        "and the Hugging Face cache"
    )


def _hash(file: Path, like: str) -> str:
    return hash_like(file, like) if file.is_file() else "no file"


def _choose_files(files: Files, where: str, revision: str) -> list[str]:
    """Choose the files of a checkpoint at the top of a repository, with the weights in one format."""
    refuse_listed_adapter(files, "", where)
    for whole, index in WEIGHTS:
        if whole in files or index in files:
            stem, suffix = whole.split(".")
            weights = [n for n in files if re.fullmatch(rf"{stem}.*\.{suffix}(\.index\.json)?", n)]
            return [CONFIGURATION, *list_tokenizer_paths(files, ""), *weights]
    raise InputError(f"{where}: revision `{revision}` has no weights; choose another revision")
