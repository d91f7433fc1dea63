"""What a training leaves to the configuration, and what it does not.

Nothing heavy is imported here, since the plan reads it at every start.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any

from shape_of_learning.errors import InputError

# Of every training, as of Pythia (Biderman et al. 2023).
WEIGHT_DECAY = 0.01  # of matrices; biases and norms have none
GRADIENT_NORM = 1.0
# Of a pretraining, as of Pythia.
PRETRAINING_BETAS = (0.9, 0.95)
FINAL_RATE = 0.1  # of the peak
# Of a fine-tuning, as of BERT (Devlin et al. 2019).
FINETUNING_BETAS = (0.9, 0.999)
WARM_UP_SHARE = 0.1
# A plan does not know how many examples a task has, so the steps of a fine-tuning are parts of an epoch.
STEPS_PER_EPOCH = 16


def pretraining_steps(last_step: int) -> list[int]:
    """Log-spaced steps as Pythia has them at its start: 0, 1, 2, 4, 8, ... and the last one.

    Parameters
    ----------
    last_step : int
        Number of steps of the whole training, at least 1.

    Returns
    -------
    list of int
        Ascending, without repetition.

    Examples
    --------
    >>> pretraining_steps(10)
    [0, 1, 2, 4, 8, 10]
    """
    powers = [2**i for i in range(last_step.bit_length()) if 2**i < last_step]
    return [0, *powers, last_step]


def revision_of_step(step: int) -> str:
    """Name the revision of a step as the Pythia repositories do, ``step{N}``."""
    return f"step{step}"


@dataclass(frozen=True)
class PretrainingRecipe:
    """All that decides the weights of a pretraining, apart from the text.

    Attributes
    ----------
    architecture : {"gpt_neox", "bert"}
        A decoder that predicts the next token, or an encoder that predicts masked ones.
    layers, hidden_size, attention_heads : int
        Size of the model; the inner layer of a block is four times as wide.
    vocabulary : int
        Tokens of the byte-level BPE, special ones included.
    context : int
        Tokens of a training sequence and longest input, special ones included.
    batch_size : int
        Sequences per step.
    learning_rate : float
        Its peak, after `warmup_steps` of linear warm-up; a cosine takes it to a tenth of that.
    last_step : int
        Number of optimiser steps.
    seed : int
        Seed of the run.
    threads : int
        Of torch. The order of floating-point sums depends on it, so it belongs to the recipe.
    regulariser : {"none", "cosine", "mse"}
        What is added to the loss: a term of consecutive hidden states (Razzhigaev et al. 2024).
    strength : float
        Its factor.
    twin_of : str
        Another model, whose initial weights and batches this one has; empty if it has its own.
    device : {"cpu", "cuda"}
        Where it is trained; initial weights and batches are the same.
    """

    architecture: str
    layers: int
    hidden_size: int
    attention_heads: int
    vocabulary: int
    context: int
    batch_size: int
    learning_rate: float
    warmup_steps: int
    last_step: int
    seed: int
    threads: int = 1
    regulariser: str = "none"
    strength: float = 0.0
    twin_of: str = ""
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.hidden_size % self.attention_heads:
            raise InputError(
                f"`hidden_size` {self.hidden_size} cannot be shared by {self.attention_heads} "
                "`pretraining.attention_heads`; make it a multiple"
            )
        if self.warmup_steps >= self.last_step:
            raise InputError(
                f"`pretraining.warmup_steps` is {self.warmup_steps}, but there are only "
                f"{self.last_step} steps; make it smaller than `pretraining.last_step`"
            )
        if (self.regulariser == "none") != (self.strength == 0):
            remedy = "remove it" if self.strength else "write a factor above 0, such as 0.5"
            raise InputError(
                f"`pretraining.strength` is {self.strength:g} with `regulariser: {self.regulariser}`; "
                f"{remedy}"
            )

    def written(self) -> dict[str, Any]:
        """What the record of a checkpoint says of it: all but keys that change nothing."""
        unused = {"regulariser": "none", "strength": 0.0, "twin_of": "", "device": "cpu"}
        return {key: value for key, value in asdict(self).items() if unused.get(key) != value}

    @property
    def encoder(self) -> bool:
        """Whether the model is an encoder."""
        return self.architecture == "bert"

    @property
    def tokens_per_step(self) -> int:
        """Tokens that the model is shown in one step."""
        return self.batch_size * self.context

    def learning_rate_at(self, step: int) -> float:
        """Learning rate of the update that leads from `step` to the next."""
        if step < self.warmup_steps:
            return self.learning_rate * (step + 1) / self.warmup_steps
        done = (step - self.warmup_steps) / (self.last_step - self.warmup_steps)
        share = FINAL_RATE + (1 - FINAL_RATE) * (1 + math.cos(math.pi * done)) / 2
        return self.learning_rate * share


@dataclass(frozen=True)
class FinetuningRecipe:
    """All that decides the weights of a fine-tuning, apart from the checkpoint and the task.

    Attributes
    ----------
    learning_rate : float
        Its peak, after linear warm-up over a tenth of the updates; it then falls linearly to 0.
    batch_size : int
        Examples per update.
    epochs : int
        How often each training example is shown.
    seed : int
        Of the order of the examples, of dropout and of the task's head. The name of the model has no
        part in it, so that fine-tunings of several models have their examples in one order.
    threads : int
        Of torch. The order of floating-point sums depends on it.
    """

    learning_rate: float
    batch_size: int
    epochs: int
    seed: int
    threads: int = 1

    def updates_per_epoch(self, examples: int) -> int:
        """Return how many updates show `examples` once; the last batch may be smaller."""
        return math.ceil(examples / self.batch_size)

    def learning_rate_at(self, update: int, updates: int) -> float:
        """Learning rate of the update number `update`, from 0, of so many `updates`."""
        warm_up = max(1, round(WARM_UP_SHARE * updates))
        if update < warm_up:
            return self.learning_rate * (update + 1) / warm_up
        return self.learning_rate * (updates - update) / max(1, updates - warm_up)
