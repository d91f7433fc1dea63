"""Fine-tune a checkpoint on a task, and save steps that serve like revisions on the Hub."""

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from shape_of_learning.files import atomic_write
from shape_of_learning.random_streams import random_stream, stream_seed
from shape_of_learning.tasks.examples import Example, Task
from shape_of_learning.tasks.scores import SCORES
from shape_of_learning.training.recipe import (
    FINETUNING_BETAS,
    STEPS_PER_EPOCH,
    FinetuningRecipe,
    space_steps,
)
from shape_of_learning.training.train import list_versions, make_deterministic, save_step, train

logger = logging.getLogger(__name__)

HEAD_DEVIATION = 0.02  # standard deviation of the head's initial weights, as in BERT
SCORED_AT_A_TIME = 64  # examples
MOST_TOKENS = 512  # tokens of an example, as in BERT


@dataclass(frozen=True)
class Start:
    """The checkpoint at the start of a fine-tuning.

    Attributes
    ----------
    network : transformers.PreTrainedModel
        In float32 on the CPU: a base model, which is trained in place, or a model with its language-model head, which
        is not changed.
    tokenizer : transformers.PreTrainedTokenizerBase
    role : {"encoder", "decoder"}
    write_tokenizer : callable
        Writes the tokenizer's files into a folder.
    """

    network: Any
    tokenizer: Any
    role: str
    write_tokenizer: Callable[[Path], object]


def finetune(
    start: Start,
    task: Task,
    recipe: FinetuningRecipe,
    *,
    model: str,
    destination: Path,
    provenance: Mapping[str, Any],
) -> None:
    """Train a checkpoint with a linear head on a task, and save it at log-spaced steps.

    An encoder's head reads the mean of the last hidden states of all tokens of an example, special tokens included; a
    decoder's head reads the last hidden state of the last token. An epoch has 16 steps. Step k comes after k sixteenths
    of the updates of an epoch, rounded up, so that the plan knows the steps before the number of examples.

    Parameters
    ----------
    start : Start
    task : Task
        The model trains on its split ``train``, and is scored on ``held_out``.
    recipe : FinetuningRecipe
    model : str
        Name of the fine-tuned model.
    destination : Path
        Folder that appears when all steps are saved. It holds one folder in Hugging Face format per step, called
        ``step{N}``, with the tokenizer and a ``checkpoint.json`` that states the step, the updates, the
        held-out score, the recipe and the task, but not the head of the task.
    provenance : mapping
        Further facts for ``checkpoint.json``.

    Notes
    -----
    The same checkpoint, task, recipe and library versions give the same bytes on processors with the same
    vector instructions.
    """
    with make_deterministic(recipe.threads), atomic_write(destination) as folder:
        torch.manual_seed(stream_seed(recipe.seed, "fine-tuning"))
        classifier = _TaskModel(start, task)
        examples = len(classifier.texts["train"])
        updates_per_epoch = math.ceil(examples / recipe.batch_size)  # the last batch may be smaller
        count, steps = recipe.epochs * updates_per_epoch, recipe.epochs * STEPS_PER_EPOCH
        updates = train(
            [*classifier.base.parameters(), *classifier.head.parameters()],
            shuffle_batches(examples, recipe, random_stream(recipe.seed, "fine-tuning batches")),
            classifier.compute_losses,
            [recipe.learning_rate_at(update, count) for update in range(count)],
            betas=FINETUNING_BETAS,
            name=model,
        )
        facts = {
            "source": "finetuning",
            "recipe": recipe.model_dump(),
            "software": list_versions(),
            "model": model,
        }
        steps_by_update: dict[int, list[int]] = {}
        for step in space_steps(steps):
            update = math.ceil(step * updates_per_epoch / STEPS_PER_EPOCH)
            steps_by_update.setdefault(update, []).append(step)
        for update in updates:
            if update not in steps_by_update:
                continue
            score = classifier.score()
            reached_steps = steps_by_update[update]
            words = "%s: step %d (after %d updates; %d steps are an epoch), held-out %s %.3f"
            logger.info(
                words, model, reached_steps[-1], update, STEPS_PER_EPOCH, task.metric, score
            )
            record = {
                "updates": update,
                "score": None if math.isnan(score) else score,
                **facts,
                **provenance,
            }
            for step in reached_steps:
                save_step(start.network, start.write_tokenizer, folder, step=step, **record)


