"""Hidden states of all layers of one checkpoint on sampled windows of text, and its loss on them."""

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shape_of_learning.embeddings.batch_run import BatchRun
from shape_of_learning.embeddings.cross_entropy import (
    PredictedTokens,
    masked_tokens,
    mean_over_windows,
    next_tokens,
)
from shape_of_learning.embeddings.forward_pass import ForwardPass
from shape_of_learning.embeddings.hidden_state_files import HiddenStateWriter, file_bytes
from shape_of_learning.embeddings.losses import UNDEFINED, CrossEntropy
from shape_of_learning.embeddings.tokenisation import TokenisedWindow, load_tokenizer, tokenise
from shape_of_learning.errors import InputError
from shape_of_learning.files import require_space, written_beside

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class DumpProtocol:
    """Every choice that the hidden states depend on besides checkpoint and text.

    Attributes
    ----------
    batch_size : int or None
        None to choose by free memory; see :meth:`BatchRun.write`.
    dtype : str
        ``"float32"`` or ``"float16"``, of what is stored; the forward pass has its `precision`.
    """

    keep_special_tokens: bool = True
    keep_first_token: bool = True
    precision: str = "float32"
    last_layer: str = "after_final_norm"
    batch_size: int | None = None
    dtype: str = "float32"


def dump_embeddings(
    checkpoint: Path,
    windows: list[str],
    destination: Path,
    *,
    role: str,
    widths: list[int],
    protocol: DumpProtocol,
    masking: np.random.Generator,
    attributes: Mapping[str, Any],
    threads: int = 1,
    device: "torch.device | None" = None,
) -> tuple[int, CrossEntropy]:
    """Run the windows through the checkpoint and write one file per layer.

    Parameters
    ----------
    checkpoint : Path
        Folder in Hugging Face format, with its tokenizer.
    windows : list of str
        Texts, each tokenised and run alone; their tokens are stored in this order.
    destination : Path
        Folder that receives ``layer_0.h5`` (embedding output) to ``layer_L.h5``.
    role : {"decoder", "encoder"}
        Whether its loss is that of the next token or of masked tokens.
    widths : list of int, length L + 1
        Width that each hidden state must have.
    protocol : DumpProtocol
        How the windows are run.
    masking : numpy.random.Generator
        Draws the tokens that an encoder has to predict; the same for all that are compared.
    attributes : mapping
        Where the data come from, stored in every file beside the `loss`.
    threads : int
        Batches that are computed at the same time on a CPU, one thread each, so that the numbers do
        not depend on it.
    device : torch.device, optional
        By default the first GPU, or the CPU where there is none.

    Returns
    -------
    tokens : int
        Number of tokens stored.
    cross_entropy : CrossEntropy
        Of the checkpoint on all windows, whichever of their tokens are stored.

    Raises
    ------
    InputError
        If the windows are longer than the model's context, if the disk or memory is too small, if
        the model's layers are not as `widths` says, or if a hidden state cannot be stored as
        `protocol.dtype`. One that is NaN or infinite is stored: the loss is then infinite.
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
    run = BatchRun(forward, str(checkpoint), tokenised, predicted, padding, widths, threads)
    dtype = np.dtype(protocol.dtype)
    require_space(destination, sum(file_bytes(run.tokens, width, dtype) for width in widths))
    with written_beside(destination) as folder:
        folder.mkdir()
        writer = HiddenStateWriter(
            folder,
            widths,
            np.concatenate([window.ids[window.kept] for window in tokenised]),
            np.concatenate([np.flatnonzero(window.kept) for window in tokenised]),
            attributes,
            protocol.dtype,
        )
        try:
            likelihoods = run.write(writer, protocol.batch_size)
            cross_entropy = _cross_entropy(forward, predicted, likelihoods)
            if run.overflowed:  # whatever the head makes of it
                cross_entropy = replace(cross_entropy, loss=math.inf)
            writer.describe({"loss": cross_entropy.loss})
        finally:
            writer.close()
    return run.tokens, cross_entropy


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


def _cross_entropy(
    forward: ForwardPass, predicted: list[PredictedTokens] | None, likelihoods: np.ndarray
) -> CrossEntropy:
    if predicted is None:
        return UNDEFINED
    count = sum(len(tokens.targets) for tokens in predicted)
    if count == 0:
        logger.info("the loss is undefined: no window has a token to predict")
    return mean_over_windows(likelihoods, count, forward.head.vocabulary)
