"""What a training leaves to the configuration, and what it does not.

Nothing heavy is imported here, since the plan reads it at every start.
"""

import math
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from shape_of_learning.errors import InputError
from shape_of_learning.validation import Name, Section, with_exponent

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
# Of a record, in this order; what sets a recipe apart comes after them.
WRITTEN_FIRST = (
    *("architecture", "layers", "hidden_size", "attention_heads", "vocabulary", "context"),
    *("batch_size", "learning_rate", "warmup_steps", "last_step", "seed"),
)

Positive = Annotated[float, Field(gt=0), with_exponent]
Million = Annotated[int, Field(ge=1, le=1_000_000)]
Threads = Annotated[int, Field(ge=1, le=10_000)]


def space_pretraining_steps(last_step: int) -> list[int]:
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
    >>> space_pretraining_steps(10)
    [0, 1, 2, 4, 8, 10]
    """
    powers = [2**i for i in range(last_step.bit_length()) if 2**i < last_step]
    return [0, *powers, last_step]


def name_step(step: int) -> str:
    """Name the revision of a step as the Pythia repositories do, ``step{N}``."""
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
        its factor, needed with one. `regularisation` in `checkpoint.json` is the term times it
    twin_of
        another `pretraining` whose initial weights and batches this one has. Their recipes differ in the
        two keys above alone. Models that are no twins have random numbers of their own, by their names:
        they are other seeds
    """

    architecture: Literal["gpt_neox", "bert"]
    attention_heads: Million
    vocabulary: int = Field(ge=260, le=10_000_000)
    context: int = Field(ge=8, le=1_000_000)
    batch_size: Million
    learning_rate: Positive
    warmup_steps: int = Field(ge=0, le=10**9)
    last_step: int = Field(ge=1, le=10**9)
    threads: Threads
    regulariser: Literal["none", "cosine", "mse"] = "none"
    strength: Positive | None = None
    twin_of: Name | None = None

    @property
    def role(self) -> str:
        """What its architecture makes of the model: an encoder or a decoder."""
        return "encoder" if self.encoder else "decoder"

    @property
    def encoder(self) -> bool:
        """Whether the model is an encoder."""
        return self.architecture == "bert"


class PretrainingRecipe(Pretraining):
    """All that decides the weights of a pretraining, apart from the text.

    Attributes
    ----------
    layers, hidden_size
        size of the model; the inner layer of a block is four times as wide.
    seed
        of the run

    Notes
    -----
    The learning rate is its peak, after `warmup_steps` of linear warm-up; a cosine takes it to a tenth of that
    at `last_step`. Threads are those of torch: the order of floating-point sums depends on them.
    """

    layers: int
    hidden_size: int
    seed: int

    @model_validator(mode="after")
    def _can_be(self) -> "PretrainingRecipe":
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
        """What the record of a checkpoint says of it: all but keys that change nothing."""
        said = self.model_dump(exclude_defaults=True)
        return {key: said.pop(key) for key in WRITTEN_FIRST} | said

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


class FinetuningRecipe(Section):
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

    learning_rate: Positive
    batch_size: Million
    epochs: Threads
    seed: int = Field(ge=0, le=2**63 - 1)
    threads: Threads

    def updates_per_epoch(self, examples: int) -> int:
        """Return how many updates show `examples` once; the last batch may be smaller."""
        return math.ceil(examples / self.batch_size)

    def learning_rate_at(self, update: int, updates: int) -> float:
        """Learning rate of the update number `update`, from 0, of so many `updates`."""
        warm_up = max(1, round(WARM_UP_SHARE * updates))
        if update < warm_up:
            return self.learning_rate * (update + 1) / warm_up
        return self.learning_rate * (updates - update) / max(1, updates - warm_up)
