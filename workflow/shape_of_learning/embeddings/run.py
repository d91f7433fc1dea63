"""Run a checkpoint on windows of text, store its hidden states, and compute its loss."""

import gc
import logging
import math
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
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
    warn_of_unknown,
)
from shape_of_learning.embeddings.tokenizers import load_tokenizer
from shape_of_learning.errors import InputError
from shape_of_learning.estimators.arrays import is_finite
from shape_of_learning.estimators.massive import find_massive_in_any_state

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)

# A larger batch is no faster on a CPU, where each window batch has one thread.
WINDOWS_ON_A_CPU = 16
# Share of a GPU's free memory for hidden states; window batches need the rest. A later measurement fits into the
# memory of the weights.
SHARE_OF_FREE_MEMORY = 0.5
# Some thousand rows keep all multiprocessors busy in each matrix product. More rows would only fill host memory:
# all layers of two window batches wait there to be written, 4.4 GB for Llama-2-7B.
TOKENS_ON_A_GPU = 4096


class HiddenStateStore(Protocol):
    """A store of hidden states, in files or in memory."""

    @property
    def device(self) -> Any:
        """The device to which values must be copied; a GPU only if the store keeps them there."""

    def write(self, state: int, rows: slice, values: Any) -> None:
        """Store one window's `values`, float32 of shape (rows, width).

        After exhausted memory the run begins again, so that a window may be written twice.
        """


@dataclass(frozen=True)
class NullStore:
    """A store that discards hidden states, for a run that needs the loss only, or that helps other ranks."""

    device: "torch.device | str" = "cpu"

    def write(self, state: int, rows: slice, values: Any) -> None:
        """Discard the values."""


