"""Hidden states of the tokens of texts, without special tokens, as arrays in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shape_of_learning.embeddings.memory import require_memory
from shape_of_learning.embeddings.sample_run import SampleRun
from shape_of_learning.errors import InputError
from shape_of_learning.script_arguments.protocol import SamplingProtocol

if TYPE_CHECKING:
    import torch

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
    *,
    threads: int = 1,
    window_batch_size: int | None = None,
) -> list[TextVectors]:
    """Run several lists of texts through a checkpoint, which is loaded once.

    Parameters
    ----------
    checkpoint : Path
        Folder in Hugging Face format.
    parts : sequence of (texts, layers)
        Texts, or pairs of them that go through the model together, and the layers that are kept of them.
    protocol, shape, threads, window_batch_size
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
    sample = SampleRun.load(
        checkpoint,
        texts,
        protocol,
        shape,
        threads=threads,
        window_batch_size=window_batch_size,
    )
    sample = replace(sample, predicted=None)  # what its head makes of them nobody asks
    text_of_row = _text_of_row(sample, texts)
    part_of_row = _part_of_row(sample, [len(part) for part, _ in parts])
    plain = ~sample.rows["special"]
    kept = [
        np.isin(part_of_row, [n for n, (_, layers) in enumerate(parts) if layer in layers]) & plain
        for layer in range(len(sample.widths))
    ]
    store = _Store(sample.widths, kept)
    sample.into(store)
    found = []
    for number, (_, layers) in enumerate(parts):
        own = plain & (part_of_row == number)
        vectors = {}
        for layer in layers:
            # Parts follow each other, so that nothing has to be copied.
            of_layer = part_of_row[kept[layer]]
            rows = slice(*of_layer.searchsorted((number, number + 1)))
            vectors[layer] = store.values[layer][rows]
        own_texts = text_of_row[own]
        own_ids = sample.rows["token_ids"][own]
        found.append(TextVectors(vectors, own_ids, own_texts - own_texts[0]))
    return found


def _text_of_row(sample: SampleRun, texts: Texts) -> np.ndarray:
    """Number of the text that each token is of, (tokens,); special ones count as of the first of two."""
    numbers = sample.rows["windows"]
    pairs = [window.second for window in sample.windows if window.second is not None]
    if pairs:
        numbers = 2 * numbers + np.concatenate(pairs)
    there = np.unique(numbers[~sample.rows["special"]])
    expected = (2 if pairs else 1) * len(texts)
    if len(there) < expected:
        empty = int(np.setdiff1d(np.arange(expected), there)[0])
        example = texts[empty // 2 if pairs else empty]
        raise InputError(
            f"a text of the task has no token for the tokenizer in {sample.name}: {str(example)[:80]!r}; "
            "leave it out"
        )
    return numbers


def _part_of_row(sample: SampleRun, sizes: Sequence[int]) -> np.ndarray:
    return np.repeat(np.arange(len(sizes)), sizes)[sample.rows["windows"]]


class _Store:
    """Keeps of each layer the rows that are wanted.

    Parameters
    ----------
    widths : sequence of int
    kept : sequence of ndarray of bool, shape (tokens,)
        For each layer the rows that are wanted.
    """

    device: "str | torch.device" = "cpu"

    def __init__(self, widths: Sequence[int], kept: Sequence[np.ndarray]):
        self._kept, self._places = kept, [np.cumsum(rows) - 1 for rows in kept]
        shapes = [(int(rows.sum()), width) for rows, width in zip(kept, widths, strict=True)]
        require_memory(
            4 * sum(n * d for n, d in shapes),
            "the hidden states of a task",
            "lower `most` in its entry of `tasks`, or set it",
        )
        self.values = [np.empty(shape, dtype=np.float32) for shape in shapes]

    def write(self, state: int, rows: slice, values: Any) -> None:
        """Keep what is wanted of `values`, float32 of shape (rows, width)."""
        wanted = self._kept[state][rows]
        if wanted.any():
            self.values[state][self._places[state][rows][wanted]] = np.asarray(values)[wanted]

    def describe(self, attributes: Mapping[str, Any]) -> None:
        """Nothing is told of them."""
