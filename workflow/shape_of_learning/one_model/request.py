"""The arguments of a user of Python, and their checks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np

from shape_of_learning.errors import InputError
from shape_of_learning.metrics.registry import DEFAULT_MEASURES
from shape_of_learning.one_model.options import BATCH_VECTORS

POOLS = ("all", "last", "mean")


@dataclass(frozen=True)
class Request:
    """The arguments of :func:`.measure`, except the model."""

    tokenizer: Any = None
    texts: Iterable[str] | None = None
    revision: str = "main"
    mask: Any = None
    groups: Any = None
    measures: Iterable[str] = DEFAULT_MEASURES
    layers: int | Iterable[int] | None = None
    tokens: str = "all"
    windows: int | None = None
    window_tokens: int | None = None
    name: str = ""
    step: int | None = None
    seed: int = 0
    batch_vectors: int = BATCH_VECTORS
    batch_size: int | None = None
    device: str | None = None
    progress: bool = False

    def check_values(self) -> None:
        """Refuse options of a wrong type or value."""
        if self.tokens not in POOLS:
            raise InputError(f"`tokens` is {self.tokens!r:.80}; give one of {', '.join(POOLS)}")
        for key in ("windows", "window_tokens", "batch_size"):
            number = getattr(self, key)
            if number is not None and (not isinstance(number, int | np.integer) or number < 1):
                raise InputError(
                    f"`{key}` is {number!r:.80}; give a whole number from 1 on, or leave it out"
                )
        if not isinstance(self.name, str):
            raise InputError(f"`name` is {self.name!r:.80}; give text, or leave it out")
        if self.step is not None and not isinstance(self.step, int | np.integer):
            raise InputError(f"`step` is {self.step!r:.80}; give a whole number, or leave it out")

    def refuse_options(self, keys: Sequence[str], requirement: str) -> None:
        """Raise InputError for arguments that do not apply to the input, instead of ignoring them."""
        for key in keys:
            if getattr(self, key) is not None:
                raise InputError(f"`{key}` needs {requirement}; leave it out")


def choose_layers(layers: int | Iterable[int] | None, last: int) -> list[int]:
    """Return layers as numbers from 0 to `last`; -1 is `last`, and a missing layer raises InputError."""
    if layers is None:
        return list(range(last + 1))
    numbers = read_layer_numbers(layers)
    for layer in numbers:
        if not -last - 1 <= layer <= last:
            raise InputError(f"there is no layer {layer}; layers are 0 to {last}")
    return list(dict.fromkeys(layer % (last + 1) for layer in numbers))


def read_layer_numbers(layers: int | Iterable[int]) -> list[int]:
    """Return layers as a list; InputError if they are not whole numbers."""
    try:
        numbers = [index(layer) for layer in (layers if isinstance(layers, Iterable) else [layers])]
    except TypeError:
        raise InputError(
            f"`layers` is {layers!r:.80}; give whole numbers, such as [1, -1]"
        ) from None
    if not numbers:
        raise InputError("`layers` is empty; give some layers, or leave it out")
    return numbers
