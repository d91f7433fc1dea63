"""A checkpoint and the windows that it is run on: their hidden states, and its loss on them."""

import logging
import math
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from shape_of_learning.checkpoints.losses import UNDEFINED, CrossEntropy
from shape_of_learning.checkpoints.shapes import (
    Shape,
    read_configuration_file,
    refuse_contradiction,
    shape_of,
)
from shape_of_learning.corpus.windows import read_text, sample_windows
from shape_of_learning.embeddings.cross_entropy import (
    PredictedTokens,
    masked_tokens,
    mean_over_windows,
    next_tokens,
)
from shape_of_learning.embeddings.forward_pass import ComputedWindowBatch, ForwardPass
from shape_of_learning.embeddings.loading import read_config
from shape_of_learning.embeddings.memory import memory_is_exhausted
from shape_of_learning.embeddings.tokenisation import TokenisedWindow, load_tokenizer, tokenise
from shape_of_learning.embeddings.window_batch_size import automatic_window_batch_size
from shape_of_learning.embeddings.window_batches import (
    WindowBatch,
    window_batches_by_length,
    window_batches_of_equal_work,
)
from shape_of_learning.errors import InputError
from shape_of_learning.estimators.arrays import is_finite
from shape_of_learning.random_streams import random_stream
from shape_of_learning.script_arguments.protocol import SamplingProtocol

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)


class HiddenStateStore(Protocol):
    """Where hidden states go: files, or memory.

    Attributes
    ----------
    device : str or torch.device
        Where it takes them from: a GPU only if it keeps them there.
    """

    @property
    def device(self) -> "str | torch.device":
        """As above."""

    def write(self, state: int, rows: slice, values: Any) -> None:
        """Store `values`, float32 of shape (rows, width); where memory was exhausted, once more."""

    def describe(self, attributes: Mapping[str, Any]) -> None:
        """Take note of what is known only once all is computed."""


