"""Batches that one thread brings through a model side by side, all of them to one layer after another."""

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from shape_of_learning.embeddings.batch_run import BatchRun
from shape_of_learning.embeddings.hidden_state_sites import Site
from shape_of_learning.embeddings.paused_pass import PausedPass
from shape_of_learning.embeddings.window_batches import Batch
from shape_of_learning.errors import InputError

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Passing:
    """A batch on its way.

    Attributes
    ----------
    batch : Batch
        The batch.
    way : PausedPass
        Its pass.
    kept : tensor of int64, shape (m,)
        Which of its tokens are kept, counted through all of its rows.
    rows : tensor of int64, shape (m,)
        Which rows of a layer they are.
    """

    batch: Batch
    way: PausedPass
    kept: "torch.Tensor"
    rows: "torch.Tensor"

    @classmethod
    def of(cls, run: BatchRun, batch: Batch, sites: list[Site]) -> "Passing":
        """Let a batch stand at the start."""
        import torch

        _, length = batch.shape
        kept = [
            row * length + np.flatnonzero(run.windows[number].kept)
            for row, number in enumerate(batch.windows)
        ]
        rows = [np.r_[run.rows_of(number)] for number in batch.windows]
        way = PausedPass(sites, partial(run.forward.likelihoods, *run.arguments_of(batch)))
        device = run.forward.device
        return cls(
            batch,
            way,
            torch.from_numpy(np.concatenate(kept)).to(device),
            torch.from_numpy(np.concatenate(rows)).to(device),
        )

    def advance(self, vectors: "torch.Tensor") -> None:
        """Go to the next hidden state and put its kept rows among `vectors`."""
        state = self.way.switch()
        if state.shape != (*self.batch.shape, vectors.shape[1]):
            raise InputError(
                f"a hidden state of shape {tuple(state.shape)} is no {self.batch.shape[0]} windows of "
                f"{self.batch.shape[1]} tokens, so that it cannot be measured within the forward pass; set "
                "`embeddings.dump: true`"
            )
        state = state.flatten(0, 1)
        # A model that is spread over several GPUs has it on any of them.
        state = state.index_select(0, self.kept.to(state.device)).to(vectors)
        vectors.index_copy_(0, self.rows, state)


class Lane:
    """Passes that pause at each hidden state, on a thread of their own, which alone can make them go on.

    Parameters
    ----------
    run : BatchRun
        The model and its windows.
    batches : list of Batch
        What goes through it here.
    sites : list of Site
        Where the passes pause; the caller is within :func:`pausing_at` the same.
    """

    def __init__(self, run: BatchRun, batches: list[Batch], sites: list[Site]):
        self._run, self._batches, self._sites = run, batches, sites
        self._passes: list[Passing] = []
        self._is_stopped = False
        self._thread = ThreadPoolExecutor(1)

    def close(self) -> None:
        """Give up what has not ended."""
        self.stop()
        self._thread.submit(self._abandon).result()
        self._thread.shutdown()

    def stop(self) -> None:
        """Let none of the passes go on."""
        self._is_stopped = True

    def advance(self, vectors: "torch.Tensor") -> Future:
        """Bring all passes to their next hidden state and put its kept rows among `vectors`."""
        return self._thread.submit(self._advance, vectors)

    def finish(self) -> Future:
        """Bring all passes to their end; the result has each batch and its likelihoods, if any."""
        return self._thread.submit(self._finish)

    def _advance(self, vectors: "torch.Tensor") -> None:
        import torch

        if not self._passes:  # made by the thread that makes them go
            self._passes = [Passing.of(self._run, batch, self._sites) for batch in self._batches]
        with torch.inference_mode():
            for passing in self._passes:
                if self._is_stopped:
                    return
                passing.advance(vectors)

    def _finish(self) -> list[tuple[Batch, np.ndarray]]:
        import torch

        ended = []
        with torch.inference_mode():
            for passing in self._passes:
                if not self._is_stopped:
                    ended.append((passing.batch, passing.way.switch()))
            return [(batch, sums.cpu().numpy()) for batch, sums in ended if sums is not None]

    def _abandon(self) -> None:
        for passing in self._passes:
            with suppress(Exception):  # whatever the model's code makes of it
                passing.way.throw()
        self._passes.clear()
