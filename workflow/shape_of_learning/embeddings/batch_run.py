"""All windows through a model, batch by batch, and onto the disk."""

import logging
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from typing import TypeVar

import numpy as np

from shape_of_learning.embeddings.batch_size import (
    automatic_batch_size,
    halved,
    memory_is_exhausted,
)
from shape_of_learning.embeddings.computed_batch import ComputedBatch
from shape_of_learning.embeddings.cross_entropy import PredictedTokens
from shape_of_learning.embeddings.forward_pass import ForwardPass
from shape_of_learning.embeddings.half_precision import HalfPrecision
from shape_of_learning.embeddings.hidden_state_files import HiddenStateWriter
from shape_of_learning.embeddings.tokenisation import TokenisedWindow
from shape_of_learning.embeddings.window_batches import (
    Batch,
    batches_by_length,
    batches_of_equal_work,
)
from shape_of_learning.errors import InputError

logger = logging.getLogger(__name__)
Result = TypeVar("Result")


@dataclass(frozen=True)
class BatchRun:
    """A model, and the windows that it is to be run on.

    Attributes
    ----------
    forward : ForwardPass
        The model.
    name : str
        How messages call it.
    windows : list of TokenisedWindow
        All of them; they are stored in this order.
    predicted : list of PredictedTokens or None
        What the head has to predict in each.
    padding : int
        Token that fills up short windows.
    widths : list of int
        Width that the hidden state of each layer must have.
    threads : int
        Batches that are computed at the same time on a CPU, one thread each, so that the numbers do
        not depend on it.
    overflowed : set of int
        Layers whose hidden states, as far as they are computed, hold NaN or infinity.
    """

    forward: ForwardPass
    name: str
    windows: list[TokenisedWindow]
    predicted: list[PredictedTokens] | None
    padding: int
    widths: list[int]
    threads: int = 1
    overflowed: set[int] = field(default_factory=set, init=False)
    _lengths: np.ndarray = field(init=False)
    _ends: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        lengths = np.array([int(window.kept.sum()) for window in self.windows])
        object.__setattr__(self, "_lengths", lengths)
        object.__setattr__(self, "_ends", lengths.cumsum())

    @property
    def tokens(self) -> int:
        """Number of rows that each layer has."""
        return int(self._ends[-1])

    def write(self, writer: HiddenStateWriter, batch_size: int | None) -> np.ndarray:
        """Run all windows and write their hidden states, with the batch size that memory allows.

        Parameters
        ----------
        writer : HiddenStateWriter
            Takes the rows; where its type is float16, they must survive the rounding. It is told
            the batch size and the device.
        batch_size : int or None
            Windows that go through the model together at first; None to choose by free memory.
            Where memory is exhausted, all are run again with half as many, so that on a GPU the
            batches are still of equal work.

        Returns
        -------
        ndarray of float64, shape (windows,)
            Negative log-likelihood of each window's predicted tokens, in nats; zeros without any.

        Raises
        ------
        InputError
            If one window alone exhausts memory, the model's layers are not as `widths` says, or a
            hidden state does not survive the rounding to float16.
        """
        likelihoods, size = self.at_a_size_that_fits(
            batch_size,
            lambda size: self._write_all(writer, size),
            remedy="lower `sampling.window_characters`",
        )
        writer.describe({"batch_size": size, "device": self.forward.device_name()})
        return likelihoods

    def at_a_size_that_fits(
        self, batch_size: int | None, attempt: Callable[[int], Result], *, remedy: str
    ) -> tuple[Result, int]:
        """Attempt what takes memory with one batch size after another.

        Parameters
        ----------
        batch_size : int or None
            As above.
        attempt : callable
            Takes the batch size.
        remedy : str
            What one may do in the end besides giving more memory and fewer bytes to a weight.

        Returns
        -------
        object
            What `attempt` returns.
        int
            The batch size with which it did.

        Raises
        ------
        InputError
            If one window alone exhausts memory.
        """
        longest = max(len(window.ids) for window in self.windows)
        first = batch_size or automatic_batch_size(self.forward, longest)
        for size in halved(min(first, len(self.windows))):
            try:
                return attempt(size), size
            except Exception as error:
                if not memory_is_exhausted(error):
                    raise
                reason = " ".join(str(error).split())[:200]
            # Only here is the error gone, and with it what its frames held in memory.
            self.forward.release_memory()
            logger.info("memory is exhausted by %d windows at a time (%s)", size, reason)
        raise InputError(
            f"memory of the {self.forward.device.type.upper()} is exhausted by one window of "
            f"{longest} tokens through the model in {self.name} ({reason}); give the job more, set "
            f"`precision: bfloat16` in the model's entry or {remedy}"
        )

    def _write_all(self, writer: HiddenStateWriter, size: int) -> np.ndarray:
        likelihoods = np.zeros(len(self.windows))
        half = writer.dtype == np.float16
        rounding = HalfPrecision(self.widths, self.tokens, self.name) if half else None
        batches = self.batches(size)
        with closing(self._in_flight(batches)) as results:
            number = count(1)  # `enumerate` would keep what it has given
            for batch, computed in results:
                self._store(batch, computed, writer, rounding)
                if computed.sums is not None:
                    likelihoods[batch.windows] = computed.likelihoods()
                logger.info("%s: batch %d of %d", self.name, next(number), len(batches))
                del computed  # gives its memory to the batch after next
        if rounding is not None:
            for layer in range(len(self.widths)):
                rounding.check(layer)
        return likelihoods

    def batches(self, size: int) -> list[Batch]:
        """Join the windows, `size` of the longest ones at a time, as suits the device."""
        if self.forward.device.type == "cpu":
            return batches_by_length(self.windows, size, self.forward.context())
        return batches_of_equal_work(self.windows, size, self.forward.context())

    def _in_flight(self, batches: list[Batch]) -> Iterator[tuple[Batch, ComputedBatch]]:
        """Yield what each batch gives, in order, while the next ones are computed."""
        # On a GPU one thread queues the work, so that it is done in order.
        workers = self.threads if self.forward.device.type == "cpu" else 1
        with ThreadPoolExecutor(workers) as pool:
            # One batch more than there are workers: they compute while this thread writes.
            pending: deque[tuple[Batch, Future]] = deque()
            try:
                for batch in batches:
                    if len(pending) > workers:
                        done, future = pending.popleft()
                        yield done, future.result()
                        del future
                    pending.append(
                        (batch, pool.submit(self.forward.hidden_states, *self.arguments_of(batch)))
                    )
                while pending:
                    done, future = pending.popleft()
                    yield done, future.result()
                    del future
            finally:
                for _, future in pending:
                    future.cancel()

    def arguments_of(self, batch: Batch) -> tuple:
        """Arguments of :meth:`ForwardPass.hidden_states` for a batch."""
        numbers = batch.windows
        windows = [self.windows[number] for number in numbers]
        predicted = self.predicted and [self.predicted[number] for number in numbers]
        return windows, self.padding, predicted, batch.shape

    def rows_of(self, number: int) -> slice:
        """Return which rows of each layer the kept tokens of a window are."""
        return slice(int(self._ends[number] - self._lengths[number]), int(self._ends[number]))

    def require_widths(self, widths: list[int]) -> None:
        """Raise InputError if the model's hidden states are not as many and as wide as its entry says."""
        if len(widths) != len(self.widths):
            raise InputError(
                f"the model in {self.name} has {len(widths) - 1} layers, but its entry "
                f"says {len(self.widths) - 1}; correct `layers` in config/models"
            )
        for layer, (width, expected) in enumerate(zip(widths, self.widths, strict=True)):
            if width != expected:
                raise InputError(
                    f"hidden state {layer} of the model in {self.name} has width {width}, but "
                    f"its entry says {expected}; correct `hidden_size` or `last_hidden_size` in "
                    "config/models"
                )

    def note_overflow(self, layer: int) -> None:
        """Take note that hidden states of a layer are NaN or infinite, and say it once."""
        if layer not in self.overflowed:
            self.overflowed.add(layer)
            logger.warning(
                "hidden state %d of the model in %s holds NaN or infinity: the checkpoint is broken, or "
                "needs `precision: float32` in its entry",
                layer,
                self.name,
            )

    def _store(
        self,
        batch: Batch,
        computed: ComputedBatch,
        writer: HiddenStateWriter,
        rounding: HalfPrecision | None,
    ) -> None:
        self.require_widths(computed.widths)
        for layer in range(len(self.widths)):
            for number, values in zip(batch.windows, computed.kept_rows(layer), strict=True):
                if layer not in self.overflowed and not np.isfinite(values).all():
                    self.note_overflow(layer)
                rows = self.rows_of(number)
                writer.write(
                    layer,
                    rows,
                    values if rounding is None else rounding.rounded(layer, rows, values),
                )
