"""A checkpoint and the windows that it is run on: their hidden states, and its loss on them."""

import logging
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from shape_of_learning.checkpoints.losses import UNDEFINED, CrossEntropy
from shape_of_learning.embeddings.batch_run import BatchRun
from shape_of_learning.embeddings.cross_entropy import (
    PredictedTokens,
    masked_tokens,
    mean_over_windows,
    next_tokens,
)
from shape_of_learning.embeddings.forward_pass import ForwardPass
from shape_of_learning.embeddings.hidden_state_files import HiddenStateWriter
from shape_of_learning.embeddings.tokenisation import TokenisedWindow, load_tokenizer, tokenise
from shape_of_learning.errors import InputError

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SampleProtocol:
    """Every choice that the hidden states depend on besides checkpoint and text.

    Attributes
    ----------
    batch_size : int or None
        None to choose by free memory; see :meth:`BatchRun.write`.
    dtype : str
        ``"float32"`` or ``"float16"``, of what is stored or measured; the forward pass has its `precision`.
    """

    keep_special_tokens: bool = True
    keep_first_token: bool = True
    precision: str = "float32"
    last_layer: str = "after_final_norm"
    batch_size: int | None = None
    dtype: str = "float32"


@dataclass(frozen=True)
class SampleRun:
    """Tokenised windows, and the loaded model that they go through.

    Attributes
    ----------
    batches : BatchRun
        How they go.
    protocol : SampleProtocol
        How the windows are run.
    """

    batches: BatchRun
    protocol: SampleProtocol

    @classmethod
    def load(
        cls,
        checkpoint: Path,
        windows: list[str],
        *,
        role: str,
        widths: list[int],
        protocol: SampleProtocol,
        masking: np.random.Generator,
        threads: int = 1,
        device: "torch.device | None" = None,
    ) -> "SampleRun":
        """Load a checkpoint and tokenise the windows.

        Parameters
        ----------
        checkpoint : Path
            Folder in Hugging Face format, with its tokenizer.
        windows : list of str
            Texts, each tokenised and run alone; their tokens are stored in this order.
        role : {"decoder", "encoder"}
            Whether its loss is that of the next token or of masked tokens.
        widths : list of int, length L + 1
            Width that each hidden state must have.
        protocol : SampleProtocol
            How the windows are run.
        masking : numpy.random.Generator
            Draws the tokens that an encoder has to predict; the same for all that are compared.
        threads : int
            Batches that are computed at the same time on a CPU, one thread each, so that the numbers
            do not depend on it.
        device : torch.device, optional
            By default the first GPU, or the CPU where there is none.

        Raises
        ------
        InputError
            If the windows are longer than the model's context, or the checkpoint cannot be loaded.
        """
        tokenizer = load_tokenizer(checkpoint)
        tokenised = tokenise(
            tokenizer,
            windows,
            keep_special_tokens=protocol.keep_special_tokens,
            keep_first_token=protocol.keep_first_token,
        )
        forward = ForwardPass.load(
            checkpoint,
            role=role,
            precision=protocol.precision,
            last_layer=protocol.last_layer,
            device=device,
        )
        longest, context = max(len(window.ids) for window in tokenised), forward.context()
        if context is not None and longest > context:
            raise InputError(
                f"a window has {longest} tokens, but the model in {checkpoint} was made for {context}; "
                "lower `sampling.window_characters`"
            )
        predicted = _predicted(forward, role, tokenised, tokenizer.mask_token_id, masking)
        padding = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0
        return cls(
            BatchRun(forward, str(checkpoint), tokenised, predicted, padding, widths, threads),
            protocol,
        )

    @property
    def token_ids(self) -> np.ndarray:
        """Vocabulary entry of each row, int64."""
        return np.concatenate([window.ids[window.kept] for window in self.batches.windows])

    @property
    def positions(self) -> np.ndarray:
        """Position of each row within its window, int64."""
        return np.concatenate([np.flatnonzero(window.kept) for window in self.batches.windows])

    def into(self, store: HiddenStateWriter) -> CrossEntropy:
        """Run all windows and store their hidden states.

        Returns
        -------
        CrossEntropy
            Of the checkpoint on all windows, whichever of their tokens are stored; the store is told the
            loss, too.

        Raises
        ------
        InputError
            If memory is too small, if the model's layers are not as `widths` says, or if a hidden state
            cannot be stored as `protocol.dtype`. One that is NaN or infinite is stored: the loss is then
            infinite.
        """
        loss = self.cross_entropy(self.batches.write(store, self.protocol.batch_size))
        store.describe({"loss": loss.loss})
        return loss

    def cross_entropy(self, likelihoods: np.ndarray) -> CrossEntropy:
        """Return the mean over all windows of what :attr:`batches` gives when it has run."""
        loss = self._mean(likelihoods)
        # Whatever the head makes of it.
        return replace(loss, loss=math.inf) if self.batches.overflowed else loss

    def _mean(self, likelihoods: np.ndarray) -> CrossEntropy:
        predicted = self.batches.predicted
        if predicted is None:
            return UNDEFINED
        count = sum(len(tokens.targets) for tokens in predicted)
        if count == 0:
            logger.info("the loss is undefined: no window has a token to predict")
        return mean_over_windows(likelihoods, count, self.batches.forward.head.vocabulary)


def _predicted(
    forward: ForwardPass,
    role: str,
    windows: list[TokenisedWindow],
    mask: int | None,
    masking: np.random.Generator,
) -> list[PredictedTokens] | None:
    """Choose what is predicted in each window; None, and why in the log, where nothing can be."""
    if forward.head is None:
        return None
    if role == "decoder":
        return [next_tokens(window) for window in windows]
    # A tokenizer gives a mask token of its own a number, whether or not the model has a row for it.
    if mask is None or mask >= forward.head.vocabulary:
        logger.info("the loss is undefined: the tokenizer has no mask token that the model knows")
        return None
    return [masked_tokens(window, mask, masking) for window in windows]
