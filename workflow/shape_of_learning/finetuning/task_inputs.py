"""Examples of a task as a model reads them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from shape_of_learning.errors import InputError
from shape_of_learning.tasks.examples import Example, Task

MOST_TOKENS = 512  # of an example, as of BERT


@dataclass(frozen=True)
class EncodedText:
    """The tokens of one example, special ones included, and the segments of a pair."""

    ids: np.ndarray
    segments: np.ndarray | None


@dataclass(frozen=True)
class Labels:
    """What a head is trained to give.

    Attributes
    ----------
    classes : tuple of int
        Those of a classification, in the order of the head's outputs; none of a graded task.
    mean, deviation : float
        Of the grades of the training split, by which they are standardised.
    """

    classes: tuple[int, ...]
    mean: float = 0.0
    deviation: float = 1.0

    @classmethod
    def of(cls, task: Task) -> "Labels":
        """Read those of a task; just the training split's grades are looked at."""
        if task.has_classes:
            return cls(tuple(task.classes))
        grades = np.array([example.label for example in task.split("train")])
        return cls((), float(grades.mean()), float(grades.std()))

    @property
    def outputs(self) -> int:
        """Width of the head."""
        return len(self.classes) or 1

    def targets(self, labels: Sequence[float]) -> torch.Tensor:
        """Numbers of classes, int64, or standardised grades, float32; of shape (n,)."""
        if self.classes:
            return torch.tensor([self.classes.index(int(label)) for label in labels])
        return torch.tensor([(label - self.mean) / self.deviation for label in labels])

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Cross-entropy, or mean squared error of standardised grades."""
        if self.classes:
            return torch.nn.functional.cross_entropy(outputs, targets)
        return torch.nn.functional.mse_loss(outputs.squeeze(-1), targets)

    def predictions(self, outputs: torch.Tensor) -> np.ndarray:
        """Labels that outputs of shape (n, outputs) stand for, of shape (n,)."""
        if self.classes:
            return np.array(self.classes)[outputs.argmax(dim=-1).numpy()]
        return outputs.squeeze(-1).numpy().astype(np.float64) * self.deviation + self.mean


def encode(
    tokenizer: Any, examples: Sequence[Example], *, role: str, longest: int
) -> list[EncodedText]:
    """Tokenise examples, with special tokens; a pair as the tokenizer joins two texts.

    Parameters
    ----------
    tokenizer : transformers.PreTrainedTokenizerBase
    examples : sequence of Example
        All single texts, or all pairs.
    role : {"encoder", "decoder"}
        Of the model.
    longest : int
        Tokens of an example at most; what is longer is cut at its end, of a pair the longer text.

    Raises
    ------
    InputError
        If it puts nothing between the two texts of a pair for a decoder, or a text has no token.
    """
    pairs = bool(examples[0].text_2)
    encoded = tokenizer(
        [example.text for example in examples],
        [example.text_2 for example in examples] if pairs else None,
        add_special_tokens=True,
        truncation=True,
        max_length=longest,
        return_token_type_ids=pairs,
        verbose=False,
    )
    if pairs and role == "decoder" and not _is_separated(encoded.sequence_ids(0)):
        raise InputError(
            "the task has pairs of texts, but the decoder's tokenizer puts no separator between two texts; "
            "take a task of single texts or an encoder"
        )
    if empty := [
        each.text for each, ids in zip(examples, encoded["input_ids"], strict=True) if not ids
    ]:
        raise InputError(f"the text {empty[0][:60]!r} of the task has no token; take it out")
    segments = encoded["token_type_ids"] if pairs else [None] * len(examples)
    return [
        EncodedText(np.array(ids), None if kinds is None else np.array(kinds))
        for ids, kinds in zip(encoded["input_ids"], segments, strict=True)
    ]


def _is_separated(numbers: Sequence[int | None]) -> bool:
    """Whether a special token stands between the texts, by the number of the text of each token."""
    first, second = (numbers.index(text) if text in numbers else -1 for text in (0, 1))
    return None in numbers[first:second]


def padded(texts: Sequence[EncodedText], *, padding: int, segments: int) -> dict[str, torch.Tensor]:
    """Arguments of a base model for texts of different length, filled up at their ends.

    Parameters
    ----------
    texts : sequence of EncodedText
    padding : int
        The token that fills up; it is masked.
    segments : int
        How many the model tells apart: below 2 it is told of none.
    """
    shape = len(texts), max(len(text.ids) for text in texts)
    ids, mask = np.full(shape, padding), np.zeros(shape, dtype=np.int64)
    kinds = np.zeros(shape, dtype=np.int64)
    for row, text in enumerate(texts):
        ids[row, : len(text.ids)] = text.ids
        mask[row, : len(text.ids)] = 1
        if text.segments is not None:
            kinds[row, : len(text.ids)] = text.segments
    arguments = {"input_ids": ids, "attention_mask": mask}
    if segments > 1 and texts[0].segments is not None:
        arguments["token_type_ids"] = kinds
    return {name: torch.from_numpy(value) for name, value in arguments.items()}


def epoch_batches(
    examples: int, batch_size: int, random: np.random.Generator
) -> Iterator[np.ndarray]:
    """Yield the numbers of the examples of each batch of one epoch, shuffled."""
    order = random.permutation(examples)
    for start in range(0, examples, batch_size):
        yield order[start : start + batch_size]
