"""The choices that a local pretraining leaves to the configuration."""

import math
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import Any

from shape_of_learning.errors import InputError

ARCHITECTURES = ("gpt_neox", "bert")
REGULARISERS = ("none", "cosine", "mse")
DEVICES = ("cpu", "cuda")
FINAL_RATE = 0.1  # of the peak, as Pythia's schedule ends (Biderman et al. 2023)


@dataclass(frozen=True)
class Recipe:
    """All that decides the weights, apart from the text.

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
        if self.architecture not in ARCHITECTURES:
            raise InputError(
                f"`pretraining.architecture` is `{self.architecture}`; make it `gpt_neox` or `bert`"
            )
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

        if self.regulariser not in REGULARISERS:
            near = get_close_matches(self.regulariser, REGULARISERS, n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"known: {', '.join(REGULARISERS)}"
            raise InputError(
                f"`pretraining.regulariser`: unknown regulariser `{self.regulariser}`; {hint}"
            )
        if (self.regulariser == "none") != (self.strength == 0):
            remedy = (
                "remove it" if self.regulariser == "none" else "write a factor above 0, such as 0.5"
            )
            raise InputError(
                f"`pretraining.strength` is {self.strength:g} with `regulariser: {self.regulariser}`; "
                f"{remedy}"
            )

    def written(self) -> dict[str, Any]:
        """Return what is there of it, for the record: without keys that change nothing."""
        unused = {"regulariser": "none", "strength": 0.0, "twin_of": "", "device": "cpu"}
        return {k: value for k, value in asdict(self).items() if unused.get(k) != value}

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
