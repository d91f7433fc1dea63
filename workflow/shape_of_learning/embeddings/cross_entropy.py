"""Cross-entropy of a language model on windows of text, which shows whether it knows anything."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shape_of_learning.checkpoints.losses import UNDEFINED, CrossEntropy
from shape_of_learning.embeddings.tokenisation import TokenisedWindow

if TYPE_CHECKING:
    import torch

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


def negative_log_likelihood(
    logits: Callable[["torch.Tensor"], "torch.Tensor"],
    rows: "torch.Tensor",
    targets: np.ndarray,
    vocabulary: int,
) -> "torch.Tensor":
    """Sum the negative log-likelihood of one window's predicted tokens.

    Parameters
    ----------
    logits : callable
        From a block of rows, shape (m, width), to their logits, shape (m, vocabulary).
    rows : tensor, shape (n, width)
        Last hidden states.
    targets : ndarray of int64, shape (n,)
        The tokens predicted from them.
    vocabulary : int
        Width of the logits, by which the rows are cut into blocks of :data:`LOGITS_BYTES`.

    Returns
    -------
    tensor of float64, shape ()
        In nats. Terms are formed in float32, whatever the precision of the logits, and added in
        float64. Infinity if a term is not finite. It stays on the device, where it may not be
        computed yet: to read it is to wait for it.
    """
    import torch

    block = max(1, LOGITS_BYTES // (4 * vocabulary))
    total = torch.zeros((), dtype=torch.float64, device=rows.device)
    for part, wanted in zip(rows.split(block), torch.from_numpy(targets).split(block), strict=True):
        scores = logits(part).float()  # of a model on several devices, on the head's
        wanted = wanted.to(scores.device, non_blocking=True)
        terms = torch.nn.functional.cross_entropy(scores, wanted, reduction="none")
        total += terms.double().sum().to(total.device)
    return total.nan_to_num(nan=math.inf, posinf=math.inf, neginf=math.inf)


def mean_over_windows(sums: np.ndarray, predicted_tokens: int, vocabulary: int) -> CrossEntropy:
    """Join the sums of all windows, float64 of shape (windows,), in their order."""
    if predicted_tokens == 0:
        return UNDEFINED
    return CrossEntropy(float(sums.sum()) / predicted_tokens, predicted_tokens, vocabulary)
