"""A checkpoint and the windows that it is run on: their hidden states, also in memory, and its loss on them."""

import gc
import logging
import math
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from shape_of_learning.checkpoints.shapes import Shape
from shape_of_learning.checkpoints.weight_evidence import UNDEFINED, CrossEntropy
from shape_of_learning.embeddings.forward_pass import ForwardPass
from shape_of_learning.embeddings.model import (
    choose_device,
    is_memory_exhausted,
    load_model,
    read_config,
    require_memory,
)
from shape_of_learning.embeddings.protocol import SamplingProtocol
from shape_of_learning.embeddings.tokenised_windows import (
    PredictedTokens,
    TokenisedWindow,
    WindowBatch,
    batch_alone,
    batch_by_length,
    batch_by_work,
    choose_predicted_tokens,
    round_up,
    tokenise,
)
from shape_of_learning.embeddings.tokenizers import load_tokenizer
from shape_of_learning.errors import InputError
from shape_of_learning.estimators.arrays import is_finite

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)

# More gain nothing on a CPU, where each window batch has one thread.
WINDOWS_ON_A_CPU = 16
# Of a GPU's free memory beside the weights; the rest is for window batches, and a measurement needs no more
# than what the weights leave behind.
SHARE_OF_FREE_MEMORY = 0.5
# Some thousand rows keep all multiprocessors busy in every matrix product. More would only fill
# host memory: all layers of two window batches wait there to be written, 4.4 GB for Llama-2-7B.
TOKENS_ON_A_GPU = 4096


class HiddenStateStore(Protocol):
    """Where hidden states go: files, or memory.

    Attributes
    ----------
    device : str or torch.device
        Where it takes them from: a GPU only if it keeps them there.
    """

    @property
    def device(self) -> Any:
        """As above."""

    def write(self, state: int, rows: slice, values: Any) -> None:
        """Store one window's `values`, float32 of shape (rows, width); again if memory was exhausted."""


