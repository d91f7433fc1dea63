"""Windows of text as a model sees them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shape_of_learning.checkpoints.shapes import tokenizer_paths
from shape_of_learning.errors import InputError


@dataclass(frozen=True)
class TokenisedWindow:
    """One window.

    Attributes
    ----------
    ids : ndarray of int64, shape (length,)
        What the model sees, special tokens included.
    special : ndarray of bool, shape (length,)
        The positions of special tokens, which no text asks for.
    segments : ndarray of int64, shape (length,), or None
        Of a pair of texts: the segment that each token is in, for models that tell segments apart.
    second : ndarray of bool, shape (length,), or None
        Of a pair of texts: which tokens are of the second one.
    """

    ids: np.ndarray
    special: np.ndarray
    segments: np.ndarray | None = None
    second: np.ndarray | None = None


def load_tokenizer(folder: Path) -> Any:
    """Load the tokenizer of a checkpoint; code in the folder is never run.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    from transformers import AutoTokenizer

    try:
        # Without a vocabulary the library makes up a tokenizer that knows no word.
        if not tokenizer_paths({file.name for file in folder.glob("*")}, ""):
            raise ValueError("there is no file of a vocabulary")
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # its files go into the code of all tokenizers
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        raise InputError(
            f"the tokenizer in {folder} cannot be loaded ({reason}); put it into the folder "
            "(`tokenizer.save_pretrained`), or for a `repository` name the one that has it under `tokenizer` "
            "in the entry"
        ) from error


def tokenise(tokenizer: Any, windows: Sequence[str | tuple[str, str]]) -> list[TokenisedWindow]:
    """Tokenise each window alone, with the tokenizer's special tokens (the authors' protocol).

    Parameters
    ----------
    tokenizer : transformers.PreTrainedTokenizerBase
        The checkpoint's own.
    windows : sequence of str, or of pairs of them
        Text. A pair goes through a model together, joined as its tokenizer joins two texts.
    """
    if windows and not isinstance(windows[0], str):
        return _tokenise_pairs(tokenizer, windows)
    encoded = tokenizer(
        windows, add_special_tokens=True, return_special_tokens_mask=True, verbose=False
    )
    return [
        TokenisedWindow(np.asarray(ids, dtype=np.int64), np.asarray(special, dtype=bool))
        for ids, special in zip(encoded["input_ids"], encoded["special_tokens_mask"], strict=True)
    ]


def _tokenise_pairs(tokenizer: Any, pairs: Sequence[Any]) -> list[TokenisedWindow]:
    firsts, seconds = map(list, zip(*pairs, strict=True))
    encoded = tokenizer(
        firsts,
        seconds,
        add_special_tokens=True,
        return_special_tokens_mask=True,
        return_token_type_ids=True,
        verbose=False,
    )
    return [
        TokenisedWindow(
            np.asarray(encoded["input_ids"][row], dtype=np.int64),
            np.asarray(encoded["special_tokens_mask"][row], dtype=bool),
            np.asarray(encoded["token_type_ids"][row], dtype=np.int64),
            np.array([text == 1 for text in encoded.sequence_ids(row)]),
        )
        for row in range(len(pairs))
    ]
