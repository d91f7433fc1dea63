"""Training of a checkpoint on a task, whose saved steps serve like revisions of a Hub repository."""

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from shape_of_learning.checkpoints.saved_training import deterministic, save_step, software
from shape_of_learning.finetuning.finetuning_recipe import FinetuningRecipe
from shape_of_learning.finetuning.task_inputs import (
    MOST_TOKENS,
    EncodedText,
    Labels,
    encode,
    epoch_batches,
    padded,
)
from shape_of_learning.random_streams import random_stream, stream_seed
from shape_of_learning.storage.files import atomic_write
from shape_of_learning.tasks.examples import Task
from shape_of_learning.tasks.scores import SCORES

logger = logging.getLogger(__name__)

STEPS_PER_EPOCH = 16
HEAD_DEVIATION = 0.02  # of its initial weights, as of all weights of BERT
WEIGHT_DECAY = 0.01
GRADIENT_NORM = 1.0
SCORED_AT_A_TIME = 64


@dataclass(frozen=True)
class Start:
    """The checkpoint that is trained further.

    Attributes
    ----------
    network : transformers.PreTrainedModel
        In float32 on the CPU: a base model, or one with its language-model head, which stays as it is. It is
        trained in place.
    tokenizer : transformers.PreTrainedTokenizerBase
    role : {"encoder", "decoder"}
    write_tokenizer : callable
        Puts the tokenizer's files into a folder.
    """

    network: Any
    tokenizer: Any
    role: str
    write_tokenizer: Callable[[Path], object]


def finetune(
    start: Start,
    task: Task,
    recipe: FinetuningRecipe,
    saved: Mapping[int, str],
    *,
    destination: Path,
    provenance: Mapping[str, Any],
) -> None:
    """Train a checkpoint with a linear head on a task and save it at some steps.

    An encoder's head reads the mean of the last hidden states of all tokens of an example, special ones
    included, a decoder's head the last token's.

    Parameters
    ----------
    start : Start
    task : Task
        Trained on its split ``train``, scored on ``held_out``.
    recipe : FinetuningRecipe
    saved : mapping of int to str
        Steps, of which 16 make an epoch, and the names of their folders. Step k comes after as many updates
        as k sixteenths of an epoch have, rounded up, so a plan knows the steps before the task is there.
    destination : Path
        Folder that appears, whole, at the end. It holds one folder in Hugging Face format per step, with the
        tokenizer and a ``checkpoint.json`` that says the step, the updates, the held-out score, the recipe
        and what the task was. The head of the task is not kept.
    provenance : mapping
        More for ``checkpoint.json``.

    Raises
    ------
    InputError
        As :func:`.encode`.

    Notes
    -----
    The same checkpoint, task, recipe and library versions give the same bytes on processors with the same
    vector instructions.
    """
    with deterministic(recipe.threads), atomic_write(destination) as folder:
        torch.manual_seed(stream_seed(recipe.seed, "fine-tuning"))
        tuned = _TunedModel(start, task)
        per_epoch = recipe.updates_per_epoch(len(task.split("train")))
        after: dict[int, list[int]] = {}
        for step in sorted(saved):
            after.setdefault(math.ceil(step * per_epoch / STEPS_PER_EPOCH), []).append(step)
        for updates in _train(tuned, recipe):
            if updates not in after:
                continue
            score = tuned.score()
            logger.info("after %d updates, held-out %s %.3f", updates, task.metric, score)
            for step in after[updates]:
                revision = folder / saved[step]
                revision.mkdir(parents=True)
                save_step(
                    start.network,
                    start.write_tokenizer,
                    revision,
                    step=step,
                    updates=updates,
                    score=None if math.isnan(score) else score,
                    source="finetuning",
                    recipe=asdict(recipe),
                    software=software(),
                    **provenance,
                )


class _TunedModel:
    """A checkpoint, the head of the task, and the task as both read it."""

    def __init__(self, start: Start, task: Task) -> None:
        self.base, self.role, self.metric = start.network.base_model, start.role, task.metric
        config = self.base.config.get_text_config()
        self.labels = Labels.of(task)
        # opt-350m projects its last hidden state.
        width = getattr(config, "word_embed_proj_dim", config.hidden_size)
        self.head = torch.nn.Linear(width, self.labels.outputs)
        torch.nn.init.normal_(self.head.weight, std=HEAD_DEVIATION)
        torch.nn.init.zeros_(self.head.bias)
        longest = min(
            MOST_TOKENS,
            start.tokenizer.model_max_length,
            getattr(config, "max_position_embeddings", None) or MOST_TOKENS,
        )
        self._padding = start.tokenizer.pad_token_id or 0
        self._segments = getattr(config, "type_vocab_size", 0)
        examples = {name: task.split(name) for name in ("train", "held_out")}
        self.truth = {name: [e.label for e in examples[name]] for name in examples}
        self.texts = {
            name: encode(start.tokenizer, examples[name], role=start.role, longest=longest)
            for name in examples
        }

    def outputs(self, texts: Sequence[EncodedText]) -> torch.Tensor:
        """Outputs of the head, of shape (texts, outputs)."""
        arguments = padded(texts, padding=self._padding, segments=self._segments)
        states = self.base(**arguments).last_hidden_state
        mask = arguments["attention_mask"]
        if self.role == "decoder":
            pooled = states[torch.arange(len(texts)), mask.sum(dim=1) - 1]
        else:
            pooled = (states * mask.unsqueeze(-1)).sum(dim=1) / mask.sum(dim=1, keepdim=True)
        return self.head(pooled)

    @torch.no_grad()
    def score(self) -> float:
        """Score of the held-out split, without dropout."""
        texts, before = self.texts["held_out"], self.base.training
        self.base.eval()
        parts = [
            self.outputs(texts[start : start + SCORED_AT_A_TIME])
            for start in range(0, len(texts), SCORED_AT_A_TIME)
        ]
        self.base.train(before)
        predicted = self.labels.predictions(torch.cat(parts))
        return SCORES[self.metric](self.truth["held_out"], predicted)


def _train(tuned: _TunedModel, recipe: FinetuningRecipe) -> Iterator[int]:
    """Yield the number of updates made so far: 0 before the first one, then 1, 2, ..."""
    texts, labels = tuned.texts["train"], tuned.truth["train"]
    parameters = [*tuned.base.parameters(), *tuned.head.parameters()]
    optimiser = torch.optim.AdamW(
        [
            {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": WEIGHT_DECAY},
            {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
        ]
    )
    updates = recipe.epochs * recipe.updates_per_epoch(len(texts))
    random = random_stream(recipe.seed, "fine-tuning batches")
    tuned.base.requires_grad_(True).train()
    done = 0
    for _ in range(recipe.epochs):
        for batch in epoch_batches(len(texts), recipe.batch_size, random):
            yield done
            for group in optimiser.param_groups:
                group["lr"] = recipe.learning_rate_at(done, updates)
            outputs = tuned.outputs([texts[number] for number in batch])
            targets = tuned.labels.targets([labels[number] for number in batch])
            optimiser.zero_grad()
            tuned.labels.loss(outputs, targets).backward()
            torch.nn.utils.clip_grad_norm_(parameters, GRADIENT_NORM)
            optimiser.step()
            done += 1
    yield done