@dataclass(frozen=True)
class NullStore:
    """A store that keeps no hidden states, for a run that is wanted for its loss, or for its other ranks."""

    device: "torch.device | str" = "cpu"

    def write(self, state: int, rows: slice, values: Any) -> None:
        """Keep nothing."""


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
    layers : int
        Hidden states are 0 to `layers`, and perhaps the last one before the final norm after these.
    widths : list of int
        Width that each hidden state must have.
    threads : int
        Window batches that are computed at the same time on a CPU, one thread each, so that the numbers do
        not depend on it.
    at_once : int, optional
        Windows that go through the model together at first; by default what is fast.
    overflowed : set of int
        Those whose hidden states, as far as they are computed, hold NaN or infinity.
    """

    forward: ForwardPass
    name: str
    windows: list[TokenisedWindow]
    predicted: list[PredictedTokens] | None
    padding: int
    layers: int
    widths: list[int]
    threads: int = 1
    at_once: int | None = None
    overflowed: set[int] = field(default_factory=set, init=False)

    @staticmethod
    def load(  # noqa: PLR0913 (keywords)
        checkpoint: Path,
        windows: Sequence[str | tuple[str, str]],
        protocol: SamplingProtocol,
        shape: Shape,
        *,
        threads: int = 1,
        device: "torch.device | None" = None,
        in_memory: bool = False,
        with_head: bool = True,
        tokenizer: Path | None = None,
        at_once: int | None = None,
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
        shape : Shape
            The shape that its entry states.
        threads, at_once
            As above.
        device : torch.device, optional
            By default the first GPU, or the CPU where there is none.
        in_memory : bool
            Whether all hidden states are to be kept in memory, which must then have room for them.
        with_head : bool
            Whether the loss is wanted.
        tokenizer : Path, optional
            Folder of the tokenizer, if it is another one.

        Raises
        ------
        InputError
            If the windows are longer than the model's context or have
            tokens that it does not know, memory is too small, or the checkpoint cannot be loaded.
        """
        name = str(checkpoint)
        read_config(checkpoint)  # which the library wants for a tokenizer, too, and does not say so
        loaded = load_tokenizer(tokenizer or checkpoint)
        tokenised, device = tokenise(loaded, windows), device or choose_device()
        widths = [shape.hidden_size] * shape.layers + [shape.last_hidden_size]
        if in_memory and device.type == "cpu":
            require_memory(
                4 * sum(len(window.ids) for window in tokenised) * sum(widths),
                "all hidden states of the sample",
                "lower `sampling.windows`, or set `embeddings.dump: true`",
            )
        model, head = load_model(
            checkpoint, role=shape.role, precision=protocol.precision, device=device
        )
        forward = ForwardPass(model, head, last_layer=protocol.last_layer)
        forward.refuse_unsuitable(tokenised, name)
        predicted, mask = None, loaded.mask_token_id
        if head is not None and with_head:
            predicted = choose_predicted_tokens(
                tokenised, shape.role, head.vocabulary, mask, protocol.seed
            )
        if protocol.last_layer == "both":
            widths.append(widths[-1] if forward.final_norm is None else shape.hidden_size)
        padding = loaded.pad_token_id or 0
        how = shape.layers, widths, threads, at_once
        return SampleRun(forward, name, tokenised, predicted, padding, *how)

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

    @property
    def _is_on_cpu(self) -> bool:
        return self.forward.device.type == "cpu"

    @property
    def first_size(self) -> int:
        """How many windows go through the model together at first.

        Where memory is exhausted, all are run again with half as many, so that on a GPU window batches are
        still of equal work.
        """
        longest = max(len(window.ids) for window in self.windows)
        on_a_gpu = max(1, TOKENS_ON_A_GPU // round_up(longest))
        of_use = self.at_once or (WINDOWS_ON_A_CPU if self._is_on_cpu else on_a_gpu)
        return min(of_use, len(self.windows))

    def store_states(self, store: HiddenStateStore) -> CrossEntropy:
        """Run all windows and store the hidden states of all tokens.

        Returns
        -------
        CrossEntropy
            Of the checkpoint on all windows.

        Raises
        ------
        InputError
            If one window alone exhausts memory, or the model's layers are not as `widths` says. A hidden
            state that is NaN or infinite is stored: the loss is then infinite.
        """
        import torch

        size = self.first_size
        while size >= 1:
            try:
                if self.forward.needs_windows_alone(self.windows, self.padding):
                    size = 1
                return self._average_likelihoods(self._store_all(store, size))
            except Exception as error:
                if not is_memory_exhausted(error):
                    raise
                reason = " ".join(str(error).split())[:200]
            # Only here is the error gone, and with it what its frames held in memory.
            gc.collect()
            torch.cuda.empty_cache()
            logger.info("memory is exhausted by %d windows at a time (%s)", size, reason)
            size //= 2
        raise InputError(
            f"memory of the {self.forward.device.type.upper()} is exhausted by one window through the model "
            f"in {self.name} ({reason}); give the job more, set `precision: bfloat16` in the model's entry "
            "or lower `sampling.window_characters`"
        )

    def _store_all(self, store: HiddenStateStore, size: int) -> np.ndarray:
        """Run all windows; negative log-likelihood of each one's predicted tokens, zeros without any."""
        hardware = self.forward.device_name()
        logger.info("%s runs on %s, %d windows at a time", self.name, hardware, size)
        if self.forward.needs_windows_alone(self.windows, self.padding):
            batches = batch_alone(self.windows)
        else:
            join = batch_by_length if self._is_on_cpu else batch_by_work
            batches = join(self.windows, size, self.forward.context())
        # On a GPU one thread queues the work, so that it is done in order.
        workers = self.threads if self._is_on_cpu else 1
        remaining, pending = deque(batches), deque[tuple[WindowBatch, Future]]()
        likelihoods = np.zeros(len(self.windows))
        with ThreadPoolExecutor(workers) as pool:
            try:
                while remaining or pending:
                    # One more than there are workers: they compute while this thread writes.
                    while remaining and len(pending) <= workers:
                        batch = remaining.popleft()
                        pending.append((batch, pool.submit(self._compute, batch, store.device)))
                    batch, future = pending.popleft()
                    states, sums = future.result()
                    self._store(batch, states, store)
                    if sums is not None:
                        likelihoods[batch.windows] = sums.numpy()
                    done = len(batches) - len(remaining) - len(pending)
                    logger.info("%s: window batch %d of %d", self.name, done, len(batches))
                    del states, future  # gives their memory to the batch after next
            finally:
                pool.shutdown(cancel_futures=True)
        return likelihoods

    def _compute(
        self, batch: WindowBatch, destination: "str | torch.device"
    ) -> "tuple[list[torch.Tensor], torch.Tensor | None]":
        windows = [self.windows[number] for number in batch.windows]
        predicted = self.predicted and [self.predicted[number] for number in batch.windows]
        return self.forward.compute_hidden_states(
            windows, self.padding, predicted, batch.shape, destination
        )

    def _store(
        self, batch: WindowBatch, states: "list[torch.Tensor]", store: HiddenStateStore
    ) -> None:
        import torch

        starts = np.flatnonzero(self.rows["positions"] == 0)
        widths = [state.shape[-1] for state in states]
        if widths != self.widths:
            raise InputError(
                f"the hidden states of the model in {self.name} have the widths {widths}, but its entry says "
                f"{self.widths}; correct `layers`, `hidden_size` or `last_hidden_size` in config/models"
            )
        for layer, state in enumerate(states):
            # Rows that fill up are left over.
            for number, row in zip(batch.windows, state, strict=False):
                length = len(self.windows[number].ids)
                values = row[:length].numpy() if row.device.type == "cpu" else row[:length]
                if layer not in self.overflowed and not is_finite(values):
                    self.overflowed.add(layer)
                    is_exact = self.forward.model.dtype == torch.float32
                    logger.warning(
                        "hidden state %d of the model in %s holds NaN or infinity: the checkpoint is broken%s",
                        *(layer, self.name),
                        "" if is_exact else ", or needs `precision: float32`",
                    )
                start = int(starts[number])
                store.write(layer, slice(start, start + length), values)

    def _average_likelihoods(self, likelihoods: np.ndarray) -> CrossEntropy:
        """Return the mean over all windows."""
        count = sum(len(tokens.targets) for tokens in self.predicted or [])
        loss, vocabulary = UNDEFINED.loss, UNDEFINED.vocabulary
        if count:
            assert self.forward.head is not None  # else nothing is predicted
            loss, vocabulary = float(likelihoods.sum()) / count, self.forward.head.vocabulary
        elif self.predicted is not None:
            logger.info("the loss is undefined: no window has a token to predict")
        # Whatever the head makes of what overflowed.
        return CrossEntropy(math.inf if self.overflowed else loss, count, vocabulary)


class StatesInMemory:
    """Hidden states that are written by a run of a sample, and measured afterwards.

    Parameters
    ----------
    sample : SampleRun
        That writes them.
    windows : ndarray of int, optional
        The numbers of its windows among all that were drawn, where it has some of them.
    kept : mapping of int to ndarray of bool, shape (tokens,), optional
        Of which rows a state is kept; of all where it does not say.
    measured_on : torch.device, optional
        By default that of the model. On a GPU they are kept, too, if they fit; else they return to be measured.

    Attributes
    ----------
    layers, rows
        As :class:`.metrics.measure.HiddenStates` has them.
    """

    def __init__(
        self,
        sample: SampleRun,
        windows: np.ndarray | None = None,
        kept: Mapping[int, np.ndarray] | None = None,
        measured_on: "torch.device | None" = None,
    ):
        import torch

        self.rows, self.layers = dict(sample.rows), sample.layers
        if windows is not None:
            self.rows["windows"] = windows[self.rows["windows"]]
        self._kept = kept or {}
        every = np.ones(sample.tokens, bool)
        sizes = [int(self._kept.get(state, every).sum()) for state in range(len(sample.widths))]
        self.bytes = 4 * int(np.dot(sizes, sample.widths))
        self.device = self.measured_on = measured_on or sample.forward.device
        if self.device.type != "cpu":
            free, _ = torch.cuda.mem_get_info(self.device)
            if self.bytes > SHARE_OF_FREE_MEMORY * free:
                self.device = torch.device("cpu")
        shapes = zip(sizes, sample.widths, strict=True)
        self._states = [
            torch.empty(shape, dtype=torch.float32, device=self.device) for shape in shapes
        ]

    def write(self, state: int, rows: slice, values: Any) -> None:
        """Keep of `values`, float32 of shape (rows, width), what is wanted."""
        import torch

        if state in self._kept:
            values = values[self._kept[state][rows]]
            start = int(self._kept[state][: rows.start].sum())
            rows = slice(start, start + len(values))
        self._states[state][rows] = torch.as_tensor(values)

    def __getitem__(self, state: int) -> Any:
        """One hidden state: an array, or a tensor on the GPU that measures."""
        values = self._states[state].to(self.measured_on)
        return values.numpy() if values.device.type == "cpu" else values
