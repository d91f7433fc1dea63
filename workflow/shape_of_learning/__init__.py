"""Estimators of the shape of hidden states, and the steps of the workflow that measures it.

The estimators are functions on arrays ``X`` of shape ``(n, d)``, or on the neighbour distances that
:func:`nearest_distances` finds in one::

    import shape_of_learning as sol

    sol.anisotropy(X), sol.average_cosine(X)
    distances = sol.nearest_distances(X, 100)
    sol.two_nn(distances), sol.mada(distances), sol.mom(distances), sol.mle(distances)
    sol.gride(distances, n1=8)

Of vectors before and after a block, both ``(n, d)``::

    sol.linearity(X, Y), sol.linearity_increment(X, Y), sol.block_norm_ratio(X, Y)

Of a whole model, or of the hidden states that it gave::

    sol.measure(model, tokenizer, texts), sol.measure(output.hidden_states, mask=attention_mask)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what type checkers see of the names that are imported on first use
    from shape_of_learning.estimators.anisotropy import anisotropy as anisotropy
    from shape_of_learning.estimators.arrays import distinct_rows as distinct_rows
    from shape_of_learning.estimators.cosine import average_cosine as average_cosine
    from shape_of_learning.estimators.dimension import gride as gride
    from shape_of_learning.estimators.dimension import mada as mada
    from shape_of_learning.estimators.dimension import mle as mle
    from shape_of_learning.estimators.dimension import mom as mom
    from shape_of_learning.estimators.dimension import two_nn as two_nn
    from shape_of_learning.estimators.linearity import block_cosine as block_cosine
    from shape_of_learning.estimators.linearity import block_norm_ratio as block_norm_ratio
    from shape_of_learning.estimators.linearity import linear_map as linear_map
    from shape_of_learning.estimators.linearity import linearity as linearity
    from shape_of_learning.estimators.linearity import linearity_adjusted as linearity_adjusted
    from shape_of_learning.estimators.linearity import linearity_held_out as linearity_held_out
    from shape_of_learning.estimators.linearity import linearity_increment as linearity_increment
    from shape_of_learning.estimators.linearity import (
        linearity_increment_adjusted as linearity_increment_adjusted,
    )
    from shape_of_learning.estimators.linearity import (
        linearity_increment_held_out as linearity_increment_held_out,
    )
    from shape_of_learning.estimators.neighbours import nearest_distances as nearest_distances
    from shape_of_learning.estimators.neighbours import nearest_neighbours as nearest_neighbours
    from shape_of_learning.estimators.spread import effective_rank as effective_rank
    from shape_of_learning.estimators.spread import isoscore as isoscore
    from shape_of_learning.estimators.spread import participation_ratio as participation_ratio
    from shape_of_learning.estimators.weights import (
        log_partition_isotropy as log_partition_isotropy,
    )
    from shape_of_learning.one_model.in_python import measure as measure

__version__ = "0.2.0"

_MODULES = {
    "anisotropy": ("anisotropy",),
    "arrays": ("distinct_rows",),
    "cosine": ("average_cosine",),
    "dimension": ("gride", "mada", "mle", "mom", "two_nn"),
    "linearity": (
        "block_cosine",
        "block_norm_ratio",
        "linear_map",
        "linearity",
        "linearity_adjusted",
        "linearity_held_out",
        "linearity_increment",
        "linearity_increment_adjusted",
        "linearity_increment_held_out",
    ),
    "neighbours": ("nearest_distances", "nearest_neighbours"),
    "spread": ("effective_rank", "isoscore", "participation_ratio"),
    "weights": ("log_partition_isotropy",),
}
_HOME = {name: f"estimators.{module}" for module, names in _MODULES.items() for name in names}
_HOME["measure"] = "one_model.in_python"
__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    # Imported on first use: the Snakefile imports this package at every start and needs no NumPy.
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
