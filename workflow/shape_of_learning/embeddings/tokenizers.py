"""Load tokenizers from untrusted files, without random choices, and with bounds on time and memory."""

import json
import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from shape_of_learning.checkpoints.shapes import (
    VOCABULARIES,
    find_model_folder,
    list_tokenizer_paths,
)
from shape_of_learning.errors import InputError, shorten_error
from shape_of_learning.files import refuse_odd_file

logger = logging.getLogger(__name__)

# A slow tokenizer on a busy machine needs a tenth of this time.
LEAST_SECONDS = 10
CHARACTERS_PER_SECOND = 10_000  # the limit of time grows by a second for so many characters
# Largest factor by which steps before the model may lengthen a text; published tokenizers stay below ten.
MOST_GROWTH = 10_000
REMEDY = "put the model's own tokenizer into its folder (`tokenizer.save_pretrained`)"


def load_tokenizer(folder: Path) -> Any:
    """Load the tokenizer of a checkpoint without running code in its folder; InputError if that fails."""
    from transformers import AutoTokenizer

    try:
        # Without a vocabulary the library builds a tokenizer without words.
        names = list_tokenizer_names(folder)
        if not names and find_model_folder(folder) != folder:
            folder = find_model_folder(folder)
            names = list_tokenizer_names(folder)
        for name in names:
            refuse_odd_file(folder / name)
        if not names:
            raise ValueError("there is no file of a vocabulary")
        _refuse_growth(folder / "tokenizer.json")
        options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        tokenizer = AutoTokenizer.from_pretrained(folder, **options)
        if not VOCABULARIES & set(names) and type(tokenizer).vocab_files_names:
            raise ValueError("there is no file of a vocabulary")
        return _drop_dropout(tokenizer, folder)
    except (InputError, PermissionError, MemoryError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the tokenizers library may panic
        raise InputError(
            f"the tokenizer in {folder} cannot be loaded ({shorten_error(error)}); put it into the folder "
            "(`tokenizer.save_pretrained`), or for a `repository` name the one that has it under `tokenizer` "
            "in the entry"
        ) from error


def list_tokenizer_names(folder: Path) -> list[str]:
    """List the files of a tokenizer in a folder."""
    return list_tokenizer_paths({file.name for file in folder.glob("*")}, "")


def run_within_time(call: Callable[[], Any], characters: int) -> Any:
    """Call a function that tokenises `characters` characters; InputError if it fails or does not end in time.

    A pattern in a tokenizer's files may backtrack over a text for ever, in code that cannot be interrupted. So the call
    runs in a thread that ends with the program.
    """
    seconds = LEAST_SECONDS + characters / CHARACTERS_PER_SECOND
    results: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:  # a panic of the tokenizers library is no Exception
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if errors and isinstance(errors[0], MemoryError):
        raise errors[0]
    if errors:
        raise InputError(
            f"the tokenizer cannot split the texts into tokens ({shorten_error(errors[0])}); {REMEDY}"
        ) from errors[0]
    if not results:
        raise InputError(
            f"the tokenizer did not split the texts into tokens within {seconds:.0f} seconds, perhaps because a "
            f"pattern backtracks without end; {REMEDY}"
        )
    return results[0]


def _drop_dropout(tokenizer: Any, folder: Path) -> Any:
    """Switch off the random dropping of merges, which is for trainings only, and log it."""
    model: Any = getattr(getattr(tokenizer, "backend_tokenizer", None), "model", None)
    if getattr(model, "dropout", None):
        logger.warning(
            "the tokenizer in %s drops merges at random (dropout %g); here it drops none",
            folder,
            model.dropout,
        )
        model.dropout = None
    return tokenizer


def _refuse_growth(file: Path) -> None:
    """Raise InputError if a ``tokenizer.json`` may lengthen a text by a large factor before splitting it."""
    if not file.is_file():
        return
    settings = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(settings, dict):
        return
    growth = 1.0
    for step in _list_steps([settings.get("normalizer"), settings.get("pre_tokenizer")]):
        content = step.get("content", step.get("prepend", ""))
        pattern = step.get("pattern")
        text = pattern.get("String") if isinstance(pattern, dict) else None
        # `ByteLevel` writes a byte as a character, which may have two bytes.
        if step.get("type") == "ByteLevel":
            growth *= 2
        elif isinstance(content, str):
            growth *= max(1.0, len(content) / max(1, len(text) if isinstance(text, str) else 1))
    if growth > MOST_GROWTH:
        raise InputError(
            f"{file} has steps before the model that may make a text {growth:,.0f} times as long; {REMEDY}"
        )


def _list_steps(parts: Any) -> Iterator[dict[str, Any]]:
    """Yield normalizers and pre-tokenizers, and the steps of sequences of them."""
    for part in parts if isinstance(parts, list) else []:
        if isinstance(part, dict):
            yield part
            yield from _list_steps(part.get("normalizers"))
            yield from _list_steps(part.get("pretokenizers"))
