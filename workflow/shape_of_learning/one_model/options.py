"""Options of a measurement; nothing heavy is imported, since the command reads them at its start."""

from collections.abc import Sequence
from dataclasses import dataclass

from shape_of_learning.metrics.registry import DEFAULT_MEASURES

# The defaults of the configuration.
WINDOWS, WINDOW_CHARACTERS, BATCH_VECTORS, NEIGHBOURS = 128, 512, 4096, 128
BUILT_IN_TEXT = "the documentation that comes with Python"
UNKNOWN_TEXT = "unknown"  # of hidden states and vectors


@dataclass(frozen=True)
class MeasurementOptions:
    """The measures, the sample and the hardware of a measurement.

    Attributes
    ----------
    measures : sequence of str
    windows, window_characters, seed, batch_vectors : int
        As in the configuration.
    threads : int, optional
        By default one per core.
    device : str, optional
        By default the first GPU, or the CPU if there is none.
    batch_size : int, optional
        Windows that go through the model together; by default a fast number.
    """

    measures: Sequence[str] = DEFAULT_MEASURES
    windows: int = WINDOWS
    window_characters: int = WINDOW_CHARACTERS
    seed: int = 0
    batch_vectors: int = BATCH_VECTORS
    threads: int | None = None
    device: str | None = None
    batch_size: int | None = None
