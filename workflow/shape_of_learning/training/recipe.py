"""Define the recipes of trainings: their settings and their constants.

This module imports nothing heavy, because the plan reads it at every start.
"""

import math
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from shape_of_learning.errors import InputError
from shape_of_learning.validation import Name, Section, number_reader

# For all trainings, as in Pythia (Biderman et al. 2023).
WEIGHT_DECAY = 0.01  # for matrices only
GRADIENT_NORM = 1.0
# For pretrainings, as in Pythia.
PRETRAINING_BETAS = (0.9, 0.95)
FINAL_RATE = 0.1  # relative to the peak
# For fine-tunings, as in BERT (Devlin et al. 2019).
FINETUNING_BETAS = (0.9, 0.999)
WARM_UP_SHARE = 0.1
# The plan does not know the number of examples of a task, so the steps of a fine-tuning are parts of an epoch.
STEPS_PER_EPOCH = 16
# First keys of a record; the keys of a regulariser and of twins follow.
RECORD_KEYS = (
    "architecture",
    "layers",
    "hidden_size",
    "attention_heads",
    "vocabulary",
    "context",
    "batch_size",
    "learning_rate",
    "warmup_steps",
    "last_step",
    "seed",
)

Positive = Annotated[float, Field(gt=0), number_reader]
Million = Annotated[int, Field(ge=1, le=1_000_000)]
TenThousand = Annotated[int, Field(ge=1, le=10_000)]


def space_steps(last_step: int) -> list[int]:
    """Return the log-spaced steps 0, 1, 2, 4, 8, ..., as at the start of Pythia, and the last step.

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
    >>> space_steps(10)
    [0, 1, 2, 4, 8, 10]
    """
    powers = [2**i for i in range(last_step.bit_length()) if 2**i < last_step]
    return [0, *powers, last_step]


def name_step(step: int) -> str:
    """Return the revision of a step, ``step{N}`` as in the Pythia repositories."""
    return f"step{step}"


class Pretraining(Section):
    """The recipe of a local pretraining on the run's corpus.

    Attributes
    ----------
    regulariser
        `none` (the default), `cosine` or `mse`: a term of the loss that keeps consecutive hidden states
        alike, before the final norm: the sum over blocks of the mean over tokens of 1 - cos or of the
        squared distance
    strength
        the factor of the term, needed with a regulariser. `regularisation` in `checkpoint.json` is the term times
        this factor
    twin_of
        another `pretraining` whose initial weights and batches this one has. Their recipes differ in the
        two keys above alone. Models that are not twins draw other random numbers, which depend on
        their names, as if they had other seeds
    """

    architecture: Literal["gpt_neox", "bert"]
    attention_heads: Million
    vocabulary: int = Field(ge=260, le=10_000_000)
    context: int = Field(ge=8, le=1_000_000)
    batch_size: Million
    learning_rate: Positive
    warmup_steps: int = Field(ge=0, le=10**9)
    last_step: int = Field(ge=1, le=10**9)
    threads: TenThousand
    regulariser: Literal["none", "cosine", "mse"] = "none"
    strength: Positive | None = None
    twin_of: Name | None = None

    @property
    def role(self) -> str:
        """The role of the architecture, ``encoder`` or ``decoder``."""
        return "encoder" if self.encoder else "decoder"

    @property
    def encoder(self) -> bool:
        """Whether the model is an encoder."""
        return self.architecture == "bert"


class PretrainingRecipe(Pretraining):
    """The settings that the weights of a pretraining depend on, besides the text.

    Attributes
    ----------
    layers, hidden_size
        size of the model; the inner layer of a block is four times as wide.
    seed
        of the run

    Notes
    -----
    `learning_rate` is the peak after `warmup_steps` of linear warm-up; a cosine lowers it to a tenth at `last_step`.
    `threads` are torch's, on which the order of floating-point sums depends.
    """

    layers: int
    hidden_size: int
    seed: int

    @model_validator(mode="after")
    def _check_combinations(self) -> "PretrainingRecipe":
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
        if (self.regulariser == "none") != (self.strength is None):
            remedy = "remove it" if self.strength else "write a factor above 0, such as 0.5"
            raise InputError(
                f"`pretraining.strength` is {self.strength or 0:g} with `regulariser: {self.regulariser}`; "
                f"{remedy}"
            )
        return self

    def make_record(self) -> dict[str, Any]:
        """Return the recipe for the record of a checkpoint, without keys that have their defaults."""
        settings = self.model_dump(exclude_defaults=True)
        return {key: settings.pop(key) for key in RECORD_KEYS} | settings

    @property
    def tokens_per_step(self) -> int:
        """Number of tokens in one step."""
        return self.batch_size * self.context

    def learning_rate_at(self, step: int) -> float:
        """Return the learning rate of the update from `step` to the next step."""
        if step < self.warmup_steps:
            return self.learning_rate * (step + 1) / self.warmup_steps
        progress = (step - self.warmup_steps) / (self.last_step - self.warmup_steps)
        share = FINAL_RATE + (1 - FINAL_RATE) * (1 + math.cos(math.pi * progress)) / 2
        return self.learning_rate * share


class FinetuningRecipe(Section):
    """The settings that the weights of a fine-tuning depend on, besides the checkpoint and the task.

    Attributes
    ----------
    learning_rate : float
        The peak after linear warm-up over a tenth of the updates; the rate then falls linearly to 0.
    batch_size : int
        Examples per update.
    epochs : int
        Passes over the training examples.
    seed : int
        Seed of the order of the examples, of dropout and of the task's head. It does not depend on the model, so all
        models get the examples in the same order.
    threads : int
        TenThousand of torch, on which the order of floating-point sums depends.
    """

    learning_rate: Positive
    batch_size: Million
    epochs: TenThousand
    seed: int = Field(ge=0, le=2**63 - 1)
    threads: TenThousand

    def learning_rate_at(self, update: int, updates: int) -> float:
        """Return the learning rate of update number `update`, from 0, of `updates` updates."""
        warm_up = max(1, round(WARM_UP_SHARE * updates))
        if update < warm_up:
            return self.learning_rate * (update + 1) / warm_up
        return self.learning_rate * (updates - update) / max(1, updates - warm_up)