@dataclass(frozen=True)
class SampleRun:
    """Tokenised windows, and the loaded model that runs on them.

    Attributes
    ----------
    forward : ForwardPass
        The model.
    name : str
        Name of the model in messages.
    windows : list of TokenisedWindow
        All windows; their tokens are stored in this order.
    predicted_tokens : list of PredictedTokens or None
        Tokens that the head predicts in each window.
    padding : int
        Token that pads short windows.
    layers : int
        Hidden states are 0 to `layers`; the last state before the final norm may follow.
    widths : list of int
        Expected width of each hidden state.
    threads : int
        Window batches that a CPU computes at the same time. Each has one thread, so that the numbers do not depend on
        `threads`.
    batch_size : int, optional
        Windows that go through the model together at first; by default a fast number.
    overflowed_states : set of int
        The numbers of the hidden states that held NaN or infinity so far.
    """

    forward: ForwardPass
    name: str
    windows: list[TokenisedWindow]
    predicted_tokens: list[PredictedTokens] | None
    padding: int
    layers: int
    widths: list[int]
    threads: int = 1
    batch_size: int | None = None
    overflowed_states: set[int] = field(default_factory=set, init=False)

    @staticmethod
    def load(
        checkpoint: Path,
        windows: Sequence[str | tuple[str, str]],
        protocol: SamplingProtocol,
        shape: Shape,
        *,
        threads: int = 1,
        device: "torch.device | None" = None,
        needs_memory: bool = False,
        tokenizer: Path | None = None,
    ) -> "SampleRun":
        """Load a checkpoint and tokenise the windows.

        Parameters
        ----------
        checkpoint : Path
            Folder in Hugging Face format, with its tokenizer.
        windows : sequence of str, or of pairs of str
            Texts or pairs of texts, each tokenised and run alone.
        protocol : SamplingProtocol
        shape : Shape
        threads : int
            As above.
        device : torch.device, optional
            By default the first GPU, or the CPU if there is none.
        needs_memory : bool
            Whether memory must have room for all hidden states.
        tokenizer : Path, optional
            Folder of the tokenizer; by default the checkpoint.

        Raises
        ------
        InputError
            If the windows are longer than the model's context or have tokens without an embedding, if memory is too
            small, or if the checkpoint cannot be loaded.
        """
        name = str(checkpoint)
        # Otherwise the error for a missing configuration would name the tokenizer.
        read_config(checkpoint)
        text_tokenizer = load_tokenizer(tokenizer or checkpoint)
        tokenised_windows = tokenise(text_tokenizer, windows)
        warn_of_unknown(text_tokenizer, tokenised_windows)
        device = device or choose_device()
        widths = [shape.hidden_size] * shape.layers + [shape.last_hidden_size]
        if needs_memory and device.type == "cpu":
            require_memory(
                4 * sum(len(window.ids) for window in tokenised_windows) * sum(widths),
                "all hidden states of the sample",
                "lower `sampling.windows`, or set `embeddings.dump: true`",
            )
        model, head = load_model(
            checkpoint, role=shape.role, precision=protocol.precision, device=device
        )
        forward = ForwardPass(model, head, last_layer=protocol.last_layer)
        forward.refuse_unsuitable(tokenised_windows, name)
        predicted_tokens = None
        if head is not None:
            predicted_tokens = choose_predicted_tokens(
                tokenised_windows,
                shape.role,
                head.vocabulary,
                text_tokenizer.mask_token_id,
                protocol.seed,
            )
        if protocol.last_layer == "both":
            widths.append(widths[-1] if forward.final_norm is None else shape.hidden_size)
        padding = forward.choose_padding(text_tokenizer)
        return SampleRun(
            forward,
            name,
            tokenised_windows,
            predicted_tokens,
            padding,
            shape.layers,
            widths,
            threads,
        )

    @cached_property
    def rows(self) -> dict[str, np.ndarray]:
        """The columns that describe the rows of a layer, arrays of shape (tokens,).

        `token_ids` (entry of the vocabulary), `positions` (in the window) and `windows` (number of the window) are
        int64; `special` (whether the token is special) is bool.
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
        """Number of rows of each layer."""
        return len(self.rows["windows"])

    @property
    def _is_on_cpu(self) -> bool:
        return self.forward.device.type == "cpu"

    @property
    def first_size(self) -> int:
        """Number of windows that go through the model together at first.

        If memory is exhausted, all windows run again with half of this number, so that window batches on a GPU still
        have equal numbers of tokens.
        """
        longest = max(len(window.ids) for window in self.windows)
        gpu_size = max(1, TOKENS_ON_A_GPU // round_up(longest))
        size = self.batch_size or (WINDOWS_ON_A_CPU if self._is_on_cpu else gpu_size)
        return min(size, len(self.windows))

    def store_states(self, store: HiddenStateStore) -> CrossEntropy:
        """Run all windows and store the hidden states of all tokens.

        Returns
        -------
        CrossEntropy
            The loss of the checkpoint on all windows.

        Raises
        ------
        InputError
            If one window alone exhausts memory, or if the model's layers have other widths than expected. Hidden states
            with NaN or infinity are no error; they are stored, and the loss is then infinite.
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
            # Only outside of the handler does the error free the frames that it holds.
            gc.collect()
            torch.cuda.empty_cache()
            logger.info("memory is exhausted by %d windows at a time (%s)", size, reason)
            size //= 2
        raise InputError(
            f"memory of the {self.forward.device.type.upper()} is exhausted by one window through the model "
            f"in {self.name} ({reason})",
            "give the job more, set `precision: bfloat16` in the model's entry or lower `sampling.window_characters`",
            "give shorter `texts`, or a model whose weights have a smaller type",
        )

    def _store_all(self, store: HiddenStateStore, size: int) -> np.ndarray:
        """Run all windows, and return the negative log-likelihood of the predicted tokens of each window."""
        hardware = self.forward.find_device_name()
        logger.info("%s runs on %s, %d windows at a time", self.name, hardware, size)
        if self.forward.needs_windows_alone(self.windows, self.padding):
            batches = batch_alone(self.windows)
        else:
            join = batch_by_length if self._is_on_cpu else batch_by_work
            batches = join(self.windows, size, self.forward.find_context())
        # On a GPU one thread queues the work, which keeps its order.
        is_shared = self._is_on_cpu and not self.forward.changes_itself
        workers = self.threads if is_shared else 1
        remaining, pending = deque(batches), deque[tuple[WindowBatch, Future]]()
        likelihoods = np.zeros(len(self.windows))
        with ThreadPoolExecutor(workers) as pool:
            try:
                while remaining or pending:
                    # With one batch more than workers, all workers compute while this thread writes.
                    while remaining and len(pending) <= workers:
                        batch = remaining.popleft()
                        pending.append((batch, pool.submit(self._compute, batch, store.device)))
                    batch, future = pending.popleft()
                    states, sums = future.result()
                    self._store(batch, states, store)
                    if sums is not None:
                        likelihoods[batch.windows] = sums.numpy()
                    count = len(batches) - len(remaining) - len(pending)
                    logger.info("%s: window batch %d of %d", self.name, count, len(batches))
                    del states, future  # frees memory for the batch after next
            finally:
                pool.shutdown(cancel_futures=True)
        return likelihoods

    def _compute(
        self, batch: WindowBatch, destination: "str | torch.device"
    ) -> "tuple[list[torch.Tensor], torch.Tensor | None]":
        windows = [self.windows[number] for number in batch.windows]
        predicted_tokens = self.predicted_tokens and [
            self.predicted_tokens[number] for number in batch.windows
        ]
        return self.forward.compute_hidden_states(
            windows, self.padding, predicted_tokens, batch.shape, destination
        )

    def _store(
        self, batch: WindowBatch, states: "list[torch.Tensor]", store: HiddenStateStore
    ) -> None:
        import torch

        starts = np.flatnonzero(self.rows["positions"] == 0)
        widths = [state.shape[-1] for state in states]
        if widths != self.widths:
            raise InputError(
                f"the model in {self.name} has {_describe_sizes(widths)}, but its entry says "
                f"{_describe_sizes(self.widths)}",
                "correct `layers`, `hidden_size` or `last_hidden_size` in config/models",
                "give a part of the model, or its hidden states",
            )
        for layer, state in enumerate(states):
            # Rows of padding follow the rows of the windows.
            for number, row in zip(batch.windows, state, strict=False):
                length = len(self.windows[number].ids)
                values = row[:length].numpy() if row.device.type == "cpu" else row[:length]
                if layer not in self.overflowed_states and not is_finite(values):
                    self.overflowed_states.add(layer)
                    is_exact = self.forward.model.dtype == torch.float32
                    logger.warning(
                        "hidden state %d of the model in %s holds NaN or infinity: the checkpoint is broken%s",
                        layer,
                        self.name,
                        "" if is_exact else ", or needs `precision: float32`",
                    )
                start = int(starts[number])
                store.write(layer, slice(start, start + length), values)

    def _average_likelihoods(self, likelihoods: np.ndarray) -> CrossEntropy:
        """Return the cross-entropy: the mean over the predicted tokens of all windows."""
        count = sum(len(tokens.targets) for tokens in self.predicted_tokens or [])
        loss, vocabulary = UNDEFINED.loss, UNDEFINED.vocabulary
        if count:
            assert self.forward.head is not None  # without a head there are no predicted tokens
            loss, vocabulary = float(likelihoods.sum()) / count, self.forward.head.vocabulary
        elif self.predicted_tokens is not None:
            logger.info("the loss is undefined: no window has a token to predict")
        # The head may return finite values for hidden states that overflowed.
        return CrossEntropy(math.inf if self.overflowed_states else loss, count, vocabulary)


