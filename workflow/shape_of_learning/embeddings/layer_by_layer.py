"""All windows through a model, layer by layer, each of which is measured while the next one is computed."""

import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from shape_of_learning.checkpoints.losses import CrossEntropy
from shape_of_learning.embeddings.batch_run import BatchRun
from shape_of_learning.embeddings.batch_size import memory_is_exhausted
from shape_of_learning.embeddings.half_precision import HalfPrecision
from shape_of_learning.embeddings.hidden_state_sites import Site, find_sites
from shape_of_learning.embeddings.lane import Lane
from shape_of_learning.embeddings.paused_pass import pausing_at
from shape_of_learning.embeddings.sample_run import SampleRun
from shape_of_learning.errors import InputError
from shape_of_learning.estimators.arrays import is_finite

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)

# Takes the number of a layer and its rows, float32 of shape (tokens, width): an array, or a tensor on a GPU.
Measure = Callable[[int, "np.ndarray | torch.Tensor"], Any]
Take = Callable[[int, Any], None]
# Of a text: enough to tell the shape of a hidden state from others.
PROBED_TOKENS = 8


def measure_layer_by_layer(sample: SampleRun, measure: Measure, take: Take) -> CrossEntropy:
    """Run the windows through the checkpoint and measure each layer; nothing is stored.

    Parameters
    ----------
    sample : SampleRun
        Both.
    measure : callable
        Called for each layer, on threads of their own.
    take : callable
        Called with the number of each layer and what `measure` has returned, in order and on the caller's
        thread, so that only this one writes files; for all layers anew where memory was exhausted.

    Returns
    -------
    CrossEntropy
        Of the checkpoint on all windows, whichever of their tokens are measured.

    Raises
    ------
    InputError
        If memory is too small, the model's layers are not as its entry says, a hidden state does not
        survive the rounding to float16, or it cannot be seen from outside the modules that compute it.
    """
    batches = sample.batches
    likelihoods, _ = batches.at_a_size_that_fits(
        sample.protocol.batch_size,
        LayerByLayer(batches, sample.protocol.dtype, measure, take).run_all,
        remedy="lower `sampling.windows`, or set `embeddings.dump: true`",
    )
    return sample.cross_entropy(likelihoods)


@dataclass(frozen=True)
class LayerByLayer:
    """A model and its windows, whose hidden states are measured as they come into being.

    All batches are brought to their first hidden state, whose rows are then complete; while they are
    measured, all batches are brought to the second, and so on to the last. Memory holds a few layers instead
    of all, and the numbers are those of batches that go through the whole model one after another: the same
    operations on the same batches.

    Attributes
    ----------
    run : BatchRun
        Both. A CPU computes as many batches at the same time as it has threads and measures as many layers.
    dtype : str
        ``"float32"``, or ``"float16"`` to round the hidden states first, as a dump in that type does.
    measure, take : callable
        As above.
    """

    run: BatchRun
    dtype: str
    measure: Measure
    take: Take

    def run_all(self, batch_size: int) -> np.ndarray:
        """Bring all windows through the model.

        Returns
        -------
        ndarray of float64, shape (windows,)
            Negative log-likelihood of each window's predicted tokens, in nats; zeros without any.
        """
        import torch

        run, device = self.run, self.run.forward.device
        threads = run.threads if device.type == "cpu" else 1
        rounding = (
            HalfPrecision(run.widths, run.tokens, run.name) if self.dtype == "float16" else None
        )
        batches, sites = run.batches(batch_size), self._sites()
        likelihoods = np.zeros(len(run.windows))
        with ExitStack() as left_at_the_end:
            enter = left_at_the_end.enter_context
            enter(pausing_at(sites))
            lanes = [enter(closing(Lane(run, batches[n::threads], sites))) for n in range(threads)]
            measurements = enter(closing(Measurements(threads, self.take)))
            for lane in lanes:  # before all else: none goes on while the others are left
                left_at_the_end.callback(lane.stop)
            for layer, width in enumerate(run.widths):
                vectors = torch.empty((run.tokens, width), dtype=torch.float32, device=device)
                for advanced in [lane.advance(vectors) for lane in lanes]:
                    advanced.result()
                logger.info("%s: hidden state %d of %d", run.name, layer, len(run.widths) - 1)
                measurements.start(self._measure, layer, vectors, rounding)
                del vectors
            for finished in [lane.finish() for lane in lanes]:
                for batch, sums in finished.result():
                    likelihoods[batch.windows] = sums
            measurements.wait()
        return likelihoods

    def _sites(self) -> list[Site]:
        """Find where the hidden states come into being, with the first tokens of the longest windows."""
        import torch

        run, forward = self.run, self.run.forward

        def run_a_little() -> list[torch.Tensor]:
            longest = sorted(run.windows, key=lambda window: len(window.ids))[-2:]
            texts = [window.ids[:PROBED_TOKENS] for window in longest]
            states = forward.states_of(forward.run(texts, run.padding, output_hidden_states=True))
            run.require_widths([state.shape[-1] for state in states])
            return states

        with torch.inference_mode():
            return find_sites(forward.model, run_a_little)

    def _measure(self, layer: int, vectors: "torch.Tensor", rounding: HalfPrecision | None) -> Any:
        import torch

        try:
            if not is_finite(vectors):
                self.run.note_overflow(layer)
            if rounding is not None:
                rounded = rounding.rounded(layer, slice(0, len(vectors)), vectors.cpu().numpy())
                rounding.check(layer)
                vectors.copy_(torch.from_numpy(rounded))
                del rounded
            return self.measure(layer, vectors.numpy() if vectors.device.type == "cpu" else vectors)
        except Exception as error:
            if memory_is_exhausted(error):  # however small the batches of the forward pass are
                raise InputError(
                    f"memory is exhausted by the measurement of hidden state {layer} of the model in "
                    f"{self.run.name} ({error}); give the job more, or lower `sampling.windows` or "
                    "`measurement.batch_vectors`"
                ) from error
            raise


class Measurements:
    """Measurements of layers, as many at a time as there are threads; `take` is given the results."""

    def __init__(self, threads: int, take: Take):
        self._threads, self._take = threads, take
        self._pool = ThreadPoolExecutor(threads)
        self._under_way: deque[tuple[int, Future]] = deque()

    def close(self) -> None:
        """Begin none that has not begun, and wait for the others."""
        self._pool.shutdown(cancel_futures=True)

    def start(self, measure: Callable[..., Any], layer: int, *arguments: Any) -> None:
        """Start one as soon as a thread is free; raise what an earlier one has raised."""
        while len(self._under_way) >= self._threads:
            self._take_first()
        self._under_way.append((layer, self._pool.submit(measure, layer, *arguments)))

    def wait(self) -> None:
        """Wait for all; raise what one has raised."""
        while self._under_way:
            self._take_first()

    def _take_first(self) -> None:
        layer, measured = self._under_way.popleft()
        self._take(layer, measured.result())
