"""Windows of text as a model sees them, and which of their tokens are kept."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shape_of_learning.checkpoints.checkpoint_files import CONFIGURATION, tokenizer_files
from shape_of_learning.errors import InputError


@dataclass(frozen=True)
class TokenisedWindow:
    """One window.

    Attributes
    ----------
    ids : ndarray of int64, shape (length,)
        What the model sees, special tokens included.
    kept : ndarray of bool, shape (length,)
        The positions whose hidden states are stored.
    special : ndarray of bool, shape (length,)
        The positions of special tokens, which no text asks for.
    """

    ids: np.ndarray
    kept: np.ndarray
    special: np.ndarray


def load_tokenizer(folder: Path) -> Any:
    """Load the tokenizer of a checkpoint; code in the folder is never run.

    Raises
    ------
    InputError
        If the folder is no checkpoint or its tokenizer cannot be read.
    """
    from transformers import AutoTokenizer

    names = {file.name for file in folder.glob("*")}
    if CONFIGURATION not in names:
        raise InputError(f"{folder} has no {CONFIGURATION}, so it is no checkpoint; fetch it anew")
    try:
        # Without a vocabulary the library makes up a tokenizer that knows no word.
        if not tokenizer_files(names):
            raise ValueError("there is no file of a vocabulary")
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            f"the tokenizer in {folder} cannot be loaded ({' '.join(str(error).split())[:300]}); put "
            "it into the folder, or name the repository that has it under `tokenizer` in the entry"
        ) from error


def tokenise(
    tokenizer: Any, windows: list[str], *, keep_special_tokens: bool, keep_first_token: bool
) -> list[TokenisedWindow]:
    """Tokenise each window alone, with the tokenizer's special tokens (the authors' protocol).

    Parameters
    ----------
    tokenizer : transformers.PreTrainedTokenizerBase
        The checkpoint's own.
    windows : list of str
        Text.
    keep_special_tokens : bool
        Whether the hidden states at special tokens are stored. The model sees them either way.
    keep_first_token : bool
        Whether that of the first token of each window is. It is the same vector in every window for
        a causal model that starts with a special token, and often a huge one (an attention sink).
    """
    encoded = tokenizer(
        windows, add_special_tokens=True, return_special_tokens_mask=True, verbose=False
    )
    tokenised = []
    for ids, mask in zip(encoded["input_ids"], encoded["special_tokens_mask"], strict=True):
        special = np.asarray(mask, dtype=bool)
        kept = np.ones(len(ids), dtype=bool)
        if not keep_special_tokens:
            kept &= ~special
        if not keep_first_token:
            kept[:1] = False
        tokenised.append(TokenisedWindow(np.asarray(ids, dtype=np.int64), kept, special))
    return tokenised
