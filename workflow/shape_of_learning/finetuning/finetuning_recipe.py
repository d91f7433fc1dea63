"""The choices that a fine-tuning leaves to the configuration."""

import math
from dataclasses import dataclass

WARM_UP_SHARE = 0.1


@dataclass(frozen=True)
class FinetuningRecipe:
    """All that decides the weights, apart from the checkpoint and the task.

    Attributes
    ----------
    learning_rate : float
        Its peak, after linear warm-up over a tenth of the updates; it then falls linearly to 0 (Devlin et
        al. 2019).
    batch_size : int
        Examples per update.
    epochs : int
        How often each training example is shown.
    seed : int
        Of the order of the examples, of dropout and of the task's head. The name of the model has no part in
        it, so that fine-tunings of several models have their examples in one order.
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
