"""Windows of text as a model sees them, and which of their tokens are kept."""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class TokenisedWindow:
    """One window.

    Attributes
    ----------
    ids : ndarray of int64, shape (length,)
        What the model sees, special tokens included.
    kept : ndarray of bool, shape (length,)
        The positions whose hidden states are stored.
    """

    ids: np.ndarray
    kept: np.ndarray


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
    for ids, special in zip(encoded["input_ids"], encoded["special_tokens_mask"], strict=True):
        kept = np.ones(len(ids), dtype=bool)
        if not keep_special_tokens:
            kept &= np.asarray(special) == 0
        if not keep_first_token:
            kept[:1] = False
        tokenised.append(TokenisedWindow(np.asarray(ids, dtype=np.int64), kept))
    return tokenised


def batches_by_length(windows: list[TokenisedWindow], size: int) -> list[np.ndarray]:
    """Group windows of similar length, so that little is padded.

    Returns
    -------
    list of ndarray of int64
        Window numbers, longest windows first, so that memory is exhausted at once or never.
    """
    order = np.argsort([-len(window.ids) for window in windows], kind="stable")
    return [order[start : start + size] for start in range(0, len(order), size)]
