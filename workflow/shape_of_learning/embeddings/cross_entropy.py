"""Cross-entropy of a language model on windows of text, which shows whether it knows anything."""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shape_of_learning.embeddings.tokenised_windows import TokenisedWindow
from shape_of_learning.random_streams import random_stream

if TYPE_CHECKING:
    import torch

    from shape_of_learning.embeddings.model import LanguageModelHead

logger = logging.getLogger(__name__)

# Devlin et al. 2019, section 3.1. Here all of them show the mask: there is nothing to train.
MASKED_SHARE = 0.15
# One block of float32 logits: 66 rows of BLOOM's 250,880, enough to keep a matrix product busy.
LOGITS_BYTES = 1 << 26


@dataclass(frozen=True)
class PredictedTokens:
    """What a model has to predict in one window.

    Attributes
    ----------
    shown : ndarray of int64, shape (length,)
        What the model sees.
    positions : ndarray of int64, shape (n,)
        Positions of the last hidden states from which the tokens are predicted.
    targets : ndarray of int64, shape (n,)
        The tokens.
    """

    shown: np.ndarray
    positions: np.ndarray
    targets: np.ndarray


def predicted_tokens(
    windows: Sequence[TokenisedWindow], role: str, vocabulary: int, mask: int | None, seed: int
) -> list[PredictedTokens] | None:
    """Choose what a head predicts in each window: a decoder's the next tokens, an encoder's masked ones.

    Returns None, and logs why, where the vocabulary has no mask.
    """
    if role == "decoder":
        return [next_tokens(window) for window in windows]
    # A tokenizer gives a mask token of its own a number, whether or not the model has a row for it.
    if mask is None or mask >= vocabulary:
        logger.info("the loss is undefined: the tokenizer has no mask token that the model knows")
        return None
    # No owner: all checkpoints of a model predict the same tokens.
    stream = random_stream(seed, "masked tokens")
    return [masked_tokens(window, mask, stream) for window in windows]


def next_tokens(window: TokenisedWindow) -> PredictedTokens:
    """Predict each token from those before it in the window; special tokens are not predicted."""
    predicted = np.flatnonzero(~window.special[1:]) + 1
    return PredictedTokens(window.ids, predicted - 1, window.ids[predicted])


def masked_tokens(
    window: TokenisedWindow, mask: int, random: np.random.Generator
) -> PredictedTokens:
    """Replace some tokens by `mask` and predict them from all the others.

    The share of :data:`MASKED_SHARE` of the tokens that are not special, at least one, is drawn
    without replacement.
    """
    ordinary = np.flatnonzero(~window.special)
    count = max(1, round(MASKED_SHARE * len(ordinary)))
    predicted = np.sort(random.permutation(ordinary)[:count])
    shown = window.ids.copy()
    shown[predicted] = mask
    return PredictedTokens(shown, predicted, window.ids[predicted])


def negative_log_likelihoods(
    states: "torch.Tensor", predicted: list[PredictedTokens], head: "LanguageModelHead", kind: type
) -> "torch.Tensor":
    """Sum the negative log-likelihoods of the predicted tokens of each window.

    Parameters
    ----------
    states : tensor, shape (rows, length, width)
        Last hidden states of the windows, in their order; further rows fill up.
    predicted : list of PredictedTokens
        What the head has to predict in each window.
    head : LanguageModelHead
        It is given rows in blocks of :data:`LOGITS_BYTES` of logits.
    kind : type
        Class of the base model's output.

    Returns
    -------
    tensor of float64, shape (windows,)
        In nats. Terms are formed in float32, whatever the precision of the logits, and added in
        float64. Infinity where a term is not finite.
    """
    import torch

    block = max(1, LOGITS_BYTES // (4 * head.vocabulary))
    sums = torch.zeros(len(predicted), dtype=torch.float64, device=states.device)
    for number, tokens in enumerate(predicted):
        rows = states[number, torch.from_numpy(tokens.positions).to(states.device)]
        targets = torch.from_numpy(tokens.targets)
        for part, wanted in zip(rows.split(block), targets.split(block), strict=True):
            scores = head.logits(part, kind).float()  # of a model on several devices, on the head's
            terms = torch.nn.functional.cross_entropy(
                scores, wanted.to(scores.device), reduction="none"
            )
            sums[number] += terms.double().sum().to(sums.device)
    return sums.nan_to_num(nan=math.inf, posinf=math.inf, neginf=math.inf)
