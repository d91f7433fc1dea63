"""A checkpoint in a folder, measured on a text as the workflow does."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from shape_of_learning.corpus.clean import clean
from shape_of_learning.corpus.fetch import read_demo_text
from shape_of_learning.embeddings.model import find_device, read_shape, sees_later_tokens
from shape_of_learning.embeddings.protocol import SamplingProtocol
from shape_of_learning.embeddings.run import SampleRun, StatesInMemory
from shape_of_learning.embeddings.tokenised_windows import draw_windows
from shape_of_learning.errors import InputError
from shape_of_learning.machine import count_cores
from shape_of_learning.metrics.protocol import MeasuringProtocol
from shape_of_learning.metrics.registry import DEFAULT_MEASURES
from shape_of_learning.metrics.selections import require_batches
from shape_of_learning.one_model.defaults import (
    BATCH_VECTORS,
    NEIGHBOURS,
    WINDOW_CHARACTERS,
    WINDOWS,
)
from shape_of_learning.one_model.measured import (
    MeasurementResult,
    Progress,
    find_measures,
    measure_states,
)


def measure_checkpoint(  # noqa: PLR0913 (keywords)
    checkpoint: Path,
    text: Path,
    *,
    name: str,
    revision: str = "main",
    measures: Sequence[str] = DEFAULT_MEASURES,
    windows: int = WINDOWS,
    window_characters: int = WINDOW_CHARACTERS,
    seed: int = 0,
    batch_vectors: int = BATCH_VECTORS,
    threads: int | None = None,
    device: str | None = None,
    batch_size: int | None = None,
    progress: Progress | None = None,
    shuffled_as: str = "",
) -> MeasurementResult:
    """Measure a checkpoint as the workflow does: the same rows of ``tables/estimates.csv``, bit for bit.

    Parameters
    ----------
    checkpoint : Path
        Folder in the format of transformers, with its tokenizer.
    text : Path
        Plain text in UTF-8, of which windows are drawn.
    name, revision : str
        Of the entry that the workflow would have.
    measures, windows, window_characters, seed, batch_vectors
        As in the configuration.
    threads : int, optional
        By default as many as there are cores.
    device : str, optional
        By default the first GPU, or the CPU where there is none.
    batch_size : int, optional
        Windows that go through the model together at first.
    progress : callable, optional
        Is told what is done, how much of it, and how much there is.
    shuffled_as : str
        A model whose batches it has, so that the two can be compared pair by pair; by default its own.

    Returns
    -------
    Measured

    Raises
    ------
    InputError
        As the workflow, with one sentence for all that can be wrong with the checkpoint or the text.
    """
    chosen = find_measures(measures)
    shape = read_shape(checkpoint, name)
    if shape.role == "encoder-decoder":
        raise InputError(
            f"{checkpoint} has an encoder and a decoder; in Python measure `model.get_encoder()` by "
            "`shape_of_learning.measure`, in the workflow add `role: encoder` to its entry"
        )
    sampling = SamplingProtocol(windows, window_characters, seed)
    threads = threads or count_cores()
    drawn = _draw(text, sampling)
    sample = SampleRun.load(
        *(checkpoint, drawn, sampling, shape),
        threads=threads,
        device=find_device(device),
        in_memory=True,
        with_head=False,
        at_once=batch_size,
    )
    states = StatesInMemory(sample)
    how = MeasuringProtocol(shuffled_as or name, windows, seed, batch_vectors, NEIGHBOURS)
    require_batches(how, states.rows, chosen)
    sample.store_states(ProgressStates(states, windows, progress) if progress else states)
    role = shape.role or ("encoder" if sees_later_tokens(sample.forward.model) else "decoder")
    return measure_states(
        *(states, chosen, how, role, (revision, None, None)),
        threads=threads if states.measured_on.type == "cpu" else 1,
        progress=progress,
        name=name,
    )


def draw_built_in_windows(windows: int, seed: int) -> list[str]:
    """Draw windows of the documentation that comes with Python, as the command does."""
    with TemporaryDirectory() as folder:
        text = Path(folder, "python_topics.txt")
        text.write_text(read_demo_text(), encoding="utf-8")
        return list(_draw(text, SamplingProtocol(windows, WINDOW_CHARACTERS, seed)))


def _draw(text: Path, sampling: SamplingProtocol) -> Any:
    with TemporaryDirectory() as folder:
        cleaned, alphabet = Path(folder, "text.txt"), Path(folder, "alphabet.json")
        clean(text, cleaned, alphabet, format="text")
        return draw_windows(cleaned, sampling, called=text.name)


class ProgressStates:
    """Passes hidden states on, and says how many windows are done."""

    def __init__(self, states: Any, windows: int, progress: Progress):
        self._states, self._windows, self._progress = states, windows, progress
        self.device, self._done = states.device, 0

    def write(self, state: int, rows: slice, values: Any) -> None:
        """Store one window, and count it."""
        self._states.write(state, rows, values)
        if state == self._states.layers:
            self._done += 1
            self._progress("windows", self._done, self._windows)
