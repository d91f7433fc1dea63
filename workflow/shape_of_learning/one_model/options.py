"""Define the options of a measurement; this imports nothing heavy, since the command reads it at its start."""

from collections.abc import Sequence
from dataclasses import dataclass

from shape_of_learning.metrics.registry import DEFAULT_MEASURES

# The defaults of the configuration.
WINDOWS = 128
WINDOW_CHARACTERS = 512
BATCH_VECTORS = 4096
NEIGHBOURS = 128
BUILT_IN_TEXT = "the documentation that comes with Python"
UNKNOWN_TEXT = "unknown"  # the text of given hidden states and vectors


@dataclass(frozen=True)
class MeasurementOptions:
    """The measures, the sample and the hardware of a measurement.

    Attributes
    ----------
    measures : sequence of str
    windows, window_characters, seed, batch_vectors : int
        As in the configuration.
    threads : int, optional
        By default one thread per core.
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