@dataclass(frozen=True)
class SampleRun:
    """Tokenised windows, and the loaded model that they go through.

    Attributes
    ----------
    forward : ForwardPass
        The model.
    name : str
        How messages call it.
    windows : list of TokenisedWindow
        All of them; their tokens are stored in this order.
    predicted : list of PredictedTokens or None
        What the head has to predict in each.
    padding : int
        Token that fills up short windows.
    widths : list of int, length L + 1 or L + 2
        Width that each hidden state must have.
    threads : int
        Window batches that are computed at the same time on a CPU, one thread each, so that the numbers do
        not depend on it.
    window_batch_size : int or None
        Windows that go through the model together at first; None to choose by free memory. Where memory is
        exhausted, all are run again with half as many, so that on a GPU window batches are still of equal
        work.
    before_final_norm : bool
        Whether the last of the hidden states is that before the final norm, beside the one after it.
    overflowed : set of int
        Those whose hidden states, as far as they are computed, hold NaN or infinity.
    """

    forward: ForwardPass
    name: str
    windows: list[TokenisedWindow]
    predicted: list[PredictedTokens] | None
    padding: int
    widths: list[int]
    threads: int = 1
    window_batch_size: int | None = None
    before_final_norm: bool = False
    overflowed: set[int] = field(default_factory=set, init=False)

    @staticmethod
    def load(
        checkpoint: Path,
        windows: Sequence[str | tuple[str, str]],
        protocol: SamplingProtocol,
        shape: Mapping[str, Any],
        *,
        threads: int = 1,
        window_batch_size: int | None = None,
        device: "torch.device | None" = None,
        in_memory: bool = False,
    ) -> "SampleRun":
        """Load a checkpoint and tokenise the windows.

        Parameters
        ----------
        checkpoint : Path
            Folder in Hugging Face format, with its tokenizer.
        windows : sequence of str, or of pairs of them
            Texts, each or each pair tokenised and run alone.
        protocol : SamplingProtocol
            How they are run.
        shape : mapping
            What the checkpoint must be: fields of :class:`.Shape`.
        threads, window_batch_size
            As above.
        device : torch.device, optional
            By default the first GPU, or the CPU where there is none.
        in_memory : bool
            Whether all hidden states are to be kept in memory, which must then have room for them.

        Raises
        ------
        InputError
            If the checkpoint is not of that shape, the windows are longer than the model's context or have
            tokens that it does not know, memory is too small, or the checkpoint cannot be loaded.
        """
        name, entry = str(checkpoint), Shape(**shape)
        refuse_contradiction(entry, shape_of(read_configuration_file(checkpoint), name), name)
        widths = [entry.hidden_size] * entry.layers + [entry.last_hidden_size]
        both = protocol.last_layer == "both"
        read_config(checkpoint)  # which the library wants for a tokenizer, too, and does not say so
        tokenizer = load_tokenizer(checkpoint)
        tokenised = tokenise(tokenizer, windows)
        tokens = sum(len(window.ids) for window in tokenised)
        forward = ForwardPass.load(
            checkpoint,
            role=entry.role,
            precision=protocol.precision,
            last_layer=protocol.last_layer,
            device=device,
            beside=4 * tokens * sum(widths + both * widths[:1]) if in_memory else 0,
        )
        if both:
            widths.append(entry.hidden_size if forward.has_final_norm else entry.last_hidden_size)
        longest, context = max(len(window.ids) for window in tokenised), forward.context()
        if context is not None and longest > context:
            raise InputError(
                f"a window has {longest} tokens, but the model in {checkpoint} was made for {context}; "
                "lower `sampling.window_characters`, or of a task leave out texts that are longer"
            )
        highest, known = (
            max(window.ids.max(initial=0) for window in tokenised),
            forward.vocabulary(),
        )
        if known is not None and highest >= known:
            raise InputError(
                f"the tokenizer in {checkpoint} gives token {highest}, but the model there has embeddings "
                f"for {known} tokens; put its own tokenizer into the folder, or for a `repository` name the "
                "one that has it under `tokenizer` in the entry"
            )
        return SampleRun(
            forward,
            name,
            tokenised,
            _predicted(forward, entry.role, tokenised, tokenizer.mask_token_id, protocol.seed),
            tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0,
            widths,
            threads,
            window_batch_size,
            both,
        )

    @cached_property
    def rows(self) -> dict[str, np.ndarray]:
        """What each row of a layer is, arrays of shape (tokens,).

        `token_ids`, its entry in the vocabulary, `positions`, where it is in its window, and `windows`, the
        number of that, are int64; `special`, whether it is a special token, is bool.
        """
        lengths = [len(window.ids) for window in self.windows]
        return {
            "token_ids": np.concatenate([window.ids for window in self.windows]),
            "positions": np.concatenate([np.arange(length) for length in lengths]),
            "windows": np.repeat(np.arange(len(lengths)), lengths),
            "special": np.concatenate([window.special for window in self.windows]),
        }

    @property
    def tokens(self) -> int:
        """Number of rows that each layer has."""
        return len(self.rows["windows"])

    def into(self, store: HiddenStateStore) -> CrossEntropy:
        """Run all windows and store the hidden states of all tokens.

        Returns
        -------
        CrossEntropy
            Of the checkpoint on all windows; the store is told the loss, too.

        Raises
        ------
        InputError
            If one window alone exhausts memory, or the model's layers are not as `widths` says. A hidden
            state that is NaN or infinite is stored: the loss is then infinite.
        """
        longest = max(len(window.ids) for window in self.windows)
        first = self.window_batch_size or automatic_window_batch_size(self.forward, longest)
        size = min(first, len(self.windows))
        while size >= 1:
            try:
                loss = self._cross_entropy(self._store_all(store, size))
                store.describe(
                    {
                        "loss": loss.loss,
                        "window_batch_size": size,
                        "device": self.forward.device_name(),
                    }
                )
                return loss
            except Exception as error:
                if not memory_is_exhausted(error):
                    raise
                reason = " ".join(str(error).split())[:200]
            # Only here is the error gone, and with it what its frames held in memory.
            self.forward.release_memory()
            logger.info("memory is exhausted by %d windows at a time (%s)", size, reason)
            size //= 2
        raise InputError(
            f"memory of the {self.forward.device.type.upper()} is exhausted by one window of "
            f"{longest} tokens through the model in {self.name} ({reason}); give the job more, set "
            "`precision: bfloat16` in the model's entry or lower `sampling.window_characters`"
        )

    def _store_all(self, store: HiddenStateStore, size: int) -> np.ndarray:
        """Run all windows; negative log-likelihood of each one's predicted tokens, zeros without any."""
        on_cpu = self.forward.device.type == "cpu"
        join = window_batches_by_length if on_cpu else window_batches_of_equal_work
        batches = join(self.windows, size, self.forward.context())
        likelihoods, number = np.zeros(len(self.windows)), 0
        with closing(self._in_flight(batches, store.device)) as results:
            for batch, computed in results:
                self._store(batch, computed, store)
                if computed.sums is not None:
                    likelihoods[batch.windows] = computed.sums.values()
                number += 1
                logger.info("%s: window batch %d of %d", self.name, number, len(batches))
                del computed  # gives its memory to the one after next
        return likelihoods

    def _in_flight(
        self, batches: list[WindowBatch], destination: "str | torch.device"
    ) -> Generator[tuple[WindowBatch, ComputedWindowBatch], None, None]:
        """Yield what each window batch gives, in order, while the next ones are computed."""
        # On a GPU one thread queues the work, so that it is done in order.
        workers = self.threads if self.forward.device.type == "cpu" else 1
        with ThreadPoolExecutor(workers) as pool:
            # One more than there are workers: they compute while this thread writes.
            pending: deque[tuple[WindowBatch, Future]] = deque()
            try:
                for batch in batches:
                    if len(pending) > workers:
                        done, future = pending.popleft()
                        yield done, future.result()
                        del future
                    pending.append((batch, pool.submit(self._compute, batch, destination)))
                while pending:
                    done, future = pending.popleft()
                    yield done, future.result()
                    del future
            finally:
                for _, future in pending:
                    future.cancel()

    def _compute(
        self, batch: WindowBatch, destination: "str | torch.device"
    ) -> ComputedWindowBatch:
        windows = [self.windows[number] for number in batch.windows]
        predicted = self.predicted and [self.predicted[number] for number in batch.windows]
        return self.forward.hidden_states(
            windows, self.padding, predicted, batch.shape, destination
        )

    def _store(
        self, batch: WindowBatch, computed: ComputedWindowBatch, store: HiddenStateStore
    ) -> None:
        widths = [state.width for state in computed.states]
        if widths != self.widths:
            raise InputError(
                f"the hidden states of the model in {self.name} have the widths {widths}, but its entry says "
                f"{self.widths}; correct `layers`, `hidden_size` or `last_hidden_size` in config/models"
            )
        for layer in range(len(widths)):
            for number, values in zip(batch.windows, computed.rows(layer), strict=True):
                if layer not in self.overflowed and not is_finite(values):
                    self.overflowed.add(layer)
                    logger.warning(
                        "hidden state %d of the model in %s holds NaN or infinity: the checkpoint is broken, "
                        "or needs `precision: float32` in its entry",
                        layer,
                        self.name,
                    )
                start = self._starts[number]
                store.write(layer, slice(start, start + len(values)), values)

    @cached_property
    def _starts(self) -> list[int]:
        """The first row of each window."""
        return np.flatnonzero(self.rows["positions"] == 0).tolist()

    def _cross_entropy(self, likelihoods: np.ndarray) -> CrossEntropy:
        """Return the mean over all windows."""
        if self.predicted is None:
            loss = UNDEFINED
        else:
            count = sum(len(tokens.targets) for tokens in self.predicted)
            if count == 0:
                logger.info("the loss is undefined: no window has a token to predict")
            assert self.forward.head is not None  # else nothing is predicted
            loss = mean_over_windows(likelihoods, count, self.forward.head.vocabulary)
        # Whatever the head makes of what overflowed.
        return replace(loss, loss=math.inf) if self.overflowed else loss


def draw_windows(text: Path, protocol: SamplingProtocol) -> list[str]:
    """Draw the windows: all models see the same ones, so that their curves are paired.

    Raises
    ------
    InputError
        If the text is too short, or none.
    """
    stream = random_stream(protocol.seed, "windows")
    return sample_windows(
        read_text(text), protocol.windows, protocol.window_characters, stream, corpus=text
    )


def _predicted(
    forward: ForwardPass, role: str, windows: list[TokenisedWindow], mask: int | None, seed: int
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
    # No owner: all checkpoints of a model predict the same tokens.
    stream = random_stream(seed, "masked tokens")
    return [masked_tokens(window, mask, stream) for window in windows]
