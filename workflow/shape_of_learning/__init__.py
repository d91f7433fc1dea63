"""Estimators of the shape of hidden states, and the steps of the workflow that measures it.

The estimators are functions of arrays ``X`` of shape ``(n, d)``, or of the distances to neighbours that
:func:`nearest_distances` finds in an array::

    import shape_of_learning as sol

    sol.anisotropy(X), sol.average_cosine(X)
    distances = sol.nearest_distances(X, 100)
    sol.two_nn(distances), sol.mada(distances), sol.mom(distances), sol.mle(distances)
    sol.gride(distances, n1=8)  # each also takes X, and then finds neighbours itself

For vectors before and after a block, both ``(n, d)``::

    sol.linearity(X, Y), sol.linearity_increment(X, Y), sol.block_norm_ratio(X, Y)

For a whole model, or for its hidden states::

    table = sol.measure("gpt2")  # or a folder, a model, hidden states
    sol.plot(table), sol.compare("gpt2", "distilgpt2")
"""

from importlib import import_module as _import_module
from typing import Any as _Any

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
_HOME |= {
    "measure": "one_model.in_python",
    "compare": "one_model.in_python",
    "plot": "one_model.plot",
}
__all__ = list(_HOME)


def __getattr__(name: str) -> _Any:
    # Functions are imported on first use, since the Snakefile imports this package at every start and needs no NumPy.
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_named(name, _HOME[name])


def import_named(name: str, module: str) -> _Any:
    """Import a function or class of this package; an error names a missing library with the remedy."""
    try:
        return getattr(_import_module(f"{__name__}.{module}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith(__name__):
            raise
        raise ModuleNotFoundError(
            f"`{name}` needs the package `{error.name}`; install the extra `models`: "
            "`pip install '.[models]'` in a clone of the repository",
            name=error.name,
        ) from None


def __dir__() -> list[str]:
    return sorted(["__version__", *_HOME])
