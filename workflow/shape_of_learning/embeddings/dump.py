"""Hidden states of all layers of one checkpoint on sampled windows of text, and its loss on them."""

import logging
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shape_of_learning.embeddings.cross_entropy import (
    PredictedTokens,
    masked_tokens,
    mean_over_windows,
    next_tokens,
)
from shape_of_learning.embeddings.forward_pass import ForwardPass
from shape_of_learning.embeddings.hidden_state_files import HiddenStateWriter
from shape_of_learning.embeddings.losses import UNDEFINED, CrossEntropy
from shape_of_learning.embeddings.tokenisation import (
    TokenisedWindow,
    batches_by_length,
    load_tokenizer,
    tokenise,
)
from shape_of_learning.errors import InputError
from shape_of_learning.files import require_space, written_beside

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class DumpProtocol:
    """Every choice that the hidden states depend on besides checkpoint and text."""

    keep_special_tokens: bool = True
    keep_first_token: bool = True
    precision: str = "float32"
    last_layer: str = "after_final_norm"
    batch_size: int = 16


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

    Returns
    -------
    tokens : int
        Number of tokens stored.
    cross_entropy : CrossEntropy
        Of the checkpoint on all windows, whichever of their tokens are stored.

    Raises
    ------
    InputError
        If the windows are longer than the model's context, if the model's layers are not
        as `widths` says, if a hidden state is NaN or infinite, or if the disk is too full.
    """
    tokenizer = load_tokenizer(checkpoint)
    tokenised = tokenise(
        tokenizer,
        windows,
        keep_special_tokens=protocol.keep_special_tokens,
        keep_first_token=protocol.keep_first_token,
    )
    lengths = np.array([int(window.kept.sum()) for window in tokenised])
    forward = ForwardPass(
        checkpoint, role=role, precision=protocol.precision, last_layer=protocol.last_layer
    )
    longest, context = max(len(window.ids) for window in tokenised), forward.context()
    if context is not None and longest > context:
        raise InputError(
            f"a window has {longest} tokens, but the model in {checkpoint} was made for {context}; "
            "lower `sampling.window_characters`"
        )
    predicted = _predicted(forward, role, tokenised, tokenizer.mask_token_id, masking)
    likelihoods = np.zeros(len(windows))
    starts = np.concatenate([[0], np.cumsum(lengths)])
    # HDF5 can crash on a full disk. Each row is its float32 values, its token and its position.
    row_bytes = sum(4 * width + 16 for width in widths)
    require_space(destination, int(lengths.sum()) * row_bytes)
    with written_beside(destination) as folder:
        folder.mkdir()
        writer = HiddenStateWriter(
            folder,
            widths,
            np.concatenate([window.ids[window.kept] for window in tokenised]),
            np.concatenate([np.flatnonzero(window.kept) for window in tokenised]),
            attributes,
        )
        try:
            padding = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0
            batches = batches_by_length(tokenised, protocol.batch_size)
            for done, (numbers, (states, of_windows)) in enumerate(
                _forward(forward, tokenised, predicted, batches, padding, threads), start=1
            ):
                _check(states, widths, checkpoint)
                if predicted is not None:
                    likelihoods[numbers] = of_windows
                for layer, rows_of_windows in enumerate(states):
                    for number, rows in zip(numbers, rows_of_windows, strict=True):
                        writer.write(layer, slice(starts[number], starts[number + 1]), rows)
                logger.info("%s: batch %d of %d", checkpoint, done, len(batches))
            cross_entropy = _cross_entropy(forward, predicted, likelihoods)
            writer.describe({"loss": cross_entropy.loss})
        finally:
            writer.close()
    return int(lengths.sum()), cross_entropy


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


def _forward(
    forward: ForwardPass,
    windows: list[TokenisedWindow],
    predicted: list[PredictedTokens] | None,
    batches: list[np.ndarray],
    padding: int,
    threads: int,
) -> Iterator[tuple[np.ndarray, tuple[list[list[np.ndarray]], list[float]]]]:
    """Yield what each batch gives, in order, while the next ones are computed."""
    workers = threads if forward.device.type == "cpu" else 1
    with ThreadPoolExecutor(workers) as pool:
        # One batch more than there are workers: they compute while this thread writes.
        pending: deque[tuple[np.ndarray, Future]] = deque()
        try:
            for numbers in batches:
                if len(pending) > workers:
                    done, future = pending.popleft()
                    yield done, future.result()
                batch = [windows[number] for number in numbers]
                wanted = None if predicted is None else [predicted[number] for number in numbers]
                future = pool.submit(forward.hidden_states, batch, padding, wanted)
                pending.append((numbers, future))
            for done, future in pending:
                yield done, future.result()
        finally:
            for _, future in pending:
                future.cancel()


def _check(states: list[list[np.ndarray]], widths: list[int], checkpoint: Path) -> None:
    if len(states) != len(widths):
        raise InputError(
            f"the model in {checkpoint} has {len(states) - 1} layers, but its entry says "
            f"{len(widths) - 1}; correct `layers` in config/models"
        )
    for layer, (rows_of_windows, width) in enumerate(zip(states, widths, strict=True)):
        for rows in rows_of_windows:
            if rows.shape[1] != width:
                raise InputError(
                    f"hidden state {layer} of the model in {checkpoint} has width {rows.shape[1]}, "
                    f"but its entry says {width}; correct `hidden_size` or `last_hidden_size` in "
                    "config/models"
                )
            if not np.isfinite(rows).all():
                raise InputError(
                    f"hidden state {layer} of the model in {checkpoint} holds NaN or infinity; the "
                    "checkpoint is broken, or `precision: float32` is needed in its entry"
                )
