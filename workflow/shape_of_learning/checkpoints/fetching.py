"""Checkpoints from the Hugging Face Hub: pinned to a commit, only the files that are needed."""

import json
import logging
from pathlib import Path
from typing import Any

from huggingface_hub import hf_hub_download

from shape_of_learning.checkpoints.checkpoint_files import (
    CONFIGURATION,
    tokenizer_files,
    weight_files,
)
from shape_of_learning.checkpoints.checkpoint_record import file_entry, write_record
from shape_of_learning.checkpoints.hub_errors import explained
from shape_of_learning.checkpoints.listing import RemoteRevision, resolve_and_list
from shape_of_learning.checkpoints.model_entry import check_against_entry
from shape_of_learning.errors import InputError
from shape_of_learning.files import remove, written_beside

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
    subfolder: str = "",
    tokenizer_repository: str | None = None,
    tokenizer_revision: str = "main",
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
        they gather in ``.{name}.download``, where a killed process leaves the complete ones for the
        next run.
    layers, hidden_size, role, last_hidden_size
        What the entry says, as :func:`.check_against_entry` takes it. Compared before the weights
        are downloaded.
    tokenizer_repository, tokenizer_revision : str
        Where the tokenizer is, if not with the model.

    Raises
    ------
    InputError
        With one sentence for all that can be wrong with the entry, the Hub or the network.
    """
    where = f"model `{model}`"
    source = resolve_and_list(repository, revision, where=where)
    words = source
    if tokenizer_repository is not None:
        words = resolve_and_list(
            tokenizer_repository, tokenizer_revision, where=where, key="tokenizer"
        )
    download = _Download(destination.with_name(f".{destination.name}.download"), where)
    configuration = download.json(source, _inside(subfolder, CONFIGURATION))
    check_against_entry(
        configuration,
        layers=layers,
        hidden_size=hidden_size,
        last_hidden_size=last_hidden_size,
        role=role,
        where=where,
    )
    tokenizer_paths = _tokenizer_paths(words, subfolder, where)
    weight_paths = _weight_paths(source, subfolder, download)
    paths = [
        *(
            download.file(source, path)
            for path in [_inside(subfolder, CONFIGURATION), *weight_paths]
        ),
        *(download.file(words, path) for path in tokenizer_paths),
    ]
    with written_beside(destination) as folder:
        folder.mkdir()
        for path in paths:
            path.rename(folder / path.name)
        write_record(
            folder,
            {path.name: download.entries[path] for path in paths},
            source="hub",
            model=model,
            repository=repository,
            revision=revision,
            commit=source.commit,
            subfolder=subfolder,
            tokenizer={
                "repository": words.repository,
                "revision": words.revision,
                "commit": words.commit,
            },
        )
    remove(download.folder)


class _Download:
    """Files on their way, apart by commit so that a moved branch never mixes with the old one."""

    def __init__(self, folder: Path, where: str) -> None:
        self.folder = folder
        self.where = where
        self.entries: dict[Path, dict[str, int | str]] = {}
        # The client starts a file anew after a kill and would leave the torn one for ever.
        for torn in folder.rglob("*.incomplete"):
            torn.unlink()

    def file(self, source: RemoteRevision, path: str) -> Path:
        """Download one file, unless an earlier run has, and compare it with what the Hub lists."""
        if path not in source.files:
            raise InputError(
                f"{self.where}: `{source.repository}` at revision `{source.revision}` has no {path}; "
                "correct `repository`, `revision` or `subfolder` in the entry"
            )
        listed = source.files[path]
        logger.info("%s: %s, %.1f MB", self.where, path, listed.bytes / 1e6)
        with explained(source.repository, source.revision, where=self.where, key="revision"):
            local = hf_hub_download(
                source.repository,
                path,
                revision=source.commit,
                local_dir=self.folder / source.commit,
            )
        local = Path(local)
        entry = file_entry(local)
        if entry["bytes"] != listed.bytes or listed.sha256 not in (None, entry["sha256"]):
            local.unlink()
            raise InputError(
                f"{self.where}: {path} of `{source.repository}` arrived damaged, its size or SHA-256 "
                "is not what the Hub lists; run again to download it anew"
            )
        self.entries[local] = entry
        return local

    def json(self, source: RemoteRevision, path: str) -> dict[str, Any]:
        """Download and read a small JSON file that holds an object."""
        try:
            content = json.loads(self.file(source, path).read_text(encoding="utf-8"))
        except (json.JSONDecodeError, UnicodeDecodeError):
            content = None
        if not isinstance(content, dict):
            raise InputError(
                f"{self.where}: {path} of `{source.repository}` at revision `{source.revision}` is not "
                "a JSON object; choose another revision"
            )
        return content


def _weight_paths(source: RemoteRevision, subfolder: str, download: _Download) -> list[str]:
    def shards(index: str) -> set[str]:
        content = download.json(source, _inside(subfolder, index))
        return set(content.get("weight_map", {}).values())

    names = weight_files(source.names_in(subfolder), shards)
    if not names:
        raise InputError(
            f"{download.where}: `{source.repository}` at revision `{source.revision}` has neither "
            "model.safetensors nor pytorch_model.bin, whole or in shards; choose another `revision`, or "
            "a `subfolder` that has"
        )
    return [_inside(subfolder, name) for name in names]


def _tokenizer_paths(words: RemoteRevision, subfolder: str, where: str) -> list[str]:
    """Prefer the checkpoint's own folder to the top of its repository."""
    for folder in dict.fromkeys([subfolder, ""]):
        if names := tokenizer_files(words.names_in(folder)):
            return [_inside(folder, name) for name in names]
    raise InputError(
        f"{where}: `{words.repository}` at revision `{words.revision}` has no tokenizer; name a "
        "repository that has it under `tokenizer` in the entry"
    )


def _inside(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