class StatesInMemory:
    """Hidden states in memory: the run of a sample writes them, then measures read them.

    Parameters
    ----------
    sample : SampleRun
        The run that writes them.
    windows : ndarray of int, optional
        If the run has only a part of the sample's windows: the numbers of its windows in the sample.
    kept_rows : mapping of int to ndarray of bool, shape (tokens,), optional
        The rows to keep of a hidden state; a state that is missing here keeps all rows.
    measuring_device : torch.device, optional
        By default the device of the model. States stay on a GPU if they fit; otherwise each one is copied back to be
        measured.

    Attributes
    ----------
    layers, rows
        As in :class:`.HiddenStates`.
    """

    def __init__(
        self,
        sample: SampleRun,
        windows: np.ndarray | None = None,
        kept_rows: Mapping[int, np.ndarray] | None = None,
        measuring_device: "torch.device | None" = None,
    ):
        import torch

        self.rows, self.layers = dict(sample.rows), sample.layers
        if windows is not None:
            self.rows["windows"] = windows[self.rows["windows"]]
        self._masks = kept_rows or {}
        all_rows = np.ones(sample.tokens, bool)
        sizes = [int(self._masks.get(state, all_rows).sum()) for state in range(len(sample.widths))]
        self.bytes = 4 * int(np.dot(sizes, sample.widths))
        self.device = self.measuring_device = measuring_device or sample.forward.device
        if self.device.type != "cpu":
            free, _ = torch.cuda.mem_get_info(self.device)
            if self.bytes > SHARE_OF_FREE_MEMORY * free:
                self.device = torch.device("cpu")
        shapes = zip(sizes, sample.widths, strict=True)
        self._states = [
            torch.empty(shape, dtype=torch.float32, device=self.device) for shape in shapes
        ]

    def write(self, state: int, rows: slice, values: Any) -> None:
        """Store the rows to keep of `values`, float32 of shape (rows, width)."""
        import torch

        if state in self._masks:
            values = values[self._masks[state][rows]]
            start = int(self._masks[state][: rows.start].sum())
            rows = slice(start, start + len(values))
        self._states[state][rows] = torch.as_tensor(values)

    def __getitem__(self, state: int) -> Any:
        """Return one hidden state: an array, or a tensor on the GPU that measures."""
        values = self._states[state].to(self.measuring_device)
        return values.numpy() if values.device.type == "cpu" else values

    @cached_property
    def massive(self) -> np.ndarray:
        """Whether each token is massive in any layer, bool of shape (tokens,).

        The state of the last layer before the final norm does not count, if the run stores both.
        """
        return find_massive_in_any_state(self[state] for state in range(self.layers + 1))


def _describe_sizes(widths: Sequence[int]) -> str:
    """Write the number of hidden states and their widths, such as "13 hidden states of width 768"."""
    runs = [(width, len(list(same))) for width, same in groupby(widths)]
    return f"{len(widths)} hidden states of width " + ", then ".join(
        f"{width}" if len(runs) == 1 else f"{width} ({count})" for width, count in runs
    )
