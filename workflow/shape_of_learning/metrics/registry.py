"""The estimators that the workflow knows, by the names of tables and configuration.

A new estimator is a function in a module of this package and an entry here. This module imports
nothing heavy, because the Snakefile reads it at every start.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module


@dataclass(frozen=True)
class Estimator:
    """One column of science.

    Attributes
    ----------
    module, function : str
        Where it lives in this package.
    neighbours : int
        How many nearest distances it needs; 0 for those that read the hidden states themselves.
    arguments : mapping
        Keyword arguments that make the variant.
    parts : tuple of str
        Parts of the `Moments` of a batch that it takes instead of the batch, which then need not fit
        into memory; empty if it takes the matrix or neighbour distances.
    """

    module: str
    function: str
    neighbours: int = 0
    arguments: Mapping[str, bool | float | int | str] = field(default_factory=dict)
    parts: tuple[str, ...] = ()

    @property
    def needs_neighbours(self) -> bool:
        """Whether it works on the shared neighbour search rather than on hidden states."""
        return self.neighbours > 0

    def load(self) -> Callable[..., float]:
        """Import the function."""
        return getattr(import_module(f"shape_of_learning.{self.module}"), self.function)


ESTIMATORS: dict[str, Estimator] = {
    "anisotropy": Estimator(
        "estimators.anisotropy", "anisotropy", 0, {"center": True}, ("scatter",)
    ),
    "anisotropy_uncentered": Estimator(
        "estimators.anisotropy", "anisotropy", 0, {"center": False}, ("scatter",)
    ),
    "average_cosine": Estimator(
        "estimators.average_cosine", "average_cosine", 0, {"center": False}, ("directions",)
    ),
    "average_cosine_centered": Estimator(
        "estimators.average_cosine", "average_cosine", 0, {"center": True}, ("centred_directions",)
    ),
    "two_nn": Estimator("estimators.intrinsic_dimension", "two_nn", 2, {"kept": 0.9}),
    "two_nn_authors": Estimator("estimators.intrinsic_dimension", "two_nn", 2, {"kept": 0.2}),
    "mada": Estimator("estimators.intrinsic_dimension", "mada", 20, {"k": 20, "combine": "mean"}),
    "mom": Estimator("estimators.intrinsic_dimension", "mom", 100, {"k": 100, "combine": "mean"}),
    "mle": Estimator("estimators.intrinsic_dimension", "mle", 20, {"k": 20, "combine": "harmonic"}),
}

# The search is shared, so it goes as far as the greediest estimator asks.
NEIGHBOURS = max(estimator.neighbours for estimator in ESTIMATORS.values())
