"""Checkpoints from the Hugging Face Hub: pinned to a commit, only the files that are needed."""

import logging
from dataclasses import replace
from functools import partial
from pathlib import Path

from shape_of_learning.checkpoints.checkpoint_files import (
    CONFIGURATION,
    tokenizer_files,
    weight_files,
)
from shape_of_learning.checkpoints.checkpoint_record import is_recorded, write_record
from shape_of_learning.checkpoints.model_entry import (
    check_against_entry,
    read_configuration_file,
)
from shape_of_learning.errors import InputError
from shape_of_learning.hub.downloads import Downloads
from shape_of_learning.hub.hub_errors import RevisionMissingError, lacking
from shape_of_learning.hub.listing import inside, resolve_and_list
from shape_of_learning.hub.remote_revision import RemoteRevision
from shape_of_learning.hub.retries import FIRST_PAUSE, with_retries
from shape_of_learning.storage.file_lock import made_by_one_process
from shape_of_learning.storage.files import atomic_write, remove

logger = logging.getLogger(__name__)


def fetch(
    model: str,
    repository: str,
    revision: str,
    destination: Path,
    *,
    layers: int,
    hidden_size: int,
    role: str,
    last_hidden_size: int | None = None,
    commit: str = "",
    subfolder: str = "",
    tokenizer_repository: str | None = None,
    tokenizer_revision: str = "main",
    tokenizer_commit: str = "",
    first_pause: float = FIRST_PAUSE,
) -> None:
    """Download a checkpoint: configuration, weights and tokenizer, side by side in one folder.

    Parameters
    ----------
    model : str
        Name of the model's entry, for errors and the record.
    repository, revision, subfolder : str
        Where the checkpoint is.
    destination : Path
        Folder that appears, whole, at the end, with a ``checkpoint.json`` beside the files. Until then
        they gather in ``.{name}.download``, where a killed process leaves them, the torn ones too,
        for the next run to go on with. Where another process fetches the same, this one waits for it
        and takes what it has made.
    layers, hidden_size, role, last_hidden_size
        What the entry says, as :func:`.check_against_entry` takes it. Compared before the weights
        are downloaded.
    commit : str
        What `revision` was when it was pinned; then the branch or tag itself is not looked at.
    tokenizer_repository, tokenizer_revision, tokenizer_commit : str
        Where the tokenizer is, if not with the model.
    first_pause : float
        Seconds before a request that failed is made again, as :func:`.with_retries` takes it.

    Raises
    ------
    InputError
        With one sentence for all that can be wrong with the entry, the Hub or the network.
    """
    where = f"model `{model}`"
    source = _resolve(
        repository, revision, commit, model=model, key="revision", first_pause=first_pause
    )
    words = source
    if tokenizer_repository is not None:
        words = _resolve(
            *(tokenizer_repository, tokenizer_revision, tokenizer_commit),
            model=model,
            key="tokenizer",
            first_pause=first_pause,
        )
    provenance = {
        "source": "hub",
        "model": model,
        "repository": repository,
        "revision": revision,
        "commit": source.commit,
        "subfolder": subfolder,
        "tokenizer": {
            "repository": words.repository,
            "revision": words.revision,
            "commit": words.commit,
        },
    }
    check = partial(
        check_against_entry,
        layers=layers,
        hidden_size=hidden_size,
        last_hidden_size=last_hidden_size,
        role=role,
        where=where,
    )
    with made_by_one_process(destination):
        if is_recorded(destination, provenance):
            check(read_configuration_file(destination))
            logger.info("%s: another run has fetched %s", where, destination)
            return
        downloads = Downloads(
            destination.with_name(f".{destination.name}.download"), where, first_pause
        )
        check(downloads.json(source, inside(subfolder, CONFIGURATION)))
        tokenizer_paths = _tokenizer_paths(words, subfolder, where)
        weight_paths = _weight_paths(source, subfolder, downloads)
        paths = downloads.files(
            [
                (source, inside(subfolder, CONFIGURATION)),
                *((words, path) for path in tokenizer_paths),
                *((source, path) for path in weight_paths),
            ]
        )
        with atomic_write(destination) as folder:
            folder.mkdir()
            for path in paths:
                _link_or_move(path, folder / path.name)
            files = {path.name: downloads.entries[path] for path in paths}
            write_record(folder, files, **provenance)
        remove(downloads.folder)


def _resolve(
    repository: str, revision: str, commit: str, *, model: str, key: str, first_pause: float
) -> RemoteRevision:
    where = f"model `{model}`"

    def listed() -> RemoteRevision:
        return resolve_and_list(repository, commit or revision, where=where, key=key)

    try:
        # Under the name of the branch, even if it is the pinned commit that was listed.
        return replace(with_retries(listed, first_pause=first_pause), revision=revision)
    except RevisionMissingError as error:
        if not commit:
            raise
        raise InputError(
            f"{where}: `{repository}` no longer has commit {commit}, which config/locks/{model}.yaml pins "
            f"for revision `{revision}`; delete its entry there to take what the revision holds now"
        ) from error


def _weight_paths(source: RemoteRevision, subfolder: str, downloads: Downloads) -> list[str]:
    def shards(index: str) -> set[str]:
        weight_map = downloads.json(source, inside(subfolder, index)).get("weight_map")
        if not isinstance(weight_map, dict) or not weight_map:
            raise InputError(
                f"{downloads.where}: {index} of `{source.repository}` at revision `{source.revision}` "
                "names no shards; choose another revision"
            )
        return set(weight_map.values())

    names = weight_files(source.names_in(subfolder), shards)
    if not names:
        raise lacking(
            source.repository,
            source.revision,
            "neither model.safetensors nor pytorch_model.bin, whole or in shards; choose another "
            "`revision`, or a `subfolder` that has",
            where=downloads.where,
        )
    return [inside(subfolder, name) for name in names]


def _tokenizer_paths(words: RemoteRevision, subfolder: str, where: str) -> list[str]:
    """Prefer the checkpoint's own folder to the top of its repository."""
    for folder in dict.fromkeys([subfolder, ""]):
        if names := tokenizer_files(words.names_in(folder)):
            return [inside(folder, name) for name in names]
    raise lacking(
        words.repository,
        words.revision,
        "no tokenizer; name a repository that has it under `tokenizer` in the entry",
        where=where,
    )


def _link_or_move(file: Path, target: Path) -> None:
    # With a link, a kill before the folder has its name costs no download.
    try:
        target.hardlink_to(file)
    except OSError:
        file.rename(target)
