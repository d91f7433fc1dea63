"""What a model is shown in training, and what it has to predict."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from shape_of_learning.errors import InputError
from shape_of_learning.tasks.examples import Example, Task
from shape_of_learning.training.recipe import PretrainingRecipe
from shape_of_learning.training.tokenizer import ENCODER_TOKENS

IGNORED = -100  # the label that transformers leaves out of the loss
# Devlin et al. 2019, section 3.1: of the masked positions 80 % show the mask, 10 % another token.
MASKED_SHARE, SHOWN_AS_MASK, SHOWN_AS_OTHER = 0.15, 0.8, 0.1
MOST_TOKENS = 512  # of an example of a task, as of BERT


def text_batch(
    ids: np.ndarray,
    size: int,
    random: np.random.Generator,
    recipe: PretrainingRecipe,
    tokenizer: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """Draw stretches of a text: shown and predicted tokens, each of shape (size, context).

    A decoder predicts the next token of a stretch, an encoder masked ones of ``[CLS] stretch [SEP]``.
    """
    if not recipe.encoder:
        shown = _stretches(ids, size, recipe.context, random)
        return shown, shown  # the model shifts the labels itself
    body = _stretches(ids, size, recipe.context - 2, random)
    chosen = random.random(body.shape) < MASKED_SHARE
    chosen[:, 0] |= ~chosen.any(axis=1)  # a sequence with nothing to predict has no loss
    fate = random.random(body.shape)
    # The trainer numbers special tokens first, so that the others are one range.
    other = random.integers(len(ENCODER_TOKENS), len(tokenizer), body.shape)
    shown = np.where(chosen & (fate < SHOWN_AS_MASK), tokenizer.mask_token_id, body)
    replaced = (fate >= SHOWN_AS_MASK) & (fate < SHOWN_AS_MASK + SHOWN_AS_OTHER)
    shown = np.where(chosen & replaced, other, shown)
    predicted = np.where(chosen, body, IGNORED)
    frame = tokenizer.cls_token_id, tokenizer.sep_token_id
    return _framed(shown, *frame), _framed(predicted, IGNORED, IGNORED)


def _stretches(ids: np.ndarray, size: int, length: int, random: np.random.Generator) -> np.ndarray:
    starts = random.integers(0, len(ids) - length + 1, size)
    return ids[starts[:, np.newaxis] + np.arange(length)]


def _framed(body: np.ndarray, first: int, last: int) -> np.ndarray:
    return np.pad(body, ((0, 0), (1, 1)), constant_values=((0, 0), (first, last)))


@dataclass(frozen=True)
class Labels:
    """What the head of a task is trained to give.

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

    def loss(self, outputs: torch.Tensor, labels: Sequence[float]) -> torch.Tensor:
        """Cross-entropy, or mean squared error of standardised grades."""
        if self.classes:
            numbers = torch.tensor([self.classes.index(int(label)) for label in labels])
            return torch.nn.functional.cross_entropy(outputs, numbers)
        grades = torch.tensor([(label - self.mean) / self.deviation for label in labels])
        return torch.nn.functional.mse_loss(outputs.squeeze(-1), grades)

    def predictions(self, outputs: torch.Tensor) -> np.ndarray:
        """Labels that outputs of shape (n, outputs) stand for, of shape (n,)."""
        if self.classes:
            return np.array(self.classes)[outputs.argmax(dim=-1).numpy()]
        return outputs.squeeze(-1).numpy().astype(np.float64) * self.deviation + self.mean


def encode(
    tokenizer: Any, examples: Sequence[Example], *, role: str, longest: int, segments: int
) -> list[dict[str, torch.Tensor]]:
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
    segments : int
        How many segments the model tells apart.

    Returns
    -------
    list of dict
        Arguments of the base model, of shape (tokens,).

    Raises
    ------
    InputError
        If it puts nothing between the two texts of a pair for a decoder.
    """
    pairs = bool(examples[0].text_2)
    encoded = tokenizer(
        [example.text for example in examples],
        [example.text_2 for example in examples] if pairs else None,
        truncation=True,
        max_length=longest,
        return_attention_mask=True,
        return_token_type_ids=pairs and segments > 1,
        verbose=False,
    )
    if pairs and role == "decoder" and not _is_separated(encoded.sequence_ids(0)):
        raise InputError(
            "the task has pairs of texts, but the decoder's tokenizer puts no separator between two texts; "
            "take a task of single texts or an encoder"
        )
    return [
        {name: torch.tensor(values[row]) for name, values in encoded.items()}
        for row in range(len(examples))
    ]


def _is_separated(numbers: Sequence[int | None]) -> bool:
    """Whether a special token stands between the texts, by the number of the text of each token."""
    first, second = (numbers.index(text) if text in numbers else -1 for text in (0, 1))
    return None in numbers[first:second]


def padded(texts: Sequence[Mapping[str, torch.Tensor]], padding: int) -> dict[str, torch.Tensor]:
    """Join what :func:`encode` gives for several texts, filled up at their ends by a token that is masked."""
    filled = {}
    for name in texts[0]:
        fill = padding if name == "input_ids" else 0
        columns = [text[name] for text in texts]
        filled[name] = pad_sequence(columns, batch_first=True, padding_value=fill)
    return filled


def epoch_batches(
    examples: int, batch_size: int, random: np.random.Generator
) -> Iterator[np.ndarray]:
    """Yield the numbers of the examples of each batch of one epoch, shuffled."""
    order = random.permutation(examples)
    for start in range(0, examples, batch_size):
        yield order[start : start + batch_size]
