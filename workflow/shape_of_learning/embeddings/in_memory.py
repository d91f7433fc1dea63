"""Hidden states of all layers of one checkpoint, kept in memory until they are measured."""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from shape_of_learning.embeddings.memory import memory_is_exhausted, require_memory
from shape_of_learning.embeddings.sample_run import SampleRun
from shape_of_learning.errors import InputError

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)

# Of a GPU's free memory beside the weights; the rest is for window batches, and a measurement needs no more
# than what the weights leave behind.
SHARE_OF_FREE_MEMORY = 0.5
Measured = TypeVar("Measured")


class HiddenStatesInMemory:
    """Hidden states of all layers, written as into files.

    Parameters
    ----------
    sample : SampleRun
        What will be run: on a GPU, the hidden states stay there if they fit.

    Raises
    ------
    InputError
        If neither has room for them.
    """

    def __init__(self, sample: SampleRun):
        import torch

        device, tokens = sample.forward.device, sample.tokens
        needed = 4 * tokens * sum(sample.widths)
        if device.type == "cpu" or needed > SHARE_OF_FREE_MEMORY * sample.forward.free_memory():
            require_memory(needed, f"all hidden states of the sample through {sample.name}")
            self.device = torch.device("cpu")
        else:
            self.device = device
        self._measured_on = device
        shapes = [(tokens, width) for width in sample.widths]
        self._states = {
            state: torch.empty(shape, device=self.device) for state, shape in enumerate(shapes)
        }

    def write(self, state: int, rows: slice, values: "np.ndarray | torch.Tensor") -> None:
        """Keep `values`, float32 of shape (rows, width)."""
        import torch

        self._states[state][rows] = torch.as_tensor(values)

    def describe(self, attributes: Mapping[str, Any]) -> None:
        """Say it in the log."""
        logger.info("all hidden states are in memory: %s", dict(attributes))

    def measured(
        self,
        measure: Callable[..., Measured],
        threads: int,
        needed: Sequence[Sequence[int]] | None = None,
    ) -> Iterator[Measured]:
        """Measure each layer, and forget what no other one needs.

        Parameters
        ----------
        measure : callable
            Takes the number of a layer and the rows of what is `needed` for it, float32 of shape (tokens,
            width): arrays, or tensors on the GPU that has run the model.
        threads : int
            Layers that are measured at the same time on a CPU; a GPU measures one after another.
        needed : sequence of sequence of int, optional
            For each layer the numbers of hidden states. By default its own.

        Yields
        ------
        object
            What `measure` returns, in the order of the layers.

        Raises
        ------
        InputError
            If a measurement exhausts memory.
        """
        workers = threads if self._measured_on.type == "cpu" else 1
        of_layers = needed or [[state] for state in self._states]
        waiting, lock = Counter(state for states in of_layers for state in states), threading.Lock()
        for state in self._states.keys() - waiting.keys():
            del self._states[state]

        def rows_of(state: int) -> "np.ndarray | torch.Tensor":
            with lock:  # layers begin in any order
                waiting[state] -= 1
                rows = self._states[state] if waiting[state] else self._states.pop(state)
            rows = rows.to(self._measured_on)
            return rows.numpy() if rows.device.type == "cpu" else rows

        def measure_one(layer: int) -> Measured:
            try:
                return measure(layer, *map(rows_of, of_layers[layer]))
            except Exception as error:
                if memory_is_exhausted(error):
                    raise InputError(
                        f"memory is exhausted by the measurement of hidden state {layer} ({error}); give the "
                        "job more, or lower `sampling.windows` or `measurement.batch_vectors`"
                    ) from error
                raise

        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(measure_one, range(len(of_layers)))
