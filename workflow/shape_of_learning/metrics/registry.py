"""The measures that the workflow knows, by the names of tables and configuration.

A new measure is a function and an entry here. Or it is in a package of one's own, as an entry point of the
group ``shape_of_learning.measures``, whose name is the measure's and whose object is a :class:`Measure`. This
module imports nothing heavy, because the Snakefile reads it at every start.
"""

import re
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from shape_of_learning.errors import InputError
from shape_of_learning.metrics.measure_entry import ChosenMeasure, Interval, Measure

__all__ = ["ChosenMeasure", "Interval", "Measure", "find_measure", "measure_names", "registered"]

GROUP = "shape_of_learning.measures"
_KEPT = Interval(above=0, most=1)
_K = Interval(least=2)
_COMBINE = ("mean", "median", "harmonic")


def _isotropy(function: str, center: bool, label: str, axis: str, description: str) -> Measure:
    where = f"shape_of_learning.estimators.{function}:{function}"
    return Measure(
        where,
        "vectors",
        label,
        axis,
        fixed={"center": center},
        description=description,
        leaving_out="leaving_out",
    )


def _dimension(function: str, label: str, **others: Any) -> Measure:
    where = f"shape_of_learning.estimators.{function}:{function}"
    axis = "Intrinsic dimension"
    return Measure(where, "neighbours", label, axis, depends_on_n=True, **others)


def _local(function: str, k: int, combine: str, *, interval: bool = True) -> Measure:
    label = function.upper()
    return _dimension(
        function,
        label,
        parameters={"k": k, "combine": combine},
        allowed={"k": _K, "combine": _COMBINE},
        neighbours="k",
        interval=interval,
        description=f"{label} takes k = {{k}} neighbours (combine: {{combine}})",
    )


def _linearity(name: str, label: str, description: str, *, depends_on_n: bool = True) -> Measure:
    where = f"shape_of_learning.estimators.linearity:{name}"
    return Measure(
        where,
        "pair",
        label,
        "Linearity",
        depends_on_n=depends_on_n,
        description=description,
        leaving_out=f"{name}_without",
    )


MEASURES: dict[str, Measure] = {
    "anisotropy": _isotropy(
        "anisotropy",
        True,
        "Anisotropy",
        "Anisotropy",
        "anisotropy is the largest squared singular value of the centred vectors over the sum of all",
    ),
    "anisotropy_uncentered": _isotropy(
        "anisotropy", False, "Anisotropy, not centred", "Anisotropy", ""
    ),
    "average_cosine": _isotropy("average_cosine", False, "Average cosine", "Average cosine", ""),
    "average_cosine_centered": _isotropy(
        "average_cosine", True, "Average cosine, centred", "Average cosine", ""
    ),
    "two_nn": _dimension(
        "two_nn",
        "TwoNN",
        parameters={"kept": 0.9},
        allowed={"kept": _KEPT},
        neighbours=2,
        suspect_above=0.1,
        description="TwoNN keeps the lowest {kept:percent} of the ratios of neighbour distances",
    ),
    "two_nn_authors": _dimension(
        "two_nn_authors",
        "TwoNN (authors' code)",
        neighbours=2,
        collapse=False,
        suspect_above=0.1,
        description="TwoNN by the authors' code keeps the lowest 20 % and counts vectors that have a copy",
    ),
    # A few rare windows can change a layer's mean by more than the windows at hand tell.
    "mada": _local("mada", 20, "mean", interval=False),
    "mom": _local("mom", 100, "mean", interval=False),
    "mle": _local("mle", 20, "harmonic"),
    **{
        f"gride_{n1}": _dimension(
            "gride",
            f"Gride (n1 = {n1})",
            fixed={"n1": n1},
            neighbours=2 * n1,
            interval=False,  # their coverage was not measured
            # The smallest scale is TwoNN's, by another fit.
            suspect_above=0.1 if n1 == 1 else None,
        )
        for n1 in (1, 2, 4, 8, 16, 32, 64)
    },
    "linearity": _linearity(
        "linearity",
        "Linearity",
        "linearity is the share of the variance of a block's output that an affine map of its input explains",
    ),
    "linearity_increment": _linearity(
        "linearity_increment",
        "Linearity of the increment",
        "linearity of the increment is that of what a block adds to its input",
    ),
    "linearity_adjusted": _linearity(
        "linearity_adjusted",
        "Linearity, adjusted",
        "adjusted linearity is 1 - (1 - s) (n - 1) / (n - 1 - r) with the score s and the input's rank r",
        depends_on_n=False,
    ),
    "linearity_increment_adjusted": _linearity(
        "linearity_increment_adjusted",
        "Linearity of the increment, adjusted",
        "",
        depends_on_n=False,
    ),
    "linearity_held_out": _linearity(
        "linearity_held_out",
        "Linearity, held out",
        "held-out linearity is that on each half of the windows by the map of the other half",
    ),
    "linearity_increment_held_out": _linearity(
        "linearity_increment_held_out", "Linearity of the increment, held out", ""
    ),
    "block_norm_ratio": Measure(
        "shape_of_learning.estimators.block_norms:block_norm_ratio",
        "pair",
        "Norm ratio of a block",
        "Norm of the increment / norm of the output",
        description="the norm ratio is the median over tokens",
        leaving_out="norm_ratio_without",
    ),
    "block_cosine": Measure(
        "shape_of_learning.estimators.block_norms:block_cosine",
        "pair",
        "Cosine of a block's input and output",
        "Cosine",
        leaving_out="cosine_without",
    ),
    **{
        f"{name}_without_first_token": Measure(
            f"shape_of_learning.estimators.linearity:{name}",
            "pair",
            f"{label}, without first tokens",
            "Linearity",
            leaving_out=f"{name}_without",
            rows={"first_token": "drop"},
        )
        for name, label in (
            ("linearity", "Linearity"),
            ("linearity_increment", "Linearity of the increment"),
        )
    },
}


@cache
def registered() -> dict[str, EntryPoint]:
    """Find the measures that packages of this environment register, by name.

    Raises
    ------
    InputError
        If a name is taken already, or none that a file can have anywhere.
    """
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=GROUP):
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", entry.name):
            raise InputError(
                f"package `{_package(entry)}` registers a measure `{entry.name}`; rename its entry point "
                "with letters, digits, `.`, `_` and `-`, or uninstall it"
            )
        if entry.name in MEASURES or entry.name in found:
            other = _package(found[entry.name]) if entry.name in found else "shape-of-learning"
            raise InputError(
                f"package `{_package(entry)}` registers the measure `{entry.name}`, which {other} has "
                "already; rename its entry point, or uninstall it"
            )
        found[entry.name] = entry
    return found


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.module


def measure_names() -> list[str]:
    """List ours and the registered ones; raises as :func:`registered`."""
    return [*MEASURES, *registered()]


def find_measure(name: str) -> Measure:
    """Look a measure up among ours and the registered ones; KeyError if there is none.

    Raises
    ------
    InputError
        If it is registered, but cannot be loaded or is no :class:`Measure`.
    """
    if name in MEASURES:
        return MEASURES[name]
    entry = registered()[name]
    try:
        measure = entry.load()
    except Exception as error:  # whatever the package's code raises
        reason = f"cannot be loaded ({type(error).__name__}: {' '.join(str(error).split())})"
    else:
        if isinstance(measure, Measure):
            return measure
        reason = f"is no Measure but {type(measure).__name__}"
    raise InputError(
        f"package `{_package(entry)}` registers the measure `{name}`, but {entry.value} {reason}; correct "
        "the package, or uninstall it"
    )
