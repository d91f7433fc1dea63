"""The files of a checkpoint in a folder: its weights, its tokenizer, its settings."""

import json
import zipfile
from pathlib import Path

from shape_of_learning.checkpoints.shapes import (
    CONFIGURATION,
    TOKENIZER,
    WEIGHT_FILES,
    list_shard_names,
)
from shape_of_learning.errors import InputError
from shape_of_learning.files import refuse_odd_file

ZIP_MAGIC = b"PK"


def list_weight_files(folder: Path) -> list[Path]:
    """List the files that hold the weights of a checkpoint, sorted, in the format that transformers loads.

    Parameters
    ----------
    folder : Path
        Checkpoint in Hugging Face format: ``model.safetensors``, or its shards by their index, or
        ``pytorch_model.bin`` likewise.

    Raises
    ------
    InputError
        If there are no weights, an index of shards is damaged or leaves the folder, a file is a pointer of git-lfs, or
        a pickle is compressed.
    """
    for whole, index in WEIGHT_FILES:
        if (folder / whole).exists():
            return [_check_readable(folder / whole)]
        if (folder / index).exists():
            return [_check_readable(file) for file in _read_shard_list(folder / index)]
    names = " or ".join(f"`{name}`" for names in WEIGHT_FILES for name in names)
    raise InputError(
        f"{folder} holds no weights: none of {names} is there; fetch the checkpoint again, or save the whole "
        "model there if it is your own"
    )


def list_checkpoint_files(folder: Path) -> list[Path]:
    """List the files that decide the hidden states, sorted: configuration, weights, adapter, tokenizer.

    Raises
    ------
    InputError
        As :func:`list_weight_files`.
    """
    weights = list_weight_files(folder)
    indexes = [folder / index for _, index in WEIGHT_FILES]
    settings = [folder / CONFIGURATION, *indexes, *folder.glob("adapter_*")]
    return sorted({*weights, *list_tokenizer_files(folder), *filter(Path.is_file, settings)})


def list_tokenizer_files(folder: Path) -> list[Path]:
    """List the files of the tokenizer in a folder, sorted."""
    return sorted(folder / name for name in TOKENIZER if (folder / name).is_file())


def make_unreadable_error(file: Path, reason: str) -> InputError:
    """Build the error for a file of weights that is damaged or unsafe to read."""
    return InputError(
        f"{file} holds no weights that can be read ({reason}); fetch the checkpoint again, or mend it if "
        "it is your own"
    )


def _read_shard_list(index: Path) -> list[Path]:
    refuse_odd_file(index)
    try:
        return [index.parent / name for name in list_shard_names(json.loads(index.read_bytes()))]
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{index} is no index of shards ({error}); fetch the checkpoint again, or mend it if it is your own"
        ) from error


def _check_readable(file: Path) -> Path:
    """Return a file of weights, or refuse it if it is unsafe to read."""
    refuse_odd_file(file)
    if file.suffix == ".safetensors" or not file.is_file():
        return file
    with file.open("rb") as stream:
        is_archive = stream.read(len(ZIP_MAGIC)) == ZIP_MAGIC or zipfile.is_zipfile(file)
    if is_archive:
        try:
            with zipfile.ZipFile(file) as archive:
                entries = archive.infolist()
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise make_unreadable_error(file, str(error)) from error
        # A compressed entry of a few bytes may fill the memory.
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
            raise make_unreadable_error(
                file, "it is compressed, and torch reads no compressed files"
            )
    return file