class _TaskModel:
    """A checkpoint with the head of a task, and the encoded examples of the task."""

    def __init__(self, start: Start, task: Task) -> None:
        self.base, self.role, self.metric = start.network.base_model, start.role, task.metric
        config = self.base.config.get_text_config()
        self.labels = Labels.read_labels(task)
        # opt-350m projects its last hidden state to this width.
        width = getattr(config, "word_embed_proj_dim", config.hidden_size)
        self.head = torch.nn.Linear(width, len(self.labels.classes) or 1)
        torch.nn.init.normal_(self.head.weight, std=HEAD_DEVIATION)
        torch.nn.init.zeros_(self.head.bias)
        context = getattr(config, "max_position_embeddings", None) or MOST_TOKENS
        longest = min(MOST_TOKENS, start.tokenizer.model_max_length, context)
        segments = getattr(config, "type_vocab_size", 0)
        padding, embeddings = start.tokenizer.pad_token_id or 0, self.base.get_input_embeddings()
        # Users often add a padding token to a tokenizer and not to its model. Padding is masked, so 0 can replace it.
        self.padding = padding if padding < len(embeddings.weight) else 0
        self.base.requires_grad_(True).train()
        self.texts, self.truth = {}, {}
        for split in ("train", "held_out"):
            examples = task.split(split)
            self.truth[split] = np.array([example.label for example in examples])
            self.texts[split] = encode(
                start.tokenizer, examples, longest=longest, segments=segments
            )

    def compute_losses(self, batch: np.ndarray) -> dict[str, torch.Tensor]:
        """Compute the loss of the training examples with these numbers."""
        outputs = self.compute_outputs([self.texts["train"][number] for number in batch])
        return {"loss": self.labels.compute_loss(outputs, self.truth["train"][batch].tolist())}

    def compute_outputs(self, texts: Sequence[Mapping[str, torch.Tensor]]) -> torch.Tensor:
        """Compute the outputs of the head, of shape (texts, outputs)."""
        arguments = pad_texts(texts, self.padding)
        states = self.base(**arguments).last_hidden_state
        mask = arguments["attention_mask"]
        if self.role == "decoder":
            vectors = states[torch.arange(len(texts)), mask.sum(dim=1) - 1]
        else:
            vectors = (states * mask.unsqueeze(-1)).sum(dim=1) / mask.sum(dim=1, keepdim=True)
        return self.head(vectors)

    @torch.no_grad()
    def score(self) -> float:
        """Compute the score of the held-out split, without dropout."""
        texts, size = self.texts["held_out"], SCORED_AT_A_TIME
        self.base.eval()
        parts = [
            self.compute_outputs(texts[start : start + size])
            for start in range(0, len(texts), size)
        ]
        self.base.train()
        predictions = self.labels.make_predictions(torch.cat(parts))
        return SCORES[self.metric](self.truth["held_out"], predictions)


@dataclass(frozen=True)
class Labels:
    """The classes or grades that the head of a task learns.

    Attributes
    ----------
    classes : tuple of int
        Classes in the order of the head's outputs; empty for a graded task.
    mean, deviation : float
        Mean and deviation of the training split's grades, by which grades are standardised.
    """

    classes: tuple[int, ...]
    mean: float = 0.0
    deviation: float = 1.0

    @classmethod
    def read_labels(cls, task: Task) -> "Labels":
        """Read the labels of a task, with the mean and the deviation of the training split's grades."""
        if task.has_classes:
            return cls(tuple(task.classes))
        grades = np.array([example.label for example in task.split("train")])
        return cls((), float(grades.mean()), float(grades.std()))

    def compute_loss(self, outputs: torch.Tensor, labels: Sequence[float]) -> torch.Tensor:
        """Compute the cross-entropy, or the mean squared error of standardised grades."""
        if self.classes:
            numbers = torch.tensor([self.classes.index(int(label)) for label in labels])
            return torch.nn.functional.cross_entropy(outputs, numbers)
        grades = torch.tensor([(label - self.mean) / self.deviation for label in labels])
        return torch.nn.functional.mse_loss(outputs.squeeze(-1), grades)

    def make_predictions(self, outputs: torch.Tensor) -> np.ndarray:
        """Convert outputs of shape (n, outputs) to labels of shape (n,)."""
        if self.classes:
            return np.array(self.classes)[outputs.argmax(dim=-1).numpy()]
        return outputs.squeeze(-1).numpy().astype(np.float64) * self.deviation + self.mean


def encode(
    tokenizer: Any, examples: Sequence[Example], *, longest: int, segments: int
) -> list[dict[str, torch.Tensor]]:
    """Tokenise examples with special tokens; the tokenizer joins the texts of a pair.

    Parameters
    ----------
    tokenizer : transformers.PreTrainedTokenizerBase
    examples : sequence of Example
        All single texts, or all pairs.
    longest : int
        The largest number of tokens of an example. A longer example is cut at its end, a longer pair at the end of its
        longer text.
    segments : int
        Number of segments that the model distinguishes.

    Returns
    -------
    list of dict
        Arguments of the base model, of shape (tokens,).
    """
    are_pairs = bool(examples[0].text_2)
    encoding = tokenizer(
        [example.text for example in examples],
        [example.text_2 for example in examples] if are_pairs else None,
        truncation=True,
        max_length=longest,
        return_attention_mask=True,
        return_token_type_ids=are_pairs and segments > 1,
        verbose=False,
    )
    return [
        {name: torch.tensor(values[row]) for name, values in encoding.items()}
        for row in range(len(examples))
    ]


def pad_texts(texts: Sequence[Mapping[str, torch.Tensor]], padding: int) -> dict[str, torch.Tensor]:
    """Join several texts of :func:`encode`, with masked padding at their ends."""
    arguments = {}
    for name in texts[0]:
        fill = padding if name == "input_ids" else 0
        columns = [text[name] for text in texts]
        arguments[name] = pad_sequence(columns, batch_first=True, padding_value=fill)
    return arguments


def shuffle_batches(
    examples: int, recipe: FinetuningRecipe, random: np.random.Generator
) -> Iterator[np.ndarray]:
    """Yield the numbers of the examples of each batch; each epoch has its own order."""
    for _ in range(recipe.epochs):
        order = random.permutation(examples)
        for start in range(0, examples, recipe.batch_size):
            yield order[start : start + recipe.batch_size]
