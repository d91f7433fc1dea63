"""Which files of a repository make a checkpoint."""

from collections.abc import Collection
from pathlib import Path, PurePath
from typing import Any

from shape_of_learning.hub.given_names import is_file_name

CONFIGURATION = "config.json"
# Safetensors before pickles and a single file before shards, which is how transformers chooses.
WEIGHTS = (
    ("model.safetensors", "model.safetensors.index.json"),
    ("pytorch_model.bin", "pytorch_model.bin.index.json"),
)
# Any of these holds a vocabulary, in the format of one tokenizer library or another.
VOCABULARIES = frozenset(
    {
        "sentencepiece.bpe.model",
        "sentencepiece.model",
        "spiece.model",
        "spm.model",
        "tokenizer.json",
        "tokenizer.model",
        "vocab.json",
        "vocab.txt",
    }
)
TOKENIZER = VOCABULARIES | {
    "added_tokens.json",
    "merges.txt",
    "special_tokens_map.json",
    "tokenizer_config.json",
}


def checkpoint_files(folder: Path) -> list[Path]:
    """List the files of a checkpoint in a folder: configuration, weights in one format, tokenizer.

    Raises
    ------
    OSError
        If there is no such folder.
    """
    names = {file.name for file in folder.iterdir() if file.is_file()}
    in_order = [PurePath(whole).suffix for whole, _ in WEIGHTS]
    suffix = next((s for s in in_order if any(name.endswith(s) for name in names)), in_order[0])
    weights = {name for name in names if name.endswith((suffix, f"{suffix}.index.json"))}
    return sorted(folder / name for name in weights | ({CONFIGURATION, *TOKENIZER} & names))


def index_of(weights: Collection[str]) -> str | None:
    """Name of the index that goes with shards; None for weights in one file."""
    for whole, index in WEIGHTS:
        if whole in weights:
            return None
        if all(PurePath(name).suffix == PurePath(whole).suffix for name in weights):
            return index
    return None


def shard_names(index: Any) -> list[str]:
    """List the files that an index of shards names, sorted.

    Parameters
    ----------
    index : object
        What ``model.safetensors.index.json`` holds.

    Raises
    ------
    ValueError
        If it is no such index, or a name in it is none of a file in the index's own folder.
    """
    placed = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(placed, dict) or not placed:
        raise ValueError("its `weight_map` places no tensor")
    for name in placed.values():
        if not is_file_name(name):
            raise ValueError(f"its `weight_map` names {name!r:.100}, which is no file beside it")
    return sorted(set(placed.values()))


def tokenizer_paths(paths: Collection[str], subfolder: str) -> list[str]:
    """Choose the files of the tokenizer among all of a repository, sorted; empty if none holds a vocabulary.

    The checkpoint's own folder goes before the top of its repository.
    """
    for folder in dict.fromkeys([subfolder, ""]):
        beside = {name: f"{folder}/{name}" if folder else name for name in TOKENIZER}
        present = {name: path for name, path in beside.items() if path in paths}
        if VOCABULARIES & present.keys():
            return sorted(present.values())
    return []
