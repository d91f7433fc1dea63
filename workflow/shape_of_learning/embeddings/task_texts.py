"""Hidden states of the tokens of texts, without special tokens, as arrays in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from shape_of_learning.embeddings.model import require_memory
from shape_of_learning.embeddings.run import SampleRun, SamplingProtocol
from shape_of_learning.errors import InputError

Texts = Sequence[str | tuple[str, str]]


@dataclass(frozen=True)
class TextVectors:
    """The tokens of some texts, in their order.

    Attributes
    ----------
    layers : dict of int to ndarray of float32, shape (tokens, width)
        Hidden states by layer.
    token_ids : ndarray of int64, shape (tokens,)
    texts : ndarray of int64, shape (tokens,)
        Number of the text that each is of, ascending; of the pair i the texts are 2 i and 2 i + 1.
    """

    layers: dict[int, np.ndarray]
    token_ids: np.ndarray
    texts: np.ndarray


def text_vectors(
    checkpoint: Path,
    parts: Sequence[tuple[Texts, Sequence[int]]],
    protocol: SamplingProtocol,
    shape: Mapping[str, Any],
    **loaded: Any,
) -> list[TextVectors]:
    """Run several lists of texts through a checkpoint, which is loaded once.

    Parameters
    ----------
    checkpoint : Path
        Folder in Hugging Face format.
    parts : sequence of (texts, layers)
        Texts, or pairs of them that go through the model together, and the layers that are kept of them.
    protocol, shape, **loaded
        As in :meth:`.SampleRun.load`; of the protocol only how a text is run.

    Returns
    -------
    list of TextVectors
        One for each part.

    Raises
    ------
    InputError
        As :meth:`.SampleRun.load`; or if a text has no token.
    """
    texts = [text for part, _ in parts for text in part]
    sample = SampleRun.load(checkpoint, texts, protocol, shape, **loaded)
    text_of_row = _text_of_row(sample, texts)
    part_of_window = np.repeat(np.arange(len(parts)), [len(part) for part, _ in parts])
    part_of_row = part_of_window[sample.rows["windows"]]
    store = _Store(sample, part_of_row, [layers for _, layers in parts])
    replace(sample, predicted=None).into(store)  # what its head makes of them nobody asks
    found = []
    for number, layers in enumerate(store.layers):
        own = store.plain & (part_of_row == number)
        numbers = text_of_row[own]
        found.append(TextVectors(layers, sample.rows["token_ids"][own], numbers - numbers[0]))
    return found


def _text_of_row(sample: SampleRun, texts: Texts) -> np.ndarray:
    """Number of the text that each token is of, (tokens,); special ones count as of the first of two."""
    numbers, of_window = sample.rows["windows"], 1
    if sample.windows[0].second is not None:
        of_window = 2
        numbers = 2 * numbers + np.concatenate([window.second for window in sample.windows])
    there = numbers[~sample.rows["special"]]
    empty = np.setdiff1d(np.arange(of_window * len(texts)), there)
    if len(empty):
        raise InputError(
            f"a text of the task has no token for the tokenizer in {sample.name}: "
            f"{str(texts[empty[0] // of_window])[:80]!r}; leave it out"
        )
    return numbers


class _Store:
    """Keeps of each part of the texts its layers, without special tokens.

    Parameters
    ----------
    sample : SampleRun
        What is run.
    part_of_row : ndarray of int, shape (tokens,)
    layers_of_parts : sequence of sequence of int

    Attributes
    ----------
    plain : ndarray of bool, shape (tokens,)
        Which rows are no special tokens.
    layers : list of dict of int to ndarray
        Of each part, as in :class:`TextVectors`.
    """

    device = "cpu"

    def __init__(
        self,
        sample: SampleRun,
        part_of_row: np.ndarray,
        layers_of_parts: Sequence[Sequence[int]],
    ):
        self.plain, self._part_of_row = ~sample.rows["special"], part_of_row
        sizes = np.bincount(part_of_row[self.plain])
        # Parts follow each other.
        self._places = np.cumsum(self.plain) - 1 - (np.cumsum(sizes) - sizes)[part_of_row]
        self.layers = [
            {layer: np.empty((size, sample.widths[layer]), dtype=np.float32) for layer in layers}
            for size, layers in zip(sizes, layers_of_parts, strict=True)
        ]
        require_memory(
            sum(rows.nbytes for layers in self.layers for rows in layers.values()),
            "the hidden states of a task",
            "lower `most` in its entry of `tasks`, or set it",
        )

    def write(self, state: int, rows: slice, values: Any) -> None:
        """Keep what is wanted of `values`, float32 of shape (rows, width)."""
        kept = self.layers[self._part_of_row[rows.start]].get(state)
        if kept is not None:
            plain = self.plain[rows]
            kept[self._places[rows][plain]] = np.asarray(values)[plain]
